/** Trying it: a call from one of an application's numbers, a file played to it, and a sample of an event. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { blocker, EVENT_NAMES } from '../../src/event/names.ts';
import { AppSelect, useApps } from '../part/apps.tsx';
import { CallLink, Empty, Problem, State } from '../part/parts.tsx';
import { ask } from '../platform/api.ts';
import { useLoaded, whileLoading, wordsOf } from '../platform/live.ts';
import { mayLeave } from '../platform/router.ts';
import type { AppDetail, Call, Timeline, Trunk } from '../platform/types.ts';
import { Softphone } from './softphone.tsx';

/** What the page tells to do is done elsewhere, so it looks whether it was. */
const POLL_MS = 15_000;

export function TryPage() {
  const [hasNone, setHasNone] = useState(false);
  // An application that is made later is not chosen in place of the one that is shown.
  const { apps, isLoaded, error } = useApps(hasNone ? { everyMs: POLL_MS } : {});
  useEffect(() => setHasNone(isLoaded && apps.length === 0), [isLoaded, apps]);
  const [chosen, setChosen] = useState('');
  const appUuid = chosen === '' ? (apps.at(-1)?.app_uuid ?? '') : chosen;
  const { data: app, error: detailError } = useLoaded(
    appUuid,
    (signal) => (appUuid === '' ? Promise.resolve(undefined) : ask<AppDetail>('GET', `/apps/${appUuid}`, undefined, signal)),
    { everyMs: POLL_MS },
  );
  const failed = error || detailError;
  // A call from this page is one to the application that is shown.
  const choose = (uuid: string) => {
    if (mayLeave()) setChosen(uuid);
  };
  return (
    <>
      <div class="head">
        <h1>Try it</h1>
        <p class="quiet small" role="status">
          {isLoaded && (app !== undefined || apps.length === 0) ? '' : whileLoading(failed)}
        </p>
      </div>
      <div class="filters">
        <AppSelect apps={apps} value={appUuid} onChange={choose} />
      </div>
      <Problem words={failed} />
      {isLoaded && apps.length === 0 && (
        <Empty title="No application">
          <p>
            Make one: <code>bin/sidetone apps create NAME</code>
          </p>
        </Empty>
      )}
      {app !== undefined && (
        <div class="grid">
          <Dial key={app.app_uuid} app={app} />
          <Sample key={`${app.app_uuid} sample`} app={app} />
          <FromTheBrowser app={app} />
        </div>
      )}
    </>
  );
}

function Dial({ app }: { readonly app: AppDetail }) {
  const load = (signal: AbortSignal) => ask<{ trunks: readonly Trunk[] }>('GET', '/trunks', undefined, signal);
  const { data } = useLoaded('trunks', load, { everyMs: POLL_MS });
  const [call, setCall] = useState('');
  const [error, setError] = useState('');
  /** The platform is being asked: a second click places no second call. */
  const isAsking = useRef(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement) || isAsking.current) return;
    isAsking.current = true;
    const form = new FormData(event.currentTarget);
    const trunk = String(form.get('trunk') ?? '');
    const body = { from: String(form.get('from')), to: String(form.get('to')), ...(trunk === '' ? {} : { trunk }) };
    try {
      const { session_uuid: uuid } = await ask<{ session_uuid: string }>('POST', `/apps/${app.app_uuid}/dial`, body);
      setCall(uuid);
      setError('');
    } catch (problem) {
      setError(wordsOf(problem));
    }
    isAsking.current = false;
  };
  return (
    <section class="card" aria-labelledby="dial">
      <h2 id="dial">Call a number</h2>
      <form class="form" onSubmit={submit}>
        <label>
          From (a caller ID of the application)
          <input name="from" required list="caller-ids" defaultValue={app.outbound_caller_ids[0] ?? ''} />
        </label>
        <datalist id="caller-ids">
          {app.outbound_caller_ids.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <Target number={app.inbound_phone_numbers[0] ?? ''} />
        <label>
          Trunk
          <select name="trunk">
            <option value="">by priority</option>
            {data?.trunks.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <p class="row">
          <button class="primary" type="submit">
            Call
          </button>
        </p>
      </form>
      {app.outbound_caller_ids.length === 0 && (
        <p class="quiet small">
          The application has no caller ID yet: <code>bin/sidetone caller-ids add {app.app_uuid} +15550001</code>
        </p>
      )}
      <Problem words={error} />
      {call !== '' && <Placed key={call} app={app} uuid={call} />}
    </section>
  );
}

/** Whom to call. */
function Target({ number }: { readonly number: string }) {
  return (
    <label>
      To (a number, or sip:DEVICE)
      <input
        name="to"
        required
        pattern="\+[1-9][0-9]{1,14}|sip:[A-Za-z0-9+][A-Za-z0-9._~*+\-]{0,63}"
        title="A number with +, or sip: and the user name of a device"
        placeholder="+15550001"
        defaultValue={number}
      />
    </label>
  );
}

/** The call that was placed: its state, a file to play, and its end. */
function Placed({ app, uuid }: { readonly app: AppDetail; readonly uuid: string }) {
  const { data } = useLoaded(uuid, (signal) => ask<Timeline>('GET', `/sessions/${uuid}/timeline`, undefined, signal), {
    on: ({ sessionUuid }) => sessionUuid === uuid,
  });
  const [url, setUrl] = useState('');
  const [told, setTold] = useState('');
  const [error, setError] = useState('');
  const [isAsking, setAsking] = useState(false);
  const call: Call | undefined = data?.session;
  const isUp = call !== undefined && call.ended_at === '';
  const order = async (what: string, body: object) => {
    setAsking(true);
    try {
      await ask('POST', `/apps/${app.app_uuid}/sessions/${uuid}/${what}`, body);
      setTold(what === 'play' ? 'It is being played.' : 'It is being hung up.');
      setError('');
    } catch (problem) {
      setTold('');
      setError(wordsOf(problem));
    }
    setAsking(false);
  };
  return (
    <div class="notice">
      <p>
        Call <CallLink uuid={uuid} /> {call !== undefined && <State state={call.state} />}{' '}
        {call?.hangup_cause.replaceAll('_', ' ')}
      </p>
      {isUp && (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void order('play', { url });
          }}
        >
          <label>
            A file to play (http or https)
            <input type="url" required value={url} onInput={({ currentTarget }) => setUrl(currentTarget.value)} />
          </label>
          <p class="row">
            <button type="submit" disabled={isAsking || call.state !== 'answered'}>
              Play
            </button>
            <button type="button" class="danger" disabled={isAsking} onClick={() => void order('hangup', {})}>
              Hang up
            </button>
          </p>
        </form>
      )}
      <Problem words={error} />
      <p class="small" role="status">
        {/* What was ordered of a call that has ended is done, or came too late. */}
        {isUp && told}
      </p>
    </div>
  );
}

/** What becomes of an event of that name. */
function wayOf(
  { webhook_url: url, webhook_status: { state }, blocked_webhook_events: blocked }: AppDetail,
  event: string,
): string {
  if (blocker(blocked)(event)) return 'The application blocks it: it is kept in the log, and not sent';
  if (state === 'unset') return 'The application has no webhook: it is kept in the log as undeliverable';
  return state === 'disabled' ? `It waits until the webhook is set anew, as ${url} answered 410` : `It goes to ${url}`;
}

function Sample({ app }: { readonly app: AppDetail }) {
  const [event, setEvent] = useState(EVENT_NAMES[0] ?? '');
  const [sent, setSent] = useState('');
  const [error, setError] = useState('');
  const send = async () => {
    try {
      const { webhook_id: id } = await ask<{ webhook_id: string }>('POST', `/apps/${app.app_uuid}/events`, { event });
      setSent(id);
      setError('');
    } catch (problem) {
      setError(wordsOf(problem));
    }
  };
  return (
    <section class="card" aria-labelledby="sample">
      <h2 id="sample">Send a sample event</h2>
      <p class="quiet small">
        {wayOf(app, event)}, marked <code>"test": true</code>.
      </p>
      <div class="form">
        <label>
          Event
          <select value={event} onChange={({ currentTarget }) => setEvent(currentTarget.value)}>
            {EVENT_NAMES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <p class="row">
          <button type="button" onClick={send}>
            Send
          </button>
        </p>
      </div>
      <Problem words={error} />
      <p class="small" role="status">
        {sent !== '' && (
          <>
            Queued as <code>{sent}</code>. <a href={`/console/events?app_uuid=${app.app_uuid}`}>See its delivery</a>
          </>
        )}
      </p>
    </section>
  );
}

/** A call by WebRTC from this page. The demo application of `sidetone dev` has a page of its own too. */
function FromTheBrowser({ app }: { readonly app: AppDetail }) {
  const [origin, setOrigin] = useState('');
  useEffect(() => {
    const isDemo = app.name === 'demo' && /^http:\/\/(127\.0\.0\.1|localhost)(:|\/)/.test(app.webhook_url);
    setOrigin(isDemo ? new URL(app.webhook_url).origin : '');
  }, [app]);
  return (
    <section class="card" aria-labelledby="browser">
      <h2 id="browser">Call from the browser</h2>
      <Softphone key={app.app_uuid} app={app} />
      {origin !== '' && (
        <p class="small">
          The demo also has{' '}
          <a href={`${origin}/`} target="_blank" rel="noreferrer">
            a page of its own
          </a>
          , whose calls come in over SIP.
        </p>
      )}
    </section>
  );
}
