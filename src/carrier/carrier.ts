/**
 * The carrier: phone calls in and out over SIP. The sockets, the user agent, the trunks and the legs are put together here, and only what
 * this file exports is used outside this folder.
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
import type { UserAgentOutput } from '../sip/user-agent-output.ts';
import { AgentDriver } from './agent-driver.ts';
import { systemEntropy, systemHash } from './entropy.ts';
import { admitInvite, type InboundOptions } from './inbound.ts';
import { OutboundLeg } from './leg/outbound-leg.ts';
import type { PhoneLegOptions } from './leg/phone-leg.ts';
import { type BoundPort, interfaceTowards, type Listener, openListener } from './socket/listener.ts';
import { Channels } from './trunk/channels.ts';
import { type Trunk, type TrunkAddress, TrunkRanges, trunkAddress, trunkCodecs } from './trunk/trunk.ts';
import { TrunkMonitor } from './trunk/trunk-monitor.ts';

export type { BoundPort, IncomingCall, Trunk };

export interface CarrierOptions {
  readonly listen: readonly SipListen[];
  /** The certificate of the `tls` listeners. `caFile` holds authorities that trunks may be signed by, beside the system's own. */
  readonly tls?: { readonly certFile?: string; readonly keyFile?: string; readonly caFile?: string };
  readonly advertise?: string;
  readonly media: Pick<MediaEngine, 'openRtpLeg' | 'load' | 'ready'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The trunks at this moment. After a change, call `trunksChanged`. */
  trunks(): readonly Trunk[];
  /** Takes a call for an application. 100 has been sent, and audio can be agreed on. It must end in an order to the call's leg. */
  onInvite(call: IncomingCall & { readonly trunk: string }): void | Promise<void>;
  /** The application that a number is assigned to. A rejection of the promise answers the call with 503. */
  numberOwner(e164: string): Promise<string | undefined>;
}

export interface Carrier extends Dialer {
  /** Reserves a channel and makes the leg. Nothing is sent before its `start`. */
  dial(options: DialOptions): { readonly leg: Leg } | { readonly unavailable: DialRefused };
  /** Whether the sockets are up and the carrier is not closed. */
  ready(): boolean;
  load(): { readonly dialogs: number; readonly transactions: number };
  trunksChanged(): void;
  /** Refuses new calls with 503 from now on. Calls that are up go on. */
  drain(): void;
  /** Closes the sockets. It does not hang up calls that are still up: the Sessions do that before. */
  close(): Promise<void>;
  ports(): readonly BoundPort[];
}

const PRODUCT = 'Sidetone';
/** Seconds from 1900 to 1970. The session id of `o=` is an NTP time, so that it keeps rising over restarts (RFC 8866 §5.2). */
const NTP_EPOCH_SEC = 2_208_988_800;

/** Opens the sockets and starts to watch the trunks. Rejects when a socket cannot be bound. */
export async function createCarrier(options: CarrierOptions): Promise<Carrier> {
  const carrier = new SipCarrier(options);
  await carrier.open();
  return carrier;
}

class SipCarrier implements Carrier {
  readonly #options: CarrierOptions;
  readonly #agent: UserAgent;
  readonly #driver: AgentDriver;
  readonly #channels: Channels;
  readonly #monitor: TrunkMonitor;
  readonly #inbound: InboundOptions;
  #sockets: Listener | undefined;
  #ranges: TrunkRanges;
  #draining = false;
  #closed = false;
  #lastSession: number;

  constructor(options: CarrierOptions) {
    const { clock, log } = options;
    this.#options = options;
    this.#ranges = new TrunkRanges(options.trunks());
    this.#channels = new Channels(() => clock.now());
    this.#lastSession = Math.floor(clock.now() / 1000) + NTP_EPOCH_SEC;
    this.#agent = new UserAgent({
      entropy: systemEntropy(),
      hash: systemHash,
      product: PRODUCT,
      sessionExpiresSec: SIP_SESSION_EXPIRES_SEC,
      local: (peer) => this.#sockets?.local(peer) ?? { host: '127.0.0.1', port: 5060 },
    });
    this.#driver = new AgentDriver(this.#agent, clock, log, {
      onInvite: (output) => this.#onInvite(output),
      onProbed: ({ name, status }) => this.#monitor.onProbed(name, status),
    });
    this.#monitor = new TrunkMonitor(
      this.#driver,
      clock,
      log,
      (address) => this.#resolve(address),
      (trunk) => this.#channels.lastUsed(trunk),
    );
    this.#inbound = {
      log,
      numberOwner: (e164) => inTime(clock, SIP_LOOKUP_TIMEOUT_MS, options.numberOwner(e164)),
      onInvite: (call) => options.onInvite(call),
      trunkOf: (address) => this.#ranges.trunkOf(address),
      reserve: (name, address) => this.#reserve(name, address),
    };
  }

  async open(): Promise<void> {
    const { listen, tls, advertise, clock, log } = this.#options;
    const onMessage = (bytes: Uint8Array, source: Peer) => this.#driver.receive(bytes, source);
    this.#sockets = await openListener({ listen, tls, advertise, clock, log, onMessage });
    this.#driver.attach(this.#sockets);
    this.#monitor.update(this.#options.trunks());
  }

  dial(order: DialOptions): { readonly leg: Leg } | { readonly unavailable: DialRefused } {
    const all = this.#options.trunks();
    const named = order.trunk === undefined ? all : all.filter((trunk) => trunk.name === order.trunk);
    const usable = named.flatMap((trunk) => {
      const address = trunkAddress(trunk.uri);
      return address === undefined ? [] : [{ trunk, address }];
    });
    if (usable.length === 0) return { unavailable: 'no_trunk' };
    if (this.#draining || this.#options.media.load().portsFree === 0) return { unavailable: 'no_capacity' };
    // A trunk that answers its probes comes before one that does not.
    usable.sort((a, b) => Number(this.#monitor.isSilent(a.trunk.name)) - Number(this.#monitor.isSilent(b.trunk.name)));
    for (const { trunk, address } of usable) {
      const release = this.#channels.take(trunk);
      if (release !== undefined) return { leg: this.#outboundLeg(trunk, address, order, release) };
    }
    return { unavailable: 'no_capacity' };
  }

  ready(): boolean {
    return this.#sockets !== undefined && !this.#closed;
  }

  load(): { readonly dialogs: number; readonly transactions: number } {
    return this.#agent.load();
  }

  trunksChanged(): void {
    const trunks = this.#options.trunks();
    this.#ranges = new TrunkRanges(trunks);
    this.#channels.keep(trunks);
    this.#monitor.update(trunks);
  }

  drain(): void {
    this.#draining = true;
    this.#agent.drain();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#monitor.stop();
    this.#closed = true;
    this.#driver.close();
    await this.#sockets?.close();
  }

  ports(): readonly BoundPort[] {
    return this.#sockets?.ports ?? [];
  }

  #onInvite({ call, request, source }: Extract<UserAgentOutput, { type: 'invite' }>): void {
    const { log } = this.#options;
    const refuse = (status: number, fields: readonly (readonly [string, string])[] = []) => {
      // At `debug`: the calls of a scanner would fill a log that people read.
      log.debug({ status }, 'an incoming call was refused');
      this.#driver.run((now) => call.refuse(status, fields, now));
    };
    const listen: Parameters<typeof admitInvite>[5] = (listener) => this.#driver.listen(call, listener);
    admitInvite(this.#inbound, call, request, source.host, refuse, listen).catch(() => {
      log.error({}, 'an incoming call could not be taken');
      refuse(500);
    });
  }

  async #resolve(address: TrunkAddress): Promise<Peer | undefined> {
    const found = await this.#sockets?.resolver.resolve(address.host, address.port, address.transport);
    if (found === undefined) return undefined;
    const name = isIP(address.host) === 0 ? { name: address.host } : {};
    return { transport: address.transport, host: found.host, port: found.port, flow: 0, ...name };
  }

  /** Takes a channel of the trunk for a call that came from `address`. */
  #reserve(name: string, address: string): PhoneLegOptions | undefined {
    const trunk = this.#options.trunks().find((each) => each.name === name);
    if (trunk === undefined || this.#options.media.load().portsFree === 0) return undefined;
    const release = this.#channels.take(trunk);
    return release === undefined ? undefined : this.#legOptions(trunk, () => address, release);
  }

  #outboundLeg(trunk: Trunk, address: TrunkAddress, order: DialOptions, release: () => void): Leg {
    let towards = address.host;
    const resolve = async (each: TrunkAddress) => {
      const peer = await this.#resolve(each);
      if (peer !== undefined) towards = peer.host;
      return peer;
    };
    const localHost = (peer: Peer) => this.#sockets?.local(peer).host ?? '127.0.0.1';
    const options = this.#legOptions(trunk, () => towards, release);
    return new OutboundLeg(options, { trunk, address, order, resolve, localHost });
  }

  #legOptions(trunk: Trunk, address: () => string, release: () => void): PhoneLegOptions {
    const { advertise, clock, media } = this.#options;
    return {
      driver: this.#driver,
      media,
      codecs: trunkCodecs(trunk),
      sdpHost: (bound) => advertise ?? (bound === '0.0.0.0' || bound === '::' ? interfaceTowards(address()) : bound),
      sessionId: ++this.#lastSession,
      rtpSources: () => [address(), ...trunk.inboundCidrs],
      wait: (ms, then) => clock.at(clock.now() + ms, then),
      onEnded: release,
    };
  }
}

/** The outcome of `work`, or a rejection after `ms`. */
function inTime<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const cancel = clock.at(clock.now() + ms, () => reject(new Error('took too long')));
  work.then(resolve, reject);
  return promise.finally(cancel);
}
