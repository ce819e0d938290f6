/** The live Rooms of this node, and the way in for every command about them. */
import { timestamp } from '../../clock.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import type { ListedRoom, RoomStore } from '../../database/rooms.ts';
import { newUuid } from '../../id.ts';
import { DRAINING_RETRY_SEC, LIST_MATCHED_MAX_ITEMS } from '../../limits.ts';
import type { Membership, Seat } from '../../machine/room/membership.ts';
import { newRoom, playbackStatus, type RoomCommand } from '../../machine/room/room.ts';
import type { MediaEngine, RoomNotice } from '../../media/engine.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { CreateRequest, JoinRequest, LiveRoom, MemberView, Rooms, RoomView } from '../ports/rooms.ts';
import type { Answer, CommandContext } from '../ports/sessions.ts';
import type { SessionActor } from '../session/session-actor.ts';
import { RoomActor, type RoomEnvironment, type StoredPlayback } from './room-actor.ts';

const MEDIA_RETRY_SEC = 5;
const MOVING_RETRY_SEC = 1;
const APART = 'The Room is mixed by another node than the one that has the Session; connect or dial it `near` the Room';
const STOPPED_LOOK_MS = 20;

interface RoomLimits {
  readonly maxRooms: number;
  readonly maxMembersPerRoom: number;
}

/** The homes of the Rooms of a cluster. */
interface RoomHomes extends Pick<RoomStore, 'home' | 'settle' | 'release' | 'make' | 'unmake' | 'list'> {
  /** Asks the home of a Room to give it up. */
  askRelease(nodeId: string, roomId: string): Promise<boolean>;
}

export interface RoomRegistryOptions extends Omit<RoomEnvironment, 'dismiss' | 'onDeleted'> {
  readonly media: Pick<MediaEngine, 'openRoom' | 'openPlaylist'>;
  readonly records: Pick<RoomStore, 'adopt'>;
  /** How the Rooms of a cluster get their homes; undefined where this process has them all. */
  readonly homes?: RoomHomes | undefined;
  limits(appUuid: string): Promise<RoomLimits | undefined>;
  /** A live Session of this node. */
  session(sessionUuid: string): SessionActor | undefined;
}

export class RoomRegistry implements Rooms {
  readonly #rooms = new Map<string, RoomActor>();
  /** Live Rooms of each application, those being torn down and those being made included. */
  readonly #counts = new Map<string, number>();
  readonly #options: RoomRegistryOptions;
  readonly #environment: RoomEnvironment;
  readonly #settling = new Map<string, Promise<boolean>>();
  #stopping = false;

  constructor(options: RoomRegistryOptions) {
    this.#options = options;
    this.#environment = {
      ...options,
      dismiss: (room) => {
        const input = { type: 'room_closed', roomId: room.state.roomId } as const;
        const { reserved } = room;
        for (const sessionUuid of room.places) options.session(sessionUuid)?.signal(input);
        for (const sessionUuid of reserved) room.giveBack(sessionUuid);
      },
      onDeleted: (roomId) => this.#forget(roomId),
    };
  }

  get size(): number {
    return this.#rooms.size;
  }

  find(roomId: string): RoomActor | undefined {
    return this.#rooms.get(roomId);
  }

  async create(request: CreateRequest, context: CommandContext): Promise<Answer | Problem> {
    const { appUuid } = context;
    const { homes, clock } = this.#options;
    const limits = await this.#options.limits(appUuid);
    const cap = limits?.maxRooms ?? 0;
    // No await between the question and the place: the cap holds however many are asked for at once.
    if (homes === undefined && (this.#counts.get(appUuid) ?? 0) >= cap) return tooMany();
    this.#count(appUuid, 1);
    const { voice_activity_events: voiceActivityEvents, hold_music_url: holdMusicUrl = '' } = request;
    const about = { roomId: newUuid(), appUuid, voiceActivityEvents, holdMusicUrl };
    const state = newRoom(about, clock.now());
    if ((await homes?.make(state, cap)) === false) {
      this.#count(appUuid, -1);
      return tooMany();
    }
    const room = await this.#open(state);
    if (room === undefined) {
      this.#count(appUuid, -1);
      await homes?.unmake(about.roomId);
      return problems.unavailable('No media worker is available.', MEDIA_RETRY_SEC);
    }
    const result = await room.begin(context, { status: 201, body: { ...view(room) } });
    if (isProblem(result)) {
      void room.media.close();
      this.#forget(about.roomId);
      await homes?.unmake(about.roomId).catch(() => {});
    }
    return result;
  }

  async #open(state: ReturnType<typeof newRoom>, epoch = 0): Promise<RoomActor | undefined> {
    let hear: (notice: RoomNotice) => void = () => {};
    const media = await this.#options.media.openRoom((notice) => hear(notice));
    if (media === undefined) return undefined;
    const room = new RoomActor(state, media, this.#environment, epoch);
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
    this.#count(room.state.appUuid, -1);
  }

  list(appUuid: string): readonly RoomView[] | Problem | Promise<readonly RoomView[] | Problem> {
    const { homes } = this.#options;
    if (homes !== undefined) return this.#listAll(homes, appUuid);
    const own = [...this.#rooms.values()].filter((room) => room.state.appUuid === appUuid);
    if (own.length > LIST_MATCHED_MAX_ITEMS) return problems.tooManyResults();
    return own.sort((a, b) => b.state.createdAt - a.state.createdAt).map(view);
  }

  /** The Rooms of all nodes. Those of this one are told as they are now. */
  async #listAll(homes: RoomHomes, appUuid: string): Promise<readonly RoomView[] | Problem> {
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

  isHere(roomId: string): boolean {
    return this.#rooms.has(roomId);
  }

  async bring(appUuid: string, roomId: string): Promise<Problem | undefined> {
    const { homes } = this.#options;
    if (homes === undefined || this.#rooms.has(roomId)) return undefined;
    const home = await homes.home(appUuid, roomId);
    // The route tells that there is no such Room.
    if (home === undefined) return undefined;
    // Whatever it answers: a Room that was given up has no home.
    if (home !== null) await homes.askRelease(home, roomId);
    return (await this.#settle(roomId)) ? undefined : problems.conflict(APART);
  }

  /** Takes a Room that has no home. Two that ask at once get the same one. */
  async #settle(roomId: string): Promise<boolean> {
    const under = this.#settling.get(roomId) ?? this.#takeHome(roomId).finally(() => this.#settling.delete(roomId));
    this.#settling.set(roomId, under);
    return await under;
  }

  async #takeHome(roomId: string): Promise<boolean> {
    const row = await this.#options.homes?.settle(roomId);
    if (row === undefined) return this.#rooms.has(roomId);
    return (await this.#openRow(row)) !== undefined;
  }

  /** Gives a Room up to the node of its first member. False: somebody is in it, or something goes on in it. */
  async giveUp(roomId: string): Promise<boolean> {
    const { homes } = this.#options;
    const room = this.#rooms.get(roomId);
    if (homes === undefined || room === undefined) return false;
    const { phase, playback, recording } = room.state;
    if (room.places.length > 0 || phase !== 'open' || playback !== undefined || recording !== undefined || room.isLeaving)
      return false;
    room.isLeaving = true;
    const released = await homes.release(roomId, room.epoch).catch(() => false);
    if (released) room.abandon();
    else room.isLeaving = false;
    return released;
  }

  async order(roomId: string, order: RoomCommand, context: CommandContext): Promise<Answer | Problem> {
    const room = this.#rooms.get(roomId);
    if (room === undefined) return problems.notFound('Room');
    const body =
      order.type === 'delete'
        ? { room_id: roomId, status: 'deleting' }
        : { operation_uuid: context.operationUuid, status: 'in_progress', room_id: roomId };
    const answer = { status: 202, body: order.type === 'record' ? { recording_uuid: order.terms.recordingUuid, ...body } : body };
    const unable = order.type === 'record' ? await this.#options.recordings.refusal() : undefined;
    if (unable !== undefined) return unable;
    if (order.type === 'record' && this.#stopping)
      return problems.unavailable('The platform is shutting down.', DRAINING_RETRY_SEC);
    if (order.type !== 'play') return room.order(order, context, answer);
    const refused = room.refusal('play');
    if (refused !== undefined) return refused;
    const playlist = await this.#options.media.openPlaylist(order.urls);
    if (!('refused' in playlist)) return room.order(order, context, answer, playlist);
    return problems.source(playlist.refused, order.urls.length);
  }

  async join(roomId: string, request: JoinRequest, context: CommandContext): Promise<Answer | Problem> {
    const { session_uuid: sessionUuid, muted, coach } = request;
    const limits = await this.#options.limits(context.appUuid);
    const session = this.#options.session(sessionUuid);
    const room = this.#rooms.get(roomId);
    if (room === undefined) return problems.notFound('Room');
    if (session === undefined || session.state.appUuid !== context.appUuid) return problems.notFound('Session');
    if (room.state.phase !== 'open') return problems.conflict('Room is being deleted');
    if (room.isLeaving) return problems.unavailable('The Room is moving to another node.', MOVING_RETRY_SEC);
    const isNew = !room.has(sessionUuid);
    if (coach !== undefined && (coach === sessionUuid || !room.joined.includes(coach)))
      return problems.conflict('The Session to coach is not a member of the room');
    if (isNew && room.places.length >= (limits?.maxMembersPerRoom ?? 0)) return problems.roomFull();
    if (isNew) room.take(sessionUuid);
    const { voiceActivityEvents } = room.state;
    const coaching = coach === undefined ? {} : { coach };
    const command = { type: 'member_join', roomId, room: room.media.number, muted, voiceActivityEvents, ...coaching } as const;
    const answer = { status: 202, body: { room_id: roomId, session_uuid: sessionUuid, status: 'joining' } };
    const result = await session.command(command, context, undefined, answer);
    // Refused, or ended meanwhile: the place is nobody's.
    if (isNew && session.state.membership?.roomId !== roomId) room.giveBack(sessionUuid);
    return result;
  }

  /** Keeps a place for a Session of the application that is being made. */
  async reserve(roomId: string, sessionUuid: string, appUuid: string, muted: boolean): Promise<Seat | Problem> {
    const limits = await this.#options.limits(appUuid);
    const room = this.#rooms.get(roomId);
    if (room === undefined || room.state.appUuid !== appUuid) return problems.notFound('Room');
    if (room.state.phase !== 'open') return problems.conflict('Room is being deleted');
    if (room.isLeaving) return problems.unavailable('The Room is moving to another node.', MOVING_RETRY_SEC);
    if (room.places.length >= (limits?.maxMembersPerRoom ?? 0)) return problems.roomFull();
    room.reserve(sessionUuid);
    return { roomId, room: room.media.number, muted, voiceActivityEvents: room.state.voiceActivityEvents };
  }

  /** Gives a place back that was reserved, and not taken. */
  release(roomId: string, sessionUuid: string): void {
    const room = this.#rooms.get(roomId);
    if (room?.reserved.includes(sessionUuid) === true) room.giveBack(sessionUuid);
  }

  async leave(roomId: string, sessionUuid: string, context: CommandContext): Promise<Answer | Problem> {
    const session = this.#options.session(sessionUuid);
    if (session === undefined || !this.#rooms.get(roomId)?.has(sessionUuid)) return problems.notFound('Member');
    const answer = { status: 202, body: { room_id: roomId, session_uuid: sessionUuid, status: 'leaving' } };
    const result = await session.command({ type: 'member_leave', roomId }, context, undefined, answer);
    return isProblem(result) && result.status === 404 ? problems.notFound('Member') : result;
  }

  members(roomId: string): readonly MemberView[] {
    const joined = this.#rooms.get(roomId)?.joined ?? [];
    return joined.map((uuid) => ({ uuid, muted: this.#options.session(uuid)?.state.membership?.muted ?? false }));
  }

  live(): readonly LiveRoom[] {
    const memberOf = (sessionUuid: string) => {
      const membership = this.#options.session(sessionUuid)?.state.membership;
      return { sessionUuid, muted: membership?.muted ?? false, talking: membership?.talking ?? false };
    };
    return [...this.#rooms.values()]
      .map((room) => {
        const { roomId, appUuid, createdAt } = room.state;
        return { roomId, appUuid, createdAt, members: room.joined.map(memberOf) };
      })
      .sort((a, b) => b.createdAt - a.createdAt);
  }

  /** A Session's membership has changed, durably. */
  onMembership(sessionUuid: string, before: Membership | undefined, after: Membership | undefined): void {
    if (before !== undefined && before.roomId !== after?.roomId) this.#rooms.get(before.roomId)?.giveBack(sessionUuid);
    if (after !== undefined && before === undefined) this.#rooms.get(after.roomId)?.take(sessionUuid);
    if (after?.phase === 'joined' && before?.phase !== 'joined') {
      const isBot = this.#options.session(sessionUuid)?.state.type === 'websocket';
      this.#rooms.get(after.roomId)?.confirm(sessionUuid, isBot);
    }
    // It joined a Room that began to be deleted in between.
    const room = after === undefined ? undefined : this.#rooms.get(after.roomId);
    if (after !== undefined && room?.state.phase !== 'open') {
      this.#options.session(sessionUuid)?.signal({ type: 'room_closed', roomId: after.roomId });
    }
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
    for (const room of this.#rooms.values())
      void room.shutdown().then(() => {
        untold -= 1;
      });
    const busy = () => untold > 0 || [...this.#rooms.values()].some(({ state }) => state.recording !== undefined);
    while (busy() && clock.now() < until) await new Promise<void>((resolve) => clock.at(clock.now() + STOPPED_LOOK_MS, resolve));
  }

  /**
   * Takes over the Rooms of processes that are gone: they are empty now. Those that were being deleted are deleted.
   */
  async recover(): Promise<number> {
    const rows = await this.#options.records.adopt();
    for (const row of rows) {
      const { roomId, appUuid, deleting } = row;
      const room = await this.#openRow(row);
      if (room === undefined) continue;
      room.signal({ type: 'recovered', playback: storedPlayback(row) });
      if (deleting)
        void this.order(
          roomId,
          { type: 'delete' },
          { appUuid, operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' },
        );
    }
    return rows.length;
  }

  /** Opens a Room that another process had. */
  async #openRow(row: RoomRow): Promise<RoomActor | undefined> {
    const { roomId, appUuid, voiceActivityEvents, holdMusicUrl, createdAt, volume } = row;
    const about = { roomId, appUuid, voiceActivityEvents, holdMusicUrl };
    const room = await this.#open({ ...newRoom(about, createdAt), volume }, row.epoch);
    if (room !== undefined) this.#count(appUuid, 1);
    return room;
  }
}

const tooMany = () => problems.forbidden('Maximum number of rooms reached for this application');

const storedPlayback = ({ playback }: Pick<RoomRow, 'playback'>): StoredPlayback | undefined =>
  playback === '' ? undefined : JSON.parse(playback);

/** A Room of another node, as its row tells it. */
function rowView(row: ListedRoom): RoomView {
  const heard = storedPlayback(row);
  return {
    room_id: row.roomId,
    created_at: timestamp(row.createdAt),
    member_count: row.members,
    playback_status: heard?.status ?? 'stopped',
    playback_operation_uuid: heard?.operationUuid ?? '',
    playback_urls: heard?.urls ?? [],
    playback_volume: row.volume ?? 0,
    voice_activity_events: row.voiceActivityEvents,
  };
}

const view = (room: RoomActor): RoomView => {
  const { state } = room;
  // The operation and its sources are shown from the confirmation on (contract §4).
  const heard = state.playback?.phase === 'starting' ? undefined : state.playback;
  return {
    room_id: state.roomId,
    created_at: timestamp(state.createdAt),
    member_count: room.joined.length,
    playback_status: playbackStatus(state),
    playback_operation_uuid: heard?.operationUuid ?? '',
    playback_urls: heard?.urls ?? [],
    playback_volume: state.volume ?? 0,
    voice_activity_events: state.voiceActivityEvents,
  };
};
