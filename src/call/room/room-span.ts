/**
 * Rooms over nodes: the seats of this node's Sessions in Rooms of other nodes (pipe.ts), the members of this node's
 * Rooms whose Sessions are elsewhere (guests.ts), and a Room's way from one home to another.
 *
 *   home lost ─compare-and-set on the Room's row→ I am the home: members join my mix · another is: pipes go there
 *   I was the home, and am no longer (I was stopped) ──────────────────────────────► my members get pipes
 */

import { ThrottledLog } from '../../bounds/throttled-log.ts';
import type { Clock } from '../../clock.ts';
import type { RoomStore } from '../../database/call/rooms.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import { UNHEARD_SAID_EVERY_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Membership } from '../../machine/room/membership.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { LegAudio, MediaEngine, RoomMember } from '../../media/engine.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RoomNews } from '../ports/leg.ts';
import type {
  NewHome,
  RoomPeers,
  SeatReply,
  SeatRequest,
  SeatsAway,
  SeatTerms,
  SeatWish,
  RoomMember as Who,
} from '../ports/room-peers.ts';
import type { SessionActor } from '../session/session-actor.ts';
import { untilStored } from '../until-stored.ts';
import { Arrivals } from './arrivals.ts';
import { Guests } from './guests.ts';
import { HomeSearch } from './home-search.ts';
import { Pipe, type PipeListener } from './pipe.ts';
import type { RoomActor } from './room-actor.ts';
import { roomIsMoving } from './room-moving.ts';
import { Takeovers } from './takeovers.ts';

const UNHEARD =
  'a member of a Room hears nothing: the node that mixes it answers over NATS, and its audio does not come; see that the network lets UDP from and to RTP_PORTS through between the NODE_HOSTs';

/** The media plane numbers its rooms with 32 bits; pipes have numbers beyond. */
const FIRST_PIPE = 0x1_0000_0000;

export interface RoomSpanOptions {
  readonly peers: RoomPeers;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  readonly media: Pick<MediaEngine, 'openPipe' | 'openRoom'>;
  readonly homes: Pick<RoomStore, 'seize' | 'where' | 'members'>;
  session(sessionUuid: string): SessionActor | undefined;
  mostMembers(appUuid: string): Promise<number>;
  /** A Room of this node. */
  find(roomId: string): RoomActor | undefined;
  /** Opens a Room that this node has become the home of, and takes up what was under way in it. */
  adopt(row: RoomRow): Promise<RoomActor | undefined>;
  /** Gives up a Room of this node that nobody is in. */
  giveUp(roomId: string): Promise<boolean>;
  /** Tells the bots of this node that are in the Room. */
  tellBots(sessionUuid: string, roomId: string, news: RoomNews): void;
}

export class RoomSpan implements SeatsAway {
  readonly #options: RoomSpanOptions;
  readonly guests: Guests;
  /** The pipes by Room and Session. */
  readonly #pipes = new Map<string, Pipe>();
  readonly #arrivals: Arrivals;
  readonly #search: HomeSearch;
  readonly #takeovers: Takeovers;
  readonly #unheard: ThrottledLog;
  /** How often a pipe was made anew, as nothing came through it although the Room's home answered. */
  pipesUnheard = 0;
  #last = FIRST_PIPE;

  constructor(options: RoomSpanOptions) {
    this.#options = options;
    const { peers, clock, log, media } = options;
    this.#unheard = new ThrottledLog(log, clock, UNHEARD_SAID_EVERY_MS);
    this.#search = new HomeSearch({
      ...options,
      leadsTo: ({ roomId, nodeId, epoch }) => this.#pipesOf(roomId).some((pipe) => pipe.home === nodeId && pipe.epoch <= epoch),
      become: (row) => this.becomeHome(row),
      follow: (home) => this.#retarget(home),
      closed: (roomId) => {
        for (const { sessionUuid } of this.#pipesOf(roomId)) this.#listener(roomId, sessionUuid).closed();
      },
      failed: (roomId) => {
        for (const { sessionUuid, number } of this.#pipesOf(roomId))
          this.#listener(roomId, sessionUuid).notice({ type: 'room.left', room: number });
      },
    });
    this.guests = new Guests({
      nodeId: options.nodeId,
      peers,
      clock,
      media,
      membersByRow: (roomId) => this.#membersByRow(roomId),
      isHere: (roomId, sessionUuid) => options.session(sessionUuid)?.state.membership?.roomId === roomId,
      audioOf: (sessionUuid): RoomMember | undefined => options.session(sessionUuid)?.audio,
      onNews: (roomId, sessionUuid, news) => {
        options.tellBots(sessionUuid, roomId, news);
        this.tellBots(roomId, sessionUuid, news);
      },
    });
    this.#arrivals = new Arrivals({
      ...options,
      guests: this.guests,
      mostPromised: (roomId, appUuid) => this.#mostPromised(roomId, appUuid),
      openPipe: ({ roomId, nodeId, epoch }, { state: { sessionUuid, appUuid, type } }) => {
        const pipe = this.#add(nodeId, { roomId, sessionUuid, appUuid, isBot: type === 'websocket' });
        pipe.retarget(nodeId, epoch, true);
        return pipe.number;
      },
    });
    this.#takeovers = new Takeovers({
      ...options,
      guests: this.guests,
      pipesOf: (roomId) => this.#pipesOf(roomId),
      drop: (pipe) => this.#drop(pipe),
      lost: ({ sessionUuid, number, name }) =>
        this.#listener(name.roomId, sessionUuid).notice({ type: 'room.left', room: number }),
      moveOut: (room, home) => this.#moveOut(room, home),
    });
    peers.serve({
      answer: (request, from) => this.#answer(request, from),
      homeChanged: (home) => this.#homeChanged(home),
      giveUp: (roomId) => options.giveUp(roomId),
    });
  }

  /** Tells whether a Session of this node has a seat in a Room of another one, or comes to it just now. */
  has(sessionUuid: string, roomId: string): boolean {
    return this.#pipes.has(keyOf(roomId, sessionUuid)) || this.#arrivals.has(sessionUuid, roomId);
  }

  /** Takes a seat at the home of a Room. The seat is the number under which its notices come, or why there is none. */
  async take(
    nodeId: string,
    wish: SeatWish,
  ): Promise<{ readonly room: number; readonly voiceActivityEvents: boolean } | Problem> {
    const { roomId, sessionUuid, reserved, coach } = wish;
    const pipe = this.#add(nodeId, wish);
    const reply = await pipe.take(reserved, coach);
    // The Room came here before its old home answered: its members are known here, and this is none of them.
    if (this.#pipes.get(keyOf(roomId, sessionUuid)) !== pipe) return roomIsMoving;
    if (reply?.type === 'taken') return { room: pipe.number, voiceActivityEvents: reply.voiceActivityEvents };
    if (reply === undefined) this.left(sessionUuid, roomId);
    else this.#drop(pipe);
    if (reply?.type === 'refused') return reply.problem;
    if (reply?.type === 'moved' || reply?.type === 'opening') return roomIsMoving;
    return problems.nodeAway('this Room');
  }

  #add(nodeId: string, { roomId, sessionUuid, appUuid, isBot }: Omit<SeatWish, 'reserved' | 'coach'>): Pipe {
    const { peers, clock, media } = this.#options;
    const key = keyOf(roomId, sessionUuid);
    const before = this.#pipes.get(key);
    if (before !== undefined) void before.leave();
    const listener = this.#listener(roomId, sessionUuid);
    const pipe = new Pipe({ peers, clock, media, roomId, sessionUuid, appUuid, isBot, number: ++this.#last, listener }, nodeId);
    this.#pipes.set(key, pipe);
    return pipe;
  }

  #listener(roomId: string, sessionUuid: string): PipeListener {
    const session = () => this.#options.session(sessionUuid);
    return {
      notice: (notice) => session()?.signal({ type: 'leg.media', notice }),
      closed: () => {
        const state = session()?.state;
        session()?.signal({ type: 'room_closed', roomId });
        // A seat that was only reserved has nothing to leave.
        if (state?.seat?.roomId === roomId) this.left(sessionUuid, roomId);
      },
      news: (news) => session()?.hear(news),
      unheard: (home) => {
        this.pipesUnheard++;
        this.#unheard.say('warn', home, { room_id: roomId, session_uuid: sessionUuid, home }, UNHEARD);
      },
      homeLost: (why, home) => void this.#search.lost({ roomId, ...home }, why),
    };
  }

  #drop(pipe: Pipe): void {
    const key = keyOf(pipe.name.roomId, pipe.sessionUuid);
    if (this.#pipes.get(key) === pipe) this.#pipes.delete(key);
    pipe.drop();
  }

  /** Puts the leg of a Session into a Room of another node. False: it has no seat there. */
  join(sessionUuid: string, roomId: string, audio: LegAudio, terms: SeatTerms): boolean {
    const pipe = this.#pipes.get(keyOf(roomId, sessionUuid));
    pipe?.join(audio, terms);
    return pipe !== undefined;
  }

  /** The seat of a Session in a Room of another node. */
  seat(sessionUuid: string, roomId: string): ReturnType<SeatsAway['seat']> {
    return this.#pipes.get(keyOf(roomId, sessionUuid));
  }

  /** A Session has left a Room of another node, durably, or never joined it. */
  left(sessionUuid: string, roomId: string): void {
    const key = keyOf(roomId, sessionUuid);
    const pipe = this.#pipes.get(key);
    const room = this.#options.find(roomId);
    if (room?.reserved.includes(sessionUuid) === true) room.giveBack(sessionUuid);
    if (pipe === undefined) return;
    // What the bots in the Room are to hear of it goes first.
    queueMicrotask(() => {
      if (this.#pipes.get(key) === pipe) this.#pipes.delete(key);
      void pipe.leave();
    });
  }

  /** Tells bots on other nodes what happened to a member of a Room. */
  tellBots(roomId: string, sessionUuid: string, news: RoomNews): void {
    const room = this.#options.find(roomId);
    if (room !== undefined) this.guests.tellBots(room, sessionUuid, news);
    else this.#pipes.get(keyOf(roomId, sessionUuid))?.tell(news);
  }

  /**
   * Returns the members of the Room that a Session of this node is in. Undefined: its home does not answer, or is
   * changing.
   */
  async members(roomId: string, sessionUuid: string): Promise<readonly Who[] | undefined> {
    const pipe = this.#pipes.get(keyOf(roomId, sessionUuid));
    const room = this.#options.find(roomId);
    if (pipe === undefined) return room === undefined ? undefined : this.#members(room);
    const reply = await this.#options.peers.ask(pipe.home, { type: 'members', roomId });
    return reply?.type === 'members' ? reply.members : undefined;
  }

  /** Reads the members of a Room of this node. */
  async #membersByRow(roomId: string): ReturnType<RoomStore['members']> {
    await this.verify(roomId);
    return await this.#options.homes.members(roomId);
  }

  /** Lets a Room of this node go that is another node's by the row, or gone: the word of that was lost. */
  async verify(roomId: string): Promise<void> {
    const { homes, find, nodeId } = this.#options;
    const room = find(roomId);
    if (room === undefined) return;
    const home = await homes.where(roomId);
    if (find(roomId) === room && (home?.nodeId !== nodeId || home.epoch > room.epoch)) this.#letGo(room, home);
  }

  #members(room: RoomActor): readonly Who[] {
    return room.joined.map((sessionUuid) => {
      const isBot = this.#options.session(sessionUuid)?.state.type === 'websocket';
      return { sessionUuid, isBot: isBot || this.guests.find(room, sessionUuid)?.isBot === true };
    });
  }

  async #answer(request: SeatRequest, from: string): Promise<SeatReply> {
    if (request.type === 'check') {
      const here = new Set([...this.#pipes.values()].map(({ name }) => name.link));
      return { type: 'absent', links: request.seats.map(({ link }) => link).filter((link) => !here.has(link)) };
    }
    const { roomId } = request;
    if (request.type === 'note') {
      const pipe = this.#pipes.get(keyOf(roomId, request.sessionUuid));
      if (pipe?.name.link === request.link) return pipe.hear(request.number, request.note);
      const room = this.#options.find(roomId);
      const reply = room && this.guests.note(room, request, request.number, request.note);
      // The members that the rows name have no seats yet where the Room is just coming here, or coming back.
      if (reply?.type !== 'ok' && this.#mayOpen(roomId)) return { type: 'opening' };
      return reply ?? { type: 'moved' };
    }
    const mostMembers = await this.#mostMembers(request);
    const room = this.#options.find(roomId);
    if (room === undefined) return { type: this.#mayOpen(roomId) ? 'opening' : 'moved' };
    if (request.type === 'members') return { type: 'members', members: this.#members(room) };
    if (room.isLeaving) return { type: 'moved' };
    // The members that the rows name have their places before anybody else.
    if (request.type === 'take' && this.#takeovers.has(roomId)) return { type: 'opening' };
    if (request.type === 'take') return this.guests.take(room, request, from, mostMembers);
    const reply = await this.guests.open(room, request, from, mostMembers);
    // Another node took the Room while its end of the pipe was made.
    return reply.type === 'gone' && this.#options.find(roomId) !== room ? { type: 'moved' } : reply;
  }

  /** The cap, for one that asks for a place. One whose Room came here before it was answered was promised its place. */
  async #mostMembers(request: SeatRequest): Promise<number> {
    if (request.type === 'take') {
      await this.verify(request.roomId);
      return await this.#options.mostMembers(request.appUuid);
    }
    if (request.type !== 'open' || this.#takeovers.has(request.roomId)) return Infinity;
    const isPlaced = this.#options.find(request.roomId)?.has(request.sessionUuid) === true;
    return isPlaced ? Infinity : await this.#mostPromised(request.roomId, request.appUuid);
  }

  /** The cap, for one that was promised its place: while the database is away it is the one that was heard of last. */
  async #mostPromised(roomId: string, appUuid: string): Promise<number> {
    return await this.#options.mostMembers(appUuid).catch(() => this.#options.find(roomId)?.mostMembers ?? Infinity);
  }

  #pipesOf(roomId: string): readonly Pipe[] {
    return [...this.#pipes.values()].filter(({ name }) => name.roomId === roomId);
  }

  /** Whether this node may be the home of a Room that it has not opened yet. */
  #mayOpen(roomId: string): boolean {
    return this.#takeovers.mayBring(roomId) || this.#search.has(roomId);
  }

  /** Takes over Rooms of dead nodes. Whoever asks for one of them meanwhile is told to ask again. */
  takeOver(adopt: () => Promise<readonly RoomRow[]>): Promise<readonly RoomRow[]> {
    return this.#takeovers.all(adopt);
  }

  /** Resolves once the members of a Room that has just come here are known. Undefined: it has not. */
  opening(roomId: string): Promise<void> | undefined {
    return this.#takeovers.opening(roomId);
  }

  /** This node has become the home of a Room by its row: it opens the Room, and the members join its mix. */
  becomeHome(row: RoomRow): Promise<void> {
    return this.#takeovers.becomeHome(row);
  }

  /** The pipes of a Room lead to another home from now on. */
  #retarget({ roomId, nodeId, epoch }: NewHome): void {
    for (const pipe of this.#pipesOf(roomId)) {
      // It was told before, by the home itself, or is about to be: that home is being asked for the seat.
      if (pipe.home === nodeId && (pipe.epoch === epoch || !pipe.isEpochKnown)) continue;
      // What tells of this home is older than what has led the pipe on.
      if (pipe.epoch > epoch) continue;
      const session = this.#options.session(pipe.sessionUuid);
      pipe.retarget(nodeId, epoch, session?.state.membership?.phase === 'joined');
      this.#claim(pipe, session);
      session?.signal({ type: 'room_moved', roomId, room: pipe.number });
    }
  }

  /**
   * Asks the next home of a Room at once for a seat that it cannot know by the rows: of a Session that is not answered
   * yet, or has not joined yet. A Room that is deleted meanwhile waits until such a Session has left.
   */
  #claim(pipe: Pipe, session: SessionActor | undefined): void {
    const { seat, membership } = session?.state ?? {};
    if (seat?.roomId === pipe.name.roomId) void pipe.takeAgain(true);
    else if (membership?.phase === 'joining') void pipe.takeAgain(false);
  }

  /**
   * The epoch at which the mix that a membership names let the Session in. No Room has the epoch -1: it stands for a
   * mix that is no more, and the Session is about to hear of the next one.
   */
  enteredAt(sessionUuid: string, { roomId, room: number }: Membership): number {
    const room = this.#options.find(roomId);
    if (room?.media.number === number) return room.epoch;
    const pipe = this.#pipes.get(keyOf(roomId, sessionUuid));
    return (pipe?.number === number ? pipe.heardAt : undefined) ?? -1;
  }

  /** The Room that a Session was about to be a member of has another home, which nobody has told. */
  async moved(sessionUuid: string, { roomId }: Membership): Promise<void> {
    const { clock, find } = this.#options;
    const pipe = this.#pipes.get(keyOf(roomId, sessionUuid));
    if (pipe !== undefined && pipe.heardAt === pipe.epoch)
      void this.#search.lost({ roomId, nodeId: pipe.home, epoch: pipe.epoch }, 'moved');
    await untilStored(
      clock,
      () => this.verify(roomId),
      () => find(roomId) !== undefined,
    );
  }

  /** Another node says that it is the home of a Room. */
  #homeChanged(home: NewHome): void {
    const { roomId, nodeId, epoch } = home;
    if (nodeId === this.#options.nodeId) return;
    const room = this.#options.find(roomId);
    if (room !== undefined && room.epoch < epoch) this.#moveOut(room, home);
    else if (this.#pipesOf(roomId).some((pipe) => pipe.epoch < epoch)) this.#retarget(home);
  }

  /** A Room of this node was taken by another, which took this one for dead. Its members here follow it. */
  async taken(room: RoomActor): Promise<void> {
    const { homes, clock, find } = this.#options;
    const { roomId } = room.state;
    const isHere = () => find(roomId) === room;
    // Its members here stay in it until the database tells where it is.
    room.isLeaving = true;
    const home = await untilStored(clock, () => homes.where(roomId), isHere);
    if (isHere()) this.#letGo(room, home);
  }

  /** A Room of this node is not its own any more. `home`: what its row says. */
  #letGo(room: RoomActor, home: Awaited<ReturnType<RoomStore['where']>>): void {
    const { roomId } = room.state;
    const { places } = room;
    if (typeof home?.nodeId === 'string' && home.nodeId !== this.#options.nodeId) {
      this.#moveOut(room, { roomId, nodeId: home.nodeId, epoch: home.epoch });
      return;
    }
    this.forsake(room);
    // Nobody mixes it any more, and nobody else tells its members here.
    if (typeof home?.nodeId !== 'string')
      for (const sessionUuid of places) this.#options.session(sessionUuid)?.signal({ type: 'room_closed', roomId });
  }

  #moveOut(room: RoomActor, { roomId, nodeId, epoch }: NewHome): void {
    const { session, log } = this.#options;
    if (nodeId !== this.#options.nodeId)
      log.warn({ room_id: roomId, to: nodeId }, 'another node is the home of a Room of this one');
    const { places } = room;
    // The Room is not found here from now on, so that its members look for it elsewhere.
    this.forsake(room);
    for (const sessionUuid of places) {
      const actor = session(sessionUuid);
      if (actor === undefined) continue;
      const { membership, type, appUuid } = actor.state;
      const pipe = this.#add(nodeId, { roomId, sessionUuid, appUuid, isBot: type === 'websocket' });
      pipe.retarget(nodeId, epoch, membership?.phase === 'joined');
      this.#claim(pipe, actor);
      actor.signal({ type: 'room_moved', roomId, room: pipe.number });
    }
    // Whoever was to come into the mix of this node, once the members were read, still leads to the home before.
    if (nodeId !== this.#options.nodeId) this.#retarget({ roomId, nodeId, epoch });
  }

  /** A Session of this node goes on at another, which opens a pipe for it, or mixes its Room. */
  handedOver({ sessionUuid, membership }: Pick<SessionState, 'sessionUuid' | 'membership'>, nodeId: string): void {
    if (membership === undefined) return;
    const { roomId } = membership;
    const pipe = this.#pipes.get(keyOf(roomId, sessionUuid));
    if (pipe !== undefined) this.#drop(pipe);
    const room = this.#options.find(roomId);
    if (room?.has(sessionUuid) === true) this.guests.expect(room, sessionUuid, nodeId);
  }

  /** A Session of another node goes on at this one: so does its seat. */
  follow(actor: SessionActor): Promise<void> {
    return this.#arrivals.follow(actor);
  }

  /**
   * Gives a Room up without a word: members on other nodes would take the end of their pipes for the end of the Room.
   * They find its next home by the silence, also where this node ends and nobody has taken the Room yet.
   */
  forsake(room: RoomActor): void {
    this.guests.forget(room);
    room.abandon();
  }
}

const keyOf = (roomId: string, sessionUuid: string): string => `${roomId} ${sessionUuid}`;
