/** Whole payments: SIPp as the carrier, a socket as the phone whose keys are pressed, the sandbox as the provider. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Keypad, keysIn } from '../support/keypad.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpPeer, toneWav } from '../support/rtp-peer.ts';
import { type Sipp, sipp, sippInstalled } from '../support/sipp.ts';

const NUMBER = '+15550002';
const TERMINAL = '1234567';
const GOOD = '4111111111111111';

interface Caller {
  readonly sessionUuid: string;
  readonly ear: RtpPeer;
  readonly keypad: Keypad;
  readonly sipp: Sipp;
}

describe.skipIf(!sippInstalled)('a payment', () => {
  let platform: Platform;
  let app: Credentials;
  const receiver = new Receiver();
  const media = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) =>
      new URL(request.url).pathname === '/prompt.wav' ? new Response(toneWav(500, 0.2)) : new Response('no', { status: 404 }),
  });
  const prompt = [`http://127.0.0.1:${media.port}/prompt.wav`];

  beforeAll(async () => {
    platform = await Platform.start({ LOG_LEVEL: 'trace' });
    app = await platform.application(receiver.url, NUMBER);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await platform.trunk('127.0.0.1:9');
    await platform.operator('PUT', `/apps/${app.appUuid}/payment-terminals/${TERMINAL}`);
  }, 60_000);

  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await media.stop(true);
  });

  const call = async (): Promise<Caller> => {
    const ear = await RtpPeer.open();
    const known = new Set(receiver.events.map((event) => event.body.session_uuid));
    const peer = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, keys: { rtp_port: String(ear.port) } });
    const isNew = () => receiver.events.find((event) => event.event === 'session.created' && !known.has(event.body.session_uuid));
    await receiver.until(() => isNew() !== undefined, 'a call');
    const sessionUuid = String(isNew()?.body.session_uuid);
    await platform.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`);
    await receiver.event('session.answered', sessionUuid);
    await ear.until(() => ear.source !== undefined, 'audio');
    return { sessionUuid, ear, keypad: new Keypad(ear), sipp: peer };
  };
  const post = (caller: Caller, path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
    platform.api(app, 'POST', `/v1/sessions/${caller.sessionUuid}${path}`, body, headers);
  const hangUp = async ({ sessionUuid, sipp: peer, ear }: Caller) => {
    await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
    await peer.done;
    await receiver.event('session.ended', sessionUuid);
    ear.close();
  };
  const result = async (caller: Caller, kind: 'card' | 'cvv', operationUuid: unknown) => {
    const find = () =>
      receiver
        .of(caller.sessionUuid)
        .find(({ event, body }) => event === `payment.${kind}.collected` && body.operation_uuid === operationUuid);
    await receiver.until(() => find() !== undefined, `payment.${kind}.collected`);
    return find()?.body ?? {};
  };
  const collect = async (caller: Caller, kind: 'card' | 'cvv', keys: string, more: object = {}) => {
    const admitted = await post(caller, `/payment/${kind}/collect`, more);
    expect(admitted).toMatchObject({ status: 202, body: { status: 'in_progress' } });
    caller.keypad.press(keys);
    return result(caller, kind, admitted.body.operation_uuid);
  };
  const charge = (references: object, more: object = {}) => ({
    ...references,
    exp_month: 12,
    exp_year: 2030,
    amount: 12_300,
    currency: 'ils',
    provider: 'sandbox',
    terminal_number: TERMINAL,
    ...more,
  });
  const both = async (caller: Caller, card = GOOD) => {
    const { card_uuid } = await collect(caller, 'card', `${card}#`);
    const { cvv_uuid } = await collect(caller, 'cvv', '737#', { card_uuid });
    return { card_uuid, cvv_uuid };
  };
  const completed = async (operationUuid: unknown) => {
    const find = () =>
      receiver.events.find(({ event, body }) => event === 'payment.charge.completed' && body.operation_uuid === operationUuid);
    await receiver.until(() => find() !== undefined, 'payment.charge.completed');
    return find()?.body ?? {};
  };

  test('by card and CVV keyed in over prompts is charged; nobody is told of a digit', async () => {
    const caller = await call();
    const wrong = await post(caller, '/payment/card/collect', { prompt_files: prompt, retry_prompt_files: prompt });
    expect(wrong.status).toBe(202);
    for (const [path, body] of [
      ['/dtmf/collect', {}],
      ['/playback/play', { type: 'files', urls: prompt }],
      ['/payment/cvv/collect', {}],
    ] as const)
      expect(await post(caller, path, body)).toMatchObject({ status: 409, body: { code: 'conflict' } });
    caller.keypad.press('4111111111111112#');
    // The second attempt begins over, after a slip of the finger.
    caller.keypad.press(`42*${GOOD}#`);
    const card = await result(caller, 'card', wrong.body.operation_uuid);
    expect(card).toMatchObject({
      aud: app.appUuid,
      session_uuid: caller.sessionUuid,
      status: 'collected',
      payment_method_details: { card: { brand: 'visa', last4: '1111' } },
    });
    expect(String(card.card_uuid)).toMatch(/^card_[0-9a-f-]{36}$/);
    const cvv = await collect(caller, 'cvv', '737#', { card_uuid: card.card_uuid, prompt_files: prompt });
    expect(String(cvv.cvv_uuid)).toMatch(/^cvv_[0-9a-f-]{36}$/);
    const references = { card_uuid: card.card_uuid, cvv_uuid: cvv.cvv_uuid };

    const admitted = await post(caller, '/payment/charges', charge(references, { installments: 3 }), {
      'idempotency-key': 'first',
    });
    expect(admitted).toMatchObject({ status: 202, body: { status: 'in_progress' } });
    const done = await completed(admitted.body.operation_uuid);
    expect(done).toMatchObject({
      session_uuid: caller.sessionUuid,
      status: 'succeeded',
      retryable: false,
      amount: 12_300,
      currency: 'ils',
      provider: 'sandbox',
      terminal_number: TERMINAL,
      installments: 3,
      transaction_type: 'installments',
      payment_method_details: { card: { brand: 'visa', last4: '1111' } },
    });
    const replay = await post(caller, '/payment/charges', charge(references, { installments: 3 }), {
      'idempotency-key': 'first',
    });
    expect([replay.status, replay.body, replay.headers.get('idempotent-replayed')]).toEqual([202, admitted.body, 'true']);
    expect(await post(caller, '/payment/charges', charge(references), { 'idempotency-key': 'second' })).toMatchObject({
      status: 409,
    });

    expect(receiver.of(caller.sessionUuid).map(({ event }) => event)).not.toContain('dtmf.received');
    await hangUp(caller);
    expect(receiver.count('payment.charge.completed')).toBe(1);
  }, 60_000);

  test('is keyed in by tones in the audio as well', async () => {
    const caller = await call();
    const admitted = await post(caller, '/payment/card/collect', { accepted_brands: ['isracard'] });
    expect(admitted.status).toBe(202);
    await caller.keypad.dial('12345679#');
    expect(await result(caller, 'card', admitted.body.operation_uuid)).toMatchObject({
      status: 'collected',
      payment_method_details: { card: { brand: 'isracard', last4: '5679' } },
    });
    expect(receiver.of(caller.sessionUuid).map(({ event }) => event)).not.toContain('dtmf.received');
    await hangUp(caller);
  }, 30_000);

  test('leaves no tone of its keys in any recording, which goes on where the application unmasks it', async () => {
    const caller = await call();
    const record = async (include_gaps: boolean): Promise<string> => {
      const made = await post(caller, '/recordings', { direction: 'both', channels: 'mono', include_gaps });
      return String(made.body.recording_uuid);
    };
    const recordings = [await record(true), await record(false)];
    const available = () => receiver.of(caller.sessionUuid).filter(({ event }) => event === 'recording.became_available').length;
    await caller.keypad.dial('5');
    await receiver.until(() => available() === 2, 'both recordings');
    const once = { prompt_files: prompt, max_attempts: 1, first_digit_timeout_ms: 2000, inter_digit_timeout_ms: 1000 };
    const admitted = await post(caller, '/payment/card/collect', once);
    expect(admitted.status).toBe(202);
    for (const [path, body] of [
      ['/recordings', { direction: 'both', channels: 'mono' }],
      [`/recordings/${recordings[0]}/unmask`, {}],
    ] as const)
      expect(await post(caller, path, body)).toMatchObject({
        status: 409,
        body: { message: 'Secure collection is in progress' },
      });
    await caller.keypad.dial(`${GOOD}#`);
    // However well the tones were understood: on a busy machine they come in pieces.
    await result(caller, 'card', admitted.body.operation_uuid);
    const live = await platform.api(app, 'GET', `/v1/sessions/${caller.sessionUuid}/recordings`);
    expect(live.body).toMatchObject({ recordings: [{ masked: true }, { masked: true }] });
    // The last key may still sound, for all the application knows.
    for (const each of recordings) expect((await post(caller, `/recordings/${each}/unmask`)).status).toBe(202);
    await caller.keypad.dial('8');
    const heard = caller.ear.packets.length;
    await caller.ear.until(() => caller.ear.packets.length >= heard + 15, 'what was still on its way');
    await hangUp(caller);
    for (const each of recordings) {
      const wav = await readFile(join(platform.dataDir, 'recordings', `${each}.wav`));
      const pcm = new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length));
      expect(keysIn(Float32Array.from(pcm, (sample) => sample / 32_768))).toBe('58');
    }
  }, 60_000);

  test('is refused by the rules before anything is begun', async () => {
    const caller = await call();
    const references = { card_uuid: `card_${crypto.randomUUID()}`, cvv_uuid: `cvv_${crypto.randomUUID()}` };
    const refused = async (body: object, status: number, key: string | undefined = crypto.randomUUID()) => {
      const headers = key === undefined ? undefined : { 'idempotency-key': key };
      const answer = await platform.api(app, 'POST', `/v1/sessions/${caller.sessionUuid}/payment/charges`, body, headers ?? {});
      expect([body, answer.status]).toEqual([body, status]);
    };
    const none = await platform.api(app, 'POST', `/v1/sessions/${caller.sessionUuid}/payment/charges`, charge(references));
    expect(none.status).toBe(400);
    await refused(charge(references, { amount: 12_345 }), 400);
    await refused(charge(references, { provider: 'other' }), 400);
    await refused(charge(references, { currency: 'usd' }), 400);
    await refused(charge(references, { amount: 0 }), 400);
    await refused(charge(references, { terminal_number: '123' }), 400);
    await refused(charge(references, { terminal_number: '7654321' }), 403);
    await refused(charge(references), 404);
    await hangUp(caller);
    await refused(charge(references), 404);
    expect(receiver.of(caller.sessionUuid).map(({ event }) => event)).not.toContain('payment.charge.completed');
  }, 60_000);

  test('declined is declined, and one that times out is indeterminate and not retryable', async () => {
    const caller = await call();
    const declined = await post(caller, '/payment/charges', charge(await both(caller, '4000000000000002')), {
      'idempotency-key': 'd',
    });
    expect(await completed(declined.body.operation_uuid)).toMatchObject({ status: 'declined', retryable: false });
    const lost = await post(caller, '/payment/charges', charge(await both(caller, '4000000000000119')), {
      'idempotency-key': 'l',
    });
    expect(await completed(lost.body.operation_uuid)).toMatchObject({
      status: 'indeterminate',
      retryable: false,
      failure_reason: 'provider_timeout',
    });
    await hangUp(caller);
  }, 60_000);

  test('whose provider is being asked when the platform is killed ends as indeterminate, once, and its collection as failed', async () => {
    const caller = await call();
    const other = await call();
    const lost = await post(caller, '/payment/charges', charge(await both(caller, '4000000000000119')), {
      'idempotency-key': 'k',
    });
    expect(lost.status).toBe(202);
    const half = await post(other, '/payment/card/collect');
    other.keypad.press('41111111');
    await platform.kill();
    caller.sipp.stop();
    other.sipp.stop();
    await platform.start();
    expect(await completed(lost.body.operation_uuid)).toMatchObject({ status: 'indeterminate', failure_reason: 'interrupted' });
    expect(await result(other, 'card', half.body.operation_uuid)).toMatchObject({ status: 'failed', reason: 'internal_error' });
    const ended = receiver.events.filter(({ body }) => body.operation_uuid === lost.body.operation_uuid);
    expect(ended.map(({ event }) => event)).toEqual(['payment.charge.completed']);
    for (const { sessionUuid, ear } of [caller, other]) {
      await platform.api(app, 'DELETE', `/v1/sessions/${sessionUuid}`);
      await receiver.event('session.ended', sessionUuid);
      ear.close();
    }
  }, 90_000);
});
