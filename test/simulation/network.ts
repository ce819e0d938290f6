/** The bus between simulated nodes: it drops, delays and doubles messages, and parts nodes from one another. */
import type { OpenTransport, Transport, TransportMessage } from '../../src/cluster/bus/transport.ts';
import type { Faults } from './faults.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

interface Member {
  readonly place: number;
  readonly isAlive: () => boolean;
  readonly pass: (run: () => void) => void;
  readonly onChange: (isUp: boolean) => void;
  readonly subscriptions: { readonly subject: string; readonly heard: (message: TransportMessage) => void }[];
  isUp: boolean;
}

/** A lost connection is noticed after so many milliseconds at most. */
const NOTICED_MS = 2_000;

const covers = (subject: string, asked: string): boolean =>
  subject.endsWith('>') ? asked.startsWith(subject.slice(0, -1)) : subject === asked;

export class Network {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #faults: Faults;
  #members: Member[] = [];

  constructor(scheduler: Scheduler, random: Random, faults: Faults) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#faults = faults;
  }

  /** The bus as one process reaches it. */
  opener(place: number, isAlive: () => boolean, pass: Member['pass']): OpenTransport {
    return (_name, onChange) => {
      this.#members = this.#members.filter((each) => each.isAlive());
      const member: Member = { place, isAlive, pass, onChange, subscriptions: [], isUp: true };
      this.#members.push(member);
      const { promise, resolve } = Promise.withResolvers<Transport>();
      this.#scheduler.after(this.#random.between(1, 50), () => {
        pass(() => {
          if (isAlive()) resolve(this.#transport(member));
        });
      });
      return promise;
    };
  }

  /** A node is parted from the bus, or joined to it again. Its client notices some time later. */
  changed(place: number): void {
    for (const member of this.#members)
      if (member.place === place)
        this.#scheduler.after(this.#random.between(10, NOTICED_MS), () => {
          const isUp = !this.#faults.busAway.has(place);
          if (!member.isAlive() || member.isUp === isUp) return;
          member.isUp = isUp;
          member.pass(() => member.onChange(isUp));
        });
  }

  #isCut({ place, isAlive }: Member): boolean {
    return !isAlive() || this.#faults.busAway.has(place);
  }

  /** Carries something to a node, once, twice or not at all. Tells nobody which. */
  #carry(from: Member, to: Member, arrive: () => void): void {
    const { busDrops, busDoubles, busSlow } = this.#faults;
    const copies = this.#random.chance(busDrops) ? 0 : this.#random.chance(busDoubles) ? 2 : 1;
    if (this.#isCut(from)) return;
    for (let copy = 0; copy < copies; copy++)
      this.#scheduler.after(this.#random.between(0.2, 4) * busSlow, () => {
        if (!this.#isCut(to)) to.pass(() => to.isAlive() && arrive());
      });
  }

  #deliver(from: Member, subject: string, text: string, respond: (to: Member, text: string) => void): number {
    let hearers = 0;
    for (const to of this.#members)
      for (const each of to.subscriptions) {
        // The server has nobody to send it to, also where the member comes back at once.
        if (!covers(each.subject, subject) || this.#isCut(to)) continue;
        hearers += 1;
        this.#carry(from, to, () => each.heard({ subject, text, respond: (answer) => respond(to, answer) }));
      }
    return hearers;
  }

  #transport(member: Member): Transport {
    return {
      subscribe: (subject, heard) => void member.subscriptions.push({ subject, heard }),
      publish: (subject, text) => void this.#deliver(member, subject, text, () => {}),
      request: (subject, text, timeoutMs) => {
        const { promise, resolve } = Promise.withResolvers<{ readonly text: string } | 'nobody' | 'unknown'>();
        const settle = (result: { readonly text: string } | 'nobody' | 'unknown') => {
          member.pass(() => {
            if (member.isAlive()) resolve(result);
          });
        };
        const hearers = this.#deliver(member, subject, text, (to, answer) =>
          this.#carry(to, member, () => settle({ text: answer })),
        );
        // The server itself tells that nobody hears a subject.
        if (hearers === 0 && !this.#isCut(member)) this.#scheduler.after(1, () => settle('nobody'));
        this.#scheduler.after(timeoutMs, () => settle('unknown'));
        return promise;
      },
      close: async () => {
        this.#members = this.#members.filter((each) => each !== member);
      },
    };
  }
}
