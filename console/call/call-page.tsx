/** One call: what it is, its time axis, everything that happened in it, and the details of what is selected. */
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { forgetCalls } from '../page/call-list.ts';
import { AppName, useApps } from '../part/apps.tsx';
import { Empty, Facts, Problem, State, Time } from '../part/parts.tsx';
import { useMayWrite } from '../part/role.ts';
import { Foreign } from '../part/text.tsx';
import { ask } from '../platform/api.ts';
import { platformNow } from '../platform/clock.ts';
import { useLoaded, wordsOf } from '../platform/live.ts';
import { go } from '../platform/router.ts';
import { span } from '../platform/time.ts';
import type { Call, Entry, Timeline } from '../platform/types.ts';
import { Axis, type Extent } from './axis.tsx';
import { attemptsOf, Details } from './details.tsx';
import { Ladder } from './ladder.tsx';
import { QualityStrip } from './quality.tsx';
import { endOf, extentOf, gapsOf, spansOf } from './spans.ts';
import { takesOf } from './takes.ts';
import { Waveform } from './waveform.tsx';
import { KIND_NAMES, KINDS, type Kind, keyOf, mosOf, TYPE_NAMES, titleOf } from './words.ts';

const POLL_MS = 2000;

export function CallPage({ uuid }: { readonly uuid: string }) {
  const [isMoving, setMoving] = useState(true);
  const [replayed, setReplayed] = useState<Replayed>();
  const { data, error, reload } = useLoaded(
    uuid,
    (signal) => ask<Timeline>('GET', `/sessions/${uuid}/timeline`, undefined, signal),
    // SIP, media and attempts of webhooks come without an event, so a call that moves is asked for too.
    { on: ({ sessionUuid }) => sessionUuid === uuid, ...(isMoving ? { everyMs: POLL_MS } : {}) },
  );
  useEffect(() => {
    if (data !== undefined) setMoving(moves(data, replayed));
  }, [data, replayed]);
  const follow = (webhookId: string) => {
    setReplayed({ webhookId, attempts: attemptsOf(data?.entries ?? [], webhookId).length, at: platformNow() });
    reload();
  };
  if (data === undefined)
    return error === '' ? (
      <div class="empty">
        <h1>Call</h1>
        <p role="status">Loading …</p>
      </div>
    ) : (
      <Empty title="The call cannot be shown" isPage>
        <p>{error}</p>
        <p>
          Calls are kept for <code>CALL_HISTORY_DAYS</code>. <a href="/console/calls">Back to the calls</a>
        </p>
      </Empty>
    );
  return (
    <>
      <Head timeline={data} />
      <Problem words={error} />
      <Opened timeline={data} onReplayed={follow} />
    </>
  );
}

/** An event that was sent again from here. */
interface Replayed {
  readonly webhookId: string;
  /** Attempts that it had before. */
  readonly attempts: number;
  readonly at: number;
}

/** Whether something may still come: the call lives, or an event of it is still to be delivered. */
function moves({ session, entries }: Timeline, replayed: Replayed | undefined): boolean {
  if (session.ended_at === '') return true;
  const open = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === 'event') open.add(entry.webhook_id);
    if (entry.kind === 'webhook' && entry.next_at === '') open.delete(entry.webhook_id);
    if (entry.kind === 'webhook' && entry.next_at !== '') open.add(entry.webhook_id);
  }
  if (replayed !== undefined && attemptsOf(entries, replayed.webhookId).length <= replayed.attempts) open.add(replayed.webhookId);
  // An event that the application has blocked has no attempt, ever.
  const since = platformNow() - Math.max(Date.parse(session.ended_at), replayed?.at ?? 0);
  return open.size > 0 && since < 10 * 60_000;
}

function Head({ timeline: { session } }: { readonly timeline: Timeline }) {
  const { apps } = useApps();
  const { quality } = session;
  return (
    <section class="card" aria-labelledby="call">
      <div class="head">
        <h1 id="call">
          <Foreign text={session.caller_id || (session.type === 'websocket' ? 'WebSocket' : 'unknown')} />
          {session.did !== '' && ' → '}
          {session.did !== '' && <Foreign text={session.did} />}
        </h1>
        <span role="status">
          <State state={session.state} />
        </span>
      </div>
      <div class="grid">
        <Facts
          of={[
            ['Session', <code key="uuid">{session.session_uuid}</code>],
            ['Application', <AppName key="app" apps={apps} uuid={session.app_uuid} />],
            ['Kind', TYPE_NAMES[session.type]],
            ['Trunk', session.trunk],
          ]}
        />
        <Facts
          of={[
            ['Began', <Time key="began" at={session.created_at} />],
            ['Answered', <Time key="answered" at={session.answered_at} />],
            ['Ended', <Time key="ended" at={session.ended_at} />],
            ['Length', session.ended_at === '' ? '' : span(session.duration_seconds)],
          ]}
        />
        <Facts
          of={[
            ['End', session.hangup_cause.replaceAll('_', ' ')],
            ['Hung up by', session.hangup_by],
            ['MOS', mosOf(session) || (quality?.mos === 0 ? 'no packets' : '')],
            ['Packets lost', mosOf(session) === '' ? '' : quality?.packets_lost],
            ['Jitter', quality?.jitter_ms === undefined || mosOf(session) === '' ? '' : `${quality.jitter_ms} ms`],
          ]}
        />
      </div>
      <Actions session={session} />
    </section>
  );
}

/** Calls that come or go over SIP. Those of a browser and of a WebSocket have no message to show. */
const HAS_SIP: ReadonlySet<string> = new Set(['phone_in', 'phone_out', 'sip']);

function Actions({ session: { session_uuid: uuid, ended_at: endedAt, type } }: { readonly session: Call }) {
  const mayWrite = useMayWrite();
  const [error, setError] = useState('');
  const erase = async () => {
    if (!confirm('Erase this call, its timeline and its events? This cannot be undone.')) return;
    try {
      await ask('DELETE', `/sessions/${uuid}`);
      forgetCalls();
      go('/console/calls');
    } catch (problem) {
      setError(wordsOf(problem));
    }
  };
  return (
    <p class="row small">
      {HAS_SIP.has(type) && (
        <>
          <a href={`/operator/v1/sessions/${uuid}/sip.txt`} target="_blank" rel="noreferrer">
            SIP as text
          </a>
          <a href={`/operator/v1/sessions/${uuid}/sip.pcap`} download={`${uuid}.pcap`}>
            SIP as capture (pcap)
          </a>
        </>
      )}
      <a href={`/console/events?session_uuid=${uuid}`}>Events</a>
      {mayWrite && endedAt !== '' && (
        <button type="button" class="danger" onClick={erase}>
          Erase
        </button>
      )}
      <span class="error" role="status">
        {error}
      </span>
    </p>
  );
}

const DEFAULT_KINDS: ReadonlySet<Kind> = new Set(['command', 'sip', 'media', 'event', 'webhook']);

function Opened({ timeline, onReplayed }: { readonly timeline: Timeline; onReplayed(webhookId: string): void }) {
  const { entries, session } = timeline;
  const [selected, setSelected] = useState('');
  const chosen = useMemo(() => entries.find((each) => keyOf(each) === selected), [entries, selected]);
  const choose = useCallback((entry: Entry) => setSelected(keyOf(entry)), []);
  return (
    <div class="call">
      <div>
        <AxisCard timeline={timeline} chosen={chosen} onSelect={choose} />
        <Happened entries={entries} selected={selected} onSelect={choose} />
      </div>
      <aside class={chosen === undefined ? 'card' : 'card chosen'} aria-labelledby="details">
        <div class="head">
          <h2 id="details">Details</h2>
          {chosen !== undefined && (
            <button type="button" onClick={() => setSelected('')}>
              Close
            </button>
          )}
        </div>
        {chosen === undefined ? (
          <p class="quiet">Select an entry to see all of it. The arrow keys go through the list, and Tab leads on to here.</p>
        ) : (
          <Details key={selected} entry={chosen} entries={entries} session={session} onReplayed={onReplayed} />
        )}
      </aside>
    </div>
  );
}

/** The time axis, with what lies under it to the same scale. */
function AxisCard(props: { readonly timeline: Timeline; readonly chosen: Entry | undefined; onSelect(entry: Entry): void }) {
  const { timeline, chosen, onSelect } = props;
  const { entries, session } = timeline;
  const { whole, end, spans, takes } = useMemo(() => {
    const now = platformNow();
    const ends = endOf(session, now);
    const lasting = spansOf(entries, ends);
    return {
      whole: extentOf(timeline, now),
      end: ends,
      spans: lasting,
      takes: takesOf(entries, ends, (uuid) => gapsOf(lasting, uuid)),
    };
  }, [timeline]);
  const [zoomed, setZoomed] = useState<Extent>();
  const extent = zoomed ?? whole;
  return (
    <section class="card" aria-labelledby="axis">
      <div class="head">
        <h2 id="axis">Time axis</h2>
        <Zoom whole={whole} extent={extent} around={chosen && Date.parse(chosen.at)} onZoom={setZoomed} />
      </div>
      <Axis entries={entries} spans={spans} extent={extent} start={whole[0]} selected={chosen} onSelect={onSelect} />
      <Late entries={entries.filter(({ at }) => Date.parse(at) > whole[1])} end={end} onSelect={onSelect} />
      <QualityStrip entries={entries} session={session} extent={extent} />
      {takes.map((take) => (
        <Waveform key={take.recordingUuid} take={take} spans={spans} extent={extent} />
      ))}
    </section>
  );
}

/** What came long after the call: the axis is that of the call, so it is told below it. */
function Late({ entries, end, onSelect }: { readonly entries: readonly Entry[]; end: number; onSelect(entry: Entry): void }) {
  const [first] = entries;
  const last = entries.at(-1);
  if (first === undefined || last === undefined) return null;
  return (
    <p class="late small quiet">
      ▸ {entries.length === 1 ? '1 entry' : `${entries.length} entries, the last`} {span((Date.parse(last.at) - end) / 1000)}{' '}
      after the end of the call{' '}
      <button type="button" onClick={() => onSelect(first)}>
        {titleOf(first)}
      </button>
    </p>
  );
}

/** The list of what happened, with the kinds of entries that are shown. */
function Happened(props: { readonly entries: readonly Entry[]; readonly selected: string; onSelect(entry: Entry): void }) {
  const { entries } = props;
  const [kinds, setKinds] = useState(DEFAULT_KINDS);
  const shown = useMemo(() => entries.filter(({ kind }) => kinds.has(kind)), [entries, kinds]);
  return (
    <section class="card" aria-labelledby="happened">
      <div class="head">
        <h2 id="happened">What happened</h2>
        <fieldset class="row">
          <legend class="hidden-text">Show</legend>
          {KINDS.map((kind) => (
            <label key={kind} class={`row small ${kind}`}>
              <input type="checkbox" checked={kinds.has(kind)} onChange={() => setKinds(toggled(kinds, kind))} />
              {KIND_NAMES[kind]}
            </label>
          ))}
        </fieldset>
      </div>
      <Ladder entries={shown} selected={props.selected} onSelect={props.onSelect} />
      {entries.length === 0 && <p class="quiet">Nothing is kept of this call yet. A timeline is written within ten seconds.</p>}
    </section>
  );
}

function toggled(kinds: ReadonlySet<Kind>, kind: Kind): ReadonlySet<Kind> {
  const next = new Set(kinds);
  if (!next.delete(kind)) next.add(kind);
  return next;
}

const ZOOM = 3;

function Zoom(props: {
  readonly whole: Extent;
  readonly extent: Extent;
  readonly around: number | undefined;
  onZoom(extent: Extent | undefined): void;
}) {
  const { whole, extent, onZoom } = props;
  const [from, until] = extent;
  const isWhole = from === whole[0] && until === whole[1];
  const length = until - from;
  const middle = props.around !== undefined && props.around >= from && props.around <= until ? props.around : (from + until) / 2;
  /** The part of the call that is `wide` ms long and has `at` where it is now. */
  const show = (wide: number, at: number) => {
    const size = Math.min(whole[1] - whole[0], Math.max(20, wide));
    const begin = Math.max(whole[0], Math.min(whole[1] - size, at - size / 2));
    onZoom(size >= whole[1] - whole[0] ? undefined : [begin, begin + size]);
  };
  return (
    <div class="row">
      <button type="button" aria-label="Zoom in" onClick={() => show(length / ZOOM, middle)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" disabled={isWhole} onClick={() => show(length * ZOOM, middle)}>
        −
      </button>
      <button type="button" aria-label="Earlier" disabled={isWhole} onClick={() => show(length, (from + until) / 2 - length / 2)}>
        ◂
      </button>
      <button type="button" aria-label="Later" disabled={isWhole} onClick={() => show(length, (from + until) / 2 + length / 2)}>
        ▸
      </button>
      <button type="button" disabled={isWhole} onClick={() => onZoom(undefined)}>
        Whole call
      </button>
    </div>
  );
}
