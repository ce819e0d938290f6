/** Checks that need the running platform: its parts, its trunks, its webhooks, what it refused lately. */
import { isIP } from 'node:net';
import { withTimeLimit } from '../bounds/time-limit.ts';
import { SIP_RESOLVE_TIMEOUT_MS } from '../limits.ts';
import { lookUp, lookUpServices } from '../outbound/lookup.ts';
import { type Outbound, OutboundError } from '../outbound/outbound.ts';
import { mayUsePort } from '../outbound/screen.ts';
import { parseUri } from '../sip/message/uri.ts';
import { type Check, fault, ok, warning } from './check.ts';
import { codeOf } from './machine.ts';

const TIMEOUT_MS = 5_000;
/** The wait for the answers of trunks, and the pause between two looks. */
const PROBE_MS = 4_000;
const PROBE_LOOK_MS = 100;
const REFUSALS_MS = 3_600_000;
const CLOCK_APART_MAX_SEC = 5;
/** The part of its bound from which on it is told what an application keeps in recordings. */
const KEPT_WARNING = 0.8;
/** Applications whose webhooks are tried. */
const WEBHOOKS_MAX = 100;

/** A trunk as the operator API tells it, as far as it is read here. */
interface ToldTrunk {
  readonly name: string;
  readonly uri: string;
  readonly outbound_proxy?: string;
  readonly register: boolean;
  readonly status: {
    readonly registered: boolean;
    /** The status that the last REGISTER was answered with, 0 for no answer. An older release does not tell it. */
    readonly register_sip_status?: number;
    readonly last_probe?: { readonly at: string; readonly ok: boolean; readonly sip_status: number; readonly rtt_ms: number };
  };
}

interface ToldApp {
  readonly app_uuid: string;
  readonly name: string;
  readonly webhook_url: string;
  /** The receiver answered 410: nothing is sent to it until its URL is set again. */
  readonly webhook_disabled: boolean;
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

/** Serves a request, over the network or within the process. */
export type Ask = (request: Request) => Promise<Response>;

/** A platform runs there, and does not take our token. */
class NotAdmitted extends Error {}

/** What answers there says something else than a platform that works. The message says what. */
class Unexpected extends Error {}

/** The operator API of the platform that runs with these settings. */
export class OperatorApi {
  readonly #origin: string;
  readonly #token: string;
  readonly #ask: Ask;

  constructor(origin: string, token: string, ask: Ask = fetch) {
    this.#origin = origin;
    this.#token = token;
    this.#ask = ask;
  }

  /**
   * What the platform tells under that path. Rejects when nobody answers. Throws NotAdmitted when it does not know us,
   * and Unexpected when that is no answer of a platform that works.
   */
  async get(path: string): Promise<Readonly<Record<string, unknown>>> {
    const response = await this.#asked(path, 'GET');
    if (response.status === 400 || response.status === 401) throw new NotAdmitted(`${path} was answered with ${response.status}`);
    if (!response.ok && path.startsWith('/operator'))
      throw new Unexpected(`${path} was answered with ${response.status}: ${await messageOf(response)}`);
    const body: unknown = await response.json().catch(() => undefined);
    if (!isObject(body)) throw new Unexpected(`${path} was answered with ${response.status} and no object of JSON`);
    return { ...body };
  }

  /** Asks the platform to do something without a body. Rejects when it does not answer. */
  async post(path: string): Promise<void> {
    const response = await this.#asked(path, 'POST');
    await response.arrayBuffer();
  }

  #asked(path: string, method: string): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}` };
    return this.#ask(new Request(`${this.#origin}${path}`, { method, headers, signal: AbortSignal.timeout(TIMEOUT_MS) }));
  }

  /**
   * A list that the platform tells under that path. Throws Unexpected where there is none, or where an element lacks
   * one of the fields `has`: a server of another kind answers with JSON too.
   */
  async list<T extends object>(path: string, field: string, has: readonly (keyof T & string)[]): Promise<readonly T[]> {
    const items = (await this.get(path))[field];
    const isItem = (item: unknown): item is T => isObject(item) && has.every((name) => (item[name] ?? undefined) !== undefined);
    if (!Array.isArray(items) || !items.every(isItem))
      throw new Unexpected(`${path} was answered without the ${field} of a platform`);
    return items;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What the platform says of a request that failed. */
async function messageOf(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => undefined);
  return isObject(body) && typeof body.message === 'string' ? body.message : 'no word of a platform';
}

/** What names stand for. Both look-ups reject when there is nothing under the name. */
export interface Names {
  /** The addresses of a host (A and AAAA). */
  addresses(name: string): Promise<readonly string[]>;
  /** The hosts that an SRV record names. */
  services(name: string): Promise<readonly string[]>;
}

const SYSTEM_NAMES: Names = {
  addresses: async (name) => (await lookUp(name)).map(({ address }) => address),
  services: async (name) => (await lookUpServices(name)).map((record) => record.name),
};

const STRANGER = fault(
  'platform',
  'runs, and does not know this operator token',
  'Set OPERATOR_TOKEN as the platform has it, or --data-dir to the DATA_DIR that has its operator.token',
);
/** What is read of each trunk. */
const TRUNK_FIELDS = ['name', 'uri', 'status'] as const;

const unexpected = ({ message }: Unexpected): Check =>
  fault(
    'platform',
    message,
    'Look into the log of the platform. If another server answers there, say by SIDETONE_URL or HTTP_PORT where the platform is',
  );
const UNANSWERED = { at: '', ok: false, sip_status: 0, rtt_ms: 0 };

interface Found {
  readonly checks: readonly Check[];
  /** The addresses of the trunks. */
  readonly farEnds: readonly string[];
}

/** What the platform tells of itself, and the addresses of its trunks. Undefined when it does not run. */
export async function platformChecks(
  api: OperatorApi,
  outbound: Outbound,
  now: number,
  names = SYSTEM_NAMES,
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

async function checked(api: OperatorApi, outbound: Outbound, now: number, names: Names): Promise<Found> {
  const trunks = await api.list<ToldTrunk>('/operator/v1/trunks', 'trunks', TRUNK_FIELDS);
  const resolved = await Promise.all(trunks.map((trunk) => resolve(trunk, names)));
  const probed = await probeAll(api, trunks);
  const farEnds = resolved.flatMap(({ addresses }) => addresses);
  const apps = await api.list<ToldApp>('/operator/v1/apps', 'apps', ['app_uuid', 'name']);
  const receivers = await webhooks(api, apps, outbound);
  const checks = [
    ...(await readiness(api)),
    clock(receivers.apart),
    ...(trunks.length === 0
      ? [warning('trunks', 'there is no trunk', 'bin/sidetone trunks set NAME --uri sip:HOST --cidr CIDR')]
      : []),
    ...resolved.map((each) => trunkCheck({ ...each, trunk: probed.get(each.trunk.name) ?? each.trunk })),
    ...receivers.checks,
    ...keptRecordings(apps),
    refusals(await api.list<ToldRefusal>('/operator/v1/refusals', 'refusals', ['at', 'source']), now),
  ];
  return { checks, farEnds };
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
  const names = (some: readonly ToldNode[]) => some.map((node) => `${node.http_host}:${node.http_port}`).join(', ');
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

/**
 * Asks every trunk whether it is there, and waits a few seconds for the answers. Returns the trunks as they are then.
 */
async function probeAll(api: OperatorApi, trunks: readonly ToldTrunk[]): Promise<ReadonlyMap<string, ToldTrunk>> {
  const asked = Date.now();
  await Promise.all(trunks.map(({ name }) => api.post(`/operator/v1/trunks/${encodeURIComponent(name)}/probe`)));
  const isAnswered = ({ uri, status }: ToldTrunk): boolean =>
    uri === 'loopback:' || Date.parse(status.last_probe?.at ?? '') >= asked;
  for (;;) {
    const now = await api.list<ToldTrunk>('/operator/v1/trunks', 'trunks', TRUNK_FIELDS);
    if (now.every(isAnswered) || Date.now() - asked > PROBE_MS)
      return new Map(
        now.map((trunk) => [
          trunk.name,
          isAnswered(trunk) ? trunk : { ...trunk, status: { ...trunk.status, last_probe: UNANSWERED } },
        ]),
      );
    await new Promise((resolve) => setTimeout(resolve, PROBE_LOOK_MS));
  }
}

interface Resolved {
  readonly trunk: ToldTrunk;
  readonly host: string;
  readonly addresses: readonly string[];
  readonly error: string;
}

/**
 * Looks up the host that the platform sends to: the outbound proxy, else that of the URI. SRV comes first, as in a
 * call.
 */
async function resolve(trunk: ToldTrunk, names: Names): Promise<Resolved> {
  const uri = parseUri(trunk.outbound_proxy ?? trunk.uri);
  const host = uri?.host ?? '';
  if (uri === undefined || host === '' || isIP(host) !== 0)
    return { trunk, host, addresses: host === '' ? [] : [host], error: '' };
  const transport = uri.parameters.get('transport')?.toLowerCase() ?? 'udp';
  const isTls = uri.scheme === 'sips' || transport === 'tls';
  const service = isTls ? `_sips._tcp.${host}` : `_sip._${transport}.${host}`;
  const hosts = uri.port === undefined && host.includes('.') ? await within(names.services(service)).catch(() => []) : [];
  const found = await Promise.allSettled((hosts.length === 0 ? [host] : hosts).map((each) => within(names.addresses(each))));
  const failed = found.find((each) => each.status === 'rejected');
  return {
    trunk,
    host,
    addresses: found.flatMap((each) => (each.status === 'fulfilled' ? each.value : [])),
    error: failed === undefined ? 'ENODATA' : codeOf(failed.reason),
  };
}

const within = (look: Promise<readonly string[]>): Promise<readonly string[]> =>
  withTimeLimit<readonly string[]>(look, SIP_RESOLVE_TIMEOUT_MS, () => []);

function trunkCheck({ trunk, host, addresses, error }: Resolved): Check {
  const name = `trunk:${trunk.name}`;
  if (trunk.uri === 'loopback:') return ok(name, 'calls this platform itself');
  const { registered, last_probe: probe } = trunk.status;
  // A trunk that answers was found by the platform, whatever this look-up says.
  if (addresses.length === 0 && (probe === undefined || probe.sip_status === 0))
    return fault(
      name,
      `${host} has no address (${error})`,
      `bin/sidetone trunks set ${trunk.name} ${trunk.outbound_proxy === undefined ? '--uri' : '--set outbound_proxy='} with a host that resolves, or mend the DNS of this machine`,
    );
  if (trunk.register && !registered) return unregistered(name, trunk, host);
  if (probe === undefined) return ok(name, registered ? `registered at ${host}` : `${host}, not asked yet`);
  if (!probe.ok)
    return fault(
      name,
      probe.sip_status === 0 ? `${host} does not answer OPTIONS` : `${host} answers OPTIONS with ${probe.sip_status}`,
      'Check the port and transport of its URI, the firewall between, and whether the carrier knows this address',
    );
  return ok(name, `${host} answers in ${Math.round(probe.rtt_ms)} ms${registered ? ', registered' : ''}`);
}

/** A trunk that should be registered and is not. Silence has other remedies than a refusal. */
function unregistered(name: string, trunk: ToldTrunk, host: string): Check {
  const status = trunk.status.register_sip_status;
  const set = `bin/sidetone trunks set ${trunk.name} --username … --password-file …`;
  if (status === 0)
    return fault(
      name,
      `is not registered: ${host} does not answer REGISTER`,
      'Check the port and transport of its URI and the firewall between; over TCP and TLS the log says why no connection comes up',
    );
  if (status === undefined || [401, 403, 407].includes(status))
    return fault(
      name,
      `is not registered at ${host}${status === undefined ? '' : ` (${status})`}`,
      `Check username and password: ${set}`,
    );
  return fault(
    name,
    `is not registered: ${host} answers REGISTER with ${status}`,
    `Ask the carrier about its account, or ${set}`,
  );
}

/**
 * Asks each application's receiver for nothing, through the platform's own screen. `apart`: how far its clock is off,
 * in ms.
 */
async function webhooks(
  api: OperatorApi,
  apps: readonly ToldApp[],
  outbound: Outbound,
): Promise<{ readonly checks: readonly Check[]; readonly apart: readonly number[] }> {
  const apart: number[] = [];
  const check = async ({
    app_uuid: appUuid,
    name: appName,
    webhook_url: url,
    webhook_disabled: isOff,
  }: ToldApp): Promise<Check> => {
    const name = `webhook:${appName}`;
    const set = `bin/sidetone apps update ${appUuid} --webhook-url URL`;
    if (url === '' && !(await isCalled(api, appUuid))) return ok(name, 'no webhook is set, and no number or device leads to it');
    if (url === '') return warning(name, 'no webhook is set: nobody answers its calls', set);
    const { host, port } = new URL(url);
    if (isOff)
      return fault(
        name,
        `is switched off since ${host} answered 410: its events wait`,
        `Set its URL again, the same or another: bin/sidetone apps update ${appUuid} --webhook-url '${url.replaceAll("'", '%27')}'`,
      );
    try {
      // HEAD changes nothing at the receiver.
      const { status, headers, body } = await outbound.fetch({
        url,
        method: 'HEAD',
        headers: {},
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await body?.cancel();
      const date = Date.parse(headers.get('date') ?? '');
      if (!Number.isNaN(date)) apart.push(date - Date.now());
      return reached({ name, host, status, set });
    } catch (error) {
      const failure = error instanceof OutboundError ? error.failure : codeOf(error);
      const isOther = port !== '' && !mayUsePort(Number(port));
      const remedy = isOther
        ? `Let the receiver listen on another port, because ${port} is that of another protocol, and ${set}`
        : failure === 'rejected'
          ? `Add the private range of ${host} to OUTBOUND_ALLOW, or ${set}`
          : failure === 'tls'
            ? `Give the receiver a certificate that is valid for ${host} and comes with its chain, or ${set}`
            : `Start the receiver, or ${set}`;
      return fault(name, `${host} is not reached (${failure})`, remedy);
    }
  };
  const checks = await Promise.all(apps.slice(0, WEBHOOKS_MAX).map(check));
  return { checks, apart };
}

/** What comes from a gateway whose receiver is away. */
const AWAY = [502, 503, 504];

/**
 * A receiver that answered. Most statuses say only that somebody listens there, because few receivers know HEAD; but a
 * gateway in front of it may say that it is away, and a redirect is no success for a delivery.
 */
function reached({ name, host, status, set }: { name: string; host: string; status: number; set: string }): Check {
  if (AWAY.includes(status))
    return warning(
      name,
      `${host} answers ${status}: what stands there does not reach the receiver`,
      `Start the receiver, or ${set}`,
    );
  if (status >= 300 && status < 400)
    return warning(name, `${host} redirects (${status}), and deliveries follow no redirect`, `Name where it leads: ${set}`);
  return ok(name, `${host} is reached (${status} to HEAD)`);
}

/** Whether an application has a number that is called, or a device that calls. */
async function isCalled(api: OperatorApi, appUuid: string): Promise<boolean> {
  const path = `/operator/v1/apps/${appUuid}`;
  const { inbound_phone_numbers: numbers } = await api.get(path);
  if (!Array.isArray(numbers) || numbers.length > 0) return true;
  return (await api.list(`${path}/devices?limit=1`, 'devices', [])).length > 0;
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
  return near.slice(0, WEBHOOKS_MAX).map(({ name, used, max }) => {
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
