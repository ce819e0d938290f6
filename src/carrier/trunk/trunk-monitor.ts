/** What trunks need all the time: registrations kept alive, and an OPTIONS now and then to know which of them answer. */
import type { Clock } from '../../clock.ts';
import { SIP_PROBE_INTERVAL_SEC, SIP_REGISTER_RETRY_SEC } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Peer } from '../../sip/flow.ts';
import type { Registration } from '../../sip/registration.ts';
import type { AgentDriver } from '../agent-driver.ts';
import { type Trunk, type TrunkAddress, trunkAddress, trunkDomain } from './trunk.ts';

interface Kept {
  readonly trunk: Trunk;
  readonly address: TrunkAddress;
  registration: Registration | undefined;
  /** Undefined: not known yet. */
  answers: boolean | undefined;
  cancelProbe: () => void;
  cancelRegister: () => void;
  stopped: boolean;
}

export class TrunkUpkeep {
  readonly #driver: AgentDriver;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #resolve: (address: TrunkAddress) => Promise<Peer | undefined>;
  readonly #kept = new Map<string, Kept>();

  readonly #lastUsed: (trunk: Trunk) => number;

  /** `lastUsed`: when the trunk last began or ended a call, ms. */
  constructor(
    driver: AgentDriver,
    clock: Clock,
    log: Log,
    resolve: (address: TrunkAddress) => Promise<Peer | undefined>,
    lastUsed: (trunk: Trunk) => number,
  ) {
    this.#lastUsed = lastUsed;
    this.#driver = driver;
    this.#clock = clock;
    this.#log = log;
    this.#resolve = resolve;
  }

  /** Starts upkeep of new trunks, stops that of those that are gone, and begins anew where one has changed. */
  update(trunks: readonly Trunk[]): void {
    for (const [name, kept] of this.#kept) {
      const now = trunks.find((trunk) => trunk.name === name);
      if (now === undefined || JSON.stringify(now) !== JSON.stringify(kept.trunk)) this.#stop(kept);
    }
    for (const trunk of trunks) {
      const address = trunkAddress(trunk.uri);
      if (this.#kept.has(trunk.name) || address === undefined) continue;
      const kept: Kept = {
        trunk,
        address,
        registration: undefined,
        answers: undefined,
        cancelProbe: () => {},
        cancelRegister: () => {},
        stopped: false,
      };
      this.#kept.set(trunk.name, kept);
      void this.#register(kept);
      this.#probeLater(kept);
    }
  }

  /** Whether the trunk did not answer the last probe. */
  isSilent(name: string): boolean {
    return this.#kept.get(name)?.answers === false;
  }

  onProbed(name: string, status: number): void {
    const kept = this.#kept.get(name);
    if (kept === undefined) return;
    const answers = status !== 0;
    if (kept.answers !== answers) this.#log.info({ trunk: name, answers, status }, 'trunk probe');
    kept.answers = answers;
  }

  stop(): void {
    for (const kept of [...this.#kept.values()]) this.#stop(kept);
  }

  #stop(kept: Kept): void {
    kept.stopped = true;
    kept.cancelProbe();
    kept.cancelRegister();
    this.#kept.delete(kept.trunk.name);
    const { registration } = kept;
    if (registration !== undefined) this.#driver.run((now) => registration.stop(now));
  }

  async #register(kept: Kept): Promise<void> {
    const { trunk, address } = kept;
    const { username, password } = trunk;
    if (!trunk.register || username === undefined || password === undefined) return;
    const peer = await this.#resolve(address);
    if (kept.stopped) return;
    if (peer === undefined) {
      this.#log.warn({ trunk: trunk.name }, 'the registrar has no address');
      kept.cancelRegister = this.#clock.at(this.#clock.now() + SIP_REGISTER_RETRY_SEC * 1000, () => void this.#register(kept));
      return;
    }
    const domain = trunkDomain(address);
    this.#driver.run((now) => {
      kept.registration = this.#driver.agent.register({
        name: trunk.name,
        registrar: `sip:${domain}`,
        address: `sip:${username}@${domain}`,
        peer,
        credentials: { username, password },
      });
      kept.registration.start(now);
    });
  }

  /** A trunk that carries calls shows that it is there; only one that has been idle is asked. */
  async #probe(kept: Kept): Promise<void> {
    const { name } = kept.trunk;
    if (this.#clock.now() - this.#lastUsed(kept.trunk) < SIP_PROBE_INTERVAL_SEC * 1000) {
      kept.answers = undefined;
      this.#probeLater(kept);
      return;
    }
    const peer = await this.#resolve(kept.address);
    if (kept.stopped) return;
    if (peer === undefined) this.onProbed(name, 0);
    else this.#driver.run((now) => this.#driver.agent.probe(name, `sip:${trunkDomain(kept.address)}`, peer, now));
    this.#probeLater(kept);
  }

  #probeLater(kept: Kept): void {
    kept.cancelProbe = this.#clock.at(this.#clock.now() + SIP_PROBE_INTERVAL_SEC * 1000, () => void this.#probe(kept));
  }
}
