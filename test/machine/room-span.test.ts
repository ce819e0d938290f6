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
    const ways = fc.constantFrom('arrives', 'lost', 'answer lost', 'earlier one arrives late', 'another is sent');
    fc.assert(
      fc.property(fc.array(ways, { maxLength: 200 }), (given) => {
        let out: NotesOut<number> = noNotes();
        const sent: number[] = [];
        const taken: number[] = [];
        let last = 0;
        const arrives = (number: number, note: number | undefined): void => {
          const verdict = judgeNote(last, number);
          expect(verdict).not.toBe('early');
          if (verdict !== 'take' || note === undefined) return;
          taken.push(note);
          last = number;
        };
        // In the end the network works.
        for (const way of [...given, ...given.map(() => 'arrives' as const)]) {
          if (way === 'another is sent') {
            const more = addNote(out, sent.length);
            expect(more === undefined).toBe(out.waiting.length === SEAT_NOTES_MAX);
            if (more !== undefined) sent.push(sent.length);
            out = more ?? out;
            continue;
          }
          const [head] = out.waiting;
          if (way === 'earlier one arrives late' && out.next > 1) arrives(out.next - 1, sent[out.next - 2]);
          if (head === undefined || way === 'lost' || way === 'earlier one arrives late') continue;
          arrives(out.next, head);
          // Its answer may come twice.
          if (way === 'arrives') {
            const { next } = out;
            out = acknowledged(acknowledged(out, next), next);
          }
        }
        expect(taken).toEqual(sent);
        expect(out.waiting).toEqual([]);
      }),
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
    const begun = 1_000_000;
    let watch: HomeWatch = newHomeWatch(begun);
    const verdicts = reaches.map(([ms, reach]) => {
      const judged = judgeHome(watch, reach, begun + ms);
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

  test('is not replaced for the first ping that is lost after it has answered, or after this node has found NATS again', () => {
    for (const reach of ['answers', 'unknown'] as const) {
      const late = HOME_SILENT_MS + 100;
      const watched = [
        [late, reach],
        [late + 200, 'silent'],
        [late + HOME_SILENT_MS - 1, 'silent'],
        [late + HOME_SILENT_MS, 'silent'],
      ] as const;
      expect(after(watched)).toEqual(['look_again', 'look_again', 'look_again', 'replace_home']);
    }
  });

  test('has its pipe made anew where it answers and is not heard for long enough, and not before', () => {
    expect(
      after([
        [HOME_PIPE_MS - 1, 'answers'],
        [HOME_PIPE_MS, 'answers'],
      ]),
    ).toEqual(['look_again', 'remake_pipe']);
  });

  test('is replaced where nobody has its name or it is silent for long, counted from its last answer, and never else', () => {
    const reaches = fc.array(fc.tuple(fc.nat(800), fc.constantFrom<Reach>('unknown', 'answers', 'silent', 'silent', 'nobody')));
    fc.assert(
      fc.property(reaches, (given) => {
        let now = 0;
        let heardAt = 0;
        const timed = given.map(([ms, reach]) => {
          now += ms;
          return [now, reach] as const;
        });
        const verdicts = after(timed);
        for (const [at, [ms, reach]] of timed.entries()) {
          if (reach === 'answers' || reach === 'unknown') heardAt = ms;
          const isLost = reach === 'nobody' || (reach === 'silent' && ms - heardAt >= HOME_SILENT_MS);
          const isDeaf = reach === 'answers' && ms >= HOME_PIPE_MS;
          expect(verdicts[at]).toBe(isLost ? 'replace_home' : isDeaf ? 'remake_pipe' : 'look_again');
        }
      }),
    );
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
