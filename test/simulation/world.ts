/** One simulation: a plan is carried out on the product, everything heals, and what must hold is looked at. */
import { keyHash, newWebhookSecret } from '../../src/database/app/credentials.ts';
import { createSeal } from '../../src/database/vault/seal.ts';
import { Application } from './application.ts';
import { Books } from './books.ts';
import { type DatabaseOptions, SimulatedDatabase } from './database/simulated-database.ts';
import type { BotWill } from './far-end.ts';
import { Faults } from './faults.ts';
import { Invariants } from './invariants.ts';
import { Network } from './network.ts';
import type { Lines, PhoneWill } from './phone.ts';
import type { Pipes } from './pipe.ts';
import type { Action, Place, Plan } from './plan.ts';
import { Process } from './process.ts';
import { Providers } from './providers.ts';
import { Random } from './random.ts';
import { Reached, type Situation } from './reached.ts';
import { withoutRealEdges } from './real-edges.ts';
import { Receiver } from './receiver.ts';
import { Scheduler } from './scheduler.ts';
import { Seats } from './seats.ts';
import { API_KEY, APP_UUID, CALLER_ID, MASTER_KEY, MAX_ROOMS, TERMINAL } from './settings.ts';
import { Story } from './story.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
/** The application leaves so long after everything has healed, and all must be quiet so long after that. */
const LEAVES_MS = 2_000;
/** Members of Rooms over nodes find one another again within so long, and are looked at twice. */
const CALM_MS = 25_000;
const SEATS_LOOK_MS = 6_000;
const QUIET_MS = 100_000;
/** The same where there are messages and charges, whose outcome is given up after five minutes. */
const QUIET_ORDERS_MS = 360_000;
/** How often the application tries to leave, and whether all is quiet is looked at. */
const LEAVES_AGAIN_MS = 15_000;
const QUIET_LOOK_MS = 6_000;
/** The supervisor starts a process again so long after it has ended by itself. */
const RESTARTED_MS = 1_000;
/** Why a start may fail: the last beat of the process before may be carried out after its end. */
const EXPECTED_AT_START = /StoreUnavailable|is in use by another node/;
/** Breaches after which a simulation is given up. */
const BREACHES_MAX = 5;

export interface Outcome {
  readonly seed: number;
  readonly breaches: readonly string[];
  readonly hash: string;
  readonly simulatedMs: number;
  readonly steps: number;
  readonly events: number;
  readonly reached: readonly Situation[];
  readonly story: readonly string[];
}

const DEFAULT_PHONE: PhoneWill = {
  direction: 'outbound',
  reaction: 'answers',
  reactsAfterMs: 300,
  hasEarlyMedia: false,
  hangsUpAfterMs: 5_000,
  keys: '',
  keysAfterMs: 0,
  isDeaf: false,
};
const DEFAULT_BOT: BotWill = { connects: true, connectsAfterMs: 100, closesAfterMs: 5_000 };

class World {
  readonly #plan: Plan;
  readonly #scheduler = new Scheduler(START);
  readonly #random: Random;
  readonly #story: Story;
  readonly #breaches: string[] = [];
  readonly #faults: Faults;
  readonly #database: SimulatedDatabase;
  readonly #invariants: Invariants;
  readonly #reached: Reached;
  readonly #seats: Seats;
  readonly #books: Books;
  readonly #receiver: Receiver;
  readonly #providers: Providers;
  readonly #application: Application;
  readonly #processes: Process[] = [];
  /** The files of recordings, by place: a DATA_DIR outlives its processes. */
  readonly #files: Map<string, number>[] = [];
  readonly #network: Network;
  readonly #pipes: Pipes = new Map();
  readonly #lines: Lines = new Map();
  readonly #phones = new Map<string, PhoneWill>();
  readonly #bots = new Map<string, BotWill>();

  constructor(plan: Plan, keepsStory: boolean, onExecuted: DatabaseOptions['onExecuted']) {
    const { seed } = plan;
    const scheduler = this.#scheduler;
    this.#plan = plan;
    this.#random = new Random(seed, 2);
    this.#story = new Story(() => scheduler.now, keepsStory);
    const onBreach = (breach: string) => this.#breach(breach);
    this.#faults = new Faults(new Random(seed, 3));
    this.#database = new SimulatedDatabase({
      scheduler,
      random: new Random(seed, 4),
      onExecuted: (statements) => {
        this.#reached.executed(statements);
        onExecuted?.(statements);
      },
      onCommit: () => {
        this.#invariants.committed();
        for (const process of this.#processes) this.#invariants.placed(process);
      },
    });
    this.#reached = new Reached(this.#database.tables);
    this.#seats = new Seats(this.#database.tables, this.#pipes);
    this.#reached.add('cluster', plan.nodes > 1);
    this.#invariants = new Invariants({
      tables: this.#database.tables,
      isAlone: plan.nodes === 1,
      mostMembers: plan.mostMembers,
      onBreach,
      onEvent: (event) => this.#reached.emitted(event),
    });
    this.#books = new Books(onBreach);
    this.#network = new Network(scheduler, new Random(seed, 9), this.#faults);
    this.#providers = new Providers(new Random(seed, 5), onBreach);
    this.#receiver = new Receiver({
      scheduler,
      random: new Random(seed, 6),
      faults: this.#faults,
      onDelivery: (delivery) => {
        this.#invariants.received(delivery.webhookId, delivery.body);
        const told = this.#books.received(delivery);
        this.#application.heard(delivery);
        if (told !== undefined)
          this.#story.tell(`webhook ${told.event} ${String(told.fields.session_uuid ?? told.fields.room_id ?? '')}`);
      },
    });
    this.#application = new Application({
      scheduler,
      random: new Random(seed, 7),
      books: this.#books,
      serving: () => this.#processes.filter(({ running }) => running !== undefined),
      tell: (line) => this.#story.tell(line),
      onBreach,
      onAdmitted: (body) => this.#admitted(body),
    });
    this.#setUp();
  }

  #breach(breach: string): void {
    this.#story.tell(`BREACH ${breach}`);
    this.#breaches.push(breach);
  }

  #setUp(): void {
    this.#database.tables.apps.set(APP_UUID, {
      app_uuid: APP_UUID,
      webhook_url: 'http://receiver.invalid/',
      max_rooms: MAX_ROOMS,
      max_members_per_room: this.#plan.mostMembers,
      key_hash: keyHash(API_KEY),
      sealed_secret: createSeal(MASTER_KEY).close(newWebhookSecret(), APP_UUID),
      caller_ids: [CALLER_ID],
      terminals: [TERMINAL],
    });
    for (const action of this.#plan.actions) {
      if (action.do === 'dial') this.#phones.set(`+1555${String(action.call).padStart(4, '0')}`, action.will);
      if (action.do === 'bot') this.#bots.set(`wss://bot.invalid/${action.call}`, action.will);
      // Nothing is asked before the first process is up.
      this.#scheduler.at(START + 200 + action.at, () => this.#act(action));
    }
    for (let place = 0; place < this.#plan.nodes; place++) this.#start(place, undefined);
  }

  #start(place: number, before: string | undefined): void {
    const files = this.#files[place] ?? new Map<string, number>();
    this.#files[place] = files;
    const process = new Process(
      {
        scheduler: this.#scheduler,
        random: this.#random,
        faults: this.#faults,
        database: this.#database,
        receiver: this.#receiver,
        providers: this.#providers,
        isShared: this.#plan.isShared,
        network: this.#plan.nodes > 1 ? this.#network : undefined,
        pipes: this.#pipes,
        lines: this.#lines,
        takesOver: this.#plan.takesOver,
        nextPhone: (to) => this.#phones.get(to) ?? DEFAULT_PHONE,
        nextBot: (url) => this.#bots.get(url) ?? DEFAULT_BOT,
        tell: (line) => this.#story.tell(`${place} ${line}`),
        onExit: (ended) => {
          this.#story.tell(`${place} was declared dead, and ends`);
          this.#scheduler.after(RESTARTED_MS, () => this.#start(place, ended.lastEntered));
        },
        onError: (message) => this.#breach(`${place} logged an error: ${message}`),
      },
      place,
      files,
      before,
    );
    this.#processes[place] = process;
    this.#story.tell(`${place} starts`);
    process.start().then(
      () => this.#story.tell(`${place} is up`),
      (error: unknown) => {
        // What cannot start ends, and is started again by its supervisor.
        this.#story.tell(`${place} cannot start: ${String(error)}`);
        if (!EXPECTED_AT_START.test(String(error))) this.#breach(`${place} cannot start: ${stackOf(error)}`);
        process.kill();
        this.#scheduler.after(RESTARTED_MS, () => this.#start(place, process.lastEntered));
      },
    );
  }

  /** The place of a node that is meant: by its number, or as the one that mixes the Room with the most members. */
  #placeOf(place: Place): number {
    if (place !== 'home') return place;
    const { sessions, rooms } = this.#database.tables;
    const members = (room: string) =>
      [...sessions.values()].filter((row) => row.ended_at === null && row.room_id === room).length;
    const [most] = [...rooms.values()]
      .filter((row) => row.deleted_at === null)
      .sort((a, b) => members(b.room_id) - members(a.room_id));
    return Math.max(
      0,
      this.#processes.findIndex(({ nodeId }) => nodeId === most?.node_id),
    );
  }

  #act(action: Action): void {
    const faults = this.#faults;
    const { do: what, at: _at, ...rest } = action;
    this.#story.tell(`— ${what} ${JSON.stringify(rest)}`);
    const after = (ms: number, heal: () => void) => void this.#scheduler.after(ms, heal);
    switch (action.do) {
      case 'crash':
        this.#crash(this.#placeOf(action.place), action.downMs);
        break;
      case 'database_away':
        this.#takeDatabase(action);
        break;
      case 'pause':
        this.#pause(this.#placeOf(action.place), action.forMs);
        break;
      case 'stop':
        this.#stop(this.#placeOf(action.place), action.downMs);
        break;
      case 'database_flaky':
        faults.databaseFails = action.fails;
        faults.databaseLoses = action.loses;
        after(action.forMs, () => {
          faults.databaseFails = 0;
          faults.databaseLoses = 0;
        });
        break;
      case 'database_slow':
        faults.databaseSlow = action.factor;
        after(action.forMs, () => {
          faults.databaseSlow = 1;
        });
        break;
      case 'receiver':
        faults.receiver = action.mood;
        after(action.forMs, () => {
          faults.receiver = 'well';
        });
        break;
      case 'store_full':
        faults.isStoreFull = true;
        after(action.forMs, () => {
          faults.isStoreFull = false;
        });
        break;
      case 'part':
        this.#part(action);
        break;
      case 'drain':
        this.#drain(action);
        break;
      case 'bus_flaky':
        faults.busDrops = action.drops;
        faults.busDoubles = action.doubles;
        faults.busSlow = action.slow;
        after(action.forMs, () => {
          faults.busDrops = 0;
          faults.busDoubles = 0;
          faults.busSlow = 1;
        });
        break;
      case 'lose_worker':
        this.#loseWorker(this.#placeOf(action.place));
        break;
      case 'incoming':
        this.#incoming(action.call, action.will);
        break;
      default:
        this.#application.act(action);
    }
  }

  #takeDatabase({ place: which, forMs }: Extract<Action, { do: 'database_away' }>): void {
    const { databaseAway } = this.#faults;
    const place = which === 'all' ? which : this.#placeOf(which);
    databaseAway.add(place);
    this.#scheduler.after(forMs, () => databaseAway.delete(place));
  }

  #drain({ place: which, mode, deadlineSec, forMs }: Extract<Action, { do: 'drain' }>): void {
    const place = this.#placeOf(which);
    this.#processes[place]?.drain(mode, deadlineSec);
    this.#scheduler.after(forMs, () => this.#processes[place]?.drain('off'));
  }

  #loseWorker(place: number): void {
    if (this.#processes[place]?.running !== undefined) this.#processes[place]?.media.loseWorker();
  }

  #pause(place: number, forMs: number): void {
    const process = this.#processes[place];
    process?.pause(true);
    this.#scheduler.after(forMs, () => process?.pause(false));
  }

  #stop(place: number, downMs: number): void {
    const process = this.#processes[place];
    if (process?.running === undefined) return;
    void process.stop().then(() => {
      if (process.isAlive) this.#crash(place, downMs);
    });
  }

  /** Parts a node from the bus, and perhaps from the database too. */
  #part({ place: which, forMs, withDatabase }: Extract<Action, { do: 'part' }>): void {
    const { busAway, databaseAway } = this.#faults;
    const place = this.#placeOf(which);
    busAway.add(place);
    this.#network.changed(place);
    if (withDatabase) databaseAway.add(place);
    this.#scheduler.after(forMs, () => {
      busAway.delete(place);
      if (withDatabase) databaseAway.delete(place);
      this.#network.changed(place);
    });
  }

  #incoming(call: number, will: PhoneWill): void {
    const up = this.#processes.filter(({ running }) => running !== undefined);
    const process = up[call % Math.max(1, up.length)];
    if (process === undefined) return;
    void process.incoming(APP_UUID, will).then((session) => this.#application.incoming(call, session));
  }

  #crash(place: number, downMs: number): void {
    const process = this.#processes[place];
    if (process?.isAlive !== true) return;
    this.#story.tell(`${place} is killed`);
    process.kill();
    this.#scheduler.after(downMs, () => this.#start(place, process.lastEntered));
  }

  /** What was answered as admitted is durable at that moment. */
  #admitted({ session_uuid: session, operation_uuid: operation }: Readonly<Record<string, unknown>>): void {
    if (typeof session !== 'string' || typeof operation !== 'string') return;
    if (!this.#database.tables.sessions.has(session)) this.#breach(`a Session was admitted that is not stored: ${session}`);
  }

  #lookAtSeats(): void {
    for (const wrong of this.#seats.look(this.#processes)) this.#breach(`nothing is broken: ${wrong}`);
  }

  run(): Outcome {
    const { seed, activeMs } = this.#plan;
    const isOver = () => {
      this.#invariants.stepped(this.#processes);
      return this.#breaches.length >= BREACHES_MAX;
    };
    const scheduler = this.#scheduler;
    const heals = START + 200 + activeMs;
    const hasOrders = this.#plan.actions.some(
      (action) => action.do === 'message' || (action.do === 'call_command' && action.command === 'charge'),
    );
    const quietMs = hasOrders ? QUIET_ORDERS_MS : QUIET_MS;
    const leavesMs = this.#plan.meets ? CALM_MS + 1_000 : LEAVES_MS;
    if (this.#plan.meets)
      for (const before of [SEATS_LOOK_MS, 0]) scheduler.at(heals + CALM_MS - before, () => this.#lookAtSeats());
    scheduler.at(heals, () => {
      this.#faults.heal();
      for (let place = 0; place < this.#plan.nodes; place++) this.#network.changed(place);
      for (const process of this.#processes) {
        process.pause(false);
        process.drain('off');
      }
      this.#story.tell('— everything works again');
    });
    // Again and again: what was made while nobody answered is known late.
    for (let at = heals + leavesMs; at < heals + quietMs / 2; at += LEAVES_AGAIN_MS)
      scheduler.at(at, () => {
        if (!this.#invariants.isQuiet(this.#processes) || this.#application.open > 0) this.#application.leave();
      });
    try {
      const isQuiet = () => this.#invariants.isQuiet(this.#processes) && this.#application.open === 0;
      scheduler.runUntil(heals + leavesMs, isOver);
      // Long before the limit as a rule: a little after nothing lives any more.
      while (this.#breaches.length === 0 && scheduler.now < heals + quietMs && !isQuiet())
        scheduler.runUntil(scheduler.now + QUIET_LOOK_MS, isOver);
      if (this.#breaches.length === 0) scheduler.runUntil(scheduler.now + QUIET_LOOK_MS, isOver);
    } catch (error) {
      this.#breach(stackOf(error));
    }
    if (this.#breaches.length === 0) {
      this.#invariants.quiet(this.#processes, (webhookId) => this.#books.has(webhookId));
      this.#books.end();
    }
    this.#reached.add('pipe opened', this.#pipes.size > 0);
    return {
      seed,
      breaches: this.#breaches,
      hash: this.#story.hash,
      simulatedMs: scheduler.now - START,
      steps: scheduler.steps,
      events: this.#books.events,
      reached: this.#reached.situations,
      story: this.#story.lines,
    };
  }
}

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

/** Carries a plan out. `onExecuted` is told of every statement of the database. */
export function simulate(plan: Plan, keepsStory = false, onExecuted?: DatabaseOptions['onExecuted']): Outcome {
  let now = START;
  return withoutRealEdges(
    new Random(plan.seed, 8),
    () => now,
    () => {
      const world = new World(plan, keepsStory, onExecuted);
      const outcome = world.run();
      now = START + outcome.simulatedMs;
      return outcome;
    },
  );
}
