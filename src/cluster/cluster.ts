/** This process as a node of a cluster: its signs of life, the other nodes, and the messages between them. */

import type { BotOrder } from '../call/ports/leg.ts';
import type { PeerStreams } from '../call/ports/peer-streams.ts';
import type { Peers } from '../call/ports/peers.ts';
import type { BrowserCalls, OwnBrowserCalls } from '../call/ports/webrtc.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import { warnUnlessAway } from '../database/journal/journal.ts';
import type { LeaseStore } from '../database/node/leases.ts';
import type { NodeRow, NodeStore } from '../database/node/nodes.ts';
import { NODE_CACHE_MS, NODE_PING_TIMEOUT_MS } from '../limits.ts';
import type { Log } from '../log.ts';
import type { Replaces } from '../sip/message/replaces.ts';
import { Bus } from './bus/bus.ts';
import type { OpenTransport } from './bus/transport.ts';
import { beatLoadOf } from './membership/beat-load.ts';
import { LeaseKeeper } from './membership/lease-keeper.ts';
import { Members } from './membership/members.ts';
import { ReachWatch } from './membership/reach-watch.ts';
import { marksOf, type SettingsMarks, settingsApart } from './membership/settings-marks.ts';
import { SharedBrowserCalls } from './peer/browser-calls.ts';
import { type LocalWork, PeerCommands } from './peer/commands.ts';
import { Dialogs } from './peer/dialogs.ts';
import { Moves } from './peer/moves.ts';
import { RoomMessages } from './peer/room-messages.ts';
import { Streams } from './peer/streams.ts';
import { ChannelQuota } from './placement/channel-quota.ts';
import { TurnQuota } from './placement/turn-quota.ts';

/** The lease of the node that submits short messages. */
export const MESSAGES_LEASE = 'messages';
/** The kind of request that asks a node for the marks of its settings. */
const SETTINGS = 'settings';

export interface ClusterOptions {
  readonly settings: Pick<Config, 'node' | 'orphanTimeoutSec' | 'masterKey'>;
  /** The settings that all nodes have to have alike, by their names. */
  readonly shared: Readonly<Record<string, unknown>>;
  readonly open: OpenTransport;
  readonly name: string;
  /** The literal address on which pipes to other nodes are bound. */
  readonly pipeHost: string;
  readonly nodes: Pick<NodeStore, 'nodeId' | 'beat' | 'bury'>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ClusterWork {
  /** The load of this node as JSON. */
  load(): string;
  /** Takes over what dead nodes left. `seenAt`: their last sign of life. */
  takeOver(seenAt: number): Promise<void>;
  /** A node sends no beats and does not answer, or is declared dead: its calls may be taken over. Called repeatedly. */
  onForsaken(nodeId: string): Promise<void>;
  /** This node was cut off from the database or NATS, or stopped: others may have taken its calls and Rooms. */
  onBack(): void;
  /** My own row, each second. */
  onOwn(row: NodeRow): void;
}

/** What each node keeps of the database for a few seconds, and forgets when another changes it. */
export interface SharedCaches {
  /** Calls back when this node changes an application. */
  onChangeHere(tell: (appUuid: string) => void): void;
  appChanged(appUuid: string): void;
  /** `set`: the trunk that another node set up, also as it was. */
  trunksChanged(set?: string): Promise<void>;
  deviceChanged(username: string): Promise<void>;
}

export class Cluster {
  /** The load of this node as it was told last. */
  load = 0;
  /** The messages about Rooms that span nodes. */
  readonly rooms: RoomMessages;
  /** The hand-over of calls to other nodes. */
  readonly moves: Moves;
  /** The SIP dialogs of other nodes. */
  readonly dialogs: Dialogs;
  readonly #options: ClusterOptions;
  readonly #bus: Bus;
  #members: Members | undefined;
  #reach: ReachWatch | undefined;
  #commands: PeerCommands | undefined;
  #leases: LeaseKeeper | undefined;
  #quota: ChannelQuota | undefined;
  #turns: TurnQuota | undefined;
  #cancelReload = () => {};
  #onBack = () => {};
  #stopped = false;
  readonly #marks: SettingsMarks;

  constructor(options: ClusterOptions) {
    const { settings, shared, open, name, nodes, clock, log } = options;
    this.#options = options;
    this.#marks = marksOf(shared, settings.masterKey);
    this.#bus = new Bus({
      open,
      masterKey: settings.masterKey,
      nodeId: nodes.nodeId,
      cluster: name,
      clock,
      log,
      onBack: () => this.#onBack(),
    });
    this.#bus.answer(SETTINGS, () => this.#marks);
    const place: Moves['place'] = async (...call) => await this.#commands?.otherFor(...call);
    this.moves = new Moves({ bus: this.#bus, place });
    this.dialogs = new Dialogs({ bus: this.#bus, members: () => this.#members, nodeId: nodes.nodeId });
    this.rooms = new RoomMessages({ bus: this.#bus, members: () => this.#members, pipeHost: options.pipeHost });
  }

  /** Begins to watch the others. Rejects when the database is away. */
  async start({ load, takeOver, onOwn, onForsaken, onBack }: ClusterWork): Promise<void> {
    const { settings, nodes, clock, log } = this.#options;
    this.#onBack = onBack;
    this.#members = new Members({
      nodes,
      clock,
      log,
      burialMs: settings.node.burialSec * 1000,
      orphanMs: settings.orphanTimeoutSec * 1000,
      load,
      ping: (nodeId) => this.#bus.ping(nodeId),
      takeOver,
      onOwn,
      onForsaken,
      onBack,
    });
    await this.#members.start();
    this.#reach = new ReachWatch({
      clock,
      log,
      ping: (nodeId) => this.#bus.ping(nodeId),
      lead: (nodeId) => this.lead(nodeId),
      settingsApart: (nodeId) => this.#askSettings(nodeId),
      peers: () => this.#alive(),
    });
  }

  async #askSettings(nodeId: string): Promise<readonly string[] | undefined> {
    const { outcome, body } = {
      body: undefined,
      ...(await this.#bus.ask(nodeId, SETTINGS, {}, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS)),
    };
    return outcome === 'answered' && typeof body === 'object' && body !== null ? settingsApart(this.#marks, body) : undefined;
  }

  /** The other nodes that give signs of life. */
  #alive(): readonly NodeRow[] {
    const { nodeId: own } = this.#options.nodes;
    return this.#members?.rows.filter(({ nodeId }) => nodeId !== own && !this.isSuspect(nodeId)) ?? [];
  }

  /**
   * Begins to serve what other nodes forward, and to forward: connects to NATS in the background. What came before
   * would have no answer, and nobody would know what became of it.
   */
  serve(work: LocalWork): Peers {
    const { nodes, clock, log } = this.#options;
    if (this.#members === undefined) throw new Error('the cluster is not started');
    this.#commands = new PeerCommands({ ...work, bus: this.#bus, members: this.#members, nodeId: nodes.nodeId, clock });
    this.#bus.start().catch((error: unknown) => log.error({ error: String(error) }, 'NATS cannot be used'));
    return this.#commands;
  }

  /** The channels and turns of trunks that all nodes share. `held` tells the channels that this node holds. */
  shareTrunks(held: (trunk: string) => number): void {
    const { nodes, clock } = this.#options;
    if (this.#members === undefined) throw new Error('the cluster is not started');
    const quota = { bus: this.#bus, members: this.#members, nodeId: nodes.nodeId, clock };
    this.#quota = new ChannelQuota({ ...quota, held });
    this.#turns = new TurnQuota(quota);
  }

  /** Asks to hold channels of a trunk. Before the cluster is started there are none. */
  async hold(trunk: string, max: number, channels: number, current: number): Promise<number> {
    return (await this.#quota?.hold(trunk, max, channels, current)) ?? 0;
  }

  /**
   * Takes the next turn of a trunk with that `max_cps` for an application. The result is the wait in milliseconds. It
   * is undefined when that would be too long, or the cluster is not started.
   */
  async turn(trunk: string, appUuid: string, maxCps: number): Promise<number | undefined> {
    return await this.#turns?.take(trunk, appUuid, maxCps);
  }

  /** Forgets the channels and turns of trunks that no longer exist. */
  keep(trunks: ReadonlySet<string>): void {
    this.#quota?.keep(trunks);
    this.#turns?.keep(trunks);
  }

  /** The calls from browsers of all nodes. `here` has those of this one. */
  browserCalls(
    here: OwnBrowserCalls,
    owner: (appUuid: string, sessionUuid: string) => Promise<string | undefined>,
  ): BrowserCalls {
    const { nodes, clock } = this.#options;
    const others = () => this.#alive().map(({ nodeId }) => nodeId);
    return new SharedBrowserCalls({ bus: this.#bus, nodeId: nodes.nodeId, clock, here, others, owner });
  }

  /** Streaming bodies to and from other nodes. */
  streams(): PeerStreams {
    const { nodes, clock } = this.#options;
    if (this.#members === undefined) throw new Error('the cluster is not started');
    return new Streams({ bus: this.#bus, members: this.#members, nodeId: nodes.nodeId, clock });
  }

  /** Has the node of a Session obey a bot of this one. */
  async order(appUuid: string, sessionUuid: string, order: BotOrder, traceparent: string): Promise<string | undefined> {
    if (this.#commands === undefined) return 'the platform starts';
    return await this.#commands.order(appUuid, sessionUuid, order, traceparent);
  }

  /** What a transfer to a call of another node needs to know of it. */
  async replacement(appUuid: string, sessionUuid: string) {
    return await this.#commands?.replacement(appUuid, sessionUuid);
  }

  /** The Session of another node whose call a Replaces names. */
  async named(appUuid: string, replaces: Replaces): Promise<string | undefined> {
    return await this.#commands?.named(appUuid, replaces);
  }

  /** Readings for `/metrics`. */
  readings() {
    const members = this.#members;
    const others = members?.rows.filter(({ nodeId }) => nodeId !== this.#options.nodes.nodeId) ?? [];
    return {
      connected: this.#bus.connected,
      others: others.length,
      suspects: others.filter(({ nodeId }) => members?.isSuspect(nodeId) === true).length,
      unreached: this.#reach?.unreached ?? 0,
      clocksApart: this.#reach?.clocksApart ?? 0,
      ...this.#bus.load(),
    };
  }

  /** Tells that this node has taken over calls of another one. */
  tellTaken(sessions: readonly string[]): void {
    this.#bus.tell('taken', { nodeId: this.#options.nodes.nodeId, sessions });
  }

  /** Hears of calls that other nodes have taken over. */
  onTaken(heard: (nodeId: string, sessions: readonly string[]) => void): void {
    this.#bus.hear('taken', (body) => {
      if (typeof body !== 'object' || body === null || !('nodeId' in body) || !('sessions' in body)) return;
      const { nodeId, sessions } = body;
      if (typeof nodeId === 'string' && Array.isArray(sessions)) heard(nodeId, sessions);
    });
  }

  /** Tells whether this node holds a lease now. */
  holds(lease: string): boolean {
    return this.#leases?.holds(lease) ?? false;
  }

  /** Tells whether this node submits short messages now: an SMSC may permit one bind. */
  get submitsMessages(): boolean {
    return this.holds(MESSAGES_LEASE);
  }

  /** Asks for leases each second. `onChange` is called when those that this node holds have changed. */
  keepLeases(leases: LeaseStore, wanted: () => readonly string[], onChange: () => void): void {
    const { clock, log } = this.#options;
    this.#leases = new LeaseKeeper({ leases, clock, log, wanted, onChange });
    this.#leases.start();
  }

  /** A registration of that trunk that another node told with its beat. Undefined when there is none. */
  registrationOf(trunk: string): { readonly until: number; readonly serviceRoute: readonly string[] } | undefined {
    for (const row of this.#alive()) {
      const { registered, serviceRoutes } = beatLoadOf(row);
      const until = registered[trunk];
      if (until !== undefined) return { until, serviceRoute: serviceRoutes[trunk] ?? [] };
    }
    return undefined;
  }

  isSuspect(nodeId: string): boolean {
    return this.#members?.isSuspect(nodeId) ?? false;
  }

  /** Tells whether a node gives signs of life and does not answer over NATS. */
  isUnreached(nodeId: string): boolean {
    return this.#reach?.isUnreached(nodeId) ?? false;
  }

  /** The settings of which a node has another value than this one, as far as they were compared. */
  settingsApart(nodeId: string): readonly string[] {
    return this.#reach?.settingsApart(nodeId) ?? [];
  }

  /** How far the clock of a node is ahead of this one's, in milliseconds. Undefined: it was not compared lately. */
  lead(nodeId: string): number | undefined {
    return this.#bus.lead(nodeId);
  }

  /** Short messages wait for the node that submits them. */
  tellMessages(): void {
    this.#bus.tell('messages', {});
  }

  onMessages(heard: () => void): void {
    this.#bus.hear('messages', heard);
  }

  /** Keeps what this node remembers of the database in step with the others. Without NATS it is read anew every 5 s. */
  shareCaches(caches: SharedCaches): void {
    const { log } = this.#options;
    caches.onChangeHere((appUuid) => this.#bus.tell('app', appUuid));
    this.#bus.hear('app', (appUuid) => {
      if (typeof appUuid === 'string') caches.appChanged(appUuid);
    });
    const reload = (set?: string) =>
      caches.trunksChanged(set).catch((error: unknown) => warnUnlessAway(log, error, {}, 'the trunks were not read anew'));
    this.#bus.hear('trunks', (name) => void reload(typeof name === 'string' ? name : undefined));
    this.#bus.hear('device', (username) => {
      if (typeof username !== 'string') return;
      const failed = (error: unknown) => warnUnlessAway(log, error, { username }, 'a device was not read anew');
      caches.deviceChanged(username).catch(failed);
    });
    const again = () => {
      const { clock } = this.#options;
      this.#cancelReload = clock.at(clock.now() + NODE_CACHE_MS, () => {
        if (!this.#stopped) void reload().finally(again);
      });
    };
    again();
  }

  /** This node set the trunk of that name up, also as it was, or took it down. */
  tellTrunks(name: string): void {
    this.#bus.tell('trunks', name);
  }

  /** This node set a device up, changed it or took it down. */
  tellDevice(username: string): void {
    this.#bus.tell('device', username);
  }

  /** Stops the beats: from here on this node is on its way out. */
  stop(): void {
    this.#stopped = true;
    this.#cancelReload();
    this.#quota?.stop();
    this.#members?.stop();
    this.#reach?.stop();
  }

  async close(): Promise<void> {
    await this.#leases?.stop();
    await this.#bus.close();
  }
}
