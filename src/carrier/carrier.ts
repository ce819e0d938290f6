/**
 * The carrier: phone calls in and out over SIP. What is public of this folder is here; the sockets, the user agent and the legs are put
 * together here and nowhere else.
 */
import { isIP } from 'node:net';
import type { Dialer, DialOptions, DialRefused, IncomingCall, Leg } from '../call/ports/leg.ts';
import type { Clock } from '../clock.ts';
import type { SipListen } from '../config.ts';
import { SIP_LOOKUP_TIMEOUT_MS, SIP_SESSION_EXPIRES_SEC } from '../limits.ts';
import type { Log } from '../log.ts';
import type { MediaEngine } from '../media/engine.ts';
import type { Peer } from '../sip/flow.ts';
import { UserAgent } from '../sip/user-agent.ts';
import { AgentDriver } from './agent-driver.ts';
import { systemEntropy, systemHash } from './entropy.ts';
import { admitInvite, type InboundOptions } from './leg/inbound-leg.ts';
import { OutboundLeg } from './leg/outbound-leg.ts';
import type { PhoneLegOptions } from './leg/phone-leg.ts';
import { type BoundPort, interfaceTowards, type Listener, openListener } from './socket/listener.ts';
import { Channels } from './trunk/channels.ts';
import { type Trunk, type TrunkAddress, TrunkRanges, trunkAddress, trunkCodecs } from './trunk/trunk.ts';
import { TrunkUpkeep } from './trunk/trunk-monitor.ts';

export type { BoundPort, IncomingCall, Trunk };

export interface CarrierOptions {
  readonly listen: readonly SipListen[];
  /** Certificate of the `tls` listeners; `caFile`: authorities to trust on trunks beside the system's own. */
  readonly tls?: { readonly certFile?: string; readonly keyFile?: string; readonly caFile?: string };
  readonly advertise?: string;
  readonly media: Pick<MediaEngine, 'openRtpLeg' | 'load' | 'ready'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The trunks as they are now. After a change, call `trunksChanged`. */
  trunks(): readonly Trunk[];
  /** A call for an application: 100 has been sent, audio can be agreed on. It must end in an order to its leg. */
  onInvite(call: IncomingCall & { readonly trunk: string }): void | Promise<void>;
  /** The application that a number is assigned to. A rejection answers the call 503. */
  numberOwner(e164: string): Promise<string | undefined>;
}

export interface Carrier extends Dialer {
  /** Reserves a channel and makes the leg; nothing is sent before its `start`. */
  dial(options: DialOptions): { readonly leg: Leg } | { readonly unavailable: DialRefused };
  /** The sockets are up and the carrier is not closed. */
  ready(): boolean;
  load(): { readonly dialogs: number; readonly transactions: number };
  trunksChanged(): void;
  /** From now on new calls are refused with 503; those that are up go on. */
  drain(): void;
  /** Closes the sockets. Calls that are still up are not hung up first: that is the heart's to do. */
  close(): Promise<void>;
  ports(): readonly BoundPort[];
}

const PRODUCT = 'Sidetone';

/** Opens the sockets and starts the upkeep of the trunks. Rejects when a socket cannot be bound. */
export async function createCarrier(options: CarrierOptions): Promise<Carrier> {
  const { clock, log, media } = options;
  let sockets: Listener | undefined;
  let ranges = new TrunkRanges(options.trunks());
  let draining = false;
  let closed = false;
  const channels = new Channels(() => clock.now());
  // Of `o=`: seconds since 1900 keep it rising over restarts (RFC 8866 §5.2).
  let lastSession = Math.floor(clock.now() / 1000) + 2_208_988_800;

  const agent = new UserAgent({
    entropy: systemEntropy(),
    hash: systemHash,
    product: PRODUCT,
    sessionExpiresSec: SIP_SESSION_EXPIRES_SEC,
    local: (peer) => sockets?.local(peer) ?? { host: '127.0.0.1', port: 5060 },
  });
  const driver = new AgentDriver(agent, clock, log, {
    onInvite: ({ call, request, source }) => {
      const refuse = (status: number, fields: readonly (readonly [string, string])[] = []) => {
        // A scanner's calls would fill a log that anyone reads.
        log.debug({ status }, 'an incoming call was refused');
        driver.run((now) => call.refuse(status, fields, now));
      };
      void admitInvite(inbound, call, request, source.host, refuse, (listener) => driver.listen(call, listener)).catch(() => {
        log.error({}, 'an incoming call could not be taken');
        refuse(500);
      });
    },
    onRegistration: () => {},
    onProbed: ({ name, status }) => upkeep.onProbed(name, status),
  });
  const resolve = async (address: TrunkAddress): Promise<Peer | undefined> => {
    const found = await sockets?.resolver.resolve(address.host, address.port, address.transport);
    if (found === undefined) return undefined;
    const name = isIP(address.host) === 0 ? { name: address.host } : {};
    return { transport: address.transport, host: found.host, port: found.port, flow: 0, ...name };
  };
  const upkeep = new TrunkUpkeep(driver, clock, log, resolve, (trunk) => channels.lastUsed(trunk));

  const legOptions = (trunk: Trunk, address: () => string, release: () => void): PhoneLegOptions => ({
    driver,
    media,
    codecs: trunkCodecs(trunk),
    sdpHost: (bound) => options.advertise ?? (bound === '0.0.0.0' || bound === '::' ? interfaceTowards(address()) : bound),
    sessionId: ++lastSession,
    wait: (ms, then) => clock.at(clock.now() + ms, then),
    onEnded: release,
  });
  const inbound: InboundOptions = {
    log,
    numberOwner: (e164) => inTime(clock, SIP_LOOKUP_TIMEOUT_MS, options.numberOwner(e164)),
    onInvite: (call) => options.onInvite(call),
    trunkOf: (address) => ranges.trunkOf(address),
    reserve(name, address) {
      const trunk = options.trunks().find((each) => each.name === name);
      if (trunk === undefined || media.load().portsFree === 0) return undefined;
      const release = channels.take(trunk);
      return release === undefined ? undefined : legOptions(trunk, () => address, release);
    },
  };

  sockets = await openListener({
    listen: options.listen,
    tls: options.tls,
    advertise: options.advertise,
    clock,
    log,
    onMessage: (bytes, source) => driver.receive(bytes, source),
  });
  driver.attach(sockets);
  upkeep.update(options.trunks());

  return {
    dial(order) {
      const all = options.trunks();
      const named = order.trunk === undefined ? all : all.filter((trunk) => trunk.name === order.trunk);
      const usable = named.flatMap((trunk) => {
        const address = trunkAddress(trunk.uri);
        return address === undefined ? [] : [{ trunk, address }];
      });
      if (usable.length === 0) return { unavailable: 'no_trunk' };
      if (draining || media.load().portsFree === 0) return { unavailable: 'no_capacity' };
      // One that answers its probes comes before one that does not.
      usable.sort((a, b) => Number(upkeep.isSilent(a.trunk.name)) - Number(upkeep.isSilent(b.trunk.name)));
      for (const { trunk, address } of usable) {
        const release = channels.take(trunk);
        if (release === undefined) continue;
        let towards = address.host;
        const leg = new OutboundLeg(
          legOptions(trunk, () => towards, release),
          {
            trunk,
            address,
            order,
            async resolve(each) {
              const peer = await resolve(each);
              if (peer !== undefined) towards = peer.host;
              return peer;
            },
            localHost: (peer) => sockets.local(peer).host,
          },
        );
        return { leg };
      }
      return { unavailable: 'no_capacity' };
    },
    ready: () => !closed,
    load: () => agent.load(),
    trunksChanged() {
      ranges = new TrunkRanges(options.trunks());
      channels.keep(options.trunks());
      upkeep.update(options.trunks());
    },
    drain() {
      draining = true;
      agent.drain();
    },
    async close() {
      if (closed) return;
      upkeep.stop();
      closed = true;
      driver.close();
      await sockets.close();
    },
    ports: () => sockets.ports,
  };
}

/** `work`, or a rejection after `ms`. */
function inTime<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const cancel = clock.at(clock.now() + ms, () => reject(new Error('took too long')));
  work.then(resolve, reject);
  return promise.finally(cancel);
}
