/** What comes of an operation that is over while the next one of its kind, or of its name, is being stored. */
import { expect, test } from 'bun:test';
import type { Leg } from '../../src/call/ports/leg.ts';
import type { Command, SessionInput } from '../../src/machine/session/input.ts';
import { inbound } from '../../src/machine/session/session.ts';
import type { LegAudio } from '../../src/media/engine.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietSession } from './quiet-session.ts';

/** An answered Session that hears `late` while the next change is stored. */
function world() {
  const clock = new VirtualClock();
  const told: string[] = [];
  const late: SessionInput[] = [];
  const journal = {
    commit: async ({ events }: { readonly events: readonly { readonly body: string }[] }) => {
      for (const input of late.splice(0)) session.signal(input);
      for (const { body } of events) {
        const { event, reason, urls } = JSON.parse(body);
        told.push([event, reason, urls].filter((each) => each !== undefined).join(' '));
      }
      return true;
    },
    wasStored: async () => false,
  };
  const stopped: string[] = [];
  const audio: LegAudio = {
    pipeCodec: 'PCMU',
    play() {},
    stopPlayback: (name) => stopped.push(name),
    controlPlayback() {},
    record: () => ({ mask() {}, unmask() {}, stop() {} }),
    join() {},
    leave() {},
    setMuted() {},
    coach() {},
    setVolume: () => true,
  };
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const leg: Leg = { audio, ...orders };
  const about = { sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000_000 };
  const state = { ...inbound(about, clock.now()), phase: 'answered', hasLeg: true, deadlines: {} } as const;
  const session = quietSession(state, journal, clock, 'node', {}, leg);
  const context = { appUuid: 'app', operationUuid: 'same', idempotencyKey: undefined, traceparent: '' };
  const order = (command: Command) => session.command(command, context, { urls: [], release() {} });
  return { clock, told, late, stopped, session, order };
}

test('A play is not ended by the end of the one before under the same Operation-Id, and can be stopped', async () => {
  const { told, late, stopped, session, order } = world();
  const play = (url: string) => order({ type: 'play', urls: [url], loop: 1, volume: 100 });
  const notice = (type: 'playback.started' | 'playback.stopped') =>
    ({ type: 'leg.media', notice: { type, operationUuid: 'same' } }) as const;
  await play('one');
  session.signal(notice('playback.started'));
  await order({ type: 'stop_playback' });
  late.push(notice('playback.stopped'));
  await play('two');
  await settle();
  session.signal(notice('playback.started'));
  await settle();
  expect(told).toEqual(['playback.started one', 'playback.ended stopped one', 'playback.started two']);
  await order({ type: 'stop_playback' });
  expect(stopped).toEqual(['same', 'same']);
});

test('A transfer is not completed by the end of the one before, whose time is over', async () => {
  const { clock, told, late, session, order } = world();
  const transfer = () => order({ type: 'transfer', target: { number: '+15550100' }, timeoutMs: 5_000 });
  await transfer();
  await clock.advance(5_000);
  late.push({ type: 'leg.transfer', phase: 'completed' });
  await transfer();
  await settle();
  expect(told).toEqual(['session.transfer.failed timeout']);
  session.signal({ type: 'leg.transfer', phase: 'completed' });
  await settle();
  expect(told.at(-1)).toBe('session.transfer.completed');
});
