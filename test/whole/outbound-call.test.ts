/** Whole outbound calls: the application dials, SIPp is the carrier that answers in each way a carrier can. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { freePort, type Sipp, sipp, sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';
const CALLEE = '+15550100';

describe.skipIf(!sippInstalled)('an outbound call', () => {
  let platform: Platform;
  let app: Credentials;
  let port: number;
  const receiver = new Receiver();

  beforeAll(async () => {
    platform = await Platform.start();
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    port = await freePort();
    await platform.trunk(`127.0.0.1:${port}`);
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
  });

  const dial = async (more: Record<string, unknown> = {}) => {
    const answer = await platform.api(app, 'POST', '/v1/sessions:dial', {
      from: NUMBER,
      to: CALLEE,
      ring_timeout_sec: 30,
      ...more,
    });
    expect([answer.status, answer.body]).toEqual([202, expect.objectContaining({ status: 'in_progress' })]);
    return String(answer.body.session_uuid);
  };
  const finished = async (callee: Sipp) => expect([await callee.done, callee.errors()]).toEqual([true, expect.anything()]);

  test('goes ringing, early media, answered, ended, each once and in order', async () => {
    const callee = await sipp({ scenario: 'callee-answers', port });
    const sessionUuid = await dial({ client_state: 'order 7' });
    await receiver.event('session.answered', sessionUuid);
    const seen = await platform.api(app, 'GET', `/v1/sessions/${sessionUuid}`);
    const shown = { type: 'phone_out', status: 'answered', caller_id: NUMBER, did: CALLEE, client_state: 'order 7' };
    expect(seen.body).toMatchObject(shown);
    const cancel = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/cancel`);
    expect([cancel.status, cancel.body.code]).toEqual([409, 'conflict']);
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    await finished(callee);
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'caller', client_state: 'order 7' });
    expect(receiver.names(sessionUuid)).toEqual([
      'session.ringing_started',
      'session.early_media_started',
      'session.answered',
      'session.ended',
    ]);
  }, 30_000);

  test('that the callee hangs up is completed by the callee', async () => {
    const callee = await sipp({ scenario: 'callee-hangs-up', port, pauseMs: 1500 });
    const sessionUuid = await dial();
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({ answered: true, hangup_cause: 'completed', hangup_by: 'callee', duration_seconds: 1 });
    await finished(callee);
  }, 30_000);

  test('that is refused ends with the cause of the status', async () => {
    const causes = {
      '486': 'busy',
      '404': 'invalid_number',
      '480': 'not_answered',
      '503': 'carrier_congested',
      '603': 'rejected',
      '408': 'timeout',
    };
    for (const [status, cause] of Object.entries(causes)) {
      const callee = await sipp({ scenario: 'callee-refuses', port, status });
      const sessionUuid = await dial();
      const end = await receiver.event('session.ended', sessionUuid);
      expect([status, end.body]).toEqual([
        status,
        expect.objectContaining({ answered: false, duration_seconds: 0, hangup_cause: cause }),
      ]);
      await finished(callee);
    }
  }, 60_000);

  test('cancelled while it rings sends CANCEL and acknowledges the 487', async () => {
    const callee = await sipp({ scenario: 'callee-is-cancelled', port });
    const sessionUuid = await dial();
    await receiver.event('session.ringing_started', sessionUuid);
    const cancel = await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/cancel`);
    expect(cancel.status).toBe(202);
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({
      answered: false,
      hangup_cause: 'cancelled',
      hangup_by: 'caller',
      operation_uuid: cancel.body.operation_uuid,
    });
    await finished(callee);
  }, 30_000);

  test('that nobody picks up ends as a timeout by the system, counted from the 202', async () => {
    const callee = await sipp({ scenario: 'callee-is-cancelled', port });
    const dialled = performance.now();
    const sessionUuid = await dial({ ring_timeout_sec: 1 });
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({ answered: false, hangup_cause: 'timeout', hangup_by: 'system' });
    expect(performance.now() - dialled).toBeGreaterThanOrEqual(1000);
    await finished(callee);
  }, 30_000);

  test('is refused before it is placed: shape 422, policy 403', async () => {
    const call = (body: unknown) => platform.api(app, 'POST', '/v1/sessions:dial', body);
    const shape = await call({ from: NUMBER, to: 'nobody', ring_timeout_sec: 30 });
    expect([shape.status, shape.body.code]).toEqual([422, 'invalid_request']);
    const policy = await call({ from: '+15559999', to: CALLEE, ring_timeout_sec: 30 });
    expect([policy.status, policy.body.code]).toEqual([403, 'forbidden']);
    expect(policy.body.message).toContain('GET /api/v1/app lists its outbound_caller_ids');
  }, 30_000);

  test('with an Idempotency-Key is placed once, however often it is sent', async () => {
    const callee = await sipp({ scenario: 'callee-hangs-up', port, pauseMs: 50 });
    const body = { from: NUMBER, to: CALLEE, ring_timeout_sec: 30 };
    const key = { 'idempotency-key': 'order-8' };
    const first = await platform.api(app, 'POST', '/v1/sessions:dial', body, key);
    const again = await platform.api(app, 'POST', '/v1/sessions:dial', body, key);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    const other = await platform.api(app, 'POST', '/v1/sessions:dial', { ...body, ring_timeout_sec: 31 }, key);
    expect(other.status).toBe(422);
    await receiver.event('session.ended', String(first.body.session_uuid));
    await finished(callee);
  }, 30_000);

  // This is the last one: its INVITE is repeated for a while, and whoever had the port next would take it.
  test('to a carrier that is not there or never says a word ends too', async () => {
    const sessionUuid = await dial({ ring_timeout_sec: 1 });
    const end = await receiver.event('session.ended', sessionUuid);
    expect(end.body).toMatchObject({ answered: false });
    expect(['timeout', 'carrier_unreachable']).toContain(String(end.body.hangup_cause));
  }, 30_000);
});
