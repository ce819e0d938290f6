/** An Operation-Id that is used again while the end of what it named before is on its way from the media plane. */
import { expect, test } from 'bun:test';
import type { Leg } from '../../src/call/ports/leg.ts';
import type { Command } from '../../src/machine/session/input.ts';
import { inbound } from '../../src/machine/session/session.ts';
import type { LegAudio } from '../../src/media/engine.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { quietSession } from './quiet-session.ts';

test('A play is not ended by what comes of the one before while it is stored, and can be stopped', async () => {
  const clock = new VirtualClock();
  const told: string[] = [];
  let meanwhile = () => {};
  const journal = {
    commit: async ({ events }: { readonly events: readonly { readonly body: string }[] }) => {
      meanwhile();
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
  const play = (url: string) => order({ type: 'play', urls: [url], loop: 1, volume: 100 });
  const hear = (type: 'playback.started' | 'playback.stopped') =>
    session.signal({ type: 'leg.media', notice: { type, operationUuid: 'same' } });

  await play('one');
  hear('playback.started');
  await order({ type: 'stop_playback' });
  meanwhile = () => {
    meanwhile = () => {};
    hear('playback.stopped');
  };
  await play('two');
  await settle();
  hear('playback.started');
  await settle();
  expect(told).toEqual(['playback.started one', 'playback.ended stopped one', 'playback.started two']);
  await order({ type: 'stop_playback' });
  expect(stopped).toEqual(['same', 'same']);
});
