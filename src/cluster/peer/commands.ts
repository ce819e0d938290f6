/**
 * Requests between nodes: each goes to the node that has the Session or Room, with a deadline in that node's clock.
 * What was answered 503 here never acts there later: the owner refuses what came after its deadline, and what would be
 * committed after it.
 */
import type { BotOrder } from '../../call/ports/leg.ts';
import type { Forwarded, Operation, Peers, Whose } from '../../call/ports/peers.ts';
import type { Answer } from '../../call/ports/sessions.ts';
import type { BucketName } from '../../call/rate/buckets.ts';
import { bucketOf, type TokenBuckets } from '../../call/rate/token-buckets.ts';
import type { Clock } from '../../clock.ts';
import type { DeviceFlow } from '../../database/device/contacts.ts';
import type { KeyedRequest } from '../../database/idempotency/key-marks.ts';
import type { NodeRow } from '../../database/node/nodes.ts';
import {
  NODE_COMMAND_MARGIN_MS,
  NODE_COMMAND_TIMEOUT_MS,
  NODE_PING_TIMEOUT_MS,
  NODE_RETRY_AFTER_SEC,
  NODE_SLOW_COMMAND_TIMEOUT_MS,
} from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Replaces } from '../../sip/message/replaces.ts';
import type { Bus } from '../bus/bus.ts';
import type { Members } from '../membership/members.ts';
import { choose, nodeOfDevice, type PlacedTrunk, reaching } from '../placement/placement.ts';
import { Places } from '../placement/places.ts';
import { homeOf } from '../placement/rendezvous.ts';

/** The Refer-To that replaces a call, and the trunk that it is on. */
interface Replacement {
  readonly referTo: string | undefined;
  readonly trunk: string | undefined;
}

/** Tokens that are taken at another node, or given back to it. */
interface Take {
  /**
   * Whose buckets they are: an application, a browser's token, or a Room, whose id stands under this name too, because
   * a node of a release before `roomId` takes the same tokens then.
   */
  readonly appUuid: string;
  readonly names: readonly BucketName[];
  /** The Room that they are of, which may have moved from the node that is asked. */
  readonly roomId?: string;
}

/** What this node has and does, for requests of others and its own. */
export interface LocalWork {
  readonly sessions: {
    /** This node takes no new Sessions: it drains. */
    readonly isDraining: boolean;
    isHere(sessionUuid: string): boolean;
    /** The node of a live Session of the application. */
    owner(appUuid: string, sessionUuid: string): Promise<string | undefined>;
    /** Obeys a bot of another node, before `until` if at all. Resolves with the reason where the order is refused. */
    obey(appUuid: string, sessionUuid: string, order: BotOrder, traceparent: string, until: number): Promise<string | undefined>;
    /** What a transfer to one of this node's calls needs to know. */
    replacement(appUuid: string, sessionUuid: string): Replacement | undefined;
    /** The Session of one of this node's calls, which a Replaces names. */
    named(appUuid: string, replaces: Replaces): string | undefined;
  };
  readonly rooms: {
    isHere(roomId: string): boolean;
    /** The home of a Room of the application, `null` while it has none. */
    home(appUuid: string, roomId: string): Promise<string | null | undefined>;
    /** Makes this node the home of a Room that has none. */
    settle(appUuid: string, roomId: string): Promise<void>;
  };
  readonly tokens: TokenBuckets;
  /** The trunks that an application may dial over, whichever node may use them: that of the name, or all. */
  trunks(dial: { readonly appUuid: string; readonly trunk: string | undefined }): readonly PlacedTrunk[];
  /** The contacts of a device user, with the nodes that they registered with. */
  flows(username: string): Promise<readonly DeviceFlow[]>;
  /** Gives a key back that another node marked. */
  release(request: KeyedRequest, marker: string): Promise<void>;
  perform(operation: Operation, until: number): Promise<Answer | Problem | 'moved'>;
}

export interface PeerCommandsOptions extends LocalWork {
  readonly bus: Pick<Bus, 'ask' | 'answer' | 'connected'>;
  readonly members: Pick<Members, 'rows' | 'isSuspect' | 'isAway'>;
  readonly nodeId: string;
  readonly clock: Clock;
}

export class PeerCommands implements Peers {
  readonly #options: PeerCommandsOptions;
  readonly #places: Places;

  constructor(options: PeerCommandsOptions) {
    this.#options = options;
    this.#places = new Places(options.nodeId);
    const { bus, sessions, rooms, tokens, clock } = options;
    bus.answer('cmd', (body, from) => this.#perform(body, from));
    bus.answer('replacement', (body) => (isCall(body) ? { call: sessions.replacement(body.appUuid, body.sessionUuid) } : {}));
    bus.answer('named', (body) => (isNaming(body) ? { sessionUuid: sessions.named(body.appUuid, body.replaces) } : {}));
    bus.answer('bot', async (body) => {
      if (!isBotOrder(body) || clock.now() >= body.until) return { reason: TOO_LATE };
      return { reason: await sessions.obey(body.appUuid, body.sessionUuid, body.order, body.traceparent, body.until) };
    });
    bus.answer('bucket', (body) => {
      if (!isTake(body)) return {};
      if (body.roomId !== undefined && !rooms.isHere(body.roomId)) return { moved: true };
      const taken = tokens.take(bucketsOf(body.appUuid, body.names), clock.now());
      return typeof taken === 'number' ? { waitSec: taken } : { taken: true };
    });
    bus.answer('refund', (body) => {
      if (isTake(body)) tokens.give(bucketsOf(body.appUuid, body.names));
      return {};
    });
  }

  async nodeOf(whose: Whose, appUuid: string, tried: readonly string[]): Promise<string | undefined> {
    const { rooms } = this.#options;
    const isAgain = tried.length > 0;
    if (isAgain && 'sessionUuid' in whose) this.#places.forget(appUuid, whose.sessionUuid);
    if (isAgain && 'roomId' in whose) this.#places.forget(appUuid, whose.roomId);
    if (whose.kind === 'session') return this.#elsewhere(await this.#nodeOfSession(appUuid, whose.sessionUuid));
    if (whose.kind === 'new') return this.#elsewhere(await this.#place(whose, appUuid, tried));
    if (whose.kind === 'member') {
      const node = await this.#nodeOfSession(appUuid, whose.sessionUuid);
      if (node !== undefined) return this.#elsewhere(node);
    }
    const home = await this.#home(appUuid, whose.roomId);
    if (home !== null) return this.#elsewhere(home);
    await rooms.settle(appUuid, whose.roomId);
    return undefined;
  }

  async forward(nodeId: string, operation: Operation, isSlow: boolean): Promise<Forwarded> {
    const { bus, members } = this.#options;
    if (members.isSuspect(nodeId)) return { outcome: 'not_delivered' };
    const timeoutMs = isSlow ? NODE_SLOW_COMMAND_TIMEOUT_MS : NODE_COMMAND_TIMEOUT_MS;
    const result = await bus.ask(nodeId, 'cmd', { operation }, timeoutMs, timeoutMs - NODE_COMMAND_MARGIN_MS);
    if (result.outcome === 'not_delivered' && bus.connected) members.isAway(nodeId);
    if (result.outcome !== 'answered') return result;
    return isReply(result.body) ? result.body : { outcome: 'unknown' };
  }

  async take(owner: string, names: readonly BucketName[], roomId?: string): Promise<(() => void) | number> {
    const { bus, tokens, clock } = this.#options;
    const take: Take = roomId === undefined ? { appUuid: owner, names } : { appUuid: roomId, names, roomId };
    for (let tries = 0; tries < BUCKET_TRIES; tries++) {
      const home = await this.#homeOfBuckets(owner, roomId);
      if (home === undefined) break;
      const { outcome, body } = { body: undefined, ...(await this.#ask(home, 'bucket', take)) };
      const said = outcome === 'answered' && isTaken(body) ? body : {};
      if (typeof said.waitSec === 'number') return said.waitSec;
      if (said.taken === true) return () => void bus.ask(home, 'refund', take, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS);
      if (roomId !== undefined) this.#places.forget(owner, roomId);
      if (said.moved !== true) break;
    }
    // They are this node's, or out of reach: a limit of this node's own is better than none.
    return tokens.take(bucketsOf(take.appUuid, names), clock.now());
  }

  /** Another node for a call of this one, near one of those objects if it may be there. */
  async otherFor(appUuid: string, trunk: string, near: readonly string[]): Promise<string | undefined> {
    const node = await this.#place({ kind: 'new', near, trunk, isPhone: true }, appUuid, [this.#options.nodeId]);
    return node === this.#options.nodeId ? undefined : node;
  }

  /** Has the node of a Session obey a bot of this one. Resolves with the reason where the order is refused. */
  async order(appUuid: string, sessionUuid: string, order: BotOrder, traceparent: string): Promise<string | undefined> {
    const { bus, sessions, nodeId } = this.#options;
    const owner = await sessions.owner(appUuid, sessionUuid);
    if (owner === undefined) return 'the Session has ended';
    // It is on its way to this node, or from it.
    if (owner === nodeId) return AWAY;
    const timeLeft = NODE_COMMAND_TIMEOUT_MS - NODE_COMMAND_MARGIN_MS;
    const body = { appUuid, sessionUuid, order, traceparent };
    const result = await bus.ask(owner, 'bot', body, NODE_COMMAND_TIMEOUT_MS, timeLeft);
    if (result.outcome !== 'answered') return AWAY;
    const said = result.body;
    return typeof said === 'object' && said !== null && 'reason' in said && typeof said.reason === 'string'
      ? said.reason
      : undefined;
  }

  /** Asks the node of a call for what a transfer to it needs to know. Undefined: it is no answered phone call. */
  async replacement(appUuid: string, sessionUuid: string): Promise<Replacement | 'unreachable' | undefined> {
    const nodeId = await this.#options.sessions.owner(appUuid, sessionUuid);
    if (nodeId === undefined) return undefined;
    // It is on its way to this node, or from it.
    if (nodeId === this.#options.nodeId) return 'unreachable';
    const result = await this.#ask(nodeId, 'replacement', { appUuid, sessionUuid });
    if (result.outcome !== 'answered') return 'unreachable';
    return isReplacement(result.body) ? result.body.call : undefined;
  }

  /**
   * Asks the other nodes whose call a Replaces names. Rows have no dialogs, so all are asked at once. One that does not
   * answer counts as one without it after NODE_PING_TIMEOUT_MS.
   */
  async named(appUuid: string, replaces: Replaces): Promise<string | undefined> {
    const others = this.#homes().filter((nodeId) => nodeId !== this.#options.nodeId);
    const asked = others.map(async (nodeId) => {
      const result = await this.#ask(nodeId, 'named', { appUuid, replaces });
      if (result.outcome === 'answered' && isNamed(result.body)) return result.body.sessionUuid;
      throw new Error('not there');
    });
    return await Promise.any(asked).catch(() => undefined);
  }

  #ask(nodeId: string, kind: string, body: object) {
    return this.#options.bus.ask(nodeId, kind, body, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS);
  }

  /** Nodes that keep what has no row: all that are up, in every node's eyes about the same. */
  #homes(): readonly string[] {
    const { members } = this.#options;
    return members.rows.filter(({ nodeId }) => !members.isSuspect(nodeId)).map(({ nodeId }) => nodeId);
  }

  /**
   * The other node that has the buckets of a Room, or of whoever owns them. Undefined: this one, or none that can be
   * asked.
   */
  async #homeOfBuckets(owner: string, roomId: string | undefined): Promise<string | undefined> {
    if (roomId === undefined) return this.#elsewhere(homeOf(owner, this.#homes()));
    // A Room that nobody is in may have no home yet.
    const home = this.#elsewhere((await this.#home(owner, roomId)) ?? undefined);
    return home === undefined || this.#options.members.isSuspect(home) ? undefined : home;
  }

  #elsewhere(nodeId: string | undefined): string | undefined {
    return nodeId === this.#options.nodeId ? undefined : nodeId;
  }

  async #nodeOfSession(appUuid: string, sessionUuid: string): Promise<string | undefined> {
    const { sessions, nodeId } = this.#options;
    if (sessions.isHere(sessionUuid)) return nodeId;
    return await this.#places.of(appUuid, sessionUuid, () => sessions.owner(appUuid, sessionUuid));
  }

  async #home(appUuid: string, roomId: string): Promise<string | null | undefined> {
    const { rooms, nodeId } = this.#options;
    return rooms.isHere(roomId) ? nodeId : await this.#places.of(appUuid, roomId, () => rooms.home(appUuid, roomId));
  }

  async #place(
    { near, trunk, isPhone, device }: Extract<Whose, { kind: 'new' }>,
    appUuid: string,
    tried: readonly string[],
  ): Promise<string | undefined> {
    const { bus, members, nodeId, sessions, trunks } = this.#options;
    const isOpen = (row: NodeRow) =>
      !tried.includes(row.nodeId) &&
      row.drainingAt === undefined &&
      // A drain begins up to a beat before its row is read.
      (row.nodeId !== nodeId || !sessions.isDraining) &&
      !members.isSuspect(row.nodeId);
    // A device needs no trunk.
    const needed = isPhone && device === undefined ? trunks({ appUuid, trunk }) : [];
    const candidates = reaching(needed, members.rows.filter(isOpen), members.rows);
    // What only one node reaches comes first: it would not ring elsewhere.
    const holder = device === undefined ? undefined : nodeOfDevice(nodeId, await this.#options.flows(device));
    if (candidates.some((row) => row.nodeId === holder)) return holder;
    // Nobody else is reached, or who was asked did not take it.
    if ((tried.length > 0 || !bus.connected) && candidates.some((row) => row.nodeId === nodeId)) return nodeId;
    for (const id of near) {
      // Its old node would not say that it has moved, and would make the new Session.
      this.#places.forget(appUuid, id);
      const node = (await this.#nodeOfSession(appUuid, id)) ?? (await this.#home(appUuid, id));
      if (candidates.some((row) => row.nodeId === node) && typeof node === 'string') return node;
    }
    // This node says why when no node may take it.
    return choose(nodeId, candidates, Math.random) ?? nodeId;
  }

  async #perform(body: unknown, from: string): Promise<Forwarded> {
    const { clock, perform, release } = this.#options;
    if (!isCommand(body)) return late();
    const { operation, until } = body;
    const result = clock.now() >= until ? late().problem : await perform(operation, until);
    if (result === 'moved') return { outcome: 'moved' };
    if (!isProblem(result)) return { outcome: 'answered', answer: result };
    const { key, appUuid } = operation;
    // Whoever asked has given it up and keeps the mark. So does what may be stored all the same.
    const isFree = clock.now() >= until && result.isInDoubt !== true;
    if (key !== undefined && isFree) await release({ appUuid, ...key }, from).catch(() => {});
    return { outcome: 'refused', problem: result };
  }
}

/** The home of a Room's buckets where it was last, and the one that its row names. */
const BUCKET_TRIES = 2;

const TOO_LATE = 'the order came too late';
const AWAY = 'the node of the Session cannot be reached';

const late = () => ({
  outcome: 'refused' as const,
  problem: problems.unavailable('The command came too late. See Retry-After header.', NODE_RETRY_AFTER_SEC),
});

const bucketsOf = (whose: string, names: readonly BucketName[]) => names.map((name) => bucketOf(name, whose));

// What comes here is under the cluster's own key; these say what another release may have changed.
const isCommand = (body: unknown): body is { readonly operation: Operation; readonly until: number } =>
  typeof body === 'object' && body !== null && 'operation' in body && 'until' in body && typeof body.until === 'number';
const isReply = (body: unknown): body is Forwarded => typeof body === 'object' && body !== null && 'outcome' in body;
const isBotOrder = (
  body: unknown,
): body is { appUuid: string; sessionUuid: string; order: BotOrder; traceparent: string; until: number } =>
  isCall(body) && 'order' in body && 'traceparent' in body && 'until' in body;
const isCall = (body: unknown): body is { readonly appUuid: string; readonly sessionUuid: string } =>
  typeof body === 'object' && body !== null && 'appUuid' in body && 'sessionUuid' in body;
const isNaming = (body: unknown): body is { readonly appUuid: string; readonly replaces: Replaces } =>
  typeof body === 'object' && body !== null && 'appUuid' in body && 'replaces' in body && typeof body.replaces === 'object';
const isNamed = (body: unknown): body is { readonly sessionUuid: string } =>
  typeof body === 'object' && body !== null && 'sessionUuid' in body && typeof body.sessionUuid === 'string';
const isReplacement = (body: unknown): body is { readonly call: Replacement } =>
  typeof body === 'object' && body !== null && 'call' in body && typeof body.call === 'object';
const isTake = (body: unknown): body is Take =>
  typeof body === 'object' &&
  body !== null &&
  'appUuid' in body &&
  'names' in body &&
  Array.isArray(body.names) &&
  (!('roomId' in body) || typeof body.roomId === 'string');
const isTaken = (body: unknown): body is { readonly taken?: unknown; readonly waitSec?: unknown; readonly moved?: unknown } =>
  typeof body === 'object' && body !== null;
