/** The live Rooms of this node, and the way in for every command about them. */
import { sleep } from '../../clock.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import { newUuid } from '../../id.ts';
import { LIST_MATCHED_MAX_ITEMS, ROOM_MOVING_LOOK_MS, ROOM_MOVING_LOOKS, STORE_RETRY_LONGEST_MS } from '../../limits.ts';
import type { Membership, Seat } from '../../machine/room/membership.ts';
import { newRoom, type RoomCommand, type RoomState } from '../../machine/room/room.ts';
import type { RoomMember, RoomNotice } from '../../media/engine.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { Adoption } from '../adoption.ts';
import type { SeatWish, RoomMember as Who } from '../ports/room-peers.ts';
import type { CreateRequest, JoinRequest, ListedRoomView, LiveRoom, MemberView, Rooms, RoomView } from '../ports/rooms.ts';
import type { Answer, CommandContext } from '../ports/sessions.ts';
import type { SessionActor } from '../session/session-actor.ts';
import { untilStored } from '../until-stored.ts';
import { AwayJoins, onceKnown } from './away-joins.ts';
import { Homes } from './homes.ts';
import { RoomActor, type RoomEnvironment } from './room-actor.ts';
import { roomIsMoving } from './room-moving.ts';
import type { RoomHomes, RoomRegistryOptions } from './room-registry-options.ts';
import { RoomSpan } from './room-span.ts';
import { rowView, storedPlayback, view } from './room-view.ts';

const MEDIA_RETRY_SEC = 5;
const NO_ROOM = problems.notFound('Room');
const STOPPED_LOOK_MS = 20;
const BEQUEST_LOOK_MS = 50;

export class RoomRegistry implements Rooms {
  readonly #rooms = new Map<string, RoomActor>();
  /** Live Rooms of each application, those being torn down and those being made included. */
  readonly #counts = new Map<string, number>();
  readonly #options: RoomRegistryOptions;
  readonly #environment: RoomEnvironment;
  readonly #adoption: Adoption<RoomRow>;
  /** The homes of Rooms, or undefined when this process has all Rooms. */
  readonly #homes: Homes | undefined;
  /** The part of Rooms that is on other nodes. Undefined where there are none. */
  readonly span: RoomSpan | undefined;
  /** Rooms that were taken over just now: their deletion goes on once their Sessions were taken over, too. */
  readonly #deletedLater = new Set<string>();
  /** Joins to Rooms of other nodes. Undefined where there are none. */
  readonly #awayJoins: AwayJoins | undefined;
  #stopping = false;

  constructor(options: RoomRegistryOptions) {
    this.#options = options;
    const { records, clock, log } = options;
    this.#adoption = new Adoption({
      ...{ records, clock, log },
      idOf: ({ roomId }) => roomId,
      takeUp: () => this.recover(async () => 0),
    });
    this.#environment = {
      ...options,
      dismiss: (room) => {
        const input = { type: 'room_closed', roomId: room.state.roomId } as const;
        const { reserved } = room;
        for (const sessionUuid of room.places) options.session(sessionUuid)?.signal(input);
        this.span?.guests.dismiss(room);
        for (const sessionUuid of reserved) room.giveBack(sessionUuid);
      },
      onDeleted: (roomId) => this.#forget(roomId),
      onNeverBegan: (roomId) => this.#unmake(roomId),
      onTaken: (room) => (this.span === undefined ? room.abandon() : void this.span.taken(room)),
    };
    const { homes, peers, nodeId } = options;
    if (homes === undefined || peers === undefined) return;
    this.#homes = new Homes({
      ...{ store: homes, clock, nodeId, peers, adoption: this.#adoption },
      find: (roomId) => this.#rooms.get(roomId),
      verify: async (roomId) => await this.span?.verify(roomId),
      open: (row) => this.#openRow(row).finally(() => void this.#goOnDeleting(row)),
    });
    this.span = new RoomSpan({
      ...options,
      homes: { ...homes, seize: (...which) => this.#adoption.one(homes.seize(...which)) },
      peers,
      mostMembers: async (appUuid) => (await options.limits(appUuid))?.maxMembersPerRoom ?? 0,
      find: (roomId) => this.#rooms.get(roomId),
      adopt: (row) => this.#takeUp(row),
      giveUp: (roomId) => this.giveUp(roomId),
      tellBots: (sessionUuid, roomId, news) => options.tellBots?.(sessionUuid, roomId, news),
    });
    this.#awayJoins = new AwayJoins({ ...options, span: this.span, homes });
  }

  get size(): number {
    return this.#rooms.size;
  }

  find(roomId: string): RoomActor | undefined {
    return this.#rooms.get(roomId);
  }

  async create(request: CreateRequest, context: CommandContext): Promise<Answer | Problem> {
    const { appUuid } = context;
    const { homes, clock, limits } = this.#options;
    const cap = (await limits(appUuid))?.maxRooms ?? 0;
    // No await between the question and the place: the cap holds however many are asked for at once.
    if (homes === undefined && (this.#counts.get(appUuid) ?? 0) >= cap) return problems.tooManyRooms();
    this.#count(appUuid, 1);
    const { voice_activity_events: voiceActivityEvents, hold_music_url: holdMusicUrl = '' } = request;
    const about = { roomId: newUuid(), appUuid, voiceActivityEvents, holdMusicUrl };
    const state = newRoom(about, clock.now());
    const made = this.#adoption.hold(about.roomId);
    const room = await this.#make(state, cap).finally(made);
    if (!isProblem(room)) return await room.begin(context, { status: 201, body: { ...view(room) } });
    this.#count(appUuid, -1);
    return room;
  }

  /** Makes a Room of this node, unless the application has `cap` of them. */
  async #make(state: RoomState, cap: number): Promise<RoomActor | Problem> {
    const { appUuid, roomId } = state;
    const isMade = await this.#options.homes?.make(state, cap).catch((error: unknown) => {
      // It may be made all the same, and would be counted for ever.
      this.#count(appUuid, -1);
      this.#unmake(roomId);
      throw error;
    });
    if (isMade === false) return problems.tooManyRooms();
    const room = await this.#open(state);
    if (room !== undefined) return room;
    this.#unmake(roomId);
    return problems.unavailable('No media worker is available.', MEDIA_RETRY_SEC);
  }

  /** Takes back that a Room of the cluster was made, for as long as the database is away. */
  #unmake(roomId: string): void {
    const { homes, clock } = this.#options;
    if (homes === undefined) return;
    const unmade = this.#adoption.hold(roomId);
    void untilStored(clock, () => homes.unmake(roomId)).finally(unmade);
  }

  async #open(state: RoomState, epoch = 0, isDoomed = false): Promise<RoomActor | undefined> {
    let hear: (notice: RoomNotice) => void = () => {};
    const media = await this.#options.media.openRoom((notice) => hear(notice));
    if (media === undefined) return undefined;
    const room = new RoomActor(state, media, this.#environment, epoch, isDoomed);
    hear = (notice) => room.hear(notice);
    this.#rooms.set(state.roomId, room);
    return room;
  }

  #count(appUuid: string, by: number): void {
    const count = (this.#counts.get(appUuid) ?? 0) + by;
    if (count > 0) this.#counts.set(appUuid, count);
    else this.#counts.delete(appUuid);
  }

  #forget(roomId: string): void {
    const room = this.#rooms.get(roomId);
    if (room === undefined) return;
    this.#rooms.delete(roomId);
    this.span?.guests.forget(room);
    this.#count(room.state.appUuid, -1);
  }

  list(appUuid: string): readonly ListedRoomView[] | Problem | Promise<readonly ListedRoomView[] | Problem> {
    const { homes } = this.#options;
    if (homes !== undefined) return this.#listAll(homes, appUuid);
    const own = [...this.#rooms.values()].filter((room) => room.state.appUuid === appUuid);
    if (own.length > LIST_MATCHED_MAX_ITEMS) return problems.tooManyResults();
    return own.sort((a, b) => b.state.createdAt - a.state.createdAt).map(view);
  }

  /** The Rooms of all nodes. Those of this one are told as they are now. */
  async #listAll(homes: RoomHomes, appUuid: string): Promise<readonly ListedRoomView[] | Problem> {
    const rows = await homes.list(appUuid);
    if (rows === 'too_many') return problems.tooManyResults();
    return rows.map((row) => {
      const here = this.#rooms.get(row.roomId);
      return here === undefined ? rowView(row) : view(here);
    });
  }

  get(appUuid: string, roomId: string): RoomView | undefined {
    const room = this.#rooms.get(roomId);
    return room?.state.appUuid === appUuid ? view(room) : undefined;
  }

  opening(roomId: string): Promise<Problem | undefined> | undefined {
    return this.span?.opening(roomId) === undefined ? undefined : this.#opened(roomId);
  }

  async #opened(roomId: string): Promise<Problem | undefined> {
    const isOpening = () => this.span?.opening(roomId) !== undefined;
    for (let looks = 0; isOpening() && looks < ROOM_MOVING_LOOKS; looks++)
      await Promise.race([this.span?.opening(roomId), sleep(this.#options.clock, ROOM_MOVING_LOOK_MS)]);
    // Another node may have taken it meanwhile, or no media worker could open it.
    return isOpening() || !this.isHere(roomId) ? roomIsMoving : undefined;
  }

  isHere(roomId: string): boolean {
    return this.#rooms.has(roomId);
  }

  async knows(appUuid: string, roomId: string): Promise<boolean> {
    const here = this.#rooms.get(roomId);
    if (here !== undefined) return here.state.appUuid === appUuid;
    return (await this.#options.homes?.home(appUuid, roomId)) !== undefined;
  }

  /** Makes this node the home of a Room that has none. */
  async settle(appUuid: string, roomId: string): Promise<void> {
    await this.#homes?.away(appUuid, roomId, false);
  }

  /** Gives a Room of this node up to the node of its first member. False: it is in use. */
  async giveUp(roomId: string): Promise<boolean> {
    const room = this.#rooms.get(roomId);
    if (room === undefined || this.span?.opening(roomId) !== undefined) return false;
    return (await this.#homes?.giveUp(room)) === true;
  }

  async order(roomId: string, order: RoomCommand, context: CommandContext): Promise<Answer | Problem> {
    const room = this.#rooms.get(roomId);
    const result = await this.#order(roomId, order, context);
    // Another node took the Room while the order waited. Any other 404 names what is missing of a Room of this one.
    const isGone = room !== undefined && (room.isLeaving || this.#rooms.get(roomId) !== room);
    return isGone && isProblem(result) && result.status === 404 ? await this.#notHere(context.appUuid, roomId) : result;
  }

  async #order(roomId: string, order: RoomCommand, context: CommandContext): Promise<Answer | Problem> {
    // A Room that came from another node would be deleted before its members have left.
    const opening = this.opening(roomId);
    const moving = opening && (await opening);
    if (moving !== undefined) return moving;
    const room = this.#rooms.get(roomId);
    if (room === undefined) return await this.#notHere(context.appUuid, roomId);
    const body =
      order.type === 'delete'
        ? { room_id: roomId, status: 'deleting' }
        : { operation_uuid: context.operationUuid, status: 'in_progress', room_id: roomId };
    const answer = { status: 202, body: order.type === 'record' ? { recording_uuid: order.terms.recordingUuid, ...body } : body };
    if (order.type === 'record')
      return this.#options.recordings.admitting(context.appUuid, async () =>
        this.#stopping ? problems.draining() : room.order(order, context, answer),
      );
    if (order.type !== 'play') return room.order(order, context, answer);
    const playlist = await room.open(() => this.#options.media.openPlaylist(order.urls, context.appUuid));
    if (isProblem(playlist)) return playlist;
    if (!('refused' in playlist)) return room.order(order, context, answer, playlist);
    return problems.source(playlist.refused, order.urls.length);
  }

  /** Says why there is no such Room here: this node may be about to open it, or another has just become its home. */
  async #notHere(appUuid: string, roomId: string): Promise<Problem> {
    return (await this.#homes?.isKnown(appUuid, roomId)) === true ? roomIsMoving : problems.notFound('Room');
  }

  /** Puts a Session of this node into a Room, wherever it is mixed. A Room that is just moving is waited for. */
  async join(roomId: string, request: JoinRequest, context: CommandContext): Promise<Answer | Problem> {
    const { session_uuid: sessionUuid } = request;
    const session = this.#options.session(sessionUuid);
    for (let looks = 1; ; looks++) {
      const result = await this.#join(roomId, request, context);
      if (result !== roomIsMoving || looks === ROOM_MOVING_LOOKS)
        return await this.#unlessMoved(result, session, context.appUuid, sessionUuid);
      await sleep(this.#options.clock, ROOM_MOVING_LOOK_MS);
    }
  }

  /** The answer to a command about a member, whose call may have gone to another node while the command waited. */
  async #unlessMoved(
    answer: Answer | Problem,
    before: SessionActor | undefined,
    appUuid: string,
    sessionUuid: string,
  ): Promise<Answer | Problem> {
    const { session, isLive } = this.#options;
    // Another application's call is looked up like one that is not there, so that the time tells nothing.
    const isHere = before?.state.appUuid === appUuid && session(sessionUuid) === before;
    const isUnknown = isProblem(answer) && answer.status === 404 && !isHere;
    return isUnknown && (await isLive(appUuid, sessionUuid)) ? problems.callMoved() : answer;
  }

  async #join(roomId: string, request: JoinRequest, context: CommandContext): Promise<Answer | Problem> {
    const { session_uuid: sessionUuid, muted, coach } = request;
    const limits = await this.#options.limits(context.appUuid);
    const away = await this.#homes?.away(context.appUuid, roomId, true);
    const session = this.#options.session(sessionUuid);
    const room = this.#rooms.get(roomId);
    if (room === undefined && away === undefined) return await this.#notHere(context.appUuid, roomId);
    if (session === undefined || session.state.appUuid !== context.appUuid) return problems.notFound('Session');
    if (room === undefined) return (await this.#awayJoins?.join(away ?? '', roomId, session, request, context)) ?? NO_ROOM;
    // The members that the rows name have their places before anybody else.
    if (this.span?.opening(roomId) !== undefined) return roomIsMoving;
    const refused = room.seatRefusal({ appUuid: context.appUuid, sessionUuid, coach }, limits?.maxMembersPerRoom ?? 0);
    if (refused !== undefined) return refused;
    const letGo = room.hold(sessionUuid);
    const { voiceActivityEvents } = room.state;
    const coaching = coach === undefined ? {} : { coach };
    const command = { type: 'member_join', roomId, room: room.media.number, muted, voiceActivityEvents, ...coaching } as const;
    const answer = { status: 202, body: { room_id: roomId, session_uuid: sessionUuid, status: 'joining' } };
    const result = await session.command(command, context, undefined, answer);
    const seats = (actor = this.#options.session(sessionUuid)) => [actor?.state.membership, actor?.state.seat];
    const isIn = () => seats().some((seat) => seat?.roomId === roomId) || this.span?.guests.find(room, sessionUuid) !== undefined;
    onceKnown(session, result, isIn, () => room.giveBack(sessionUuid), letGo);
    return result;
  }

  /** Keeps a place for a Session of the application that is being made. */
  async reserve(wish: Omit<SeatWish, 'reserved' | 'coach'> & { readonly muted: boolean }): Promise<Seat | Problem> {
    const { roomId, sessionUuid, appUuid, muted } = wish;
    const limits = await this.#options.limits(appUuid);
    const away = await this.#homes?.away(appUuid, roomId, false);
    const room = this.#rooms.get(roomId);
    if (room === undefined && away !== undefined) {
      const seat = (await this.#awayJoins?.seat(away, { ...wish, reserved: true, coach: undefined })) ?? NO_ROOM;
      return isProblem(seat) ? seat : { roomId, muted, ...seat };
    }
    if (room === undefined) return await this.#notHere(appUuid, roomId);
    if (this.span?.opening(roomId) !== undefined) return roomIsMoving;
    const refused = room.seatRefusal(wish, limits?.maxMembersPerRoom ?? 0);
    if (refused !== undefined) return refused;
    room.reserve(sessionUuid);
    return { roomId, room: room.media.number, muted, voiceActivityEvents: room.state.voiceActivityEvents };
  }

  /** Gives a place back that was reserved, and not taken. */
  release(roomId: string, sessionUuid: string): void {
    const room = this.#rooms.get(roomId);
    if (room?.reserved.includes(sessionUuid) === true) room.giveBack(sessionUuid);
    this.span?.left(sessionUuid, roomId);
  }

  async leave(roomId: string, sessionUuid: string, context: CommandContext): Promise<Answer | Problem> {
    const session = this.#options.session(sessionUuid);
    const isIn = this.#rooms.get(roomId)?.has(sessionUuid) === true || this.span?.has(sessionUuid, roomId) === true;
    const answer = { status: 202, body: { room_id: roomId, session_uuid: sessionUuid, status: 'leaving' } };
    const result = isIn ? await session?.command({ type: 'member_leave', roomId }, context, undefined, answer) : undefined;
    const told = result === undefined || (isProblem(result) && result.status === 404) ? problems.notFound('Member') : result;
    return await this.#unlessMoved(told, session, context.appUuid, sessionUuid);
  }

  members(roomId: string): readonly MemberView[] {
    const room = this.#rooms.get(roomId);
    return room === undefined ? [] : room.joined.map((uuid) => ({ uuid, muted: this.#member(room, uuid).muted }));
  }

  /** What is known of a member, whose Session may be on another node. */
  #member(room: RoomActor, sessionUuid: string): { readonly muted: boolean; readonly talking: boolean } {
    const known = this.#options.session(sessionUuid)?.state.membership ?? this.span?.guests.find(room, sessionUuid);
    return { muted: known?.muted ?? false, talking: known?.talking ?? false };
  }

  /** The sound of a member of another node. */
  guestAudio(roomId: string, sessionUuid: string): RoomMember | undefined {
    const room = this.#rooms.get(roomId);
    return room === undefined ? undefined : this.span?.guests.find(room, sessionUuid)?.media;
  }

  live(): readonly LiveRoom[] {
    return [...this.#rooms.values()]
      .map((room) => {
        const { roomId, appUuid, createdAt } = room.state;
        return {
          roomId,
          appUuid,
          createdAt,
          members: room.joined.map((sessionUuid) => ({ sessionUuid, ...this.#member(room, sessionUuid) })),
        };
      })
      .sort((a, b) => b.createdAt - a.createdAt);
  }

  /** A member of this node sits in the mix of its Room, maybe anew. */
  onSeated(sessionUuid: string, roomId: string): void {
    const room = this.#rooms.get(roomId);
    if (room !== undefined) this.span?.guests.seated(room, sessionUuid);
  }

  /** A Session's membership has changed, durably. */
  onMembership(sessionUuid: string, before: Membership | undefined, after: Membership | undefined): void {
    if (before !== undefined && before.roomId !== after?.roomId) {
      this.#rooms.get(before.roomId)?.giveBack(sessionUuid);
      this.span?.left(sessionUuid, before.roomId);
    }
    // Whatever changes of it once it is in the mix, a member that has left meanwhile is coached no more.
    if (after !== undefined && after.room !== before?.room)
      this.#rooms.get(after.roomId)?.coaches.enters(sessionUuid, after.coach);
    if (after !== undefined && before === undefined) this.#rooms.get(after.roomId)?.take(sessionUuid);
    if (after?.phase === 'joined' && before?.phase !== 'joined') {
      const isBot = this.#options.session(sessionUuid)?.state.type === 'websocket';
      this.#rooms.get(after.roomId)?.confirm(sessionUuid, isBot);
    }
    // It joined a Room that began to be deleted in between.
    const room = after === undefined ? undefined : this.#rooms.get(after.roomId);
    if (after !== undefined && room?.state.phase !== 'open' && this.span?.has(sessionUuid, after.roomId) !== true) {
      this.#options.session(sessionUuid)?.signal({ type: 'room_closed', roomId: after.roomId });
    }
  }

  /**
   * Returns the members of the Room that a Session of this node is in, wherever it is mixed. Undefined: nobody tells
   * now.
   */
  present(roomId: string, sessionUuid: string): Promise<readonly Who[] | undefined> | readonly Who[] {
    if (this.span !== undefined) return this.span.members(roomId, sessionUuid);
    return this.joined(roomId).map((uuid) => ({
      sessionUuid: uuid,
      isBot: this.#options.session(uuid)?.state.type === 'websocket',
    }));
  }

  /** The Sessions that have joined a Room. */
  joined(roomId: string): readonly string[] {
    return this.#rooms.get(roomId)?.joined ?? [];
  }

  /** Finishes the recordings of every Room, for at most `ms`, and takes no more. */
  async stopRecordings(ms: number): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + ms;
    this.#stopping = true;
    let untold = this.#rooms.size;
    // Each of them: a recording may be about to begin.
    for (const room of this.#rooms.values()) void room.shutdown().then(() => untold--);
    const busy = () => untold > 0 || [...this.#rooms.values()].some(({ state }) => state.recording !== undefined);
    while (busy() && clock.now() < until) await sleep(clock, STOPPED_LOOK_MS);
  }

  /** This node ends: Rooms with members on other nodes go there, within so many milliseconds. */
  async bequeath(ms: number): Promise<void> {
    const { clock } = this.#options;
    const until = clock.now() + ms;
    const left = () => [...this.#rooms.values()].filter((room) => this.span?.guests.bequeath(room) === true);
    while (left().length > 0 && clock.now() < until) await sleep(clock, BEQUEST_LOOK_MS);
    for (const room of left()) this.span?.forsake(room);
  }

  /**
   * Takes over the Rooms of processes that are gone, then their Sessions by `takeOver`, each of which keeps its place
   * until its leave is told. Only then the Rooms that were being deleted are deleted. Members on other nodes go on in
   * them. Returns what `takeOver` does.
   */
  async recover(takeOver: () => Promise<number>): Promise<number> {
    let adopted: readonly RoomRow[] = [];
    const opened = async (): Promise<readonly RoomRow[]> => {
      // One that is here may be older than its row: another node had it meanwhile, and is lost.
      adopted = (await this.#adoption.take()).filter(({ roomId, epoch }) => (this.#rooms.get(roomId)?.epoch ?? -1) < epoch);
      for (const { roomId } of adopted) this.#deletedLater.add(roomId);
      return adopted;
    };
    if (this.span !== undefined) await this.span.takeOver(opened);
    else for (const row of await opened()) await this.#takeUp(row);
    try {
      return await takeOver();
    } finally {
      for (const row of adopted) {
        this.#deletedLater.delete(row.roomId);
        void this.#goOnDeleting(row);
      }
    }
  }

  /** Lets the Rooms go that other nodes have by their rows: they told it, and were not heard. */
  async letGoTaken(): Promise<void> {
    const here = [...this.#rooms.values()];
    if (here.length === 0) return;
    const mine = new Set((await this.#options.records.mine()).map(({ roomId }) => roomId));
    for (const room of here) {
      const { roomId } = room.state;
      if (!mine.has(roomId) && this.#rooms.get(roomId) === room) this.#environment.onTaken(room);
    }
  }

  /** Goes on with a Room of another process: its playback has failed, and its deletion is under way again. */
  async #takeUp(row: RoomRow): Promise<RoomActor | undefined> {
    const room = await this.#openRow(row);
    room?.signal({ type: 'recovered', playback: storedPlayback(row) });
    if (room !== undefined && !this.#deletedLater.has(row.roomId)) void this.#goOnDeleting(row);
    return room;
  }

  /** Deletes a Room whose deletion was under way, which is asked for again while the database does not take it. */
  async #goOnDeleting({ roomId, appUuid, deleting }: RoomRow): Promise<void> {
    const context = { appUuid, operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
    while (deleting && this.#rooms.has(roomId)) {
      await this.span?.opening(roomId);
      const result = await this.order(roomId, { type: 'delete' }, context).catch(() => roomIsMoving);
      if (!isProblem(result) || result.problem !== 'unavailable') return;
      await sleep(this.#options.clock, STORE_RETRY_LONGEST_MS);
    }
  }

  /** Opens a Room that another process had. */
  async #openRow(row: RoomRow): Promise<RoomActor | undefined> {
    const { roomId, appUuid, voiceActivityEvents, holdMusicUrl, createdAt, volume, deleting } = row;
    const about = { roomId, appUuid, voiceActivityEvents, holdMusicUrl };
    const room = await this.#open({ ...newRoom(about, createdAt), volume }, row.epoch, deleting);
    if (room !== undefined) this.#count(appUuid, 1);
    // It is this node's, and is opened when a media worker is back.
    else this.#adoption.doubt();
    return room;
  }
}
