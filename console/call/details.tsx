/** All of one entry: its fields, the request and answer of a webhook with its replay, the text of a SIP message. */

import { Replay } from '../page/events.tsx';
import { Facts, Text, Time } from '../part/parts.tsx';
import { Foreign } from '../part/text.tsx';
import { visible } from '../part/visible.ts';
import { askText } from '../platform/api.ts';
import { useLoaded } from '../platform/live.ts';
import type { Call, Entry, EventEntry, SipEntry, WebhookEntry } from '../platform/types.ts';
import { detailOf, isBad, KIND_NAMES, titleOf } from './words.ts';

export function Details(props: {
  readonly entry: Entry;
  readonly entries: readonly Entry[];
  readonly session: Call;
  onReplayed(webhookId: string): void;
}) {
  const { entry } = props;
  return (
    <>
      <h3 class={isBad(entry) ? 'error' : entry.kind}>
        <Foreign text={titleOf(entry)} />
      </h3>
      <p class="quiet small">
        {KIND_NAMES[entry.kind]}, <Time at={entry.at} short />
      </p>
      <Body {...props} />
    </>
  );
}

function Body({ entry, entries, session, onReplayed }: Parameters<typeof Details>[0]) {
  switch (entry.kind) {
    case 'command':
      return (
        <Facts
          of={[
            ['Request', <code key="path">{visible(`${entry.method} ${entry.path}`)}</code>],
            ['Answer', entry.status],
            ['Took', `${entry.took_ms} ms`],
            ['Operation', <code key="operation">{entry.operation_uuid}</code>],
          ]}
        />
      );
    case 'sip':
      return <Sip entry={entry} session={session} />;
    case 'event':
    case 'webhook':
      return <Delivery entry={entry} entries={entries} onReplayed={onReplayed} />;
    case 'media': {
      const { at: _at, kind: _kind, what: _what, ...more } = entry;
      return <Facts of={Object.entries(more).map(([name, value]) => [name.replaceAll('_', ' '), visible(String(value))])} />;
    }
    case 'quality':
      return <p>{detailOf(entry)}</p>;
  }
}

/** The attempts to deliver an event, in order. */
export const attemptsOf = (entries: readonly Entry[], webhookId: string): readonly WebhookEntry[] =>
  entries.filter((each) => each.kind === 'webhook').filter((each) => each.webhook_id === webhookId);

/** An event, its attempts, and its replay; of an attempt also what the receiver answered. */
function Delivery(props: {
  readonly entry: EventEntry | WebhookEntry;
  readonly entries: readonly Entry[];
  onReplayed(webhookId: string): void;
}) {
  const { entry, entries } = props;
  const id = entry.webhook_id;
  const event = entries.find((each) => each.kind === 'event' && each.webhook_id === id);
  const attempts = attemptsOf(entries, id);
  const last = attempts.at(-1);
  return (
    <>
      {entry.kind === 'webhook' && (
        <>
          <Facts
            of={[
              ['Attempt', entry.attempt],
              ['Answer', entry.status > 0 ? `HTTP ${entry.status}` : ''],
              ['Error', visible(entry.error)],
              ['Took', `${entry.took_ms} ms`],
              ['Next attempt', entry.next_at === '' ? '' : <Time key="next" at={entry.next_at} short />],
            ]}
          />
          <h3>Answer</h3>
          <Text>{entry.response === '' ? '(no body)' : visible(entry.response)}</Text>
        </>
      )}
      <p class="row">
        <Replay
          webhookId={id}
          attempts={attempts.length}
          isPending={last !== undefined && last.next_at !== ''}
          onReplayed={() => props.onReplayed(id)}
        />
      </p>
      {entry.kind === 'event' && <Attempts of={attempts} />}
      <h3>{entry.kind === 'webhook' ? 'Request' : 'Body'}</h3>
      <Text>{event?.kind === 'event' ? visible(JSON.stringify(event.body, null, 2)) : id}</Text>
      <p class="quiet small mono">{id}</p>
    </>
  );
}

const Attempts = ({ of }: { readonly of: readonly WebhookEntry[] }) => (
  <>
    <h3>Deliveries</h3>
    {of.length === 0 && <p class="quiet small">It was not sent, or not yet.</p>}
    <ol>
      {of.map((each) => (
        <li key={each.at} class={isBad(each) ? 'error small' : 'small'}>
          <Time at={each.at} short /> {visible(titleOf(each))}, {detailOf(each)}
        </li>
      ))}
    </ol>
  </>
);

function Sip({ entry, session }: { readonly entry: SipEntry; readonly session: Call }) {
  const { data, error } = useLoaded(session.session_uuid, (signal) => sipTexts(session.session_uuid, signal));
  const arrow = entry.direction === 'in' ? '<-' : '->';
  const text = data?.find((each) => each.startsWith(`${entry.at} ${arrow}`) && each.includes(entry.first_line));
  return (
    <>
      <Facts
        of={[
          ['Direction', entry.direction === 'in' ? 'from the far end' : 'to the far end'],
          ['Far end', `${entry.peer} over ${entry.transport}`],
          ['CSeq', visible(entry.cseq)],
          ['Call-ID', <Foreign key="id" text={entry.call_id} />],
        ]}
      />
      <h3>Message</h3>
      <Text>
        {text === undefined ? error || visible(entry.first_line) : visible(text.slice(text.indexOf('\n') + 1).trimEnd())}
      </Text>
    </>
  );
}

/** The messages of a call as text, each with the line before it that tells its time, direction and far end. */
async function sipTexts(uuid: string, signal: AbortSignal): Promise<readonly string[]> {
  const text = await askText('GET', `/sessions/${uuid}/sip.txt`, undefined, signal);
  return text.split(/^(?=\d{4}-\d\d-\d\dT[\d:.]+Z (?:<-|->) )/m);
}
