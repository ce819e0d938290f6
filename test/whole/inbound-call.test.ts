/** Whole inbound calls: SIPp as the carrier, a socket as its phone's ear, an HTTP server as the application. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { keepsPace } from '../support/pace.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { test } from '../support/real-time.ts';
import { Receiver } from '../support/receiver.ts';
import { purity, RtpPeer, toneWav } from '../support/rtp-peer.ts';
import { sipp, sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';

describe.skipIf(!sippInstalled)('an inbound call', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) =>
      new URL(request.url).pathname === '/tone.wav'
        ? new Response(toneWav(1000, 2), { headers: { 'content-type': 'audio/wav' } })
        : new Response('<html>', { status: 404 }),
  });

  beforeAll(async () => {
    platform = await Platform.start({ ORPHAN_TIMEOUT_SEC: '20' });
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  test('is announced, answered, hears a 1 kHz file in packets 20 ms apart without a gap, and ends with the right fields', async () => {
    const ear = await RtpPeer.open();
    const earlier = receiver.events.length;
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, keys: { rtp_port: String(ear.port) } });
    const announced = () => receiver.events.slice(earlier).find(({ event }) => event === 'session.created');
    await receiver.until(() => announced() !== undefined, 'session.created');
    const created = announced() ?? never();
    const sessionUuid = String(created.body.session_uuid);
    expect(created.body).toMatchObject({ aud: app.appUuid, caller_id: '+15550009', did: NUMBER, type: 'phone_in' });
    expect(created.headers.get('traceparent')).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);

    const seen = await platform.api(app, 'GET', `/v1/sessions/${sessionUuid}`);
    expect(seen.body).toMatchObject({
      session_uuid: sessionUuid,
      type: 'phone_in',
      status: 'ringing',
      caller_id: '+15550009',
      did: NUMBER,
    });
    expect(String(seen.body.created_at)).toMatch(/\.000Z$/);

    const answer = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`, {});
    expect(answer.status).toBe(202);
    const answered = await receiver.event('session.answered', sessionUuid);
    expect(answered.body.operation_uuid).toBe(answer.body.operation_uuid);

    const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
    const play = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/playback/play`, { type: 'files', urls });
    expect(play.status).toBe(202);
    const started = await receiver.event('playback.started', sessionUuid);
    expect(started.body).toMatchObject({ operation_uuid: play.body.operation_uuid, urls });
    const ended = await receiver.event('playback.ended', sessionUuid);
    expect(ended.body).toMatchObject({ operation_uuid: play.body.operation_uuid, urls, reason: 'completed' });

    const list = await platform.api(app, 'GET', '/v1/sessions?state=answered');
    expect(list.body.sessions).toMatchObject([{ session_uuid: sessionUuid, state: 'answered' }]);

    const gone = await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    expect(gone.status).toBe(202);
    expect(await caller.done).toBe(true);
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({
      answered: true,
      hangup_cause: 'completed',
      hangup_by: 'callee',
      operation_uuid: gone.body.operation_uuid,
    });
    expect(Number(end.body.duration_seconds)).toBeGreaterThanOrEqual(2);

    const loud = ear.packets.filter((packet) => packet.payload.some((byte) => (byte & 0x7f) < 0x60));
    expect(loud.length).toBeGreaterThanOrEqual(99);
    expect(loud.length).toBeLessThanOrEqual(102);
    const first = ear.packets.indexOf(loud[0] ?? ear.packets[0] ?? never());
    const tone = ear.packets.slice(first, first + 100);
    for (const [at, packet] of tone.slice(1).entries()) {
      const before = tone[at] ?? never();
      expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
      expect((packet.timestamp - before.timestamp) >>> 0).toBe(160);
    }
    expect(purity(ear.audio().slice((first + 1) * 160, (first + 99) * 160), 1000)).toBeGreaterThan(0.999);
    expect(
      keepsPace(
        ear.packets.map(({ at }) => at),
        20,
      ),
    ).toBe(true);
    expect((await platform.api(app, 'GET', `/v1/sessions/${sessionUuid}`)).status).toBe(404);
    ear.close();
  }, 30_000);

  test('plays before the answer as early media', async () => {
    const ear = await RtpPeer.open();
    const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, keys: { rtp_port: String(ear.port) } });
    const before = receiver.events.length;
    await receiver.until(() => receiver.events.slice(before).some((event) => event.event === 'session.created'), 'the call');
    const sessionUuid = String(
      receiver.events.slice(before).find((event) => event.event === 'session.created')?.body.session_uuid,
    );
    const urls = [`http://127.0.0.1:${media.port}/tone.wav`];
    const play = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/playback/play`, { type: 'files', urls });
    expect(play.status).toBe(202);
    await ear.until(() => ear.packets.length > 20, 'early media');
    await receiver.event('playback.started', sessionUuid);
    expect((await platform.api(app, 'GET', `/v1/sessions/${sessionUuid}`)).body.status).toBe('early_media');
    await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
    await receiver.event('session.answered', sessionUuid);
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    expect(await caller.done).toBe(true);
    await receiver.event('session.ended', sessionUuid);
    expect(receiver.names(sessionUuid)).toEqual([
      'session.created',
      'playback.started',
      'session.answered',
      'playback.ended',
      'session.ended',
    ]);
    ear.close();
  }, 30_000);

  test('is refused with the status of the reject reason, and ends with the reason as its cause', async () => {
    const cases = [
      ['busy', '486'],
      ['rejected', '603'],
      ['number_not_found', '404'],
    ] as const;
    for (const [reason, status] of cases) {
      const before = receiver.events.length;
      const caller = await sipp({ scenario: 'caller-is-refused', status, to: platform.sipUdp });
      await receiver.until(() => receiver.events.slice(before).some((event) => event.event === 'session.created'), 'the call');
      const sessionUuid = String(
        receiver.events.slice(before).find((event) => event.event === 'session.created')?.body.session_uuid,
      );
      const refused = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/reject`, { reason });
      expect(refused.status).toBe(202);
      expect([status, await caller.done, caller.errors()]).toEqual([status, true, expect.anything()]);
      const end = await receiver.event('session.ended', sessionUuid);
      expect(end.body).toMatchObject({ answered: false, duration_seconds: 0, hangup_cause: reason, hangup_by: 'callee' });
      const again = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/reject`, { reason });
      expect(again.body).toMatchObject({ status: 'completed', already_ended: true });
    }
  }, 30_000);

  test('that the caller gives up is cancelled by the caller', async () => {
    const before = receiver.events.length;
    const caller = await sipp({ scenario: 'caller-cancels', to: platform.sipUdp, pauseMs: 200 });
    expect([await caller.done, caller.errors()]).toEqual([true, expect.anything()]);
    await receiver.until(() => receiver.events.slice(before).some((event) => event.event === 'session.ended'), 'the end');
    expect(receiver.events.slice(before).find((event) => event.event === 'session.ended')?.body).toMatchObject({
      answered: false,
      hangup_cause: 'cancelled',
      hangup_by: 'caller',
    });
  }, 30_000);

  test('for a number that is assigned to nobody is 404, without an event', async () => {
    const before = receiver.events.length;
    const caller = await sipp({ scenario: 'caller-is-refused', status: '404', to: platform.sipUdp, number: '+15559999' });
    expect([await caller.done, caller.errors()]).toEqual([true, expect.anything()]);
    expect(receiver.events.length).toBe(before);
  }, 30_000);

  test('ends once when BYE and three DELETEs come at the same instant', async () => {
    const calls = 40;
    const before = receiver.events.length;
    const callers = await sipp({ scenario: 'caller-hangs-up', to: platform.sipUdp, calls, rate: 40, pauseMs: 400 });
    const statuses: number[] = [];
    const handled = new Set<string>();
    const work: Promise<void>[] = [];
    const act = async (sessionUuid: string) => {
      await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
      await receiver.event('session.answered', sessionUuid);
      // The peer's BYE leaves 400 ms after its ACK: aim the DELETEs at it.
      await Bun.sleep(385 + Math.random() * 20);
      const deletes = await Promise.all([1, 2, 3].map(() => platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`)));
      statuses.push(...deletes.map((answered) => answered.status));
    };
    await receiver.until(() => {
      for (const event of receiver.events.slice(before)) {
        const sessionUuid = String(event.body.session_uuid);
        if (event.event !== 'session.created' || handled.has(sessionUuid)) continue;
        handled.add(sessionUuid);
        work.push(act(sessionUuid));
      }
      return handled.size === calls;
    }, `${calls} calls`);
    await Promise.all(work);
    await callers.done;
    await receiver.until(
      () => receiver.events.slice(before).filter((event) => event.event === 'session.ended').length >= calls,
      'the ends',
    );
    expect(statuses.filter((status) => status !== 202)).toEqual([]);
    for (const sessionUuid of handled)
      expect(receiver.names(sessionUuid)).toEqual(['session.created', 'session.answered', 'session.ended']);
    expect(receiver.badSignatures).toBe(0);
  }, 60_000);
});

function never(): never {
  throw new Error('no packet came');
}
