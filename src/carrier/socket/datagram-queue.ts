/**
 * Datagrams that wait to be worked on. The runtime reads a socket until nothing is left in it, however long each
 * datagram takes, so that timers, the API and all else would stand still for as long as more of them come than are
 * worked on: seconds, at 1,200 a second that take a millisecond each. So each turn of the event loop has its share,
 * and what waits has its turns round robin by source.
 */
import { RoundRobin } from '../../bounds/round-robin.ts';
import {
  SIP_DATAGRAMS_WAITING_MAX,
  SIP_DATAGRAMS_WAITING_PER_SOURCE,
  SIP_INVITES_WAITING_PER_SOURCE,
  SIP_TURN_MESSAGES,
} from '../../limits.ts';

export interface Datagram {
  readonly bytes: Uint8Array;
  readonly host: string;
  readonly port: number;
}

export class DatagramQueue {
  readonly #work: (datagram: Datagram) => void;
  readonly #afterTurn: (then: () => void) => void;
  readonly #waiting = new RoundRobin<Datagram>();
  #begun = 0;
  #lost = 0;

  /** `afterTurn` calls back once the present turn of the event loop is over. */
  constructor(work: (datagram: Datagram) => void, afterTurn: (then: () => void) => void = (then) => void setImmediate(then)) {
    this.#work = work;
    this.#afterTurn = afterTurn;
  }

  /** Works on a datagram at once where this turn has room, else later. One for which there is no place is lost. */
  add(datagram: Datagram): void {
    if (this.#begun === 0) this.#afterTurn(() => this.#next());
    if (this.#begun < SIP_TURN_MESSAGES) {
      this.#begun += 1;
      this.#work(datagram);
    } else if (this.#waiting.size < SIP_DATAGRAMS_WAITING_MAX && this.#waiting.of(datagram.host) < placesFor(datagram))
      this.#waiting.add(datagram.host, datagram);
    else this.#lost += 1;
  }

  /** The datagrams for which there was no place. */
  get lost(): number {
    return this.#lost;
  }

  #next(): void {
    this.#begun = 0;
    if (this.#waiting.size === 0) return;
    this.#afterTurn(() => this.#next());
    while (this.#begun < SIP_TURN_MESSAGES) {
      const next = this.#waiting.take();
      if (next === undefined) break;
      this.#begun += 1;
      this.#work(next);
    }
  }
}

const INVITE = new TextEncoder().encode('INVITE ');

function placesFor({ bytes }: Datagram): number {
  return INVITE.every((byte, at) => bytes[at] === byte) ? SIP_INVITES_WAITING_PER_SOURCE : SIP_DATAGRAMS_WAITING_PER_SOURCE;
}
