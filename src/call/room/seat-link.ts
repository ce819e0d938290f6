/** Sends the notes of one seat to the node at its other end, one after the other, until each is acknowledged. */
import { type Clock, sleep } from '../../clock.ts';
import { SEAT_NEWS_MAX, SEAT_NOTE_RETRY_MS } from '../../limits.ts';
import { acknowledged, addNote, judgeNote, type NotesOut, noNotes } from '../../machine/room/notes.ts';
import type { RoomPeers, SeatName, SeatNote } from '../ports/room-peers.ts';

interface SeatLinkOptions {
  readonly peers: Pick<RoomPeers, 'ask' | 'isDead'>;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly name: SeatName;
  /** The other end has the seat. Until `known` is called where it has not, notes wait. */
  readonly isKnown: boolean;
  /** No note is sent any more. */
  readonly onGone: (why: SeatGone) => void;
}

/**
 * Why notes of a seat go nowhere: the other end has no such seat any more, or too many notes wait for it (`gone`), its
 * node does not have the Room (`moved`), or was declared dead (`dead`).
 */
export type SeatGone = 'gone' | 'moved' | 'dead';

interface Sent {
  readonly note: SeatNote;
  readonly told: (taken: boolean) => void;
}

export class SeatLink {
  readonly name: SeatName;
  readonly nodeId: string;
  readonly #options: SeatLinkOptions;
  #notes: NotesOut<Sent> = noNotes();
  #taken = 0;
  #isKnown: boolean;
  #isSending = false;
  #isClosed = false;

  constructor(options: SeatLinkOptions) {
    this.#options = options;
    this.#isKnown = options.isKnown;
    this.name = options.name;
    this.nodeId = options.nodeId;
  }

  /** Resolves with true once the other end has taken the note, false where it never will. */
  send(note: SeatNote): Promise<boolean> {
    // A seat is not given up for what bots are to hear.
    if (note.note === 'news' && this.#notes.waiting.length >= SEAT_NEWS_MAX) return Promise.resolve(false);
    return new Promise((told) => {
      const notes = this.#isClosed ? undefined : addNote(this.#notes, { note, told });
      if (notes === undefined) {
        told(false);
        this.#gone('gone');
        return;
      }
      this.#notes = notes;
      if (this.#isKnown && !this.#isSending) void this.#send();
    });
  }

  /**
   * The other end has the seat from now on: the notes that waited for it go. One that came earlier would find no seat.
   */
  known(): void {
    if (this.#isKnown) return;
    this.#isKnown = true;
    void this.#send();
  }

  /** Judges a note of the other end. */
  judge(number: number): 'take' | 'known' | 'early' {
    const verdict = judgeNote(this.#taken, number);
    if (verdict === 'take') this.#taken = number;
    return verdict;
  }

  /** Sends nothing any more. */
  close(): void {
    this.#isClosed = true;
    for (const { told } of this.#notes.waiting) told(false);
    this.#notes = { next: this.#notes.next, waiting: [] };
  }

  async #send(): Promise<void> {
    const { peers, clock, name, nodeId } = this.#options;
    this.#isSending = true;
    for (let [head] = this.#notes.waiting; head !== undefined && !this.#isClosed; [head] = this.#notes.waiting) {
      const { next: number } = this.#notes;
      const reply = await peers.ask(nodeId, { type: 'note', ...name, number, note: head.note });
      if (this.#isClosed) break;
      if (reply?.type === 'ok') {
        this.#notes = acknowledged(this.#notes, number);
        head.told(true);
      } else if (reply?.type === 'gone' || reply?.type === 'moved') this.#gone(reply.type);
      else if (peers.isDead(nodeId)) this.#gone('dead');
      else await sleep(clock, SEAT_NOTE_RETRY_MS);
    }
    this.#isSending = false;
  }

  #gone(why: SeatGone): void {
    if (this.#isClosed) return;
    this.close();
    this.#options.onGone(why);
  }
}
