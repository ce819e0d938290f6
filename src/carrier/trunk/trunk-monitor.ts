/** Keeps the registrations of trunks alive and sends an OPTIONS now and then to know which trunks answer. */
import { withTimeLimit } from '../../bounds/time-limit.ts';
import type { TrunkStatus } from '../../call/ports/trunks.ts';
import type { Clock } from '../../clock.ts';
import { SIP_PROBE_INTERVAL_SEC, SIP_UNREGISTER_MAX_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Peer } from '../../sip/flow.ts';
import { escapeUser } from '../../sip/message/uri.ts';
import type { Registration } from '../../sip/registration.ts';
import type { AgentDriver } from '../agent-driver.ts';
import { isLoopback, routeOf, type Trunk, type TrunkAddress, trunkAddress, trunkCredentials, trunkDomain } from './trunk.ts';

/** A registration of a trunk. */
export interface TrunkBinding {
  /** Its end, in milliseconds since the epoch. */
  readonly until: number;
  /** The Route header fields of calls over the trunk, as the registrar named them (RFC 3608). */
  readonly serviceRoute: readonly string[];
}

/** One trunk and its timers. */
interface Monitored {
  readonly trunk: Trunk;
  readonly address: TrunkAddress;
  registration: Registration | undefined;
  /** Whether the trunk answered its last probe. Undefined until the first one. */
  answers: boolean | undefined;
  lastProbe: TrunkStatus['lastProbe'];
  /** The number of the probe that has told `answers`, 0 before the first one. */
  toldBy: number;
  /** The peer that answered the last probe, and where it saw that come from. */
  seen: { readonly by: Peer; readonly at: string } | undefined;
  cancelProbe: () => void;
  stopped: boolean;
}

/** A probe that is under way. Several of one trunk may be: each takes up to 32 s where a peer is silent (timer F). */
interface Probe {
  readonly monitored: Monitored;
  /** Later probes have higher numbers. */
  readonly number: number;
  readonly peer: Peer | undefined;
  /** The peers of the trunk that are asked where those before them do not answer. */
  readonly untried: readonly Peer[];
  /** Whether it only keeps the way to us open through a router: no answer to it says nothing. */
  readonly isKeepalive: boolean;
}

interface TrunkMonitorOptions {
  readonly driver: AgentDriver;
  readonly clock: Clock;
  readonly log: Log;
  /** Finds the peers of a trunk, in the order in which they are tried. */
  resolve(trunk: Trunk): Promise<readonly Peer[]>;
  /** When the trunk last began or ended a call, in milliseconds. 0 where it has failed one since. */
  lastUsed(trunk: Trunk): number;
  /** Whether this node is the one that registers the trunk. */
  registers(trunk: string): boolean;
}

export class TrunkMonitor {
  readonly #options: TrunkMonitorOptions;
  readonly #trunks = new Map<string, Monitored>();
  /** The probes that are under way, by the names that the user agent is given. */
  readonly #probes = new Map<string, Probe>();
  #asked = 0;
  /** The registrations whose registrars are asked to take the bindings back. */
  readonly #leaving = new Set<{ readonly binding: string; readonly registration: Registration }>();

  constructor(options: TrunkMonitorOptions) {
    this.#options = options;
  }

  /**
   * Starts to watch new trunks, stops for trunks that are gone, and begins anew for trunks that changed. `set`: those
   * that the operator set up, also as they were.
   */
  update(trunks: readonly Trunk[], set: readonly string[] = []): void {
    const named = new Map(trunks.map((trunk) => [trunk.name, trunk]));
    const madeAnew = new Set(trunks.filter((trunk) => this.#binds(trunk)).map(bindingOf));
    const setUp = new Set(set);
    for (const [name, monitored] of this.#trunks) {
      const now = named.get(name);
      if (now !== undefined && JSON.stringify(now) === JSON.stringify(monitored.trunk)) {
        if (setUp.has(name)) this.#registerAgain(monitored);
        continue;
      }
      // A removal would take the binding of the trunk as it is now, or of another name for it, if it came last.
      if (madeAnew.has(bindingOf(monitored.trunk))) this.#letGo(monitored);
      void this.#stop(monitored);
    }
    const added = trunks.filter((trunk) => !this.#trunks.has(trunk.name) && !isLoopback(trunk));
    for (const [at, trunk] of added.entries()) {
      const address = trunkAddress(trunk.uri);
      if (address === undefined) continue;
      const monitored: Monitored = {
        trunk,
        address,
        registration: undefined,
        answers: undefined,
        lastProbe: undefined,
        toldBy: 0,
        seen: undefined,
        cancelProbe: () => {},
        stopped: false,
      };
      this.#trunks.set(trunk.name, monitored);
      this.#register(monitored);
      // Trunks that are set up together, as by a start, are probed one after the other, in each round.
      this.#probeLater(monitored, 1 - at / added.length);
    }
  }

  /** Whether the trunk did not answer the last probe. */
  isSilent(name: string): boolean {
    return this.#trunks.get(name)?.answers === false;
  }

  /** Whether the trunk should be registered and is not. */
  isUnregistered(name: string): boolean {
    const { trunk, registration } = this.#trunks.get(name) ?? {};
    return trunk?.register === true && this.#options.registers(name) && registration?.state !== 'registered';
  }

  /** How many trunks are known not to answer, or to be unregistered though this node should have registered them. */
  get down(): number {
    return [...this.#trunks.entries()].filter(([name, { answers, registration }]) => {
      const isTried = registration?.sipStatus !== undefined;
      return answers === false || (isTried && this.isUnregistered(name));
    }).length;
  }

  /** The registration and the last probe of a trunk. */
  status(name: string): Pick<TrunkStatus, 'registered' | 'registeredUntil' | 'registerStatus' | 'lastProbe'> {
    const { registration, lastProbe } = this.#trunks.get(name) ?? {};
    const { state, until: registeredUntil, sipStatus: registerStatus } = registration ?? {};
    return { registered: state === 'registered', registeredUntil, registerStatus, lastProbe };
  }

  /** The trunks that this node has registered. */
  registrations(): Readonly<Record<string, TrunkBinding>> {
    return Object.fromEntries(
      [...this.#trunks].flatMap(([name, { registration }]) =>
        registration?.state === 'registered'
          ? [[name, { until: registration.until ?? 0, serviceRoute: registration.serviceRoute }]]
          : [],
      ),
    );
  }

  /** The Service-Route of a trunk that this node has registered. Undefined where it has not. */
  serviceRoute(name: string): readonly string[] | undefined {
    const { registration } = this.#trunks.get(name) ?? {};
    return registration?.state === 'registered' ? registration.serviceRoute : undefined;
  }

  /** A connection that we had opened to that address is closed: bindings that were made over it are made anew. */
  flowLost(to: Pick<Peer, 'transport' | 'host' | 'port'>): void {
    for (const { registration } of this.#trunks.values())
      if (registration !== undefined) this.#options.driver.run((now) => registration.flowLost(to, now));
  }

  /** Asks the trunk at once, also one that carries calls. */
  probeNow(name: string): void {
    const monitored = this.#trunks.get(name);
    if (monitored !== undefined) void this.#ask(monitored);
  }

  /**
   * The outcome of a probe. Status 0 means that no answer came: the next peer of the trunk is asked, as a call would go
   * there. `seenAt` is where the peer saw it come from, or `""`.
   */
  onProbed(ping: string, status: number, tookMs: number, seenAt = ''): void {
    const probe = this.#probes.get(ping);
    this.#probes.delete(ping);
    if (probe === undefined || probe.monitored.stopped) return;
    this.#see(probe, seenAt);
    if (!probe.isKeepalive && (status !== 0 || !this.#askNext(probe))) this.#tell(probe, status, tookMs);
  }

  /** A router before us that has another address, or has another port for us now: the binding leads nowhere. */
  #see({ monitored, peer }: Probe, at: string): void {
    if (peer?.transport !== 'udp' || at === '') return;
    const { seen, trunk } = monitored;
    monitored.seen = { by: peer, at };
    if (seen === undefined || seen.at === at || seen.by.host !== peer.host || seen.by.port !== peer.port) return;
    this.#options.log.warn({ trunk: trunk.name, was: seen.at, is: at }, 'a router before us has changed our address');
    this.flowLost(peer);
  }

  /** Tells what came of a probe, unless a later one has told already. */
  #tell({ monitored, number }: Probe, status: number, tookMs: number): void {
    if (number < monitored.toldBy) return;
    monitored.toldBy = number;
    const { name } = monitored.trunk;
    const answers = status !== 0;
    if (monitored.answers !== answers)
      this.#options.log[answers ? 'info' : 'warn']({ trunk: name, answers, status }, 'trunk probe');
    const { registration } = monitored;
    // A registrar that is back may have forgotten who was registered.
    if (answers && monitored.answers === false && registration !== undefined)
      this.#options.driver.run((now) => registration.start(now));
    monitored.answers = answers;
    monitored.lastProbe = { at: this.#options.clock.now(), ok: answers, rttMs: answers ? tookMs : 0, sipStatus: status };
  }

  /** Registers the trunks that this node may register by now, and no longer those that another one does. */
  registrationsChanged(): void {
    for (const monitored of this.#trunks.values()) {
      const { registration } = monitored;
      if (this.#options.registers(monitored.trunk.name)) {
        if (registration === undefined) this.#register(monitored);
      } else {
        void this.#takeBack(monitored);
      }
    }
  }

  /**
   * Stops to watch all trunks. Resolves when the registrars have taken the bindings back, for which they ask for
   * credentials, or after SIP_UNREGISTER_MAX_MS.
   */
  async stop(): Promise<void> {
    const stopping = [...this.#trunks.values()].map((monitored) => this.#stop(monitored));
    if (stopping.length > 0) await withTimeLimit<unknown>(Promise.all(stopping), SIP_UNREGISTER_MAX_MS, () => undefined);
  }

  /** Whether this node makes a binding for the trunk. */
  #binds(trunk: Trunk): boolean {
    return trunk.register && trunkCredentials(trunk) !== undefined && this.#options.registers(trunk.name);
  }

  #letGo(monitored: Monitored): void {
    const { registration } = monitored;
    monitored.registration = undefined;
    if (registration !== undefined) this.#options.driver.run(() => registration.letGo());
  }

  async #stop(monitored: Monitored): Promise<void> {
    monitored.stopped = true;
    monitored.cancelProbe();
    this.#trunks.delete(monitored.trunk.name);
    await this.#takeBack(monitored);
  }

  /** Has the registrar take the binding back. Resolves when that is over. */
  async #takeBack(monitored: Monitored): Promise<void> {
    const { trunk, registration } = monitored;
    monitored.registration = undefined;
    if (registration === undefined) return;
    const leaving = { binding: bindingOf(trunk), registration };
    this.#leaving.add(leaving);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#options.driver.run((now) => registration.stop(now, resolve));
    await promise;
    this.#leaving.delete(leaving);
  }

  #register(monitored: Monitored): void {
    const { trunk, address } = monitored;
    const { username } = trunk;
    const credentials = trunkCredentials(trunk);
    if (!trunk.register || username === undefined || credentials === undefined || !this.#options.registers(trunk.name)) return;
    const domain = trunkDomain(address);
    // A removal that is sent again, as its packet was lost, would reach the registrar after the new REGISTER.
    const binding = bindingOf(trunk);
    for (const leaving of this.#leaving)
      if (leaving.binding === binding) this.#options.driver.run(() => leaving.registration.letGo());
    this.#options.driver.run((now) => {
      const registration = this.#options.driver.agent.register(trunk.name, {
        registrar: `sip:${domain}`,
        address: `sip:${escapeUser(username)}@${trunk.settings.from_domain ?? domain}`,
        resolve: (found) => void this.#find(trunk, found),
        ...routeOf(trunk),
        credentials,
      });
      monitored.registration = registration;
      registration.start(now);
    });
  }

  /** Registers at once where the last round has failed, though the next one may be minutes away. */
  #registerAgain({ registration }: Monitored): void {
    if (registration?.state === 'refused' || registration?.state === 'unreachable')
      this.#options.driver.run((now) => registration.start(now));
  }

  /** Finds the addresses of a registrar. */
  async #find(trunk: Trunk, found: (peers: readonly Peer[], now: number) => void): Promise<void> {
    const peers = await this.#options.resolve(trunk);
    if (peers.length === 0) this.#options.log.warn({ trunk: trunk.name }, 'the registrar has no address');
    this.#options.driver.run((now) => found(peers, now));
  }

  /**
   * Probes the trunk when it has been idle, or has failed a call. One that carries calls shows that it is there; but a
   * call may say nothing for an hour, while the registrar calls us through a router that forgets.
   */
  async #probe(monitored: Monitored): Promise<void> {
    if (this.#options.clock.now() - this.#options.lastUsed(monitored.trunk) < SIP_PROBE_INTERVAL_SEC * 1000) {
      monitored.answers = undefined;
      const registrar = monitored.registration?.boundAt;
      if (registrar?.transport === 'udp') this.#askNext(this.#newProbe(monitored, [registrar], true));
    } else {
      await this.#ask(monitored);
    }
    if (!monitored.stopped) this.#probeLater(monitored);
  }

  /** Sends an OPTIONS to the first peer of the trunk. */
  async #ask(monitored: Monitored): Promise<void> {
    const number = ++this.#asked;
    const probe = this.#newProbe(monitored, await this.#options.resolve(monitored.trunk), false, number);
    if (!monitored.stopped && !this.#askNext(probe)) this.#tell(probe, 0, 0);
  }

  #newProbe(monitored: Monitored, untried: readonly Peer[], isKeepalive: boolean, number = ++this.#asked): Probe {
    return { monitored, number, peer: undefined, untried, isKeepalive };
  }

  /** Sends an OPTIONS to the next peer. False: there is none. */
  #askNext({ monitored, number, untried: [peer, ...untried], isKeepalive }: Probe): boolean {
    if (peer === undefined) return false;
    const { trunk, address } = monitored;
    const { route } = routeOf(trunk);
    const name = String(number);
    this.#probes.set(name, { monitored, number, peer, untried, isKeepalive });
    this.#options.driver.run((now) =>
      this.#options.driver.agent.probe({ whom: 'trunk', name }, `sip:${trunkDomain(address)}`, peer, now, route),
    );
    return true;
  }

  /** Probes the trunk when that share of the interval has passed. */
  #probeLater(monitored: Monitored, share = 1): void {
    monitored.cancelProbe = this.#options.clock.at(
      this.#options.clock.now() + share * SIP_PROBE_INTERVAL_SEC * 1000,
      () => void this.#probe(monitored),
    );
  }
}

/** The binding that a trunk makes, here: this address of ours, for that user of that registrar. */
function bindingOf({ uri, username, settings }: Trunk): string {
  const { from_domain, contact_user, contact_host, advertise, outbound_proxy } = settings;
  return JSON.stringify([uri, username, from_domain, contact_user, contact_host, advertise, outbound_proxy]);
}
