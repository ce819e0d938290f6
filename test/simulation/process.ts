/** One process of the platform: the product's own heart, relay and HTTP door on simulated edges. */
import type { Dialer, DialOptions, IncomingCall, WebSocketDialer } from '../../src/call/ports/leg.ts';
import type { Peers } from '../../src/call/ports/peers.ts';
import type { Clock } from '../../src/clock.ts';
import { Cluster } from '../../src/cluster/cluster.ts';
import { clusterName, joinAlone, joinCluster, PROTOCOL } from '../../src/cluster/membership/join.ts';
import { connectCluster, endWhenDead, goOnWithOwnCalls, takeOwnCalls } from '../../src/compose/cluster.ts';
import { Drain } from '../../src/compose/drain.ts';
import { type Heart, makeHeart, recover } from '../../src/compose/heart.ts';
import type { NodeAbout } from '../../src/database/node/nodes.ts';
import { type Store, storeOn } from '../../src/database/store.ts';
import { createHttpApp, type HttpApp } from '../../src/http/app.ts';
import { typesLoaded } from '../../src/http/shape/type.ts';
import { newUuid } from '../../src/id.ts';
import { RECORDING_LAST_MS, RELAY_LAST_MS, ROOM_BEQUEST_MS, SESSION_TEARDOWN_MS } from '../../src/limits.ts';
import type { Log } from '../../src/log.ts';
import type { RecordingStorage } from '../../src/recording-storage/storage.ts';
import { createRelay, type Relay } from '../../src/webhook/relay.ts';
import { noCarrier } from '../support/no-carrier.ts';
import type { DatabaseLink, SimulatedDatabase } from './database/simulated-database.ts';
import { Bot, type BotWill } from './far-end.ts';
import type { Faults } from './faults.ts';
import { Gate } from './gate.ts';
import { SimulatedMedia } from './media.ts';
import type { Network } from './network.ts';
import { Line, type Lines, Phone, type PhoneWill, TRUNK } from './phone.ts';
import type { Pipes } from './pipe.ts';
import type { Providers } from './providers.ts';
import type { Random } from './random.ts';
import type { Receiver } from './receiver.ts';
import type { Scheduler } from './scheduler.ts';
import { MASTER_KEY, SETTINGS } from './settings.ts';

// A library is loaded in real time, which a simulation does not wait for.
await typesLoaded();

export interface ProcessWorld {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly faults: Faults;
  readonly database: SimulatedDatabase;
  readonly receiver: Receiver;
  /** The bus between nodes, or undefined where there is one process. */
  readonly network: Network | undefined;
  readonly pipes: Pipes;
  readonly lines: Lines;
  readonly providers: Providers;
  /** Answered calls of a node that is lost go on at another one. */
  readonly takesOver: boolean;
  /** The database is one that other processes could use. */
  readonly isShared: boolean;
  /** What the far end of the next outbound call will do. */
  nextPhone(clientTo: string): PhoneWill;
  nextBot(url: string): BotWill;
  tell(line: string): void;
  /** The process has ended by itself. */
  onExit(process: Process): void;
  /** The product logged an error: a bug, or something that nobody expected. */
  onError(message: string): void;
}

interface Running extends Heart {
  readonly store: Store;
  readonly relay: Relay;
  /** Made with the first request: most of a start's time goes there. */
  readonly app: () => HttpApp;
}

/** What a process says when it was parted from the others for too long. */
const EXPECTED_ERRORS = /^this node was declared dead/;
const CHANNELS = 12;
const CLOCK_APART_MS = 700;
/** Calls that are left when a process is stopped go on for so long (SHUTDOWN_GRACE_SEC). */
const STOP_GRACE_MS = 1_000;

export class Process {
  readonly place: number;
  readonly nodeId = newUuid();
  readonly media: SimulatedMedia;
  readonly #world: ProcessWorld;
  readonly #clock: Clock;
  readonly #gate: Gate;
  readonly #link: DatabaseLink;
  readonly #log: Log;
  /** The process that had this DATA_DIR before. */
  readonly #before: string | undefined;
  #isAlive = true;
  #hasEntered = false;
  #running: Running | undefined;
  #channels = 0;
  #cluster: Cluster | undefined;
  #isStopping = false;
  #isServing = true;

  constructor(world: ProcessWorld, place: number, files: Map<string, number>, before: string | undefined) {
    const { scheduler, random, faults } = world;
    const isAlive = () => this.#isAlive;
    const isRunning = () => this.#isAlive && !this.#gate.isShut;
    this.#world = world;
    this.#gate = new Gate(scheduler);
    this.place = place;
    this.#before = before;
    // Clocks of machines differ a little, and nothing may depend on it.
    this.#clock = scheduler.clock(isAlive, world.network === undefined ? 0 : place * CLOCK_APART_MS, this.pass);
    this.#link = faults.databaseLink(place, isAlive, this.pass);
    this.media = new SimulatedMedia({ scheduler: this.#gate.timers, random, isAlive, isRunning, files }, world.pipes);
    this.#log = logOf(world);
    this.#files = files;
  }

  readonly #files: Map<string, number>;

  /** What runs in it. Undefined while it starts, and after its end. */
  get running(): Running | undefined {
    return this.#isAlive && this.#isServing ? this.#running : undefined;
  }

  /** The process that its successor finds in the DATA_DIR: this one, once it has entered. */
  get lastEntered(): string | undefined {
    return this.#hasEntered ? this.nodeId : this.#before;
  }

  /** Whatever comes to the process passes here, once it does not stand still. */
  get pass(): Gate['pass'] {
    return this.#gate.pass;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get #settings() {
    return { ...SETTINGS, node: { ...SETTINGS.node, takesOver: this.#world.takesOver } };
  }

  /** Starts as `main.ts` does, for as long as it takes. Rejects where a process would end at its start. */
  async start(): Promise<void> {
    const { database, receiver, network, isShared } = this.#world;
    const clock = this.#clock;
    const log = this.#log;
    const connection = database.connect(this.#link, isShared || network !== undefined);
    const lock = network === undefined ? 'one' : 'node';
    const store = await storeOn(connection, SETTINGS, { log, clock, nodeId: this.nodeId, lock, turn: () => this.#turn() });
    const before = this.#before;
    const cluster = await this.#enter(store);
    this.#cluster = cluster;
    const heart = this.#heart(store, cluster);
    endWhenDead({ ...heart, store, log, clock, exit: () => this.#exit() });
    const ownCalls = await takeOwnCalls(
      { settings: this.#settings, store: { sessions: store.sessions, trunks: { list: async () => [TRUNK] } }, log },
      heart.sessions,
      before,
    );
    await recover({ log }, heart);
    const relay = createRelay({
      ...{ outbox: store.outbox, apps: store.apps, credentials: store.credentials },
      outbound: receiver.outbound(() => this.#isAlive, this.pass),
      clock,
      log,
      nodeId: this.nodeId,
      timeoutSec: SETTINGS.webhookTimeoutSec,
      retryScale: SETTINGS.webhookRetryScale,
      random: () => this.#world.random.fraction(),
      turn: () => this.#turn(),
    });
    relay.start();
    let app: HttpApp | undefined;
    const parts = this.#parts(store, heart, cluster);
    const peers = await connectCluster(parts, (operation, until) => open().perform(operation, until));
    const open = () => {
      app ??= this.#http(store, heart, peers);
      return app;
    };
    if (ownCalls !== undefined) await goOnWithOwnCalls(ownCalls, parts);
    this.#running = { ...heart, store, relay, app: open };
  }

  /** Resolves one turn of the event loop later. */
  #turn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#world.scheduler.after(0, () =>
      this.pass(() => {
        if (this.#isAlive) resolve();
      }),
    );
    return promise;
  }

  /** Enters the database, alone or as a node. */
  async #enter(store: Store): Promise<Cluster | undefined> {
    const { network } = this.#world;
    const [clock, log, before] = [this.#clock, this.#log, this.#before];
    const { nodes } = store;
    const about: NodeAbout = {
      volumeId: `volume-${this.place}`,
      host: '127.0.0.1',
      httpPort: 1,
      rtpHost: '127.0.0.1',
      sipContact: '',
      labels: [],
      version: '',
      protocol: PROTOCOL,
    };
    const name = network === undefined ? '' : await clusterName(nodes, MASTER_KEY);
    if (network === undefined) await joinAlone(nodes, about);
    else await joinCluster({ nodes, about, before, clock, log });
    this.#hasEntered = true;
    if (before !== undefined) await store.idempotency.releaseLeft(before);
    if (network === undefined) return undefined;
    const open = network.opener(this.place, () => this.#isAlive, this.pass);
    return new Cluster({ settings: SETTINGS, shared: {}, name, pipeHost: '127.0.0.1', nodes, clock, log, open });
  }

  /** Ends as a process that was declared dead. */
  #exit(): void {
    this.kill();
    this.#world.onExit(this);
  }

  /** What the cluster needs of the platform. */
  #parts(store: Store, heart: Heart, cluster: Cluster | undefined) {
    return {
      ...heart,
      settings: this.#settings,
      cluster,
      store,
      media: this.media,
      clock: this.#clock,
      log: this.#log,
      carrier: this.#carrier(),
      drain: new Drain({ drain: () => {} }, heart.sessions, { clock: this.#clock, log: this.#log }),
      trunks: () => [TRUNK],
      reloadTrunks: async () => {},
      refreshDevice: async () => {},
    };
  }

  #carrier() {
    return {
      dial: (options: DialOptions) => this.#dial(options),
      resume: (...which: Parameters<NonNullable<Dialer['resume']>>) => this.#resume(...which),
      ports: () => [],
      channelsHeld: () => ({}),
      registrations: () => ({}),
      registrationsChanged: () => {},
      takeStray: () => false,
      sendFor: () => {},
    };
  }

  async #dial(options: DialOptions): ReturnType<Dialer['dial']> {
    if (this.#channels >= CHANNELS) return { unavailable: 'no_capacity' };
    const phone = new Phone(this.#farEnds(), this.#line(this.#world.nextPhone(options.to)), this.#channel());
    phone.listen(options.listener);
    return { leg: phone };
  }

  #line(will: PhoneWill): Line {
    return new Line(this.#world.lines, this.#world, will);
  }

  /** Holds a channel of the trunk. Returns what gives it back. */
  #channel(): () => void {
    this.#channels += 1;
    return () => {
      this.#channels -= 1;
    };
  }

  /** Goes on with the call of another node. */
  async #resume(...[snapshot, ahead, timeoutMs]: Parameters<NonNullable<Dialer['resume']>>) {
    const { callId, localNumber } = snapshot.call.dialog;
    const line = this.#world.lines.get(callId);
    if (line === undefined || this.#channels >= CHANNELS) return { failed: 'no capacity', asked: false };
    return await Phone.resume(this.#farEnds(), line, localNumber + ahead, timeoutMs, this.#channel());
  }

  #heart(store: Store, cluster: Cluster | undefined): Heart {
    const { providers } = this.#world;
    const clock = this.#clock;
    const heart = makeHeart({
      settings: this.#settings,
      clock,
      log: this.#log,
      publicUrl: 'http://simulated.invalid',
      nodeId: this.nodeId,
      volumeId: `volume-${this.place}`,
      store,
      media: this.media,
      storage: this.#storage(),
      rings: undefined,
      recordingFiles: {
        mend: async (path) => ({ mended: false, bytes: 0, durationMs: this.#files.get(path) ?? 0, ringRefused: undefined }),
        durationMs: async (path) => this.#files.get(path) ?? 0,
      },
      chargeGateway: providers.charges(clock, () => this.#isAlive),
      smsGateway: providers.messages(clock, () => this.#isAlive),
      cluster,
      history: undefined,
      sipTrace: undefined,
      afterTurn: (then) => void this.#turn().then(then),
    });
    heart.sessions.connect(this.#carrier());
    const connect: WebSocketDialer = ({ url, listener }) => new Bot(this.#farEnds(), this.#world.nextBot(url), listener);
    heart.sessions.connectWebSockets(connect);
    return heart;
  }

  #farEnds() {
    const { random } = this.#world;
    return { scheduler: this.#gate.timers, pass: this.pass, random, isAlive: () => this.#isAlive, media: this.media };
  }

  #storage(): RecordingStorage {
    return {
      path: (recordingUuid) => `/${this.place}/${recordingUuid}.wav`,
      admits: async () => !this.#world.faults.isStoreFull,
      begun: () => {},
      finished: () => {},
      open: async () => undefined,
      remove: async () => {},
      async *names() {},
      load: () => ({ waitingBytes: 0, waiting: 0 }),
      close: async () => {},
    };
  }

  #http(store: Store, heart: Heart, peers: Peers | undefined): HttpApp {
    return createHttpApp({
      ...heart,
      peers,
      store,
      clock: this.#clock,
      log: this.#log,
      metrics: { request: () => {}, exposition: async () => ({ text: '', contentType: '' }) },
      operatorToken: Buffer.from(MASTER_KEY).toString('hex'),
      publicUrl: 'http://simulated.invalid',
      ready: async () => ({}),
      draining: () => false,
      carrier: noCarrier,
      onTrunksChanged: () => {},
      onDeviceChanged: () => {},
      turn: () => this.#turn(),
    });
  }

  /** A call comes in. Resolves with its Session, or undefined where it was refused. */
  incoming(appUuid: string, will: PhoneWill): Promise<string | undefined> {
    const phone = new Phone(this.#farEnds(), this.#line(will), () => {});
    const call: IncomingCall = {
      callerId: '+15550009',
      did: '+15550002',
      appUuid,
      leg: phone,
      refuse: () => phone.hangup(),
      listen: (listener) => phone.listen(listener),
    };
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.pass(() => resolve(this.#running?.sessions.incoming(call)));
    return promise;
  }

  /** The operator orders a drain of this node, or ends one. It is not repeated where the database is away. */
  drain(mode: 'wait' | 'move' | 'off', deadlineSec?: number): void {
    const { store } = this.running ?? {};
    const ordered = mode === 'off' ? store?.nodes.undrain(this.nodeId) : store?.nodes.drain(this.nodeId, deadlineSec, mode);
    ordered?.catch((error: unknown) => this.#world.tell(`the drain was not ordered: ${String(error)}`));
  }

  /** The machine stands still, or goes on. */
  pause(on: boolean): void {
    if (on) this.#gate.shut();
    else this.#gate.open();
  }

  /** Stops as `shutdown.ts` does. Resolves when nothing of it is left to do. */
  async stop(): Promise<void> {
    const { running } = this;
    if (running === undefined || this.#isStopping) return;
    this.#isStopping = true;
    const { sessions, rooms, relay, messages, charges, recordings, store } = running;
    store.nodes.drain(this.nodeId, 1, 'as_ordered').catch(() => {});
    await sessions.drain(STOP_GRACE_MS, SESSION_TEARDOWN_MS);
    for (const actor of sessions.all()) actor.hangUp();
    await rooms.stopRecordings(RECORDING_LAST_MS);
    await rooms.bequeath(ROOM_BEQUEST_MS);
    await messages.close();
    await relay.deliverLast(RELAY_LAST_MS);
    this.#isServing = false;
    await charges.close();
    await relay.stop();
    recordings.close();
    this.#cluster?.stop();
    await store.nodes.leave().catch(() => {});
    await this.#cluster?.close();
  }

  /** kill -9. */
  kill(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    this.#world.database.disconnected(this.#link);
  }
}

/** Errors of the product are findings; the rest of its log is kept for the story. */
function logOf({ tell, onError }: ProcessWorld): Log {
  const quiet = () => {};
  const log = {
    info: (fields: object, message: string) => tell(`info: ${message} ${JSON.stringify(fields)}`),
    debug: quiet,
    warn: (fields: object, message: string) => tell(`warn: ${message} ${JSON.stringify(fields)}`),
    error: (fields: object, message: string) => {
      const text = `${message} ${JSON.stringify(fields)}`;
      if (EXPECTED_ERRORS.test(message)) tell(`error: ${text}`);
      else onError(text);
    },
  };
  return log;
}
