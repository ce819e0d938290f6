/**
 * The receiver of a load's webhooks. It outlives the platform that is killed, refuses some deliveries so that they are
 * tried again, and keeps what it took in the order of receipt, lane by lane.
 */
import { Webhook } from 'standardwebhooks';
import { EmissionChecker } from '../../src/event/conformance/emission-checker.ts';
import { eventFaults } from '../support/event-check.ts';

export interface Heard {
  readonly webhookId: string;
  readonly event: string;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Waiter {
  readonly lane: string;
  readonly matches: (heard: Heard) => boolean;
  readonly resolve: (heard: Heard) => void;
  readonly reject: (error: Error) => void;
}

/** Thrown at a story of the load that cannot go on: the platform is gone, or the load is cut off. */
export class CutOff extends Error {
  override readonly name = 'CutOff';
}

/** The fields that name a lane. */
const LANES = ['session_uuid', 'room_id', 'message_uuid'] as const;
/** How long a refused delivery is held before its answer, in milliseconds. */
const SLOW_MS = 150;

export class Witness {
  readonly #server: ReturnType<typeof Bun.serve>;
  readonly #checker = new EmissionChecker();
  readonly #ids = new Set<string>();
  readonly #lanes = new Map<string, Heard[]>();
  readonly #random: () => number;
  readonly #refuse: number;
  #waiters: Waiter[] = [];
  readonly #listeners: ((heard: Heard) => void)[] = [];
  #isCut = false;
  /** The webhook secret of each application, by its identifier. */
  readonly secrets = new Map<string, string>();
  /** What was wrong with a delivery, in words. */
  readonly breaches: string[] = [];
  deliveries = 0;
  repeated = 0;
  /** Deliveries that were refused because their time was not the right one. */
  mistimed = 0;
  /** Whether the platform's clock is wrong for a while, so that what it signs meanwhile is refused and comes again. */
  expectsWrongTimes = false;

  /** `refuse` is the share of deliveries that are answered with 500. */
  constructor(random: () => number, refuse = 0.05) {
    this.#random = random;
    this.#refuse = refuse;
    this.#server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 60, fetch: (request) => this.#receive(request) });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/hook`;
  }

  /** Events, each counted once. */
  get events(): number {
    return this.#checker.events;
  }

  /** What was taken of one lane: of a Session, a Room or a message. */
  lane(id: string): readonly Heard[] {
    return this.#lanes.get(id) ?? [];
  }

  /** The names of all lanes. */
  lanes(): readonly string[] {
    return [...this.#lanes.keys()];
  }

  listen(listener: (heard: Heard) => void): void {
    this.#listeners.push(listener);
  }

  /** Resolves with the first event of the lane that matches, taken already or to come. Throws CutOff. */
  until(lane: string, matches: (heard: Heard) => boolean): Promise<Heard> {
    const there = this.lane(lane).find(matches);
    return there === undefined ? this.#wait(lane, matches).promise : Promise.resolve(there);
  }

  /** Waits for the first event of any lane that matches and is still to come, until it is disposed. Throws CutOff. */
  expect(matches: (heard: Heard) => boolean): Disposable & { readonly promise: Promise<Heard> } {
    const { promise, waiter } = this.#wait('', matches);
    promise.catch(() => {});
    return {
      promise,
      [Symbol.dispose]: () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter);
      },
    };
  }

  /** Everybody who waits, and whoever comes to wait until `open`, is told that the load is cut off. */
  cut(): void {
    this.#isCut = true;
    for (const { reject } of this.#waiters.splice(0)) reject(new CutOff());
  }

  open(): void {
    this.#isCut = false;
  }

  #wait(lane: string, matches: (heard: Heard) => boolean) {
    const { promise, resolve, reject } = Promise.withResolvers<Heard>();
    const waiter: Waiter = { lane, matches, resolve, reject };
    if (this.#isCut) reject(new CutOff());
    else this.#waiters.push(waiter);
    return { promise, waiter };
  }

  /** What is missing when nothing more comes. */
  end(): readonly string[] {
    return this.#checker.end();
  }

  async stop(): Promise<void> {
    this.cut();
    await this.#server.stop(true);
  }

  async #receive(request: Request): Promise<Response> {
    // The doctor and the console ask a receiver for nothing.
    if (request.method !== 'POST') return new Response(null, { status: 405 });
    const text = await request.text();
    const webhookId = request.headers.get('webhook-id') ?? '';
    const body: Record<string, unknown> = JSON.parse(text);
    const webhook = new Webhook(this.secrets.get(String(body.aud)) ?? '');
    try {
      webhook.verify(text, Object.fromEntries(request.headers));
    } catch {
      const signed = new Date(1000 * Number(request.headers.get('webhook-timestamp')));
      const isMistimed = request.headers.get('webhook-signature') === webhook.sign(webhookId, signed, text);
      if (isMistimed) this.mistimed += 1;
      if (!isMistimed || !this.expectsWrongTimes) this.breaches.push(`${webhookId} has a bad signature`);
      return new Response(null, { status: 401 });
    }
    this.deliveries += 1;
    const chance = this.#random();
    // What was refused for its time throughout an outage waits for minutes already.
    if (chance < this.#refuse && !this.expectsWrongTimes) {
      if (chance < this.#refuse / 4) await Bun.sleep(SLOW_MS);
      return new Response(null, { status: 500 });
    }
    this.breaches.push(...this.#checker.take(webhookId, text), ...eventFaults(body));
    if (this.#ids.has(webhookId)) this.repeated += 1;
    else this.#take({ webhookId, event: String(body.event), body });
    return new Response(null, { status: 204 });
  }

  #take(heard: Heard): void {
    this.#ids.add(heard.webhookId);
    const lanes = LANES.map((name) => heard.body[name]).filter((id) => typeof id === 'string' && id !== '');
    for (const lane of lanes) {
      const known = this.#lanes.get(String(lane));
      if (known === undefined) this.#lanes.set(String(lane), [heard]);
      else known.push(heard);
    }
    for (const listener of this.#listeners) listener(heard);
    this.#waiters = this.#waiters.filter(({ lane, matches, resolve }) => {
      if ((lane !== '' && !lanes.includes(lane)) || !matches(heard)) return true;
      resolve(heard);
      return false;
    });
  }
}
