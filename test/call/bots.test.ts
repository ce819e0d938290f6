import { describe, expect, test } from 'bun:test';
import type { RoomNews } from '../../src/call/ports/leg.ts';
import type { CommandContext, SessionCommand } from '../../src/call/ports/sessions.ts';
import { buckets } from '../../src/call/rate/buckets.ts';
import { bucketOf, TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { Bots } from '../../src/call/session/bots.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { SessionState } from '../../src/machine/session/session.ts';
import { problems } from '../../src/problem.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const APP = 'app_7c9e6679-7425-40de-944b-e07fc1f90ae7';
const about = { appUuid: APP, traceparent: '00-1-2-00' };

/** Sessions by name: in the Room or not. */
function world(
  types: Readonly<Record<string, SessionState['type']>>,
  room: readonly string[],
  elsewhere?: () => Promise<string | undefined>,
) {
  const clock = new VirtualClock();
  const tokens = new TokenBuckets();
  const commands: [string, SessionCommand, CommandContext][] = [];
  const heard: [string, RoomNews][] = [];
  const refusing = { now: false, isAway: false };
  const home = { answers: true };
  const bots = new Bots({
    clock,
    tokens,
    joined: (roomId) => (roomId === 'room' ? room : []),
    members: async () =>
      home.answers ? room.map((sessionUuid) => ({ sessionUuid, isBot: types[sessionUuid] === 'websocket' })) : undefined,
    elsewhere,
    find: (name) => {
      const type = types[name];
      const membership = {
        roomId: 'room',
        room: 1,
        phase: 'joined',
        muted: false,
        voiceActivityEvents: false,
        talking: false,
      } as const;
      if (type === undefined) return undefined;
      return {
        state: { appUuid: APP, membership: room.includes(name) ? membership : undefined },
        hear: (news) => heard.push([name, news]),
      };
    },
    command: async (name, command, context) => {
      commands.push([name, command, context]);
      if (refusing.isAway) throw new StoreUnavailable('away');
      return refusing.now ? problems.conflict('No.') : { status: 202, body: {} };
    },
  });
  return { bots, clock, tokens, commands, heard, refusing, home };
}

const hangup = { type: 'hangup', sessionUuid: undefined } as const;

describe('An order of a bot', () => {
  test('goes to the Session it names in its Room, else to its phone Session, else to the only phone in the Room', async () => {
    const { bots, commands } = world({ bot: 'websocket', one: 'phone_in', two: 'phone_out' }, ['bot', 'one', 'two']);
    bots.add('bot', { ...about, phoneSessionUuid: undefined });
    expect(await bots.order('bot', hangup)).toStartWith('no phone Session to mean');
    expect(await bots.order('bot', { ...hangup, sessionUuid: 'two' })).toBeUndefined();
    expect(await bots.order('bot', { ...hangup, sessionUuid: 'elsewhere' })).toStartWith('no such Session');
    bots.add('bot', { ...about, phoneSessionUuid: 'one' });
    expect(await bots.order('bot', hangup)).toBeUndefined();
    expect(commands.map(([name]) => name)).toEqual(['two', 'one']);
    const alone = world({ bot: 'websocket', one: 'phone_in', mate: 'websocket' }, ['bot', 'one', 'mate']);
    alone.bots.add('bot', { ...about, phoneSessionUuid: undefined });
    expect(await alone.bots.order('bot', hangup)).toBeUndefined();
    expect(alone.commands[0]).toMatchObject(['one', { type: 'hangup' }, { ...about, idempotencyKey: undefined }]);
  });

  test('may be sent again where the node that knows the members does not answer now', async () => {
    const { bots, commands, home } = world({ bot: 'websocket', one: 'phone_in' }, ['bot', 'one']);
    bots.add('bot', { ...about, phoneSessionUuid: undefined });
    home.answers = false;
    expect(await bots.order('bot', hangup)).toContain('try again');
    expect(await bots.order('bot', { ...hangup, sessionUuid: 'one' })).toContain('try again');
    expect(commands).toEqual([]);
    home.answers = true;
    expect(await bots.order('bot', hangup)).toBeUndefined();
  });

  test('about a call of another node is refused where the database does not tell whose that is', async () => {
    const { bots, commands } = world({ bot: 'websocket' }, ['bot'], () => Promise.reject(new StoreUnavailable('away')));
    bots.add('bot', { ...about, phoneSessionUuid: 'phone' });
    expect(await bots.order('bot', hangup)).toBe('the database is away');
    expect(commands).toEqual([]);
  });

  test('takes from the bucket that HTTP takes from, and gives the token back where it is refused', async () => {
    const { bots, tokens, clock, commands, refusing } = world({ bot: 'websocket', one: 'phone_in' }, ['bot']);
    bots.add('bot', { ...about, phoneSessionUuid: 'one' });
    refusing.now = true;
    for (let n = 0; n < 2 * buckets.transfer.capacity; n++)
      expect(await bots.order('bot', { type: 'transfer', sessionUuid: undefined, to: '+15550001' })).toBe('No.');
    refusing.isAway = true;
    // A call that is over is looked up, and a bot learns why nothing comes of its order.
    for (let n = 0; n < 2 * buckets.transfer.capacity; n++)
      expect(await bots.order('bot', { type: 'transfer', sessionUuid: undefined, to: '+15550001' })).toBe('the database is away');
    Object.assign(refusing, { now: false, isAway: false });
    // HTTP empties the bucket.
    while (typeof tokens.take([bucketOf('transfer', 'one')], clock.now()) !== 'number');
    const before = commands.length;
    expect(await bots.order('bot', { type: 'transfer', sessionUuid: undefined, to: '+15550001' })).toBe(
      'too many of them, wait 2 s',
    );
    expect(commands).toHaveLength(before);
    clock.advance(2_000);
    expect(await bots.order('bot', { type: 'transfer', sessionUuid: undefined, to: '+15550001' })).toBeUndefined();
  });

  test('that came from another node is about a Session of its own application only', async () => {
    const { bots, commands } = world({ one: 'phone_in' }, []);
    expect(await bots.obey('app_of_another', 'one', hangup, about.traceparent)).toBe('the Session has ended');
    expect(commands).toEqual([]);
    expect(await bots.obey(APP, 'one', hangup, about.traceparent, 1_000)).toBeUndefined();
    // Nothing of it is committed after that node has told its bot that it failed.
    expect(commands).toMatchObject([['one', {}, { until: 1_000 }]]);
  });

  test('is none when its Session has ended', async () => {
    const { bots, commands } = world({ one: 'phone_in' }, []);
    bots.add('bot', { ...about, phoneSessionUuid: 'one' });
    bots.forget('bot');
    expect(await bots.order('bot', hangup)).toBe('the Session has ended');
    expect(commands).toEqual([]);
  });
});

test('News reach the bots of the Room but the one they are of, and keys the bots of the phone Session, each once.', () => {
  const { bots, heard } = world({ bot: 'websocket', near: 'websocket', one: 'phone_in', raw: 'phone_out' }, [
    'bot',
    'one',
    'raw',
  ]);
  bots.add('bot', { ...about, phoneSessionUuid: 'one' });
  bots.add('near', { ...about, phoneSessionUuid: 'one' });
  const key = { type: 'dtmf', session_uuid: 'one', digit: '1', duration_ms: 80 } as const;
  bots.tell('one', 'room', key);
  bots.tell('bot', 'room', { type: 'member_joined', session_uuid: 'bot' });
  bots.tell('one', 'room', { type: 'member_joined', session_uuid: 'one' });
  bots.tell('one', undefined, key);
  expect(heard.map(([name, { type }]) => [name, type])).toEqual([
    ['bot', 'dtmf'],
    ['near', 'dtmf'],
    ['bot', 'member_joined'],
    ['bot', 'dtmf'],
    ['near', 'dtmf'],
  ]);
});
