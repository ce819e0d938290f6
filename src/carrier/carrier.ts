/**
 * The carrier: phone calls in and out over SIP. The sockets, the user agent, the trunks and the legs are put together
 * here.
 */
import { withTimeLimit } from '../bounds/time-limit.ts';
import { type Device, type DeviceDirectory, isDevice, NO_DEVICES } from '../call/ports/devices.ts';
import type { DialOptions, DialRefused, Leg } from '../call/ports/leg.ts';
import type { Refusal, TrunkStatus } from '../call/ports/trunks.ts';
import { hexHash } from '../hash.ts';
import { SIP_LOOKUP_TIMEOUT_MS, SIP_SESSION_EXPIRES_SEC } from '../limits.ts';
import type { Peer, Place } from '../sip/flow.ts';
import type { Credentials } from '../sip/message/digest.ts';
import type { SipRequest } from '../sip/message/message.ts';
import type { Binding } from '../sip/registrar.ts';
import { UserAgent } from '../sip/user-agent.ts';
import type { UserAgentOutput } from '../sip/user-agent-output.ts';
import { AgentDriver } from './agent-driver.ts';
import type { Carrier, CarrierOptions } from './carrier-options.ts';
import { DeviceDial } from './device/device-dial.ts';
import { DevicePings } from './device/device-pings.ts';
import { DEVICE_PROFILE, DEVICE_TRUNK } from './device/device-trunk.ts';
import { Devices } from './device/devices.ts';
import { systemCode, systemEntropy, systemRandom } from './entropy.ts';
import { admitInvite, type InboundOptions, type Invite } from './inbound.ts';
import type { PhoneLegOptions } from './leg/phone-leg.ts';
import { dial, type OutboundOptions } from './outbound.ts';
import { refusedBy, TOO_BUSY } from './refusals.ts';
import { resume } from './resume.ts';
import { type BoundPort, type Listener, openListener } from './socket/listener.ts';
import { audioAddress, versionOf } from './socket/own-address.ts';
import { SourceScreen } from './source-screen.ts';
import { Strays } from './strays.ts';
import { Channels } from './trunk/channels.ts';
import { Loopback } from './trunk/loopback.ts';
import { isCountryCode } from './trunk/number-plan.ts';
import { FailedTrunks } from './trunk/route.ts';
import { transfersOf } from './trunk/transfer.ts';
import {
  advertisedHost,
  callCredentials,
  isLoopback,
  isWithin,
  nextHopOf,
  srtpOf,
  type Trunk,
  trunkCodecs,
  trunkOfTlsIdentity,
  trunkProfile,
} from './trunk/trunk.ts';
import { TrunkAddresses } from './trunk/trunk-addresses.ts';
import { TrunkCallers } from './trunk/trunk-callers.ts';
import { type TrunkBinding, TrunkMonitor } from './trunk/trunk-monitor.ts';
import { TrunkTargets } from './trunk/trunk-targets.ts';
import { Turns } from './trunk/turns.ts';

export type { Carrier, CarrierOptions, Trunk };

const PRODUCT = 'Sidetone';
/**
 * Seconds from 1900 to 1970. The session id of `o=` is an NTP time, so that it keeps rising over restarts (RFC 8866
 * §5.2).
 */
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
  readonly #addresses: TrunkAddresses;
  readonly #screen: SourceScreen;
  readonly #callers: TrunkCallers;
  readonly #devices: Devices;
  readonly #deviceDial: DeviceDial;
  readonly #pings: DevicePings;
  readonly #loopback = new Loopback(systemEntropy().token());
  readonly #turns: Turns;
  readonly #targets: TrunkTargets;
  readonly #failed = new FailedTrunks();
  readonly #outbound: OutboundOptions;
  #sockets: Listener | undefined;
  #callsLate = 0;
  #draining = false;
  #closed = false;
  #lastSession: number;

  constructor(options: CarrierOptions) {
    const { clock, log, devices: directory = NO_DEVICES } = options;
    this.#options = options;
    this.#addresses = new TrunkAddresses(options.trunks());
    this.#screen = new SourceScreen({
      ban: options.ban ?? { after: 0, sec: 0 },
      addresses: this.#addresses,
      loopback: this.#loopback,
      devices: () => this.#devices,
      callers: () => this.#callers,
      hasCallWith: (address) => this.#agent.hasCallWith(address),
      now: () => clock.now(),
    });
    this.#callers = new TrunkCallers({
      ...{ addresses: this.#addresses, loopback: this.#loopback, refusals: this.#screen.refusals, code: systemCode() },
      trunks: () => options.trunks(),
      now: () => clock.now(),
    });
    this.#channels = new Channels(() => clock.now(), options.sharedChannels);
    this.#turns = new Turns(() => clock.now(), options.sharedTurns);
    this.#targets = new TrunkTargets({
      addresses: this.#addresses,
      ports: () => this.ports(),
      resolver: () => this.#sockets?.resolver,
      serviceRoute: ({ name, register }) =>
        register ? (this.#monitor.serviceRoute(name) ?? options.registeredElsewhere?.(name)?.serviceRoute ?? []) : [],
    });
    this.#lastSession = Math.floor(clock.now() / 1000) + NTP_EPOCH_SEC;
    this.#agent = this.#makeAgent();
    this.#driver = this.#makeDriver(this.#agent);
    this.#pings = new DevicePings(clock, (name, uri, peer, route) =>
      this.#driver.run((now) => this.#agent.probe({ whom: 'device', name }, uri, peer, now, route)),
    );
    this.#devices = this.#makeDevices(directory);
    this.#deviceDial = new DeviceDial({
      directory,
      now: () => clock.now(),
      localHost: (peer) => this.#localHost(peer),
      isConnected: (contact) => this.#isConnected(contact),
      isSilent: (username, contact) => this.#pings.isSilent(username, contact),
      legOptions: (address, transport) => this.#legOptions(DEVICE_TRUNK, address, transport, () => {}),
    });
    this.#monitor = new TrunkMonitor({
      driver: this.#driver,
      ...{ clock, log },
      resolve: (trunk) => this.#targets.own(trunk),
      // A call that the trunk has failed does not show that it is there.
      lastUsed: (trunk) => (this.#failed.isFailed(trunk, clock.now()) ? 0 : this.#channels.lastUsed(trunk)),
      registers: options.registers ?? (() => true),
    });
    this.#outbound = this.#outboundOptions();
    this.#inbound = this.#inboundOptions();
  }

  /** The user agent, which asks this carrier about sources, devices and dialogs of other nodes. */
  #makeAgent(): UserAgent {
    const { otherDialogs } = this.#options;
    const strays =
      otherDialogs && new Strays(otherDialogs, (bytes, source) => this.#driver.receive(bytes, source, { isOurs: true }));
    return new UserAgent({
      entropy: systemEntropy(),
      hash: hexHash,
      product: PRODUCT,
      sessionExpiresSec: SIP_SESSION_EXPIRES_SEC,
      screen: (request, source, status) => this.#screen.screen(request, source, status),
      isWithin,
      senderOf: (request, source) => this.#senderOf(request, source),
      // Neither a device nor a stranger is told anything of the password of the trunk that shares its address.
      credentialsOf: ({ host, profile }, request) =>
        profile?.staysOnFlow === undefined ? this.#credentials(this.#callers.of(request, host)) : undefined,
      registrar: (transaction) => this.#devices.register(transaction, (work) => this.#driver.run(work)),
      ...(strays === undefined ? {} : { stray: (bytes, source) => strays.take(bytes, source) }),
      local: (peer) => this.#sockets?.local(peer) ?? { host: '127.0.0.1', port: 5060 },
    });
  }

  /** What runs the agent: it gives it datagrams and time, and tells what comes of them. */
  #makeDriver(agent: UserAgent): AgentDriver {
    const { clock, log, otherDialogs } = this.#options;
    return new AgentDriver(agent, clock, log, {
      onInvite: (output) => this.#onInvite(output),
      onRefused: ({ request, source, status, isLate }) => {
        if (isLate) this.#callsLate += 1;
        this.#screen.refusals.record(request, source, status, isLate ? TOO_BUSY : refusedBy(status), clock.now());
      },
      onMessage: (direction, bytes, peer) => this.#options.trace?.(direction, bytes, peer),
      onVia: (nodeId, bytes, peer) => otherDialogs?.answer(nodeId, bytes, peer),
      onProbed: ({ whom, name, status, tookMs, seenAt }) =>
        (whom === 'trunk' ? this.#monitor : this.#pings).onProbed(name, status, tookMs, seenAt),
    });
  }

  /** The registrar of device users. A contact that is bound is kept reachable until it expires. */
  #makeDevices(directory: DeviceDirectory): Devices {
    return new Devices({
      directory,
      refusals: this.#screen.refusals,
      code: systemCode(),
      now: () => this.#options.clock.now(),
      isProxy: (address) => isWithin(address, this.#options.deviceProxies ?? []),
      isConnected: (place) => this.#isConnected(place),
      onMoved: (from, to) => this.#driver.run(() => this.#agent.moved(from, to)),
      onRestarted: (place, username) => this.#driver.run(() => this.#agent.restarted(place, username)),
      onBound: (username, stored, removed) => {
        for (const key of removed) this.#pings.forget(username, key);
        for (const binding of stored) {
          this.#pings.keep(username, binding);
          this.#sockets?.keep(binding, binding.expiresAt, binding.path !== '');
        }
      },
    });
  }

  /** What a dialled call needs of this carrier. */
  #outboundOptions(): OutboundOptions {
    const { clock, labels } = this.#options;
    const entropy = systemEntropy();
    return {
      labels,
      channels: this.#channels,
      turn: (trunk, appUuid) => this.#turns.take(trunk, appUuid),
      isDraining: () => this.#draining,
      failed: this.#failed,
      monitor: this.#monitor,
      trunks: () => this.#options.trunks(),
      now: () => clock.now(),
      random: () => entropy.fraction(),
      targets: (trunk) => this.#targets.ofCall(trunk),
      routes: (trunk) => this.#targets.routes(trunk),
      localHost: (peer) => this.#localHost(peer),
      marks: (trunk) => (isLoopback(trunk) ? this.#loopback.marks(trunk.name) : []),
      legOptions: (trunk, address, release) => this.#legOptions(trunk, address, nextHopOf(trunk)?.transport, release),
    };
  }

  /** What an incoming call needs of this carrier. */
  #inboundOptions(): InboundOptions {
    const { clock, log, media } = this.#options;
    return {
      log,
      numberOwner: (e164) => withTimeLimit(this.#options.numberOwner(e164), SIP_LOOKUP_TIMEOUT_MS, tookTooLong, clock),
      onInvite: (call) => this.#options.onInvite(call),
      trunkOf: (request, address) => this.#callers.of(request, address),
      expect: (trunk) => this.#channels.expect(trunk),
      reserve: (trunk, source) => this.#reserve(trunk, source),
      deviceOf: (request) => this.#deviceOf(request),
      deviceLeg: ({ host, transport }) =>
        media.load().portsFree === 0
          ? undefined
          : this.#legOptions(
              DEVICE_TRUNK,
              () => host,
              transport,
              () => {},
            ),
    };
  }

  async open(): Promise<void> {
    const { listen, tls, advertise = [], clock, log } = this.#options;
    const isBanned = (address: string) => this.#screen.isBanned(address);
    const onMessage = (bytes: Uint8Array, source: Peer, isLate: boolean) =>
      this.#driver.receive(bytes, this.#profiled(source), { isLate });
    const isKnown = (address: string) => this.#screen.isKnown(address);
    // A node that stops leaves the bindings to those who take over, or to itself after a restart.
    const onLost = (from: Pick<Peer, 'transport' | 'host' | 'port'>) => {
      if (this.#closed) return;
      this.#devices.lost(from);
      this.#monitor.flowLost(from);
    };
    const tlsOf = (identity: string) => {
      const trunk = this.#callers.named(trunkOfTlsIdentity(identity));
      return trunk && { ca: trunk.settings.tls?.ca, cert: trunk.settings.tls?.cert, key: trunk.tlsKey };
    };
    this.#sockets = await openListener({ listen, tls, advertise, clock, log, tlsOf, isKnown, isBanned, onMessage, onLost });
    this.#driver.attach(this.#sockets);
    this.#monitor.update(this.#options.trunks());
  }

  /** The contacts that are bound as the carrier starts. */
  devicesBound(bound: readonly { readonly username: string; readonly binding: Binding }[]): void {
    for (const { username, binding } of bound) {
      this.#devices.learn(username, binding);
      this.#pings.keep(username, binding);
    }
  }

  devicesGone(usernames: readonly string[]): void {
    for (const username of usernames) for (const key of this.#devices.forget(username)) this.#pings.forget(username, key);
  }

  async dial(order: DialOptions): Promise<{ readonly leg: Leg } | { readonly unavailable: DialRefused }> {
    if (this.#draining) return { unavailable: 'draining' };
    if (this.#options.media.load().portsFree === 0) return { unavailable: 'no_ports' };
    return isDevice(order.to) ? this.#deviceDial.dial(order) : await dial(this.#outbound, order);
  }

  resume(...call: Parameters<NonNullable<Carrier['resume']>>): ReturnType<NonNullable<Carrier['resume']>> {
    return resume(
      {
        ...{ driver: this.#driver, channels: this.#channels, seal: this.#options.seal },
        isDraining: () => this.#draining,
        named: (trunk) => this.#callers.named(trunk),
        legOptions: (...leg) => this.#legOptions(...leg),
      },
      ...call,
    );
  }

  channelsHeld(): Readonly<Record<string, number>> {
    return this.#channels.allHeld();
  }

  registrations(): Readonly<Record<string, TrunkBinding>> {
    return this.#monitor.registrations();
  }

  ready(): boolean {
    return this.#sockets !== undefined && !this.#closed;
  }

  load(): ReturnType<Carrier['load']> {
    const datagramsLost = this.#sockets?.lost() ?? 0;
    return { ...this.#agent.load(), trunksDown: this.#monitor.down, datagramsLost, callsLate: this.#callsLate };
  }

  bans(): { readonly now: number; readonly total: number } {
    return this.#screen.bans;
  }

  trunksChanged(...set: readonly string[]): void {
    const trunks = this.#options.trunks();
    this.#addresses.update(trunks);
    const names = new Set(trunks.map(({ name }) => name));
    for (const each of [this.#channels, this.#turns, this.#failed]) each.keep(names);
    this.#monitor.update(trunks, set);
  }

  drain(on = true): void {
    this.#draining = on;
    this.#agent.drain(on);
  }

  takeStray(bytes: Uint8Array, source: Peer): boolean {
    if (!this.#agent.has(bytes)) return false;
    this.#driver.receive(bytes, { ...this.#profiled(source), via: source.via ?? '' });
    return true;
  }

  sendFor(bytes: Uint8Array, { via: _, ...peer }: Peer): void {
    this.#sockets?.send(bytes, peer, () => {});
  }

  registrationsChanged(): void {
    this.#monitor.registrationsChanged();
  }

  reloadCertificate(): void {
    this.#sockets?.reloadCertificate();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.drain();
    await this.#monitor.stop();
    this.#pings.close();
    this.#driver.close();
    await this.#sockets?.close();
  }

  ports(): readonly BoundPort[] {
    return this.#sockets?.ports ?? [];
  }

  get hasOpus(): boolean {
    return this.#options.media.codecs.includes('opus');
  }

  get hasSrtp(): boolean {
    return this.#options.media.srtpSuites.length > 0;
  }

  refusals(): readonly Refusal[] {
    return this.#screen.refusals.list();
  }

  isCountryCode(code: string): Promise<boolean> {
    return isCountryCode(code);
  }

  trunkStatus(name: string): TrunkStatus {
    const own = this.#monitor.status(name);
    const elsewhere = own.registered ? undefined : this.#options.registeredElsewhere?.(name);
    const shared = elsewhere === undefined ? {} : { registered: true, registeredUntil: elsewhere.until };
    return { ...own, ...shared, ...this.#channels.counts(name) };
  }

  probeTrunk(name: string): void {
    this.#monitor.probeNow(name);
  }

  #isConnected(place: Place): boolean {
    return this.#sockets?.isConnected(place) ?? false;
  }

  /** The source of a message, with the profile of its trunk. Whoever is heard and is no trunk is a device. */
  #profiled(source: Peer, trunk = this.#callers.at(source.host)): Peer {
    const profile = trunk === undefined ? DEVICE_PROFILE : trunkProfile(trunk, this.#targets.hasTcp);
    return Object.keys(profile).length === 0 ? source : { ...source, profile };
  }

  /** The source of a request, with the profile of the device or trunk that it is from: they may share an address. */
  #senderOf(request: SipRequest, source: Peer): Peer {
    if (this.#deviceOf(request) !== undefined) return { ...source, profile: DEVICE_PROFILE };
    return this.#callers.isShared(source.host) ? this.#profiled(source, this.#callers.of(request, source.host)) : source;
  }

  /** The device that an INVITE is from, which has proved that. Our own loopback calls are of none. */
  #deviceOf(request: SipRequest): Device | undefined {
    if (request.method !== 'INVITE' || this.#loopback.trunkOf(request.headers) !== undefined) return undefined;
    return this.#devices.callerOf(request);
  }

  #onInvite({ call, request, source }: Extract<UserAgentOutput, { type: 'invite' }>): void {
    const { log } = this.#options;
    const refuse: Invite['refuse'] = (status, why, fields = []) => {
      this.#screen.refusals.record(request, source, status, why, this.#options.clock.now());
      this.#driver.run((now) => call.refuse(status, fields, now));
    };
    const listen: Invite['listen'] = (listener) => this.#driver.listen(call, listener);
    admitInvite(this.#inbound, { call, request, source, refuse, listen }).catch(() => {
      log.error({}, 'an incoming call could not be taken');
      this.#driver.run((now) => call.refuse(500, [], now));
    });
  }

  #credentials(trunk: Trunk | undefined): Credentials | undefined {
    return trunk && callCredentials(trunk, () => this.#callers.named(trunk.name));
  }

  /** Our address as that peer sees it, or the loopback while no socket is open. */
  #localHost(peer: Peer): string {
    return this.#sockets?.local(peer).host ?? '127.0.0.1';
  }

  /** Takes a channel of the trunk for a call that came from `source`. */
  #reserve(trunk: Trunk, source: Peer): PhoneLegOptions | undefined {
    if (this.#options.media.load().portsFree === 0) return undefined;
    const release = this.#channels.take(trunk);
    return release === undefined ? undefined : this.#legOptions(trunk, () => source.host, source.transport, release);
  }

  /** `transport` carries the call's signalling. */
  #legOptions(
    trunk: Trunk,
    address: () => string,
    transport: Peer['transport'] | undefined,
    release: () => void,
  ): PhoneLegOptions {
    const { clock, media, seal, advertise = [], rtpHost = '127.0.0.1' } = this.#options;
    const ports = this.#sockets?.ports ?? [];
    const own = advertisedHost(trunk);
    const advertised = own === undefined ? advertise : [own];
    const towards = (far: string) => audioAddress(rtpHost, ports, advertised, far);
    const sdpHost = () => towards(address()) ?? towards(rtpHost) ?? rtpHost;
    return {
      family: versionOf(sdpHost()) === 6 ? 6 : 4,
      driver: this.#driver,
      ...{ media, seal },
      trunk: trunk.name,
      isLoopback: isLoopback(trunk),
      transfers: transfersOf(trunk),
      codecs: trunkCodecs(trunk, media.codecs),
      srtp: srtpOf(trunk, transport, media.srtpSuites, systemRandom),
      sdpHost,
      sdpHostTowards: towards,
      sessionId: ++this.#lastSession,
      rtpSources: () => [address(), ...trunk.inboundCidrs],
      wait: (ms, then) => clock.at(clock.now() + ms, then),
      onEnded: release,
    };
  }
}

function tookTooLong(): never {
  throw new Error('took too long');
}
