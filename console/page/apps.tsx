/** Applications: their numbers, keys and webhooks. Keys and secrets themselves are never shown: nobody has them. */
import { Empty, Facts, Problem, State, Time } from '../part/parts.tsx';
import { ask } from '../platform/api.ts';
import { useLoaded } from '../platform/live.ts';
import type { App, AppDetail } from '../platform/types.ts';

const DETAILS_AT_ONCE = 50;

async function details(signal: AbortSignal): Promise<readonly AppDetail[]> {
  const { apps } = await ask<{ apps: readonly App[] }>('GET', '/apps', undefined, signal);
  return await Promise.all(
    apps.slice(0, DETAILS_AT_ONCE).map((app) => ask<AppDetail>('GET', `/apps/${app.app_uuid}`, undefined, signal)),
  );
}

export function AppsPage() {
  const { data, error } = useLoaded('apps', details, { everyMs: 15_000 });
  return (
    <>
      <div class="head">
        <h1>Applications</h1>
        <p class="quiet small" role="status">
          {data === undefined ? 'Loading …' : `${data.length}${data.length === DETAILS_AT_ONCE ? ' (the first)' : ''}`}
        </p>
      </div>
      <Problem words={error} />
      {data?.length === 0 && (
        <Empty title="No applications">
          <p>
            Make one: <code>bin/sidetone apps create NAME --webhook-url URL</code>
          </p>
        </Empty>
      )}
      <div class="grid">
        {data?.map((app) => (
          <AppCard key={app.app_uuid} app={app} />
        ))}
      </div>
    </>
  );
}

function AppCard({ app }: { readonly app: AppDetail }) {
  const { state, since, last_error: lastError } = app.webhook_status;
  return (
    <section class="card" aria-labelledby={`name-${app.app_uuid}`}>
      <h2 id={`name-${app.app_uuid}`}>{app.name}</h2>
      <Facts
        of={[
          ['Identifier', <code key="id">{app.app_uuid}</code>],
          [
            'Webhook',
            <span key="hook">
              <State state={state} /> {app.webhook_url}
              {lastError !== '' && <span class="error"> {lastError}</span>}
              <span class="quiet small">
                {' '}
                since <Time at={since} />
              </span>
            </span>,
          ],
          ['Numbers', app.inbound_phone_numbers.join(', ') || <None key="none" command="bin/sidetone numbers assign" />],
          ['Caller IDs', app.outbound_caller_ids.join(', ') || <None key="none" command="bin/sidetone caller-ids add" />],
          ['Blocked events', app.blocked_webhook_events.join(', ')],
          ['Rooms', `${app.room_limits.max_rooms} at most, ${app.room_limits.max_members_per_room} members each`],
          ['Payment terminals', app.payment_terminals.join(', ')],
          [
            'API keys',
            <ul key="keys">
              {app.api_keys.map((key) => (
                <li key={key.key_id}>
                  <code>{key.key_id.slice(0, 8)}</code> <span class="quiet small">of</span> <Time at={key.created_at} />
                </li>
              ))}
            </ul>,
          ],
        ]}
      />
      <p class="row small">
        <a href={`/console/calls?app_uuid=${app.app_uuid}`}>Calls</a>
        <a href={`/console/events?app_uuid=${app.app_uuid}`}>Events</a>
      </p>
    </section>
  );
}

const None = ({ command }: { readonly command: string }) => (
  <span class="quiet">
    none; <code>{command}</code>
  </span>
);
