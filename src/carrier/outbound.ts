/** Finds the trunks that a dial may use, in order, and takes a channel and a turn of each one that it is tried over. */
import type { DialOptions, DialRefused, Leg } from '../call/ports/leg.ts';
import type { Peer } from '../sip/flow.ts';
import { type Attempt, OutboundLeg } from './leg/outbound-leg.ts';
import type { PhoneLegOptions } from './leg/phone-leg.ts';
import type { Channels } from './trunk/channels.ts';
import { type FailedTrunks, inOrder, trunksOf } from './trunk/route.ts';
import { callCredentials, isPinnedTo, type Trunk, trunkAddress } from './trunk/trunk.ts';
import type { TrunkMonitor } from './trunk/trunk-monitor.ts';

export interface OutboundOptions {
  /** The labels of this node, of which a trunk may ask for one. Undefined: this process is alone. */
  readonly labels: readonly string[] | undefined;
  readonly channels: Channels;
  readonly failed: FailedTrunks;
  readonly monitor: TrunkMonitor;
  trunks(): readonly Trunk[];
  /**
   * Takes the next turn of a trunk for an application: the wait in milliseconds, undefined when it would be too long
   * (`max_cps`).
   */
  turn(trunk: Trunk, appUuid: string): Promise<number | undefined>;
  isDraining(): boolean;
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** The peers to try, in order. Empty when the name of the trunk has no address. */
  targets(trunk: Trunk): Promise<readonly Peer[]>;
  /** The Route header fields of a call over that trunk. */
  routes(trunk: Trunk): readonly string[];
  localHost(peer: Peer): string;
  /** The header fields that mark a call over that trunk as our own. */
  marks(trunk: Trunk): readonly (readonly [string, string])[];
  /** The options of a leg over that trunk. `address` gives the far end's, once it is known. */
  legOptions(trunk: Trunk, address: () => string, release: () => void): PhoneLegOptions;
}

/** Makes the leg of a dial, with the channel of its first trunk taken. */
export async function dial(
  options: OutboundOptions,
  order: DialOptions,
): Promise<{ readonly leg: Leg } | { readonly unavailable: DialRefused }> {
  const { failed, monitor } = options;
  const isNamed = order.trunk !== undefined;
  const permitted = trunksOf(options.trunks(), order);
  if (permitted.length === 0) return { unavailable: isNamed ? 'unknown_trunk' : 'no_trunk' };
  const usable = permitted.filter(({ settings }) => isPinnedTo(settings, options.labels));
  if (usable.length === 0) return { unavailable: 'no_node' };
  const isDoubtful = (trunk: Trunk) =>
    failed.isFailed(trunk, options.now()) || monitor.isSilent(trunk.name) || monitor.isUnregistered(trunk.name);
  const left = [...inOrder(usable, isDoubtful, options.random)];
  const next = () => nextAttempt(options, left, order);
  const first = await next();
  if (first === undefined) return { unavailable: 'no_capacity' };
  if (options.isDraining()) {
    first.abandon();
    return { unavailable: 'draining' };
  }
  const onFailed = (trunk: Trunk, isOver: boolean) => {
    failed.failed(trunk, options.now());
    if (isOver) options.channels.failed(trunk.name);
  };
  const localHost = (peer: Peer) => options.localHost(peer);
  // A dial that names its trunk stays with it.
  return { leg: new OutboundLeg(first, { order, next: isNamed ? async () => undefined : next, onFailed, localHost }) };
}

/**
 * The first of the trunks left that has a channel and a turn, as it is set up by now. It and those before it are left
 * no more.
 */
async function nextAttempt(options: OutboundOptions, left: Trunk[], order: DialOptions): Promise<Attempt | undefined> {
  const { channels, labels } = options;
  const { appUuid } = order;
  for (let known = left.shift(); known !== undefined; known = left.shift()) {
    const { name } = known;
    const [trunk] = trunksOf(options.trunks(), { appUuid, trunk: name }).filter(({ settings }) => isPinnedTo(settings, labels));
    const address = trunk && trunkAddress(trunk.uri);
    if (trunk === undefined || address === undefined) continue;
    const stopExpecting = await channels.expect(trunk);
    // A channel that is taken counts as a call, so the turn comes first: a dial that gets none is no call.
    const waitMs = channels.hasFree(trunk) ? await options.turn(trunk, appUuid) : undefined;
    const release = waitMs === undefined ? undefined : channels.take(trunk);
    stopExpecting();
    if (waitMs !== undefined && release !== undefined)
      return attempt(options, { trunk, address, release, waitMs, left, appUuid });
  }
  return undefined;
}

interface Taken extends Pick<Attempt, 'trunk' | 'address' | 'waitMs'> {
  readonly left: Trunk[];
  readonly appUuid: string;
  release(wasCall?: boolean): void;
}

function attempt(options: OutboundOptions, { trunk, address, release, waitMs, left, appUuid }: Taken): Attempt {
  let towards = address.host;
  return {
    trunk,
    address,
    options: options.legOptions(trunk, () => towards, release),
    marks: options.marks(trunk),
    waitMs,
    turn: () => options.turn(trunk, appUuid),
    abandon() {
      release(false);
      left.unshift(trunk);
    },
    targets: () => options.targets(trunk),
    routes: () => options.routes(trunk),
    credentials: callCredentials(trunk, () => options.trunks().find(({ name }) => name === trunk.name)),
    towards(peer) {
      towards = peer.host;
    },
  };
}
