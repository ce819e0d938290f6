/** The membership row by row: what is refused when, and what each command tells and orders. */
import { describe, expect, test } from 'bun:test';
import {
  commandMember,
  isSameVolume,
  type MemberCommand,
  type Membership,
  memberJoined,
  memberTalking,
  roomMoved,
  roomRefusal,
} from '../../src/machine/room/membership.ts';

const into = (roomId: 'one' | 'two'): MemberCommand => ({
  type: 'member_join',
  roomId,
  room: roomId === 'one' ? 1 : 2,
  muted: false,
  voiceActivityEvents: true,
});
const give = (membership: Membership | undefined, command: MemberCommand) => commandMember('s', membership, command, 'op');
const joining = give(undefined, into('one')).membership;
const joined = memberJoined('s', joining, 1).membership;
const muted = give(joined, { type: 'member_mute' }).membership;
const talking = memberTalking('s', joined, true).membership;
const volume: MemberCommand = { type: 'member_volume', volume: 30, direction: 'from_member' };

describe('a command of a Room', () => {
  const NOWHERE = [409, 'Session is not in a room'];
  const WAIT = [409, 'Session is still joining a conference room'];
  const rows: readonly [string, MemberCommand, undefined | (string | number)[][]][] = [
    // The answers to a Session that is nowhere, joining, joined and muted; an empty one is no refusal.
    ['join the same Room', into('one'), [[], [], [], []]],
    ['join another', into('two'), [[], WAIT, [], []]],
    ['leave it', { type: 'member_leave', roomId: 'one' }, [[404, 'Member not found'], [], [], []]],
    ['leave another', { type: 'member_leave', roomId: 'two' }, Array(4).fill([404, 'Member not found'])],
    ['mute', { type: 'member_mute' }, [NOWHERE, WAIT, [], [409, 'Session is already muted']]],
    ['unmute', { type: 'member_unmute' }, [NOWHERE, WAIT, [409, 'Session is already unmuted'], []]],
    ['volume', volume, [NOWHERE, WAIT, [], []]],
  ];
  test.each(rows)('%s', (_, command, answers) => {
    const told = [undefined, joining, joined, muted].map((membership) => {
      const refused = roomRefusal(membership, command);
      return refused === undefined ? [] : [refused.status, refused.message];
    });
    expect<unknown>(told).toEqual(answers);
  });
});

describe('a member', () => {
  const names = (events: readonly { event: string }[]) => events.map(({ event }) => event);

  test('is muted and unmuted with one event each; one that talks is heard no more first', () => {
    const quiet = give(joined, { type: 'member_mute' });
    expect(quiet.events).toEqual([{ event: 'room.member.muted', session_uuid: 's', room_id: 'one' }]);
    expect(quiet.effects).toEqual([{ do: 'member_set_muted', muted: true }]);
    const loud = give(muted, { type: 'member_unmute' });
    expect([loud.events, loud.effects]).toEqual([
      [{ event: 'room.member.unmuted', session_uuid: 's', room_id: 'one' }],
      [{ do: 'member_set_muted', muted: false }],
    ]);
    const cut = give(talking, { type: 'member_mute' });
    expect(cut.events.at(-1)).toMatchObject({ event: 'room.member.voice_activity_changed', talking: false });
    expect(names(give(talking, { type: 'member_unmute' }).events)).toEqual(['room.member.unmuted']);
  });

  test('talks once until it stops, and not before it has joined', () => {
    const told = { event: 'room.member.voice_activity_changed', session_uuid: 's', room_id: 'one' } as const;
    expect(memberTalking('s', joined, true).events).toEqual([{ ...told, talking: true }]);
    expect(memberTalking('s', talking, true).events).toEqual([]);
    expect(memberTalking('s', talking, false).events).toEqual([{ ...told, talking: false }]);
    expect(memberTalking('s', joined, false).events).toEqual([]);
    expect(memberTalking('s', joining, true)).toEqual({ membership: joining, events: [], effects: [] });
  });

  test('that joins its Room again stays as it is, and leaves it for another', () => {
    expect(give(joined, into('one'))).toEqual({ membership: joined, events: [], effects: [] });
    const moved = give(joined, into('two'));
    expect(moved.events).toEqual([{ event: 'room.member.left', session_uuid: 's', room_id: 'one', reason: 'moved' }]);
    expect(moved.effects.map((effect) => effect.do)).toEqual(['member_leave', 'member_join']);
    expect(moved.membership).toMatchObject({ roomId: 'two', phase: 'joining' });
  });

  test('keeps the volume of each direction, also in the mix of another node', () => {
    const quieter = give(joined, volume);
    expect(quieter).toEqual({
      membership: joined === undefined ? undefined : { ...joined, volumes: { from_member: 30 } },
      events: [],
      effects: [{ do: 'member_set_volume', roomId: 'one', operationUuid: 'op', volume: 30, direction: 'from_member' }],
    });
    const both = give(quieter.membership, { type: 'member_volume', volume: 80, direction: 'to_member' }).membership;
    expect(both?.volumes).toEqual({ from_member: 30, to_member: 80 });
    expect(give(both, { type: 'member_volume', volume: 50, direction: 'both' }).membership?.volumes).toEqual({
      from_member: 50,
      to_member: 50,
    });
    expect(roomMoved('s', both, 'one', 7).effects).toEqual([
      { do: 'member_join', roomId: 'one', muted: false, volumes: { from_member: 30, to_member: 80 } },
    ]);
    expect(roomMoved('s', joined, 'one', 7).effects).toEqual([{ do: 'member_join', roomId: 'one', muted: false }]);
    expect(roomMoved('s', joined, 'two', 7)).toEqual({ membership: joined, events: [], effects: [] });
  });

  test('has one volume order for each Operation-Id, Room, volume and direction', () => {
    const order = { roomId: 'one', operationUuid: 'op', volume: 50, direction: 'both' } as const;
    expect(isSameVolume(order, { ...order })).toBe(true);
    for (const other of [{ roomId: 'two' }, { operationUuid: 'other' }, { volume: 51 }, { direction: 'to_member' as const }])
      expect(isSameVolume(order, { ...order, ...other })).toBe(false);
  });
});
