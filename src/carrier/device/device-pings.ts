/**
 * Asks the devices that are reached over UDP again and again whether they are there, by OPTIONS (RFC 3261 §11).
 *
 *  * It keeps the way to a device behind NAT open: a router forgets a mapping after some 30 s without a packet. Some
 *    routers count packets from within only (RFC 4787 §4.3), so it has to be something that the device answers.
 *  * A device that answered before, and does not any more, is known to be off before somebody calls it.
 */
import type { Clock } from '../../clock.ts';
import { DEVICE_PING_MS, DEVICE_PINGS_A_TURN } from '../../limits.ts';
import type { Peer } from '../../sip/flow.ts';
import type { Binding } from '../../sip/registrar.ts';
import { FLOW_FAILED, peerOf } from './device-trunk.ts';

interface Pinged {
  readonly uri: string;
  readonly peer: Peer;
  /** The Route through the proxies before the device. Undefined where there are none. */
  readonly route: string | undefined;
  readonly until: number;
  /** Whether the last ping was answered. Undefined: none was ever, as by a device that answers no OPTIONS. */
  answers: boolean | undefined;
  /** The ping that is under way, which takes up to 32 s where nobody answers (timer F). */
  underway: string | undefined;
}

/** How a proxy says that the phone behind it does not answer: by Request Timeout, or because its connection is gone. */
const OF_PROXIES: ReadonlySet<number> = new Set([408, ...FLOW_FAILED]);

/** Sends an OPTIONS to a contact. What comes of it is told to `DevicePings.onProbed`, by the same `ping`. */
type Ask = (ping: string, uri: string, peer: Peer, route: string | undefined) => void;

export class DevicePings {
  readonly #clock: Clock;
  readonly #ask: Ask;
  readonly #pinged = new Map<string, Pinged>();
  #cancel: (() => void) | undefined;
  #sent = 0;

  constructor(clock: Clock, ask: Ask) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** Pings a contact while it is bound. A device that has just registered is there. */
  keep(username: string, binding: Binding): void {
    const name = nameOf(username, binding.key);
    const answers = this.#pinged.get(name)?.answers === undefined ? undefined : true;
    this.#pinged.delete(name);
    if (binding.transport !== 'udp') return;
    const { uri, path, expiresAt: until } = binding;
    const route = path === '' ? undefined : path;
    // A ping that is under way may be lost at another place than this one.
    this.#pinged.set(name, { uri, peer: peerOf(binding), route, until, answers, underway: undefined });
    this.#cancel ??= this.#clock.at(this.#clock.now() + DEVICE_PING_MS, () => this.#round([...this.#pinged.keys()]));
  }

  forget(username: string, key: string): void {
    this.#pinged.delete(nameOf(username, key));
  }

  /** Takes what came of a ping: the status of its answer, or 0 where none came. */
  onProbed(ping: string, status: number): void {
    const pinged = this.#pinged.get(ping.slice(ping.indexOf(' ') + 1));
    if (pinged?.underway !== ping) return;
    pinged.underway = undefined;
    const isAnswer = status !== 0 && (pinged.route === undefined || !OF_PROXIES.has(status));
    if (isAnswer) pinged.answers = true;
    else if (pinged.answers === true) pinged.answers = false;
  }

  /**
   * Whether a contact has answered pings, and does not any more. What is known of it counts for nothing once it was
   * bound again at another node, as its end tells.
   */
  isSilent(username: string, { key, expiresAt }: Pick<Binding, 'key' | 'expiresAt'>): boolean {
    const pinged = this.#pinged.get(nameOf(username, key));
    return pinged?.answers === false && pinged.until === expiresAt;
  }

  close(): void {
    this.#cancel?.();
    this.#pinged.clear();
  }

  /** Pings a part of them, and the rest in the next turns of the event loop. */
  #round(left: string[]): void {
    const now = this.#clock.now();
    for (const name of left.splice(0, DEVICE_PINGS_A_TURN)) {
      const pinged = this.#pinged.get(name);
      if (pinged === undefined || pinged.underway !== undefined) continue;
      if (pinged.until <= now) {
        this.#pinged.delete(name);
        continue;
      }
      pinged.underway = `${++this.#sent} ${name}`;
      this.#ask(pinged.underway, pinged.uri, pinged.peer, pinged.route);
    }
    const wait = left.length > 0 ? 1 : DEVICE_PING_MS;
    this.#cancel =
      this.#pinged.size === 0
        ? undefined
        : this.#clock.at(now + wait, () => this.#round(left.length > 0 ? left : [...this.#pinged.keys()]));
  }
}

const nameOf = (username: string, key: string): string => `${username} ${key}`;
