/**
 * The members of this node's Rooms whose Sessions are on other nodes. Each has one end of a pipe here, an ordinary seat
 * of the mix: whoever sits there is muted, heard, played to and recorded like any other.
 */
import { type Clock, sleep } from '../../clock.ts';
import { SEAT_CHECK_MS } from '../../limits.ts';
import type { JoinOptions, MediaEngine, MediaNotice, MediaPipe, RoomMember } from '../../media/engine.ts';
import type { RoomNews } from '../ports/leg.ts';
import type { RoomPeers, SeatName, SeatNote, SeatReply, SeatRequest } from '../ports/room-peers.ts';
import { untilStored } from '../until-stored.ts';
import type { RoomActor } from './room-actor.ts';
import { SeatLink } from './seat-link.ts';

interface Guest {
  readonly sessionUuid: string;
  readonly isBot: boolean;
  readonly link: SeatLink;
  muted: boolean;
  talking: boolean;
  /** A note of whether it talks is under way. */
  isTelling: boolean;
  media: MediaPipe | undefined;
  /**
   * What the end of the pipe was made for, by the other end's SSRC, and the answer: the same question may come again.
   */
  opened: { readonly theirs: number; readonly reply: Promise<SeatReply> } | undefined;
}

export interface GuestsOptions {
  readonly nodeId: string;
  readonly peers: RoomPeers;
  readonly clock: Clock;
  readonly media: Pick<MediaEngine, 'openPipe'>;
  /** Returns those of the Sessions that are members of the Room by their rows, with their nodes. */
  membersByRow(roomId: string): Promise<readonly { readonly sessionUuid: string; readonly nodeId: string }[]>;
  /** Tells whether the Session is one of this node, and in the Room. */
  isHere(roomId: string, sessionUuid: string): boolean;
  /** The sound of a member of this node. */
  audioOf(sessionUuid: string): RoomMember | undefined;
  /** A guest tells what the bots in the Room are to hear. */
  onNews(roomId: string, sessionUuid: string, news: RoomNews): void;
}

type Take = Extract<SeatRequest, { readonly type: 'take' }>;
type Open = Extract<SeatRequest, { readonly type: 'open' }>;

export class Guests {
  readonly #options: GuestsOptions;
  /** The guests by Room, then by Session. */
  readonly #guests = new Map<RoomActor, Map<string, Guest>>();
  /** The guest that each Room of this node, which ends, was left to. */
  readonly #heirs = new WeakMap<RoomActor, Guest>();
  #isChecking = false;

  constructor(options: GuestsOptions) {
    this.#options = options;
  }

  find(room: RoomActor, sessionUuid: string): Readonly<Pick<Guest, 'muted' | 'talking' | 'media' | 'isBot'>> | undefined {
    return this.#guests.get(room)?.get(sessionUuid);
  }

  of(room: RoomActor): readonly Guest[] {
    return [...(this.#guests.get(room)?.values() ?? [])];
  }

  /** Takes a seat in a Room that has one. `mostMembers` is the application's cap. */
  take(room: RoomActor, request: Take, from: string, mostMembers: number): SeatReply {
    const { sessionUuid, reserved, isBot } = request;
    const problem = room.seatRefusal(request, mostMembers);
    if (problem !== undefined) return { type: 'refused', problem };
    const isNew = !room.has(sessionUuid);
    this.#add(room, request, from, isBot);
    if (isNew && reserved) room.reserve(sessionUuid);
    else if (isNew) room.take(sessionUuid);
    return { type: 'taken', voiceActivityEvents: room.state.voiceActivityEvents, epoch: room.epoch };
  }

  #add(room: RoomActor, { roomId, sessionUuid, link: id }: SeatName, nodeId: string, isBot: boolean): Guest {
    const { peers, clock } = this.#options;
    const guests = this.#guests.get(room) ?? new Map<string, Guest>();
    this.#guests.set(room, guests);
    const before = guests.get(sessionUuid);
    if (before?.link.name.link === id) return before;
    // The Session's node has begun anew: what it had before is over.
    before?.link.close();
    void before?.media?.close();
    const name = { roomId, sessionUuid, link: id };
    const link: SeatLink = new SeatLink({ peers, clock, nodeId, name, isKnown: true, onGone: () => this.#gone(room, link) });
    const heard = { muted: false, talking: false, isTelling: false };
    const guest = { sessionUuid, isBot, link, ...heard, media: undefined, opened: undefined };
    guests.set(sessionUuid, guest);
    void this.#check();
    return guest;
  }

  /** Makes this node's end of the pipe and seats it in the mix. A question that comes again gets the same answer. */
  async open(room: RoomActor, request: Open, from: string, mostMembers: number): Promise<SeatReply> {
    const { sessionUuid, link, end, isJoined, isBot } = request;
    if (room.state.appUuid !== request.appUuid) return { type: 'gone' };
    if (!isJoined && this.#guests.get(room)?.get(sessionUuid)?.link.name.link !== link) return { type: 'gone' };
    const isNew = !room.has(sessionUuid);
    if (isNew && room.places.length >= mostMembers) return { type: 'gone' };
    const guest = this.#add(room, request, from, isBot);
    if (isNew) room.take(sessionUuid);
    // It was expected, and not there when the others were told.
    if (room.state.phase !== 'open') void guest.link.send({ note: 'closed' });
    if (guest.opened?.theirs !== end.ssrc) guest.opened = { theirs: end.ssrc, reply: this.#open(room, guest, request) };
    return await guest.opened.reply;
  }

  async #open(room: RoomActor, guest: Guest, request: Open): Promise<SeatReply> {
    const { sessionUuid, muted, volumes, coach, codec, end, isJoined, isBot } = request;
    const media: MediaPipe | undefined = await this.#options.media.openPipe({
      host: this.#options.peers.pipeHost,
      atOnce: false,
      notify: (notice) => {
        if (guest.media === media) this.#hear(room, guest, notice);
      },
      // Silence is heard as silence; whoever has died is buried.
      onSilent: () => {},
    });
    if (media === undefined) return { type: 'gone' };
    // The Session's node may have left, or begun anew, while the end was made.
    if (this.#guests.get(room)?.get(sessionUuid) !== guest || guest.opened?.theirs !== end.ssrc) {
      void media.close();
      return { type: 'gone' };
    }
    const { media: before } = guest;
    guest.media = media;
    guest.muted = muted;
    // The end of before is listened to no more, and the new one tells of what is said from here on.
    if (guest.talking) this.#hear(room, guest, { type: 'voice', talking: false });
    if (room.reserved.includes(sessionUuid)) room.take(sessionUuid);
    if (isJoined) room.confirm(sessionUuid, isBot);
    media.connect(end, codec);
    // A member that has left since is coached no more by a pipe that is made anew.
    if (before === undefined) room.coaches.enters(sessionUuid, coach);
    const isCoached = coach !== undefined && room.coaches.of(coach).includes(sessionUuid);
    const coached = isCoached ? this.#audio(room, coach) : undefined;
    const terms: JoinOptions = {
      muted,
      fromVolumePercent: volumes?.from_member ?? 100,
      toVolumePercent: volumes?.to_member ?? 100,
      ...(coach === undefined ? {} : { coach: { of: coached } }),
    };
    media.join(room.media, terms);
    void before?.close();
    return { type: 'open', end: media.end, epoch: room.epoch };
  }

  /** The sound of a member, of this node or another. */
  #audio(room: RoomActor, sessionUuid: string): RoomMember | undefined {
    return this.find(room, sessionUuid)?.media ?? this.#options.audioOf(sessionUuid);
  }

  /** A member sits in the mix, maybe anew: its coaches are heard by it. */
  seated(room: RoomActor, sessionUuid: string): void {
    const audio = this.#audio(room, sessionUuid);
    for (const coach of room.coaches.of(sessionUuid)) this.#audio(room, coach)?.coach(audio);
  }

  #hear(room: RoomActor, guest: Guest, notice: MediaNotice): void {
    const { sessionUuid, isBot, link } = guest;
    if (notice.type === 'room.joined') {
      room.confirm(sessionUuid, isBot);
      this.seated(room, sessionUuid);
      void link.send({ note: 'joined' });
    } else if (notice.type === 'voice') {
      guest.talking = notice.talking;
      void this.#tellTalking(guest);
    } else if (notice.type === 'room.left' || notice.type === 'media.lost') {
      void guest.media?.close();
      guest.media = undefined;
      void link.send({ note: 'lost' });
    }
  }

  /** Tells whether the guest talks, again only once that has arrived: NATS may be away for long. */
  async #tellTalking(guest: Guest): Promise<void> {
    if (guest.isTelling) return;
    guest.isTelling = true;
    let isTaken = true;
    for (let told = !guest.talking; isTaken && told !== guest.talking; ) {
      told = guest.talking;
      isTaken = await guest.link.send({ note: 'talking', talking: told });
    }
    guest.isTelling = false;
  }

  /** Takes a note of a Session's node. */
  note(room: RoomActor, name: SeatName, number: number, note: SeatNote): SeatReply {
    const guest = this.#guests.get(room)?.get(name.sessionUuid);
    if (guest === undefined || guest.link.name.link !== name.link) return { type: 'gone' };
    const verdict = guest.link.judge(number);
    if (verdict !== 'take') return { type: verdict === 'known' ? 'ok' : 'gone' };
    if (note.note === 'muted') {
      guest.muted = note.muted;
      guest.talking = guest.talking && !note.muted;
      guest.media?.setMuted(note.muted);
    } else if (note.note === 'volume') {
      if (note.from_member !== undefined) guest.media?.setVolume('from_member', note.from_member);
      if (note.to_member !== undefined) guest.media?.setVolume('to_member', note.to_member);
    } else if (note.note === 'news') this.#options.onNews(room.state.roomId, name.sessionUuid, note.news);
    else if (note.note === 'left') this.#remove(room, guest);
    return { type: 'ok' };
  }

  #gone(room: RoomActor, link: SeatLink): void {
    const guest = this.#guests.get(room)?.get(link.name.sessionUuid);
    // Whoever is on a dead node, or is expected and has not come, has left once its row says so.
    const isKnown = !isAwaited({ link }) && !this.#options.peers.isDead(link.nodeId);
    if (guest?.link === link && isKnown) void this.#lost(room, guest);
  }

  /**
   * A node does not know a seat of its own. While the Session's row says that it is in the Room, its place stays: it
   * comes to the seat by another link, maybe from another node, or tells its end.
   */
  async #lost(room: RoomActor, guest: Guest): Promise<void> {
    const { clock, membersByRow } = this.#options;
    const { sessionUuid } = guest;
    const isHere = () => this.#guests.get(room)?.get(sessionUuid) === guest;
    const rows = await untilStored(clock, () => membersByRow(room.state.roomId), isHere);
    if (rows === undefined || !isHere()) return;
    const row = rows.find((each) => each.sessionUuid === sessionUuid);
    if (row === undefined) this.#remove(room, guest);
    else this.#await(room, sessionUuid, row.nodeId);
  }

  #remove(room: RoomActor, guest: Guest): void {
    const { media } = guest;
    guest.media = undefined;
    media?.leave();
    void media?.close();
    this.release(room, guest.sessionUuid);
    // A node that has not heard that the call goes on here tells of itself alone.
    if (!this.#options.isHere(room.state.roomId, guest.sessionUuid)) room.giveBack(guest.sessionUuid);
  }

  /** Tells every guest of a Room that it is being deleted. */
  dismiss(room: RoomActor): void {
    for (const { link } of this.of(room)) void link.send({ note: 'closed' });
  }

  /**
   * This node ends: a node that has a member of the Room is to take it, and that of the next one where that member has
   * left. False: nobody has one.
   */
  bequeath(room: RoomActor): boolean {
    const { peers } = this.#options;
    const heir = this.of(room).find(({ link, media }) => media !== undefined && !peers.isDead(link.nodeId));
    if (heir === undefined) return false;
    if (this.#heirs.get(room) !== heir) void heir.link.send({ note: 'inherit' });
    this.#heirs.set(room, heir);
    return true;
  }

  /** Tells the bots among the guests of a Room, but for the one that it is about. */
  tellBots(room: RoomActor, sessionUuid: string, news: RoomNews): void {
    for (const { isBot, link, sessionUuid: hearer } of this.of(room))
      if (isBot && hearer !== sessionUuid) void link.send({ note: 'news', news });
  }

  /** Keeps a place for who was in a Room that was taken over, until its node comes to it or is dead. */
  expect(room: RoomActor, sessionUuid: string, nodeId: string): void {
    // Its node was quicker, and its end of the pipe is being made.
    if (this.find(room, sessionUuid) !== undefined) return;
    this.#await(room, sessionUuid, nodeId);
    room.take(sessionUuid);
    room.confirm(sessionUuid, false);
  }

  #await(room: RoomActor, sessionUuid: string, nodeId: string): void {
    this.#add(room, { roomId: room.state.roomId, sessionUuid, link: '' }, nodeId, false);
  }

  /** A guest's Session goes on at this node: its place stays, and what led elsewhere is given back. */
  release(room: RoomActor, sessionUuid: string): void {
    const guests = this.#guests.get(room);
    const guest = guests?.get(sessionUuid);
    guests?.delete(sessionUuid);
    if (guests?.size === 0) this.#guests.delete(room);
    guest?.link.close();
    void guest?.media?.close();
    if (guest !== undefined) guest.media = undefined;
  }

  /** The Room is no Room of this node any more. */
  forget(room: RoomActor): void {
    for (const { link, media } of this.of(room)) {
      link.close();
      void media?.close();
    }
    this.#guests.delete(room);
  }

  /** Gives back the seats of guests that are gone without a word, as long as there are guests. */
  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    while (this.#guests.size > 0) {
      await sleep(this.#options.clock, SEAT_CHECK_MS);
      for (const [room, guests] of [...this.#guests]) await this.#checkRoom(room, [...guests.values()]).catch(() => {});
    }
    this.#isChecking = false;
  }

  async #checkRoom(room: RoomActor, guests: readonly Guest[]): Promise<void> {
    const { nodeId: here, peers, membersByRow } = this.#options;
    const nodes = new Map<string, Guest[]>();
    // Whoever has not come may be at a node that did not hear where the Room is.
    if (guests.some(isAwaited)) peers.tellHome({ roomId: room.state.roomId, nodeId: here, epoch: room.epoch });
    for (const guest of guests) nodes.set(guest.link.nodeId, [...(nodes.get(guest.link.nodeId) ?? []), guest]);
    for (const [nodeId, theirs] of nodes) {
      const isDead = peers.isDead(nodeId);
      const known = theirs.filter((guest) => !isAwaited(guest));
      if (isDead || known.length < theirs.length) {
        const rows = await membersByRow(room.state.roomId);
        const still = new Set(rows.map((row) => row.sessionUuid));
        const unknown = isDead ? theirs : theirs.filter(isAwaited);
        for (const guest of unknown) if (!still.has(guest.sessionUuid)) this.#removeIfSame(room, guest);
      }
      if (isDead || known.length === 0) continue;
      const reply = await peers.ask(nodeId, { type: 'check', seats: known.map(({ link }) => link.name) });
      if (reply?.type !== 'absent') continue;
      for (const guest of known) if (reply.links.includes(guest.link.name.link)) await this.#lost(room, guest);
    }
  }

  #removeIfSame(room: RoomActor, guest: Guest): void {
    if (this.#guests.get(room)?.get(guest.sessionUuid) === guest) this.#remove(room, guest);
  }
}

/** Tells whether a guest has a place that its row names, and has not come to it yet. */
const isAwaited = ({ link }: Pick<Guest, 'link'>): boolean => link.name.link === '';
