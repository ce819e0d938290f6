/** Checks that need the running platform: its parts, its trunks, its webhooks, what it refused lately. */
import type { Outbound } from '../outbound/outbound.ts';
import { formatHostPort } from '../sip/message/uri.ts';
import { type Check, fault, ok, warning } from './check.ts';
import { NotAdmitted, type OperatorApi, Unexpected } from './operator-api.ts';
import { type Names, trunkChecks } from './trunks.ts';
import { type WebhookApp, webhookChecks } from './webhooks.ts';

/** The age from which on a refusal is told of no more. */
const REFUSALS_MS = 3_600_000;
const CLOCK_APART_MAX_SEC = 5;
/** The part of its bound from which on it is told what an application keeps in recordings. */
const KEPT_WARNING = 0.8;
/** Applications whose recordings are told of, the fullest first. */
const KEPT_APPS_MAX = 100;

interface ToldApp extends WebhookApp {
  /** The use of its bound, where what applications keep in recordings is bounded. */
  readonly recording_store?: { readonly kept_bytes: number; readonly max_bytes: number };
}

interface ToldNode {
  readonly http_host: string;
  readonly http_port: number;
  readonly version: string;
  readonly dead_at: string;
  readonly suspect: boolean;
  readonly unreached: boolean;
  /** A platform of an older release does not tell it. */
  readonly settings_apart?: readonly string[];
}

interface ToldRefusal {
  readonly at: string;
  /** Since then there were `count` of them. */
  readonly first_at: string;
  readonly source: string;
  readonly count: number;
  readonly reason: string;
  readonly remedy: string;
}

const STRANGER = fault(
  'platform',
  'runs, and does not know this operator token',
  'Set OPERATOR_TOKEN as the platform has it, or --data-dir to the DATA_DIR that has its operator.token',
);

const unexpected = ({ message }: Unexpected): Check =>
  fault(
    'platform',
    message,
    'Look into the log of the platform. If another server answers there, say by SIDETONE_URL or HTTP_PORT where the platform is',
  );

interface Found {
  readonly checks: readonly Check[];
  /** The addresses of the trunks. */
  readonly farEnds: readonly string[];
}

/**
 * What the platform tells of itself, and the addresses of its trunks. Undefined when it does not run. `names` looks up
 * the hosts of trunks: the system's resolver, unless told otherwise.
 */
export async function platformChecks(
  api: OperatorApi,
  outbound: Outbound,
  now: number,
  names?: Names,
): Promise<Found | undefined> {
  try {
    return await checked(api, outbound, now, names);
  } catch (error) {
    if (error instanceof NotAdmitted) return { checks: [STRANGER], farEnds: [] };
    if (!(error instanceof Unexpected)) return undefined;
    // A platform without its database answers nothing of its records, and says what it lacks.
    const parts = await readiness(api).catch(() => []);
    const isDown = parts.some(({ status }) => status === 'fault');
    return { checks: isDown ? parts : [unexpected(error)], farEnds: [] };
  }
}

async function checked(api: OperatorApi, outbound: Outbound, now: number, names: Names | undefined): Promise<Found> {
  const trunks = await trunkChecks(api, names);
  const apps = await api.list<ToldApp>('/operator/v1/apps', 'apps', ['app_uuid', 'name']);
  const receivers = await webhookChecks(api, apps, outbound);
  const checks = [
    ...(await readiness(api)),
    clock(receivers.apart),
    ...trunks.checks,
    ...receivers.checks,
    ...keptRecordings(apps),
    refusals(await api.list<ToldRefusal>('/operator/v1/refusals', 'refusals', ['at', 'source']), now),
  ];
  return { checks, farEnds: trunks.farEnds };
}

async function readiness(api: OperatorApi): Promise<readonly Check[]> {
  const { status: _status, nats, ...parts } = await api.get('/readyz');
  const runs = partsCheck(parts);
  if (nats === undefined) return [runs];
  // The list of nodes is in the database.
  const nodes = runs.status === 'ok' ? [await nodesCheck(api)] : [];
  return [runs, natsCheck(nats === true), ...nodes];
}

function natsCheck(isConnected: boolean): Check {
  const name = 'nats';
  if (isConnected) return ok(name, 'is reached');
  const found = 'is not reached: commands for calls of other nodes are answered with 503';
  return fault(name, found, 'See that nats-server runs, and that NATS_URL of this node leads there');
}

/** The nodes of the cluster, as the one that is asked sees them. */
async function nodesCheck(api: OperatorApi): Promise<Check> {
  const name = 'nodes';
  const nodes = (await api.list<ToldNode>('/operator/v1/nodes', 'nodes', ['http_host'])).filter(({ dead_at }) => dead_at === '');
  const names = (some: readonly ToldNode[]) => some.map((node) => formatHostPort(node.http_host, node.http_port)).join(', ');
  const unreached = nodes.filter((node) => node.unreached);
  const silent = nodes.filter(({ suspect }) => suspect);
  const versions = [...new Set(nodes.map(({ version }) => version))].join(', ');
  if (unreached.length > 0)
    return fault(
      name,
      `${names(unreached)} of ${nodes.length} live and do not answer over NATS: commands for their calls are answered with 503`,
      'See that NATS_URL leads every node to the same servers, and that these are one cluster',
    );
  const apart = nodes.filter(({ settings_apart = [] }) => settings_apart.length > 0);
  if (silent.length === 0 && apart.length > 0) {
    const settings = [...new Set(apart.flatMap(({ settings_apart = [] }) => settings_apart))].join(', ');
    const found = `${names(apart)} of ${nodes.length} have another ${settings} than this one`;
    return warning(name, found, 'Give all nodes the same, and restart those that have another one, drained before');
  }
  if (silent.length === 0) return ok(name, `${nodes.length} give signs of life (version ${versions})`);
  const found = `${names(silent)} of ${nodes.length} give no sign of life: commands for their calls are answered with 503`;
  return warning(name, found, 'See whether they run and reach PostgreSQL and NATS; the others declare them dead before long');
}

function partsCheck(parts: Readonly<Record<string, unknown>>): Check {
  const name = 'platform';
  const down = Object.entries(parts)
    .filter(([, isUp]) => isUp === false)
    .map(([part]) => part);
  if (down.length === 0) return ok(name, 'runs, with database, media and SIP');
  const remedy = down.includes('database')
    ? 'See that PostgreSQL runs, has room on its disk and is what DATABASE_URL names; the log says what it answered'
    : 'Look into the log of the platform';
  return fault(name, `runs without ${down.join(', ')}`, remedy);
}

/** Compares the clock with those of the receivers: a webhook whose time is minutes off is refused. */
function clock(apart: readonly number[]): Check {
  const name = 'clock';
  const farthest = apart.reduce((most, each) => Math.max(most, Math.abs(each)), 0) / 1000;
  if (apart.length === 0) return ok(name, 'no receiver tells the time');
  const found = `${farthest.toFixed(1)} s apart from the receivers of webhooks`;
  return farthest > CLOCK_APART_MAX_SEC
    ? warning(name, found, 'Run an NTP client on this machine: receivers refuse webhooks that are minutes off')
    : ok(name, found);
}

/** The applications that keep nearly as much in recordings as they may, or as much; one line where none does. */
function keptRecordings(apps: readonly ToldApp[]): readonly Check[] {
  const remedy = 'Raise APP_RECORDING_MAX_GB, or lower RECORDING_RETENTION_DAYS';
  const bounded = apps.flatMap(({ name, recording_store: use }) =>
    use === undefined ? [] : [{ name: `recordings:${name}`, used: use.kept_bytes / use.max_bytes, max: use.max_bytes }],
  );
  if (bounded.length === 0) return [];
  const near = bounded.filter(({ used }) => used >= KEPT_WARNING).sort((one, other) => other.used - one.used);
  if (near.length === 0) return [ok('recordings', `no application is near its ${bounded[0]?.max} bytes`)];
  return near.slice(0, KEPT_APPS_MAX).map(({ name, used, max }) => {
    const refused = used >= 1 ? ': further ones are refused with 503' : '';
    return warning(name, `keeps ${Math.floor(used * 100)} % of its ${max} bytes of recordings${refused}`, remedy);
  });
}

function refusals(all: readonly ToldRefusal[], now: number): Check {
  const name = 'refusals';
  const [last, ...others] = all.filter(({ at }) => now - Date.parse(at) < REFUSALS_MS);
  if (last === undefined) return ok(name, 'no request was refused in the last hour');
  const repeats = last.count > 1 ? `, ${last.count} times since ${last.first_at}` : '';
  const more = others.length > 0 ? `; ${others.length} more in the last hour: bin/sidetone refusals list` : '';
  return warning(name, `${last.source}: ${last.reason}${repeats}${more}`, last.remedy);
}
