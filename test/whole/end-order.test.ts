/** The order of the last events of a Session, on the running platform. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { LoopbackCalls } from '../support/loopback-calls.ts';

describe('the end of a Session', () => {
  let calls: LoopbackCalls;

  beforeAll(async () => {
    calls = await LoopbackCalls.start();
  }, 60_000);
  afterAll(() => calls?.stop());

  test.each(['the caller', 'the called side'])(
    'tells a collection, a playback, a membership and a recording in this order, before session.ended: %s hangs up',
    async (who) => {
      const { platform, receiver, caller, called } = calls;
      const before = receiver.events.length;
      const dialled = calls.dial();
      const created = () => receiver.events.slice(before).find(({ event }) => event === 'session.created');
      await receiver.until(() => created() !== undefined, 'the call');
      const inbound = String(created()?.body.session_uuid);
      const command = (path: string, body: unknown = {}) => platform.api(called, 'POST', `/v1/sessions/${inbound}${path}`, body);
      await command('/answer');
      const outbound = await dialled;

      await command('/dtmf/collect', { first_digit_timeout_ms: 60_000 });
      await command('/playback/play', { type: 'files', urls: [calls.voice], loop: 0 });
      await receiver.event('playback.started', inbound);
      await command('/recordings', { direction: 'both', channels: 'mono' });
      await receiver.event('recording.became_available', inbound);
      const room = await platform.api(called, 'POST', '/api/v1/rooms', {});
      await platform.api(called, 'POST', `/api/v1/rooms/${room.body.room_id}/members`, { session_uuid: inbound });
      await receiver.event('room.member.joined', inbound);

      const ends = who === 'the caller' ? ([caller, outbound] as const) : ([called, inbound] as const);
      await platform.api(ends[0], 'DELETE', `/v1/sessions/${ends[1]}`);
      await receiver.event('session.ended', inbound);
      const told = receiver.events.filter(({ body }) => body.session_uuid === inbound).map(({ event }) => event);
      expect(told.slice(-5)).toEqual([
        'digits.collected',
        'playback.ended',
        'room.member.left',
        'recording.ended',
        'session.ended',
      ]);
    },
    60_000,
  );
});
