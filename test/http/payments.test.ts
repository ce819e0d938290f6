/** Charges and collections through the real app and database; the provider is counted. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { isUuid, newUuid } from '../../src/id.ts';
import type { ChargeGateway, ChargeOrder, ChargeOutcome } from '../../src/machine/payment/charge.ts';
import { sandboxProviders } from '../support/providers.ts';
import { openPlatform, type Platform } from './platform.ts';

const TERMINAL = '1234567';
const CARD = '4111111111111111';
const CVV = '7391';

let platform: Platform;
let app: AppSecrets;
let other: AppSecrets;
const seen: { card: string; cvv: string; order: ChargeOrder }[] = [];
let answer: () => Promise<ChargeOutcome> = async () => ({ status: 'declined', reason: 'card_declined' });
const counted: ChargeGateway = {
  identifier: 'sandbox',
  serves: () => true,
  charge(order) {
    seen.push({ card: Buffer.from(order.card).toString(), cvv: Buffer.from(order.cvv).toString(), order });
    return answer();
  },
};

beforeAll(async () => {
  platform = await openPlatform((store, clock) => sandboxProviders(store, clock, counted));
  const { apps, terminals } = platform.testStore.store;
  app = await apps.create({ name: 'one' });
  other = await apps.create({ name: 'two' });
  for (const { appUuid } of [app, other]) await terminals.allow(appUuid, TERMINAL);
});
afterAll(() => platform.close());

/** References as a collection leaves them in the vault. */
async function references(as: AppSecrets, sessionUuid: string, expiresAt = Date.now() + 60_000) {
  const { journal, payments } = platform.testStore.store;
  const card = `card_${newUuid()}`;
  const cvv = `cvv_${newUuid()}`;
  const row = (reference: string, digits: string) => {
    const owner = { appUuid: as.appUuid, sessionUuid, reference };
    return {
      staged: { ...owner, sealed: payments.vault.seal([...digits].map(Number), owner), brand: 'visa', last4: '1111', expiresAt },
    };
  };
  await journal.commit({ events: [], payments: [row(card, CARD), row(cvv, CVV)] });
  return { card_uuid: card, cvv_uuid: cvv };
}
const body = (from: { card_uuid: string; cvv_uuid: string }, more: object = {}) => ({
  ...from,
  exp_month: 1,
  exp_year: 2031,
  amount: 500,
  currency: 'ils',
  provider: 'sandbox',
  terminal_number: TERMINAL,
  ...more,
});
const charge = (sessionUuid: string, request: object, key = newUuid(), as = app) =>
  platform.call(as, 'POST', `/v1/sessions/${sessionUuid}/payment/charges`, request, { 'idempotency-key': key });

async function completed(operationUuid: string): Promise<Record<string, unknown>[]> {
  const { events, outbox } = platform.testStore.store;
  for (let look = 0; look < 100; look++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    outbox.onEvents(resolve);
    const logged = await events.list({ appUuid: app.appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 1000 });
    const found = logged.map(({ body: text }) => JSON.parse(text)).filter((each) => each.operation_uuid === operationUuid);
    if (found.length > 0) return found;
    await promise;
  }
  return [];
}

describe('a charge', () => {
  test('asked for fifty times at once under one key reaches the provider once', async () => {
    const session = platform.session(app, { state: 'answered' });
    const request = body(await references(app, session));
    const before = seen.length;
    const { promise, resolve } = Promise.withResolvers<ChargeOutcome>();
    answer = () => promise;
    const answers = await Promise.all(Array.from({ length: 50 }, () => charge(session, request, 'fifty')));
    expect(seen.slice(before)).toMatchObject([{ card: CARD, cvv: CVV }]);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.every((status) => status === 202 || status === 409)).toBe(true);
    const admitted = answers.find(({ status }) => status === 202)?.body.operation_uuid;
    resolve({ status: 'declined', reason: 'card_declined' });
    expect(await completed(admitted)).toMatchObject([
      { event: 'payment.charge.completed', status: 'declined', retryable: false },
    ]);
    const replay = await charge(session, request, 'fifty');
    expect([replay.status, replay.body.operation_uuid, replay.headers.get('idempotent-replayed')]).toEqual([
      202,
      admitted,
      'true',
    ]);
    expect((await charge(session, { ...request, amount: 600 }, 'fifty')).status).toBe(422);
    expect(seen.length - before).toBe(1);
  });

  test('under many keys with the same references reaches the provider once: references are used up', async () => {
    const session = platform.session(app, { state: 'answered' });
    const request = body(await references(app, session));
    const before = seen.length;
    const answers = await Promise.all([1, 2].map(() => charge(session, request)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    expect(seen.length - before).toBe(1);
  });

  test('has a name of its own at the provider, also where two have one Operation-Id: neither is taken for the other', async () => {
    const session = platform.session(app, { state: 'answered' });
    const operation = newUuid();
    const before = seen.length;
    for (let at = 0; at < 2; at++) {
      const headers = { 'idempotency-key': newUuid(), 'operation-id': operation };
      const path = `/v1/sessions/${session}/payment/charges`;
      const made = await platform.call(app, 'POST', path, body(await references(app, session)), headers);
      expect([made.status, made.body.operation_uuid]).toEqual([202, operation]);
    }
    const orders = seen.slice(before).map(({ order }) => order);
    expect(orders.map(({ operationUuid }) => operationUuid)).toEqual([operation, operation]);
    expect(new Set(orders.map(({ chargeUuid }) => chargeUuid)).size).toBe(2);
    for (const { chargeUuid } of orders) expect(isUuid(chargeUuid)).toBe(true);
  });

  test('wipes what it opened once the provider has answered', async () => {
    const session = platform.session(app, { state: 'answered' });
    const admitted = await charge(session, body(await references(app, session)));
    await completed(admitted.body.operation_uuid);
    const { order } = seen.at(-1) ?? { order: undefined };
    expect([...(order?.card ?? [1]), ...(order?.cvv ?? [1])].every((byte) => byte === 0)).toBe(true);
  });

  test('with references of another Session, of another application, or that have expired, is refused and uses nothing', async () => {
    const session = platform.session(app, { state: 'answered' });
    const elsewhere = platform.session(app, { state: 'answered' });
    const theirs = platform.session(other, { state: 'answered' });
    const good = await references(app, session);
    const before = seen.length;
    expect((await charge(elsewhere, body(good))).status).toBe(404);
    expect((await charge(theirs, body(good), newUuid(), other)).status).toBe(404);
    expect((await charge(session, body(good), newUuid(), other)).status).toBe(404);
    expect((await charge(session, body(await references(app, session, Date.now() - 1)))).status).toBe(409);
    expect(seen.length).toBe(before);
    expect((await charge(session, body(good))).status).toBe(202);
  });

  test('without a key, of a part of a shekel, by another provider or in a call that is over is refused and uses nothing', async () => {
    const session = platform.session(app, { state: 'answered' });
    const good = await references(app, session);
    const before = seen.length;
    const keyless = await platform.call(app, 'POST', `/v1/sessions/${session}/payment/charges`, body(good));
    expect([keyless.status, keyless.body.message]).toEqual([400, 'Idempotency-Key: is required']);
    for (const wrong of [{ amount: 550 }, { provider: 'other' }])
      expect([wrong, (await charge(session, body(good, wrong))).status]).toEqual([wrong, 400]);
    const live = platform.sessions.live.get(session);
    if (live === undefined) throw new Error('no Session');
    platform.sessions.live.delete(session);
    expect((await charge(session, body(good))).status).toBe(404);
    expect((await charge('nonsense', body(good))).status).toBe(404);
    expect(seen.length).toBe(before);
    platform.sessions.live.set(session, live);
    expect((await charge(session, body(good))).status).toBe(202);
    expect(seen.at(-1)?.order.installments).toBe(1);
  });

  test('to a terminal that is not assigned is 403, with no operation and no reference used', async () => {
    const session = platform.session(app, { state: 'answered' });
    const good = await references(app, session);
    expect(await charge(session, body(good, { terminal_number: '7654321' }))).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    });
    expect((await charge(session, body(good))).status).toBe(202);
  });

  test('a gateway that breaks leaves it indeterminate', async () => {
    const session = platform.session(app, { state: 'answered' });
    answer = () => Promise.reject(new Error(CARD));
    const admitted = await charge(session, body(await references(app, session)));
    expect(await completed(admitted.body.operation_uuid)).toMatchObject([
      { status: 'indeterminate', failure_reason: 'internal_error' },
    ]);
  });

  test('takes tokens for what it admits only: 2, then one in five seconds', async () => {
    const session = platform.session(app, { state: 'answered' });
    answer = async () => ({ status: 'declined', reason: 'card_declined' });
    for (let at = 0; at < 5; at++)
      expect((await charge(session, body({ card_uuid: `card_${newUuid()}`, cvv_uuid: `cvv_${newUuid()}` }))).status).toBe(404);
    for (let at = 0; at < 2; at++) expect((await charge(session, body(await references(app, session)))).status).toBe(202);
    const late = await charge(session, body(await references(app, session)));
    expect([late.status, late.headers.get('retry-after')]).toEqual([429, '5']);
  });

  test('expired references are destroyed, and a charge tells them from used ones', async () => {
    const { payments } = platform.testStore.store;
    const session = platform.session(app, { state: 'answered' });
    const soon = Date.now() + 5_000;
    const kept = await references(app, session, soon);
    const gone = await references(app, session, Date.now() - 10);
    expect(await payments.destroyExpired(Date.now())).toBe(soon);
    expect(await payments.cardBrand(app.appUuid, session, kept.card_uuid, Date.now())).toBe('visa');
    const refused = (message: string) => ({ status: 409, body: { code: 'conflict', message } });
    expect(await charge(session, body(gone))).toMatchObject(refused('Payment reference has expired'));
    const late = body({ ...gone, card_uuid: kept.card_uuid });
    expect(await charge(session, late)).toMatchObject(refused('Payment reference has expired'));
    expect((await charge(session, body(kept))).status).toBe(202);
    const again = refused('Payment reference has already been used');
    expect(await charge(session, body(kept))).toMatchObject(again);
    expect(await charge(session, body({ ...gone, card_uuid: kept.card_uuid }))).toMatchObject(again);
  });
});

describe('a collection', () => {
  const path = (session: string, kind: string) => `/v1/sessions/${session}/payment/${kind}/collect`;
  test('has its fields checked, and its own bucket of 4', async () => {
    const session = platform.session(app, { state: 'answered' });
    for (const [kind, wrong] of [
      ['card', { max_attempts: 6 }],
      ['card', { max_attempts: 0 }],
      ['card', { terminators: ['*'] }],
      ['card', { accepted_brands: ['bank'] }],
      ['card', { card_uuid: `card_${newUuid()}` }],
      ['card', { prompt_files: ['ftp://x'] }],
      ['cvv', { accepted_brands: ['visa'] }],
      ['cvv', { card_uuid: CARD }],
    ] as const) {
      const refused = await platform.call(app, 'POST', path(session, kind), wrong);
      expect([kind, refused.status]).toEqual([kind, 400]);
      expect(refused.text).not.toContain(CARD);
    }
    for (let at = 0; at < 4; at++) expect((await platform.call(app, 'POST', path(session, 'card'))).status).toBe(202);
    expect((await platform.call(app, 'POST', path(session, 'card'))).status).toBe(429);
    expect((await platform.call(app, 'POST', path(session, 'cvv'), {})).status).toBe(202);
    expect((await platform.call(other, 'POST', path(session, 'cvv'), {})).status).toBe(404);
  });

  test('is as its fields say, and says the same again where it has no other words for that', async () => {
    const session = platform.session(app, { state: 'answered' });
    const collected = async (kind: string, fields: object) => {
      expect((await platform.call(app, 'POST', path(session, kind), fields)).status).toBe(202);
      return platform.sessions.commands.at(-1)?.command;
    };
    const [ask, again] = ['https://a.example/ask.wav', 'https://a.example/again.wav'];
    expect(await collected('cvv', {})).toMatchObject({ promptUrls: [], terms: { hasPrompt: false, retryUrls: [] } });
    expect(await collected('cvv', { prompt_files: [ask] })).toMatchObject({
      ...{ promptUrls: [ask], terms: { kind: 'cvv', hasPrompt: true, retryUrls: [ask] } },
    });
    const fields = { prompt_files: [ask], retry_prompt_files: [again], accepted_brands: ['visa'], terminators: ['5'] };
    expect(
      await collected('card', { ...fields, max_attempts: 2, first_digit_timeout_ms: 1, inter_digit_timeout_ms: 2 }),
    ).toMatchObject({
      terms: {
        ...{ kind: 'card', retryUrls: [again], acceptedBrands: ['visa'], terminators: ['5'], maxAttempts: 2 },
        ...{ firstDigitTimeoutMs: 1, interDigitTimeoutMs: 2 },
      },
    });
  });
});
