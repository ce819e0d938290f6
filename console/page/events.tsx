/** The log of events, newest first, with their deliveries. What failed can be sent again. */
import { useEffect, useState } from 'preact/hooks';
import { EVENT_NAMES } from '../../src/event/names.ts';
import { AppName, AppSelect, useApps } from '../part/apps.tsx';
import { CallLink, Count, Empty, FilterField, Problem, State, Text, Time } from '../part/parts.tsx';
import { useMayWrite } from '../part/role.ts';
import { visible } from '../part/visible.ts';
import { ask, queryOf } from '../platform/api.ts';
import { useLoaded, whileLoading, wordsOf } from '../platform/live.ts';
import { go, usePlace } from '../platform/router.ts';
import type { App, LoggedEvent } from '../platform/types.ts';

const STATUSES = ['pending', 'delivered', 'dead', 'blocked', 'undeliverable'];
const BEYOND_END = 999_999_999_999_999;
const PAGE_EVENTS = 100;
// A delivery ends without an event of its own.
const POLL_MS = 5000;

export function EventsPage() {
  const { query } = usePlace();
  const filters = {
    app_uuid: query.get('app_uuid') ?? '',
    event: query.get('event') ?? '',
    status: query.get('status') ?? '',
    session_uuid: query.get('session_uuid') ?? '',
  };
  const before = query.get('before') ?? '';
  const asked = queryOf({ ...filters, before: before === '' ? BEYOND_END : before, limit: PAGE_EVENTS });
  const { apps, error: appsError } = useApps();
  const [isMoving, setMoving] = useState(false);
  const { data, error, reload } = useLoaded(
    asked,
    (signal) => ask<{ events: readonly LoggedEvent[]; next: string }>('GET', `/events${asked}`, undefined, signal),
    // An older page does not change but for what is sent again.
    { on: () => before === '', ...(before === '' || isMoving ? { everyMs: POLL_MS } : {}) },
  );
  useEffect(() => setMoving(data?.events.some(({ status }) => status === 'pending') ?? false), [data]);
  const set = (name: keyof typeof filters, value: string) =>
    go(`/console/events${queryOf({ ...filters, [name]: value })}`, { replace: true });
  return (
    <>
      <div class="head">
        <h1>Events</h1>
        <Count of={asked} isLoaded={data !== undefined}>
          {data === undefined ? whileLoading(error) : `${data.events.length} shown`}
        </Count>
      </div>
      <search aria-label="Filter the events">
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <AppSelect apps={apps} value={filters.app_uuid} all onChange={(value) => set('app_uuid', value)} />
          <Choice label="Event" value={filters.event} of={EVENT_NAMES} onChange={(value) => set('event', value)} />
          <Choice label="Delivery" value={filters.status} of={STATUSES} onChange={(value) => set('status', value)} />
          <FilterField
            label="Session"
            type="search"
            size={36}
            value={filters.session_uuid}
            onFinish={(value) => set('session_uuid', value)}
          />
        </form>
      </search>
      <Problem words={error || appsError} />
      {data?.events.length === 0 && data.next === '' && (
        <Empty title="No events">
          <p>Whatever happens in a call is an event, and is posted to the application’s webhook. None matches here.</p>
        </Empty>
      )}
      {data !== undefined && data.events.length > 0 && <Log events={data.events} apps={apps} onReplayed={reload} />}
      <p class="row">
        {before !== '' && <a href={`/console/events${queryOf(filters)}`}>Latest</a>}
        {data !== undefined && data.next !== '' && (
          <a href={`/console/events${queryOf({ ...filters, before: data.next })}`}>Older events</a>
        )}
      </p>
    </>
  );
}

function Choice(props: {
  readonly label: string;
  readonly value: string;
  readonly of: readonly string[];
  onChange(value: string): void;
}) {
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={({ currentTarget }) => props.onChange(currentTarget.value)}>
        <option value="">All</option>
        {props.of.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}

function Log(props: { readonly events: readonly LoggedEvent[]; readonly apps: readonly App[]; onReplayed(): void }) {
  const [open, setOpen] = useState('');
  const toggle = (id: string) => setOpen(open === id ? '' : id);
  return (
    <div class="card scroll">
      <table class="stacks" aria-label="Events">
        <thead>
          <tr>
            {['Time', 'Event', 'Delivery', 'Call', 'Application', 'Attempts'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.events.map((event) => [
            <tr key={event.webhook_id}>
              <td data-name="Time">
                <Time at={event.created_at} />
              </td>
              <td data-name="Event" class="whole">
                <button type="button" aria-expanded={open === event.webhook_id} onClick={() => toggle(event.webhook_id)}>
                  {event.event}
                </button>
              </td>
              <td data-name="Delivery">
                <State state={event.status} />
              </td>
              <td data-name="Call">{event.session_uuid === '' ? '–' : <CallLink uuid={event.session_uuid} />}</td>
              <td data-name="Application" class="party">
                <AppName apps={props.apps} uuid={event.app_uuid} />
              </td>
              <td data-name="Attempts">{event.attempts.length}</td>
            </tr>,
            open === event.webhook_id && (
              <tr key={`${event.webhook_id} open`}>
                <td colSpan={6}>
                  <Opened event={event} onReplayed={props.onReplayed} />
                </td>
              </tr>
            ),
          ])}
        </tbody>
      </table>
    </div>
  );
}

function Opened({ event, onReplayed }: { readonly event: LoggedEvent; onReplayed(): void }) {
  return (
    <div>
      <p class="row">
        <code>{event.webhook_id}</code>
        <Replay
          webhookId={event.webhook_id}
          attempts={event.attempts.length}
          isPending={event.status === 'pending'}
          onReplayed={onReplayed}
        />
      </p>
      <ol>
        {event.attempts.map((attempt) => (
          <li key={attempt.at}>
            <Time at={attempt.at} short /> {attempt.status > 0 ? `HTTP ${attempt.status}` : visible(attempt.error)} in{' '}
            {attempt.duration_ms} ms
            {attempt.next_attempt_at !== '' && (
              <>
                , again at <Time at={attempt.next_attempt_at} short />
              </>
            )}
          </li>
        ))}
      </ol>
      <Text>{visible(JSON.stringify(event.payload, null, 2))}</Text>
    </div>
  );
}

/** The button that sends an event again. The reading role has none. */
export function Replay(props: {
  readonly webhookId: string;
  /** How often it was sent. What is told of a replay goes when another attempt is there to see. */
  readonly attempts: number;
  readonly isPending: boolean;
  onReplayed(): void;
}) {
  const mayWrite = useMayWrite();
  const [told, setTold] = useState('');
  const [isAsking, setAsking] = useState(false);
  useEffect(() => setTold(''), [props.attempts]);
  if (!mayWrite) return null;
  const replay = async () => {
    setAsking(true);
    try {
      await ask('POST', `/events/${props.webhookId}/replay`, {});
      // An event of an application without a webhook, or one that it blocks, is not sent after all.
      setTold('Queued to be sent again.');
      props.onReplayed();
    } catch (problem) {
      setTold(wordsOf(problem));
    }
    setAsking(false);
  };
  // The two clicks of a double click are one: the button is disabled by the time of the second.
  return (
    <>
      <button type="button" onClick={replay} disabled={props.isPending || isAsking}>
        Replay
      </button>
      <span class="small quiet" role="status">
        {props.isPending ? 'It is still being delivered.' : told}
      </span>
    </>
  );
}
