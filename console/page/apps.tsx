/** Applications: their numbers, keys and webhooks. Keys and secrets themselves are never shown: nobody has them. */
import { useState } from 'preact/hooks';
import { useApps } from '../part/apps.tsx';
import { Empty, Facts, FilterField, Problem, State, Time } from '../part/parts.tsx';
import { Foreign } from '../part/text.tsx';
import { ask } from '../platform/api.ts';
import { useLoaded, whileLoading } from '../platform/live.ts';
import type { App, AppDetail } from '../platform/types.ts';

/** Each application that is shown is asked for by itself, so a few are shown at once. */
const SHOWN_AT_ONCE = 12;
const POLL_MS = 15_000;

export function AppsPage() {
  const { apps, isLoaded, error } = useApps({ everyMs: POLL_MS });
  const [search, setSearch] = useState('');
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const found = apps.filter((app) => matches(app, search)).reverse();
  return (
    <>
      <div class="head">
        <h1>Applications</h1>
        <p class="quiet small" role="status">
          {isLoaded ? told(Math.min(most, found.length), found.length) : whileLoading(error)}
        </p>
      </div>
      {apps.length > SHOWN_AT_ONCE && (
        <search class="filters" aria-label="Find an application">
          <FilterField label="Name or identifier" type="search" value={search} onFinish={setSearch} />
        </search>
      )}
      <Problem words={error} />
      {isLoaded && apps.length === 0 && (
        <Empty title="No applications">
          <p>
            Make one: <code>bin/sidetone apps create NAME --webhook-url URL</code>
          </p>
        </Empty>
      )}
      {apps.length > 0 && found.length === 0 && (
        <Empty title="No application matches">
          <button type="button" onClick={() => setSearch('')}>
            Show all applications
          </button>
        </Empty>
      )}
      <div class="grid">
        {found.slice(0, most).map((app) => (
          <AppCard key={app.app_uuid} app={app} />
        ))}
      </div>
      {found.length > most && (
        <p class="row">
          <button type="button" onClick={() => setMost(most + SHOWN_AT_ONCE)}>
            Older applications
          </button>
        </p>
      )}
    </>
  );
}

const told = (shown: number, found: number): string =>
  shown === found ? `${found} shown` : `the newest ${shown} of ${found} shown`;

const matches = ({ name, app_uuid: uuid }: App, search: string): boolean =>
  `${name} ${uuid}`.toLowerCase().includes(search.toLowerCase());

function AppCard({ app: { app_uuid: uuid, name } }: { readonly app: App }) {
  const { data, error } = useLoaded(uuid, (signal) => ask<AppDetail>('GET', `/apps/${uuid}`, undefined, signal), {
    everyMs: POLL_MS,
  });
  return (
    <section class="card" aria-labelledby={`name-${uuid}`}>
      <h2 id={`name-${uuid}`}>
        <Foreign text={name} />
      </h2>
      <Problem words={error} />
      {data === undefined ? <p class="quiet">{whileLoading(error)}</p> : <AppFacts app={data} />}
      <p class="row small">
        <a href={`/console/calls?app_uuid=${uuid}`}>Calls</a>
        <a href={`/console/events?app_uuid=${uuid}`}>Events</a>
      </p>
    </section>
  );
}

function AppFacts({ app }: { readonly app: AppDetail }) {
  const { state, since, last_error: lastError } = app.webhook_status;
  const { recording_store: store } = app;
  return (
    <Facts
      of={[
        ['Identifier', <code key="id">{app.app_uuid}</code>],
        [
          'Webhook',
          <span key="hook">
            <State state={state} /> {app.webhook_url}
            {app.webhook_url === '' && <code>{`bin/sidetone apps update ${app.app_uuid} --webhook-url URL`}</code>}
            {lastError !== '' && <span class="error"> {lastError}</span>}
            {app.webhook_url !== '' && (
              <span class="quiet small">
                {' '}
                since <Time at={since} />
              </span>
            )}
          </span>,
        ],
        [
          'Numbers',
          app.inbound_phone_numbers.join(', ') || (
            <None key="none" command={`bin/sidetone numbers assign +15550001 ${app.app_uuid}`} />
          ),
        ],
        [
          'Caller IDs',
          app.outbound_caller_ids.join(', ') || (
            <None key="none" command={`bin/sidetone caller-ids add ${app.app_uuid} +15550001`} />
          ),
        ],
        ['Blocked events', app.blocked_webhook_events.join(', ')],
        [
          'May call',
          app.allowed_destinations.map((prefix) => `${prefix}…`).join(', ') || 'every number that ALLOWED_DESTINATIONS permits',
        ],
        ['May not call', app.blocked_destinations.map((prefix) => `${prefix}…`).join(', ')],
        ['Rooms', `${app.room_limits.max_rooms} at most, ${app.room_limits.max_members_per_room} members each`],
        ...(store === undefined
          ? []
          : [['Recordings', `${gigabytes(store.kept_bytes)} of ${gigabytes(store.max_bytes)} GB kept`] as const]),
        ['Payment terminals', app.payment_terminals.join(', ')],
        [
          'API keys',
          <ul key="keys">
            {app.api_keys.map((key) => (
              <li key={key.key_id}>
                <code title={key.key_id}>{key.key_id.slice(0, 8)}</code> <span class="quiet small">of</span>{' '}
                <Time at={key.created_at} />
              </li>
            ))}
          </ul>,
        ],
      ]}
    />
  );
}

const gigabytes = (bytes: number): string => (bytes / 1e9).toFixed(bytes < 1e9 ? 3 : 1);

const None = ({ command }: { readonly command: string }) => (
  <span class="quiet">
    none; <code>{command}</code>
  </span>
);
