/**
 * The seat of one Session of this node in a Room that another node mixes. The Session's leg and the pipe are alone in a
 * local room, so that packets are passed on as they come; everything of the Room acts at the pipe's other end.
 *
 *   taken ─join→ opening ─the home has its end→ open ─heard there and here→ joined ─left→ closed
 */
import { type Clock, sleep } from '../../clock.ts';
import { newUuid } from '../../id.ts';
import { HOME_LOOK_MS, HOME_SEARCH_TRIES, SEAT_NOTE_RETRY_MS } from '../../limits.ts';
import { judgeHome, newHomeWatch } from '../../machine/room/home-watch.ts';
import type { LegAudio, MediaEngine, MediaNotice, MediaPipe, MediaRoom, PipeCodec } from '../../media/engine.ts';
import {
  L16_PROTOCOL,
  type NewHome,
  type RoomPeers,
  type SeatName,
  type SeatNote,
  type SeatReply,
  type SeatTerms,
} from '../ports/room-peers.ts';
import { type SeatGone, SeatLink } from './seat-link.ts';

export type HomeLost = 'silent' | 'moved' | 'inherit';

/** What a Session hears of its seat. */
export interface PipeListener {
  notice(notice: Extract<MediaNotice, { readonly type: 'room.joined' | 'room.left' | 'voice' }>): void;
  /** The Room is being deleted. */
  closed(): void;
  news(news: Extract<SeatNote, { readonly note: 'news' }>['news']): void;
  /** That home answers, and its audio does not come. */
  unheard(home: string): void;
  /** That home is lost, or is no home of the Room any more, or is about to end. */
  homeLost(why: HomeLost, home: Pick<NewHome, 'nodeId' | 'epoch'>): void;
}

export interface PipeOptions {
  readonly peers: RoomPeers;
  readonly clock: Clock;
  readonly media: Pick<MediaEngine, 'openPipe' | 'openRoom'>;
  readonly roomId: string;
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly isBot: boolean;
  /** The number that the Room's notices have for the Session, which no room of the media plane has. */
  readonly number: number;
  readonly listener: PipeListener;
}

/** Requests for the home's end of a pipe that go without an answer, before the home is taken for lost. */
const OPEN_TRIES = 4;

export class Pipe {
  readonly #options: PipeOptions;
  #link: SeatLink;
  /** The epoch of the Room at its home. */
  epoch = 0;
  /** The epoch is what a home has told. Before, its answer to the first question for the seat is awaited. */
  isEpochKnown = false;
  /** The home has given it the seat. */
  isPromised = false;
  #audio: LegAudio | undefined;
  /** Mute and volumes were set to these last: a pipe that is made anew begins with them. */
  #terms: SeatTerms | undefined;
  #media: MediaPipe | undefined;
  #local: MediaRoom | undefined;
  /** Counts what makes an opening that is under way void. */
  #attempt = 0;
  #isHeardThere = false;
  #isHeardHere = false;
  #isJoined = false;
  /** The Room came from another home with this member. */
  #isMove = false;
  /** The epoch of the home at which the Session was heard in the mix last. Undefined: never yet. */
  heardAt: number | undefined;
  /** The attempt whose silence is being looked into. */
  #watched: number | undefined;
  #isClosed = false;

  constructor(options: PipeOptions, home: string) {
    this.#options = options;
    this.#link = this.#linkTo(home);
  }

  get home(): string {
    return this.#link.nodeId;
  }

  get name(): SeatName {
    return this.#link.name;
  }

  get number(): number {
    return this.#options.number;
  }

  get sessionUuid(): string {
    return this.#options.sessionUuid;
  }

  #linkTo(nodeId: string): SeatLink {
    const { peers, clock, roomId, sessionUuid } = this.#options;
    const name = { roomId, sessionUuid, link: newUuid() };
    return new SeatLink({ peers, clock, nodeId, name, isKnown: false, onGone: (why) => this.#onGone(why) });
  }

  /** Asks the home for the seat. */
  async take(reserved: boolean, coach: string | undefined): Promise<SeatReply | undefined> {
    const { peers, appUuid, isBot } = this.#options;
    const coaching = coach === undefined ? {} : { coach };
    const link = this.#link;
    const reply = await peers.ask(this.home, { type: 'take', ...this.name, appUuid, isBot, reserved, ...coaching });
    if (reply?.type !== 'taken') return reply;
    if (link === this.#link) {
      this.epoch = reply.epoch;
      this.isEpochKnown = true;
      this.isPromised = true;
    }
    link.known();
    return reply;
  }

  /** Asks the next home for the seat of a Session that is not in the Room yet, until there is an answer. */
  async takeAgain(reserved: boolean): Promise<void> {
    const attempt = this.#attempt;
    for (let tries = 0; tries < HOME_SEARCH_TRIES && !this.#isClosed && attempt === this.#attempt; tries++) {
      const reply = await this.take(reserved, undefined);
      if (reply !== undefined && reply.type !== 'opening') return;
      await sleep(this.#options.clock, SEAT_NOTE_RETRY_MS);
    }
  }

  /** The Room has another home: the next `join` goes there. `isMember`: the Session has been in the Room. */
  retarget(nodeId: string, epoch: number, isMember: boolean): void {
    this.#link.close();
    this.#link = this.#linkTo(nodeId);
    this.#attempt++;
    this.epoch = epoch;
    this.isEpochKnown = true;
    this.isPromised = false;
    this.#isJoined = isMember;
    this.#isMove = true;
    this.#isHeardThere = false;
    this.#isHeardHere = false;
  }

  /** Puts the leg into the Room through the home's end of the pipe. */
  join(audio: LegAudio, terms: SeatTerms): void {
    this.#audio = audio;
    this.#terms = terms;
    void this.#open(audio, terms, ++this.#attempt);
  }

  async #open(audio: LegAudio, terms: SeatTerms, attempt: number): Promise<void> {
    const { media: engine, peers } = this.#options;
    const isVoid = () => this.#isClosed || attempt !== this.#attempt;
    const workerLost = () => {
      if (!isVoid()) this.join(audio, this.#terms ?? terms);
    };
    const local = await engine.openRoom(({ type }) => {
      if (type === 'room.lost') workerLost();
    });
    const media: MediaPipe | undefined = await engine.openPipe({
      host: peers.pipeHost,
      atOnce: true,
      notify: ({ type }) => {
        if (type === 'room.joined' && !isVoid()) this.#heard({ here: true });
        else if (type === 'media.lost') workerLost();
      },
      onSilent: () => {
        if (!isVoid()) void this.#watch(attempt);
      },
    });
    const giveUp = () => {
      void media?.close();
      void local?.close();
    };
    if (local === undefined || media === undefined) {
      giveUp();
      if (!isVoid()) this.#lost();
      return;
    }
    const codec = peers.protocol(this.home) < L16_PROTOCOL ? withoutL16(audio.pipeCodec) : audio.pipeCodec;
    const reply = isVoid() ? undefined : await this.#askEnd(media, codec, terms, isVoid);
    if (isVoid() || reply?.type !== 'open') {
      giveUp();
      if (isVoid()) return;
      if (reply === undefined) this.#homeLost('silent');
      else if (reply.type === 'moved') this.#homeLost('moved');
      else this.#lost();
      return;
    }
    this.epoch = reply.epoch;
    this.#link.known();
    if (this.#terms !== undefined) this.#tellChanged(terms, this.#terms);
    media.connect(reply.end, codec);
    const before = [this.#media, this.#local] as const;
    this.#media = media;
    this.#local = local;
    const plain = { muted: false, fromVolumePercent: 100, toVolumePercent: 100 };
    audio.join(local, plain);
    media.join(local, plain);
    release(...before);
  }

  /** What was set while the home made its end may have reached it before the end was there. */
  #tellChanged(told: SeatTerms, { muted, volumes }: SeatTerms): void {
    if (muted !== told.muted) void this.#link.send({ note: 'muted', muted });
    if (volumes !== undefined && volumes !== told.volumes) void this.#link.send({ note: 'volume', ...volumes });
  }

  /** Asks for the home's end of the pipe, again while the home is opening the Room. Undefined: there was no answer. */
  async #askEnd(media: MediaPipe, codec: PipeCodec, terms: SeatTerms, isVoid: () => boolean): Promise<SeatReply | undefined> {
    const { peers, clock, appUuid, isBot } = this.#options;
    const { muted, volumes, coach } = terms;
    let tries = 0;
    let unanswered = 0;
    while (tries < HOME_SEARCH_TRIES && unanswered < OPEN_TRIES && !isVoid()) {
      const reply = await peers.ask(this.home, {
        type: 'open',
        ...this.name,
        appUuid,
        isBot,
        muted,
        volumes,
        ...(coach === undefined ? {} : { coach }),
        codec,
        end: media.end,
        isJoined: this.#isMove,
      });
      if (reply !== undefined && reply.type !== 'opening') return reply;
      if (peers.isDead(this.home)) break;
      tries++;
      unanswered = reply === undefined ? unanswered + 1 : 0;
      // Nobody answers where NATS is away, and the home may be well.
      if (unanswered === OPEN_TRIES && (await peers.reach(this.home)) === 'unknown') tries = unanswered = 0;
      await sleep(clock, SEAT_NOTE_RETRY_MS);
    }
    return undefined;
  }

  #heard({ here = false, there = false }: { readonly here?: boolean; readonly there?: boolean }): void {
    this.#isHeardHere ||= here;
    this.#isHeardThere ||= there;
    if (!this.#isHeardHere || !this.#isHeardThere || this.#isJoined) return;
    this.#isJoined = true;
    this.heardAt = this.epoch;
    this.#options.listener.notice({ type: 'room.joined', room: this.number });
  }

  /** Nothing comes from the home: looks whether it is lost, until something comes again. */
  async #watch(attempt: number): Promise<void> {
    if (this.#watched === attempt) return;
    const { peers, clock } = this.#options;
    const isVoid = () => this.#isClosed || attempt !== this.#attempt;
    this.#watched = attempt;
    let watch = newHomeWatch(clock.now());
    let before = (await this.#media?.counters())?.packetsReceived;
    while (!isVoid()) {
      const reach = await peers.reach(this.home);
      const heard = (await this.#media?.counters())?.packetsReceived;
      if (isVoid() || (heard !== before && reach !== 'nobody')) break;
      before = heard;
      const judged = judgeHome(watch, reach, clock.now());
      watch = judged.watch;
      if (judged.verdict === 'replace_home') {
        this.#homeLost('silent');
        break;
      }
      if (judged.verdict === 'remake_pipe') {
        this.#options.listener.unheard(this.home);
        if (this.#audio !== undefined && this.#terms !== undefined) this.join(this.#audio, this.#terms);
        break;
      }
      await sleep(clock, HOME_LOOK_MS);
    }
    if (this.#watched === attempt) this.#watched = undefined;
  }

  setMuted(muted: boolean): void {
    if (this.#terms !== undefined) this.#terms = { ...this.#terms, muted };
    void this.#link.send({ note: 'muted', muted });
  }

  /** Resolves with whether the home has set it. */
  setVolume(direction: 'from_member' | 'to_member', percent: number): Promise<boolean> {
    if (this.#terms !== undefined) this.#terms = { ...this.#terms, volumes: { ...this.#terms.volumes, [direction]: percent } };
    return this.#link.send({ note: 'volume', [direction]: percent });
  }

  /** Tells the home what bots in the Room are to hear. */
  tell(news: Extract<SeatNote, { readonly note: 'news' }>['news']): void {
    void this.#link.send({ note: 'news', news });
  }

  /** Takes a note of the home. */
  hear(number: number, note: SeatNote): SeatReply {
    const verdict = this.#link.judge(number);
    if (verdict === 'early') return { type: 'gone' };
    if (verdict === 'known') return { type: 'ok' };
    const { listener } = this.#options;
    if (note.note === 'joined') this.#heard({ there: true });
    else if (note.note === 'talking') listener.notice({ type: 'voice', talking: note.talking });
    else if (note.note === 'closed') listener.closed();
    else if (note.note === 'lost') this.#lost();
    else if (note.note === 'news') listener.news(note.news);
    else if (note.note === 'inherit') this.#homeLost('inherit');
    return { type: 'ok' };
  }

  #homeLost(why: HomeLost): void {
    this.#options.listener.homeLost(why, { nodeId: this.home, epoch: this.epoch });
  }

  /** A Room that is not at its home any more goes on elsewhere, or is closed: the next home is looked for. */
  #onGone(why: SeatGone): void {
    if (why === 'gone') this.#lost();
    else if (!this.#isClosed) this.#homeLost(why === 'moved' ? 'moved' : 'silent');
  }

  /** The seat is lost: the Session is in no Room. */
  #lost(): void {
    if (!this.#isClosed) this.#options.listener.notice({ type: 'room.left', room: this.number });
  }

  /** The Session has left, which is committed, or never joined. */
  async leave(): Promise<void> {
    if (this.#isClosed) return;
    this.#release();
    this.#link.known();
    await this.#link.send({ note: 'left' });
    this.#link.close();
  }

  /** The Room is mixed here from now on: the leg goes into its mix, and what led elsewhere is given back. */
  drop(): void {
    if (this.#isClosed) return;
    this.#release();
    this.#link.close();
  }

  #release(): void {
    this.#isClosed = true;
    this.#attempt++;
    release(this.#media, this.#local);
  }
}

/** The codec that a home of an older release knows. */
function withoutL16(codec: PipeCodec): PipeCodec {
  if (codec === 'L16/8000') return 'PCMU';
  return codec.startsWith('L16/') ? 'G722' : codec;
}

/** Gives one end of a pipe back, after the fade of who was in its room. */
function release(media: MediaPipe | undefined, local: MediaRoom | undefined): void {
  void Promise.resolve(local?.close()).finally(() => media?.close());
}
