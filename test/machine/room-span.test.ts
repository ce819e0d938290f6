/** Notes between the ends of a seat, and the judgement that a Room's home is lost. */
import { describe, expect, test } from 'bun:test';
import { newUuid } from '../../src/id.ts';
import { HOME_PIPE_MS, HOME_SILENT_MS, SEAT_NOTES_MAX } from '../../src/limits.ts';
import { type HomeWatch, judgeHome, newHomeWatch, type Reach } from '../../src/machine/room/home-watch.ts';
import { commandMember, memberJoined, roomMoved } from '../../src/machine/room/membership.ts';
import { acknowledged, addNote, judgeNote, type NotesOut, noNotes } from '../../src/machine/room/notes.ts';
import fc from '../support/fast-check.ts';

describe('Notes about a member', () => {
  test('are taken in order and once each, however often messages and answers are lost', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(9), { maxLength: 20 }),
        fc.array(fc.constantFrom('arrives', 'lost', 'answer lost')),
        (sent, ways) => {
          let out: NotesOut<number> = noNotes();
          for (const note of sent) out = addNote(out, note) ?? out;
          const taken: number[] = [];
          let last = 0;
          // In the end the network works.
          for (const way of [...ways, ...sent.map(() => 'arrives')]) {
            const [head] = out.waiting;
            if (head === undefined || way === 'lost') continue;
            const verdict = judgeNote(last, out.next);
            expect(verdict).not.toBe('early');
            if (verdict === 'take') {
              taken.push(head);
              last = out.next;
            }
            if (way === 'arrives') out = acknowledged(out, out.next);
          }
          expect(taken).toEqual(sent);
          expect(out.waiting).toEqual([]);
        },
      ),
    );
  });

  test('are bounded: one too many gives the seat up', () => {
    let out: NotesOut<number> | undefined = noNotes();
    for (let n = 0; n < SEAT_NOTES_MAX; n++) out = out && addNote(out, n);
    expect(out?.waiting).toHaveLength(SEAT_NOTES_MAX);
    expect(out && addNote(out, 0)).toBeUndefined();
    expect(acknowledged({ next: 3, waiting: [1, 2] }, 2)).toEqual({ next: 3, waiting: [1, 2] });
  });
});

describe('The home of a Room', () => {
  const after = (reaches: readonly (readonly [ms: number, reach: Reach])[]) => {
    let watch: HomeWatch = newHomeWatch(0);
    const verdicts = reaches.map(([ms, reach]) => {
      const judged = judgeHome(watch, reach, ms);
      watch = judged.watch;
      return judged.verdict;
    });
    return verdicts;
  };

  test('is replaced at once where NATS knows nobody of its name', () => {
    expect(after([[10, 'nobody']])).toEqual(['replace_home']);
  });

  test('is replaced where it neither sends nor answers for long enough, and not before', () => {
    expect(
      after([
        [500, 'silent'],
        [HOME_SILENT_MS - 1, 'silent'],
        [HOME_SILENT_MS, 'silent'],
      ]),
    ).toEqual(['look_again', 'look_again', 'replace_home']);
  });

  test('is never replaced by a node that does not reach NATS itself, nor while it answers', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(10_000), fc.constantFrom<Reach>('unknown', 'answers'))), (reaches) => {
        expect(after(reaches)).not.toContain('replace_home');
      }),
    );
    expect(after([[HOME_PIPE_MS, 'answers']])).toEqual(['remake_pipe']);
  });
});

test('A member whose Room moves joins the new mix as it was, and no event tells of it but the end of its word', () => {
  const room = newUuid();
  const joining = commandMember(
    's',
    undefined,
    { type: 'member_join', roomId: room, room: 1, muted: true, voiceActivityEvents: true, coach: 'c' },
    'op',
  );
  const joined = memberJoined('s', joining.membership, 1).membership;
  const set = commandMember('s', joined, { type: 'member_volume', volume: 30, direction: 'both' }, 'op').membership;
  const talking = set && { ...set, talking: true };
  const moved = roomMoved('s', talking, room, 7);
  expect(moved.events.map(({ event }) => event)).toEqual(['room.member.voice_activity_changed']);
  expect(moved.membership).toMatchObject({ room: 7, phase: 'joined', talking: false });
  expect(moved.effects).toEqual([
    { do: 'member_join', roomId: room, muted: true, coach: 'c', volumes: { from_member: 30, to_member: 30 } },
  ]);
  expect(roomMoved('s', talking, newUuid(), 7).effects).toEqual([]);
});
