/**
 * Notes between the two ends of a seat whose Session and Room are on different nodes: numbered, acknowledged, taken in
 * order and once each. One note is under way at a time.
 *
 *   sender    waiting ─send→ under way ─acknowledged→ next      no answer: the same note again
 *   receiver  the number that is due → taken and acknowledged · an earlier one → acknowledged only
 */
import { SEAT_NOTES_MAX } from '../../limits.ts';

/** The side that sends. `next` is the number of the note at the head. */
export interface NotesOut<Note> {
  readonly next: number;
  readonly waiting: readonly Note[];
}

export const noNotes = <Note>(): NotesOut<Note> => ({ next: 1, waiting: [] });

/** Returns undefined where too many wait, and the other end must be lost. */
export const addNote = <Note>({ next, waiting }: NotesOut<Note>, note: Note): NotesOut<Note> | undefined =>
  waiting.length >= SEAT_NOTES_MAX ? undefined : { next, waiting: [...waiting, note] };

/** The other end has taken the note of that number. An answer that comes twice changes nothing. */
export const acknowledged = <Note>(notes: NotesOut<Note>, number: number): NotesOut<Note> =>
  number === notes.next ? { next: notes.next + 1, waiting: notes.waiting.slice(1) } : notes;

/** Whether a note is to be taken, acknowledged only, or left unanswered. `taken` is the number of the last one. */
export const judgeNote = (taken: number, number: number): 'take' | 'known' | 'early' =>
  number === taken + 1 ? 'take' : number <= taken ? 'known' : 'early';
