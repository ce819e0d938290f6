/** Checks of the trunks: whether their hosts have addresses, whether they answer, whether they are registered. */
import { isIP } from 'node:net';
import { withTimeLimit } from '../bounds/time-limit.ts';
import { SIP_RESOLVE_TIMEOUT_MS } from '../limits.ts';
import { lookUp, lookUpServices } from '../outbound/lookup.ts';
import { parseUri } from '../sip/message/uri.ts';
import { type Check, fault, ok, warning } from './check.ts';
import { codeOf } from './machine.ts';
import type { OperatorApi } from './operator-api.ts';

/** The wait for the answers of trunks, and the pause between two looks. */
const PROBE_MS = 4_000;
const PROBE_LOOK_MS = 100;
const UNANSWERED = { at: '', ok: false, sip_status: 0, rtt_ms: 0 };
/** What is read of each trunk. */
const TRUNK_FIELDS = ['name', 'uri', 'status'] as const;

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

/** Checks every trunk, one line each. `farEnds` are the addresses of the trunks. */
export async function trunkChecks(
  api: OperatorApi,
  names = SYSTEM_NAMES,
): Promise<{ readonly checks: readonly Check[]; readonly farEnds: readonly string[] }> {
  const trunks = await api.list<ToldTrunk>('/operator/v1/trunks', 'trunks', TRUNK_FIELDS);
  const resolved = await Promise.all(trunks.map((trunk) => resolve(trunk, names)));
  const probed = await probeAll(api, trunks);
  const checks =
    trunks.length === 0
      ? [warning('trunks', 'there is no trunk', 'bin/sidetone trunks set NAME --uri sip:HOST --cidr CIDR')]
      : resolved.map((each) => trunkCheck({ ...each, trunk: probed.get(each.trunk.name) ?? each.trunk }));
  return { checks, farEnds: resolved.flatMap(({ addresses }) => addresses) };
}

/**
 * Asks every trunk whether it is there, and waits a few seconds for the answers. Returns the trunks as they are then.
 */
async function probeAll(api: OperatorApi, trunks: readonly ToldTrunk[]): Promise<ReadonlyMap<string, ToldTrunk>> {
  const asked = Date.now();
  const before = new Map(trunks.map(({ name, status }) => [name, status.last_probe?.at]));
  await Promise.all(trunks.map(({ name }) => api.post(`/operator/v1/trunks/${encodeURIComponent(name)}/probe`)));
  // The platform may be on another machine, whose clock is another one.
  const isAnswered = ({ name, uri, status: { last_probe: last } }: ToldTrunk): boolean =>
    uri === 'loopback:' || (last !== undefined && last.at !== before.get(name));
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
      `Mend the DNS of this machine, or name a host that resolves: ${setAnew(trunk, trunk.outbound_proxy === undefined ? '--uri …' : `${uriOption(trunk)} --set outbound_proxy=…`)}`,
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
  const set = setAnew(trunk, `${uriOption(trunk)} --register --username … --password-file …`);
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

const uriOption = ({ uri }: ToldTrunk): string => `--uri '${uri.replaceAll("'", '%27')}'`;

/** The command that changes a trunk. It sets the trunk up whole: what it does not name has its default afterwards. */
const setAnew = ({ name }: ToldTrunk, options: string): string =>
  `bin/sidetone trunks set ${name} ${options} and all else that bin/sidetone trunks show ${name} tells, which is reset otherwise`;
