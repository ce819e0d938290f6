/** Finds the trunks that a dial may use, in order, and takes a channel and a turn of each one that it is tried over. */
import type { DialOptions, DialRefused, Leg } from '../call/ports/leg.ts';
import type { Peer } from '../sip/flow.ts';
import { type Attempt, OutboundLeg } from './leg/outbound-leg.ts';
import type { PhoneLegOptions } from './leg/phone-leg.ts';
import type { Channels } from './trunk/channels.ts';
import type { Pace } from './trunk/pace.ts';
import { type FailedTrunks, inOrder } from './trunk/route.ts';
import { isLoopback, isPinnedTo, type Trunk, trunkAddress } from './trunk/trunk.ts';
import type { TrunkMonitor } from './trunk/trunk-monitor.ts';

export interface OutboundOptions {
  /** The labels of this node, of which a trunk may ask for one. */
  readonly labels: readonly string[];
  readonly channels: Channels;
  readonly pace: Pace;
  readonly failed: FailedTrunks;
  readonly monitor: TrunkMonitor;
  trunks(): readonly Trunk[];
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** The peers to try, in order. Empty when the name of the trunk has no address. */
  targets(trunk: Trunk): Promise<readonly Peer[]>;
  localHost(peer: Peer): string;
  /** The header fields that mark a call over that trunk as our own. */
  marks(trunk: Trunk): readonly (readonly [string, string])[];
  /** The options of a leg over that trunk. `address` gives the far end's, once it is known. */
  legOptions(trunk: Trunk, address: () => string, release: () => void): PhoneLegOptions;
}

/** Makes the leg of a dial, with the channel of its first trunk taken. */
export function dial(
  options: OutboundOptions,
  order: DialOptions,
): { readonly leg: Leg } | { readonly unavailable: DialRefused } {
  const { failed, monitor } = options;
  const isNamed = order.trunk !== undefined;
  const permitted = options.trunks().filter((trunk) => isPermitted(trunk, order, options.labels));
  const usable = isNamed ? permitted.filter(({ name }) => name === order.trunk) : chosen(permitted);
  if (usable.length === 0) return { unavailable: isNamed ? 'unknown_trunk' : 'no_trunk' };
  const isDoubtful = ({ name }: Trunk) =>
    failed.isFailed(name, options.now()) || monitor.isSilent(name) || monitor.isUnregistered(name);
  const left = [...inOrder(usable, isDoubtful, options.random)];
  const next = () => nextAttempt(options, left);
  const first = next();
  if (first === undefined) return { unavailable: 'no_capacity' };
  const onFailed = ({ name }: Trunk, isOver: boolean) => {
    failed.failed(name, options.now());
    if (isOver) options.channels.failed(name);
  };
  const localHost = (peer: Peer) => options.localHost(peer);
  // A dial that names its trunk stays with it.
  return { leg: new OutboundLeg(first, { order, next: isNamed ? () => undefined : next, onFailed, localHost }) };
}

/** Asks other nodes for a channel of each trunk that the dial may use and they share. Its result ends the asking. */
export async function expectChannels(options: OutboundOptions, order: DialOptions): Promise<() => void> {
  const permitted = options.trunks().filter((trunk) => isPermitted(trunk, order, options.labels));
  const usable = order.trunk === undefined ? chosen(permitted) : permitted.filter(({ name }) => name === order.trunk);
  const asked = await Promise.all(usable.map((trunk) => options.channels.expect(trunk)));
  return () => {
    for (const done of asked) done();
  };
}

/** A loopback trunk is taken without being named only when there is no other. */
function chosen(trunks: readonly Trunk[]): readonly Trunk[] {
  const carriers = trunks.filter((trunk) => !isLoopback(trunk));
  return carriers.length > 0 || trunks.length > 1 ? carriers : trunks;
}

const isPermitted = ({ uri, settings }: Trunk, { appUuid }: DialOptions, labels: readonly string[]): boolean =>
  trunkAddress(uri) !== undefined &&
  (settings.apps === undefined || settings.apps.includes(appUuid)) &&
  isPinnedTo(settings, labels);

/** The first of the trunks left that has a channel and a turn. It and those before it are left no more. */
function nextAttempt(options: OutboundOptions, left: Trunk[]): Attempt | undefined {
  for (let trunk = left.shift(); trunk !== undefined; trunk = left.shift()) {
    const address = trunkAddress(trunk.uri);
    // A channel that is taken counts as a call, so the turn comes first: a dial that gets none is no call.
    if (address === undefined || !options.channels.hasFree(trunk)) continue;
    const waitMs = options.pace.take(trunk.name, trunk.settings.max_cps, options.now());
    const release = waitMs === undefined ? undefined : options.channels.take(trunk);
    if (waitMs === undefined || release === undefined) continue;
    return attempt(options, trunk, address, release, waitMs);
  }
  return undefined;
}

function attempt(
  options: OutboundOptions,
  trunk: Trunk,
  address: Attempt['address'],
  release: () => void,
  waitMs: number,
): Attempt {
  let towards = address.host;
  return {
    trunk,
    address,
    options: options.legOptions(trunk, () => towards, release),
    marks: options.marks(trunk),
    waitMs,
    turn: () => options.pace.take(trunk.name, trunk.settings.max_cps, options.now()),
    targets: () => options.targets(trunk),
    towards(peer) {
      towards = peer.host;
    },
  };
}
