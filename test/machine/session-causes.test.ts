/** What the platform itself ends, what had a cause already, and what a Session refuses before and after its call. */
import { describe, expect, test } from 'bun:test';
import type { Command, Effect, SessionInput, Step } from '../../src/machine/session/input.ts';
import { connecting, inbound, nextDeadline, outbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const ORPHAN_MS = 120_000;
const about = { sessionUuid: 's', appUuid: 'a', callerId: '+15550009', did: '+15550002', orphanTimeoutMs: ORPHAN_MS };
const dial = { ...about, operationUuid: 'op', ringTimeoutMs: 30_000, maxDurationMs: 600_000, clientState: '' };
const bot = { sessionUuid: 's', appUuid: 'a', operationUuid: 'op', clientState: '', orphanTimeoutMs: ORPHAN_MS };

const order = (command: Command): SessionInput => ({ type: 'command', command, operationUuid: 'op-2' });
const answered: SessionInput = { type: 'leg.answered' };
const gone: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: 'hung up' } };
const mediaTimeout: SessionInput = { type: 'leg.media', notice: { type: 'media.timeout' } };
const mediaLost: SessionInput = { type: 'leg.media', notice: { type: 'media.lost' } };
const play: Command = { type: 'play', urls: ['http://a/1.wav'], loop: 0, volume: 100 };
const collect: Command = {
  type: 'collect',
  promptUrls: ['http://a/p.wav'],
  terms: {
    minDigits: 1,
    maxDigits: 4,
    validDigits: '0123456789',
    terminators: [],
    firstDigitTimeoutMs: 5_000,
    interDigitTimeoutMs: 5_000,
    totalTimeoutMs: 60_000,
    bargeIn: true,
  },
};

/** Gives a new Session its inputs, all at once. Returns its state and the last step. */
function after(begun: SessionState, ...inputs: readonly SessionInput[]): Step {
  let last = step(begun, { type: 'begin' }, 0);
  for (const input of inputs) last = step(last.state, input, 0);
  return last;
}

/** The end that follows when the far end has confirmed it. */
const endOf = (state: SessionState) => step(state, gone, 2_000).events.find(({ event }) => event === 'session.ended');
const does = ({ effects }: Step) => effects.map((effect) => effect.do);

describe('A Session that is left when the grace of a shutdown is over', () => {
  const rows: readonly (readonly [string, SessionState, readonly SessionInput[], Effect['do'], object])[] = [
    ['answered', outbound(dial, 0), [answered], 'hangup', { answered: true, hangup_cause: 'completed', duration_seconds: 2 }],
    ['inbound, answered', inbound(about, 0), [order({ type: 'answer' }), answered], 'hangup', { hangup_cause: 'completed' }],
    ['ringing far away', outbound(dial, 0), [{ type: 'leg.ringing' }], 'cancel', { answered: false, hangup_cause: 'cancelled' }],
    ['ringing here', inbound(about, 0), [], 'hangup', { answered: false, hangup_cause: 'rejected', duration_seconds: 0 }],
    ['connecting', connecting(bot, 0), [], 'hangup', { answered: false, hangup_cause: 'cancelled' }],
  ];
  test.each(rows)('%s: is ended by the system', (_, begun, inputs, effect, end) => {
    const last = after(begun, ...inputs, { type: 'shutdown' });
    expect(does(last)).toEqual([effect]);
    expect(endOf(last.state)).toMatchObject({ ...end, hangup_by: 'system' });
  });

  test('and is being ended already keeps its cause', () => {
    const last = after(outbound(dial, 0), answered, order({ type: 'hangup' }), { type: 'shutdown' });
    expect(does(last)).toEqual([]);
    expect(endOf(last.state)).toMatchObject({ hangup_cause: 'completed', hangup_by: 'caller', operation_uuid: 'op-2' });
  });
});

describe('The first cause of an end stands', () => {
  test.each([
    ['a media timeout', mediaTimeout],
    ['the loss of its sound', mediaLost],
  ])('against %s that comes after a DELETE', (_, later) => {
    const last = after(outbound(dial, 0), answered, order({ type: 'hangup' }), later);
    expect(does(last)).toEqual([]);
    expect(endOf(last.state)).toMatchObject({ hangup_cause: 'completed', hangup_by: 'caller', operation_uuid: 'op-2' });
  });

  test('and a media timeout ends no call that is not answered', () => {
    expect(after(outbound(dial, 0), { type: 'leg.early_media' }, mediaTimeout).state.ending).toBeUndefined();
  });
});

describe('A call whose sound is lost ends as the state it is in wants it', () => {
  test.each([
    ['answered', outbound(dial, 0), [answered], 'hangup'],
    ['inbound and answered', inbound(about, 0), [order({ type: 'answer' }), answered], 'hangup'],
    ['inbound, its 200 on the way', inbound(about, 0), [order({ type: 'answer' })], 'hangup'],
    ['ringing here', inbound(about, 0), [], 'reject'],
    ['ringing far away', outbound(dial, 0), [{ type: 'leg.ringing' }], 'cancel'],
  ] as const)('%s', (_, begun, inputs, effect) => {
    const last = after(begun, ...inputs, mediaLost);
    expect(does(last)).toEqual([effect]);
    expect(endOf(last.state)).toMatchObject({ hangup_cause: 'timeout', hangup_by: 'system' });
  });
});

describe('Only a call that is answered and is not ending', () => {
  const orders: readonly Command[] = [
    { type: 'member_join', roomId: 'r', room: 1, muted: false, voiceActivityEvents: false },
    { type: 'member_leave', roomId: 'r' },
    { type: 'member_mute' },
    { type: 'member_unmute' },
    { type: 'member_volume', volume: 50, direction: 'both' },
  ];
  test.each([
    ['unanswered', outbound(dial, 0), [{ type: 'leg.early_media' }]],
    ['connecting', connecting(bot, 0), []],
    ['ending', outbound(dial, 0), [answered, order({ type: 'hangup' })]],
  ] as const)('can be in a Room: one that is %s is refused with 409', (_, begun, inputs) => {
    for (const each of orders) {
      const { refused, events, effects } = after(begun, ...inputs, order(each));
      expect(refused).toMatchObject({ status: 409, message: 'Session is not answered' });
      expect([events, effects]).toEqual([[], []]);
    }
  });
});

describe('A collection that is cancelled', () => {
  const cancel = order({ type: 'cancel_collect' });

  test('while its prompt is heard stops the prompt', () => {
    const { effects } = after(outbound(dial, 0), answered, order(collect), cancel);
    expect(effects).toEqual([{ do: 'stop_playback', operationUuid: 'op-2/prompt' }]);
  });

  test('while it waits for keys leaves alone what plays', () => {
    expect(after(outbound(dial, 0), answered, order({ ...collect, promptUrls: [] }), order(play), cancel).effects).toEqual([]);
  });
});

test.each([
  ['a playback', play],
  ['a collection', { ...collect, promptUrls: [] }],
] as const)('An unanswered call is not taken for abandoned during %s', (_, command) => {
  const { state } = after(inbound(about, 0), order(command));
  const due = step({ ...state, deadlines: { orphan: ORPHAN_MS } }, { type: 'deadline' }, ORPHAN_MS);
  expect(due.state.ending).toBeUndefined();
  expect(due.state.deadlines.orphan).toBe(2 * ORPHAN_MS);
  expect(nextDeadline(due.state)).toBeDefined();
});
