/**
 * The stage of a load: a platform with applications and a loopback trunk, a receiver, and what holds all to account.
 */
import type { Platform } from '../support/platform.ts';
import { oneOf, seeded } from '../support/random.ts';
import { toneWav } from '../support/rtp-peer.ts';
import { Client, type Tenant } from './client.ts';
import { Ledger } from './ledger.ts';
import { STORIES, TERMINAL } from './stories.ts';
import { CutOff, type Heard, Witness } from './witness.ts';

const TENANTS = 4;
const LONG_SEC = 20;
const SHORT_SEC = 0.4;
const LOG_PAGE = 1000;
/** Looks at what is owed still, this often. */
const LOOK_MS = 50;

/** The settings of a load: short times, so that a round is over in seconds. */
export const QUICK = {
  ORPHAN_TIMEOUT_SEC: '1',
  WEBHOOK_RETRY_SCALE: '0.05',
} as const;

export class Stage {
  readonly platform: Platform;
  readonly witness: Witness;
  readonly ledger: Ledger;
  readonly client: Client;
  readonly random: () => number;
  readonly #tenants: Tenant[] = [];
  /** The Session of each dial, by its `client_state`. */
  readonly #dials = new Map<string, unknown>();
  readonly #sounds = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => new Response(new URL(request.url).pathname === '/long.wav' ? LONG : SHORT),
  });
  #running: Promise<void>[] = [];
  readonly #knocks = new Set<Promise<void>>();
  #isOver = false;
  /** Stories that were told to their end. */
  told = 0;
  /** Stories that were cut off, or whose command was refused. */
  cutOff = 0;

  private constructor(platform: Platform, seed: number) {
    this.platform = platform;
    this.random = seeded(seed);
    this.witness = new Witness(seeded(seed + 1));
    this.ledger = new Ledger();
    this.client = new Client(platform, this.ledger);
    this.witness.listen((heard) => this.#take(heard));
  }

  /** A dial that was sent again under its key is the same call: its state is that of one Session. */
  #take(heard: Heard): void {
    this.ledger.take(heard);
    const { client_state: state, session_uuid: session } = heard.body;
    if (typeof state !== 'string' || state === '') return;
    const known = this.#dials.get(state) ?? session;
    if (known !== session) this.client.breaches.push(`one dial made the Sessions ${known} and ${session}`);
    this.#dials.set(state, session);
  }

  /** A stage with new applications. `period` is another for each stage on one platform. */
  static async open(platform: Platform, seed: number, period = 0): Promise<Stage> {
    const stage = new Stage(platform, seed);
    for (let n = 0; n < TENANTS; n += 1) await stage.#admit(`+1555${1000 + TENANTS * period + n}`);
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    await platform.trunk('127.0.0.1:9');
    return stage;
  }

  async #admit(number: string): Promise<void> {
    const app = await this.platform.application(this.witness.url, number);
    this.witness.secrets.set(app.appUuid, app.webhookSecret);
    await this.platform.operator('PUT', `/apps/${app.appUuid}/payment-terminals/${TERMINAL}`);
    this.#tenants.push({ app, number });
  }

  /** Begins the load: so many stories at a time, one after the other. */
  play(atOnce: number): void {
    this.#isOver = false;
    this.witness.open();
    const tell = async () => {
      while (!this.#isOver) await this.#tellOne();
    };
    this.#running = Array.from({ length: atOnce }, tell);
  }

  /**
   * Sends a short message every so many milliseconds, whatever becomes of those before, until the load ends. Stories
   * wait for their events in an outage and ask for nothing more.
   */
  async knock(everyMs: number): Promise<void> {
    while (!this.#isOver) {
      const tenant = oneOf(this.random, this.#tenants);
      const order = { from: tenant.number, to: '+15550199', text: crypto.randomUUID() };
      const sent = this.client.send(tenant, 'POST', '/v1/messages', order, (body) => [`message ${body.message_uuid}`]);
      const knock = sent
        .then(
          () => {},
          () => {},
        )
        .finally(() => this.#knocks.delete(knock));
      this.#knocks.add(knock);
      await Bun.sleep(everyMs);
    }
    await Promise.allSettled(this.#knocks);
  }

  async #tellOne(): Promise<void> {
    const { client, witness, random } = this;
    const sounds = { long: new URL('/long.wav', this.#sounds.url).href, short: this.#sounds.url.href };
    const sipPort = this.platform.sipUdpPort;
    const tenant = oneOf(random, this.#tenants);
    try {
      await oneOf(random, STORIES)({ client, witness, tenant, random, sounds, sipPort });
      this.told += 1;
    } catch (error) {
      if (!(error instanceof CutOff)) throw error;
      this.cutOff += 1;
      // A platform that refuses is not asked in a tight loop.
      if (!this.#isOver) await Bun.sleep(LOOK_MS);
    }
  }

  /** Ends the load; stories under way are cut off where they are. */
  async cut(): Promise<void> {
    this.#isOver = true;
    this.witness.cut();
    await Promise.all(this.#running);
    this.witness.open();
  }

  /** Ends the load when each story under way has come to its end, or after `limitMs`. */
  async finish(limitMs: number): Promise<void> {
    this.#isOver = true;
    const timer = setTimeout(() => this.witness.cut(), limitMs);
    await Promise.all(this.#running);
    clearTimeout(timer);
    this.witness.open();
  }

  /** Rooms that were made and not deleted have to be there still, with the volume that was set last. */
  async checkRooms(): Promise<void> {
    const { commands, breaches } = this.client;
    for (const { tenant, path, answer } of commands) {
      if (path !== '/api/v1/rooms' || answer?.status !== 201) continue;
      const own = `/api/v1/rooms/${answer.body.room_id}`;
      if (commands.some((each) => each.method === 'DELETE' && each.path === own)) continue;
      const found = await this.client.get(tenant, own);
      if (found.status === 404) breaches.push(`${own} was made, and is not there`);
      const volumes = commands.filter((each) => each.path === `${own}/playback/volume`);
      const last = volumes.findLast((each) => each.answer?.status === 202)?.body;
      if (found.status !== 200 || last === undefined || volumes.some((each) => each.answer === undefined)) continue;
      if (JSON.stringify(last) !== JSON.stringify({ volume: found.body.playback_volume }))
        breaches.push(`${own} has the volume ${found.body.playback_volume}, and ${JSON.stringify(last)} was set last`);
    }
  }

  /** Each message has a text of its own: one that is there twice was sent twice under one key. */
  async checkMessages(): Promise<void> {
    for (const tenant of this.#tenants) {
      const texts = await this.#listed(tenant, '/v1/messages?limit=50000', 'messages', 'text');
      if (new Set(texts).size !== texts.length) this.client.breaches.push('a message was sent twice under one key');
    }
  }

  /** Ends what the load has left: calls and Rooms. */
  async clear(): Promise<void> {
    for (const tenant of this.#tenants) {
      const sessions = await this.#listed(tenant, '/v1/sessions', 'sessions', 'session_uuid');
      for (const uuid of sessions) await this.#send(tenant, `/v1/sessions/${uuid}`, `session ${uuid}`);
      const rooms = await this.#listed(tenant, '/api/v1/rooms', 'rooms', 'room_id');
      for (const id of rooms) await this.#send(tenant, `/api/v1/rooms/${id}`, `room_end ${id}`);
    }
  }

  async #send(tenant: Tenant, path: string, debt: string): Promise<void> {
    let status = 429;
    while (status === 429 || status === 503)
      ({ status } = await this.client.send(tenant, 'DELETE', path, undefined, () => [debt]));
  }

  async #listed(tenant: Tenant, path: string, list: string, id: string): Promise<string[]> {
    const { body } = await this.client.get(tenant, path);
    const found: unknown = body[list];
    if (!Array.isArray(found)) return [];
    return found.flatMap((each: unknown) =>
      typeof each === 'object' && each !== null && id in each ? [String(Reflect.get(each, id))] : [],
    );
  }

  /** Waits until nothing is owed. Returns whether that was so within `limitMs`. */
  async settle(limitMs: number): Promise<boolean> {
    const until = performance.now() + limitMs;
    const isSettled = () => this.ledger.open().length === 0 && this.witness.end().length === 0;
    while (!isSettled() && performance.now() < until) await Bun.sleep(LOOK_MS);
    return isSettled();
  }

  /**
   * Holds what was received against the platform's own log of events: in each lane the same events in the same order,
   * each delivered, none twice.
   */
  async checkLog(limitMs: number): Promise<number> {
    const until = performance.now() + limitMs;
    let logged = await this.#log();
    // The outcome of a delivery is stored a moment after it.
    while (logged.some(({ status }) => status !== 'delivered') && performance.now() < until) {
      await Bun.sleep(LOOK_MS * 10);
      logged = await this.#log();
    }
    const { breaches } = this.client;
    for (const { webhookId, status } of logged) if (status !== 'delivered') breaches.push(`${webhookId} is ${status} at the end`);
    const lanes = new Map<string, string[]>();
    for (const { webhookId, lanes: own } of logged)
      for (const lane of own) lanes.set(lane, [...(lanes.get(lane) ?? []), webhookId]);
    for (const lane of new Set([...lanes.keys(), ...this.witness.lanes()])) {
      const emitted = lanes.get(lane) ?? [];
      const received = this.witness.lane(lane).map(({ webhookId }) => webhookId);
      if (emitted.join() !== received.join())
        breaches.push(`lane ${lane}: ${emitted.length} events were emitted and ${received.length} received, or in another order`);
    }
    return logged.length;
  }

  async #log(): Promise<readonly LoggedEvent[]> {
    const all: LoggedEvent[] = [];
    for (const { app } of this.#tenants) {
      for (let after = 0, isWhole = false; !isWhole; ) {
        const query = `app_uuid=${app.appUuid}&after=${after}&limit=${LOG_PAGE}`;
        const { body } = await this.platform.operator('GET', `/events?${query}`);
        const page: readonly Readonly<Record<string, unknown>>[] = Array.isArray(body.events) ? body.events : [];
        all.push(...page.map(loggedEvent));
        after = Number(page.at(-1)?.position);
        isWhole = page.length < LOG_PAGE;
      }
    }
    return all;
  }

  /** Every breach so far. */
  breaches(): readonly string[] {
    return [...this.witness.breaches, ...this.ledger.doubled, ...this.client.breaches];
  }

  /** What is missing when nothing more comes. */
  missing(): readonly string[] {
    const told = (debt: string) => {
      const [, first = '', last = first] = debt.split(' ');
      const names = (lane: string) => this.witness.lane(lane).map(({ event }) => event);
      return `${names(first).join(', ')}${last === first ? '' : `; ${names(last).join(', ')}`}`;
    };
    const lost = this.ledger.open().map((debt) => `${debt}: admitted, and its outcome was never told (${told(debt)})`);
    return [...lost, ...this.witness.end()];
  }

  /** Ends all but the platform. */
  async leave(): Promise<void> {
    await this.cut();
    await this.witness.stop();
    await this.#sounds.stop(true);
  }

  async close(): Promise<void> {
    await this.cut();
    await this.platform.stop();
    await this.leave();
  }
}

interface LoggedEvent {
  readonly webhookId: string;
  readonly status: string;
  readonly lanes: readonly string[];
}

function loggedEvent(entry: Readonly<Record<string, unknown>>): LoggedEvent {
  const payload = { ...(typeof entry.payload === 'object' ? entry.payload : {}) };
  const lanes = ['session_uuid', 'room_id', 'message_uuid'].map((name) => Reflect.get(payload, name));
  return {
    webhookId: String(entry.webhook_id),
    status: String(entry.status),
    lanes: lanes.filter((each) => typeof each === 'string' && each !== ''),
  };
}

const LONG = toneWav(440, LONG_SEC);
const SHORT = toneWav(660, SHORT_SEC);
