import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { IncomingMessages } from '../../src/call/message/incoming-messages.ts';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import { systemClock } from '../../src/clock.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { MessageStore } from '../../src/database/messages.ts';
import { mayReach } from '../../src/destinations.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import type { MessageState } from '../../src/machine/message/message.ts';
import { isProblem } from '../../src/problem.ts';
import { SmppGateway } from '../../src/provider/smpp-gateway.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { Smsc } from './smsc.ts';

/** SMPP 3.4 §5.1.3. */
const ESME_RX_P_APPN = 0x65;

const FROM = '+15550001';
const TO = '+972500000001';
const HEBREW = 'שלום, ההזמנה שלך בדרך אליך. '.repeat(4);

let store: TestStore;
let appUuid: string;
let smsc: Smsc;
let dispatcher: MessageDispatcher;

beforeAll(async () => {
  store = await openTestStore();
  appUuid = (await store.store.apps.create({ name: 'sms' })).appUuid;
});
afterAll(() => store.close());
beforeEach(async () => {
  smsc = await Smsc.open();
  dispatcher = await connected();
});
afterEach(async () => {
  await dispatcher.close();
  await smsc.close();
});

async function connected(
  more: { window?: number; ratePerSec?: number; longMessages?: 'udh' | 'payload'; port?: number; messages?: MessageStore } = {},
) {
  const clock = systemClock();
  const settings = {
    kind: 'smpp' as const,
    host: '127.0.0.1',
    port: more.port ?? smsc.port,
    systemId: 'user',
    password: 'secret',
    systemType: '',
    window: more.window ?? 10,
    ratePerSec: more.ratePerSec,
    longMessages: more.longMessages ?? ('udh' as const),
  };
  const gateway = new SmppGateway(settings, clock, silentLog);
  const options = {
    store: more.messages ?? store.store.messages,
    gateway,
    clock,
    log: silentLog,
    incoming: new IncomingMessages({ store: store.store.received, clock, log: silentLog, owner: store.store.numbers.owner }),
    reachOf: async () => mayReach(),
    mayCallFrom: async () => true,
  };
  const made = new MessageDispatcher(options);
  await made.start();
  return made;
}

async function send(text: string, from = appUuid): Promise<string> {
  const context = { appUuid: from, operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
  const answer = await dispatcher.send({ from: FROM, to: TO, text }, context);
  if (isProblem(answer)) throw new Error(answer.message);
  return String(answer.body.message_uuid);
}

/** Resolves when the message is in one of the statuses; looked at after each event. */
async function until(messageUuid: string, ...statuses: MessageState['status'][]): Promise<MessageState> {
  for (let look = 0; look < 400; look++) {
    const message = await store.store.messages.get(appUuid, messageUuid);
    if (message !== undefined && statuses.includes(message.status)) return message;
    const { promise, resolve } = Promise.withResolvers<void>();
    store.store.outbox.onEvents(resolve);
    await Promise.race([promise, Bun.sleep(50)]);
  }
  throw new Error(`never ${statuses.join(' or ')}`);
}

async function events(messageUuid: string): Promise<string[]> {
  const logged = await store.store.events.list({ appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 1000 });
  return logged
    .map((event) => JSON.parse(event.body))
    .filter((body) => body.message_uuid === messageUuid)
    .map((body) => body.status);
}

describe('short messages over SMPP', () => {
  test('in Hebrew arrives in UCS-2 segments with one header, and is delivered when each has its receipt', async () => {
    const uuid = await send(HEBREW);
    const sent = await until(uuid, 'sent');
    expect(sent).toMatchObject({ encoding: 'ucs2', segments: 2 });
    expect(smsc.submissions.map(({ dataCoding, esmClass }) => [dataCoding, esmClass])).toEqual([
      [8, 0x40],
      [8, 0x40],
    ]);
    const reference = smsc.submissions[0]?.udh?.[3] ?? -1;
    expect(smsc.submissions.map(({ udh }) => [...(udh ?? [])])).toEqual([
      [5, 0, 3, reference, 2, 1],
      [5, 0, 3, reference, 2, 2],
    ]);
    const text = smsc.submissions.map(({ octets }) => new TextDecoder('utf-16be').decode(octets)).join('');
    expect(text).toBe(HEBREW);
    expect(smsc.submissions[0]).toMatchObject({ from: '15550001', to: '972500000001' });
    for (const { messageId } of smsc.submissions) expect(await smsc.receipt('972500000001', messageId)).toBe(0);
    await until(uuid, 'delivered');
    expect(await events(uuid)).toEqual(['sending', 'sent', 'delivered']);
  });

  test('whose id has NUL in it is delivered by the receipt of that id', async () => {
    // The codec reads seven bits of each octet of an id.
    smsc.idOf = (number) => `${number}\x80`;
    const uuid = await send('hello');
    await until(uuid, 'sent');
    expect(await smsc.receipt(TO, `${smsc.lastNumber}\0`)).toBe(0);
    await until(uuid, 'delivered');
  });

  test('of 400 GSM characters is three segments of 153, 153 and 94', async () => {
    const uuid = await send('x'.repeat(400));
    await until(uuid, 'sent');
    expect(smsc.submissions.map(({ octets, dataCoding }) => [octets.length, dataCoding])).toEqual([
      [153, 0],
      [153, 0],
      [94, 0],
    ]);
  });

  test('goes as one message_payload where that is asked for', async () => {
    await dispatcher.close();
    dispatcher = await connected({ longMessages: 'payload' });
    const uuid = await send('x'.repeat(400));
    expect((await until(uuid, 'sent')).segments).toBe(3);
    expect(smsc.submissions.map(({ octets, viaPayload, esmClass }) => [octets.length, viaPayload, esmClass])).toEqual([
      [400, true, 0],
    ]);
    await smsc.receipt('972500000001', smsc.submissions[0]?.messageId ?? '');
    await until(uuid, 'delivered');
  });

  test.each([
    ['udh', 'payload', ['153', '153', '94']],
    ['payload', 'udh', ['400 as payload']],
  ] as const)(
    'queued with long=%s goes out as it was queued, whole and once, where that is %s by then',
    async (before, after, expected) => {
      await dispatcher.close();
      smsc.bindStatus = 0x0d;
      dispatcher = await connected({ longMessages: before });
      const uuid = await send('x'.repeat(400));
      await dispatcher.close();
      smsc.bindStatus = 0;
      dispatcher = await connected({ longMessages: after });
      await until(uuid, 'sent');
      expect(smsc.submissions.map(({ octets, viaPayload }) => `${octets.length}${viaPayload ? ' as payload' : ''}`)).toEqual([
        ...expected,
      ]);
    },
  );

  test('that is throttled is sent again later, and once only', async () => {
    smsc.misbehave = (attempt) => (attempt === 1 ? { status: 0x58 } : undefined);
    const uuid = await send('later');
    await until(uuid, 'sent');
    expect([smsc.attempts, smsc.submissions.length]).toEqual([2, 1]);
  });

  test('waits for room in a full queue part by part: what was taken is not sent again', async () => {
    smsc.misbehave = (attempt) => (attempt === 2 ? { status: 0x14 } : undefined);
    const uuid = await send('x'.repeat(400));
    await until(uuid, 'sent');
    expect(smsc.submissions.map(({ udh }) => udh?.[5])).toEqual([1, 2, 3]);
  });

  test('is sent once by an SMSC that gives no ids, part by part', async () => {
    smsc.idOf = () => '';
    smsc.misbehave = (attempt) => (attempt === 2 ? { status: 0x14 } : undefined);
    await until(await send('x'.repeat(400)), 'sent');
    expect(smsc.submissions.map(({ udh }) => udh?.[5])).toEqual([1, 2, 3]);
  });

  test('that the SMSC refuses is failed with a reason', async () => {
    smsc.misbehave = () => ({ status: 0x0b });
    const failed = await until(await send('no such number'), 'failed');
    expect(failed).toMatchObject({ errorCode: 'invalid_recipient' });
    expect(failed.errorMessage).toContain('0x0000000b');
  });

  test('whose response is lost with the connection is failed, never sent twice, and the next one goes out', async () => {
    smsc.misbehave = (attempt) => (attempt === 1 ? 'drop' : undefined);
    const lost = await send('lost');
    expect(await until(lost, 'failed')).toMatchObject({ errorCode: 'outcome_unknown' });
    const next = await send('next');
    await until(next, 'sent');
    expect([smsc.attempts, smsc.binds]).toEqual([2, 2]);
  });

  test('waits in the database while there is no SMSC, and goes out when there is one', async () => {
    const { port } = smsc;
    await smsc.close();
    const uuid = await send('patient');
    expect((await store.store.messages.get(appUuid, uuid))?.status).toBe('queued');
    smsc = await Smsc.open(port);
    await until(uuid, 'sent');
    expect(smsc.submissions).toHaveLength(1);
  });

  test.each([
    [
      'decimal in the response, hexadecimal in the receipt',
      (n: number) => String(n),
      (n: number) => n.toString(16).toUpperCase(),
    ],
    [
      'hexadecimal in the response, decimal in the receipt',
      (n: number) => n.toString(16),
      (n: number) => String(n).padStart(10, '0'),
    ],
    ['with an underscore', (n: number) => `a_${n}`, (n: number) => `A_${n}`],
  ])('finds its receipt when the id is %s', async (_, idOf, inReceipt) => {
    smsc.idOf = idOf;
    const uuid = await send('ids');
    await until(uuid, 'sent');
    await smsc.receipt('972500000001', inReceipt(smsc.lastNumber));
    await until(uuid, 'delivered');
  });

  test('is delivered by receipted_message_id and message_state, without any text', async () => {
    const uuid = await send('tlv');
    await until(uuid, 'sent');
    const [{ messageId } = { messageId: '' }] = smsc.submissions;
    const tlv = { receipted_message_id: messageId, message_state: 2, short_message: Buffer.alloc(0) };
    expect(await smsc.deliver({ esm_class: 4, source_addr: '972500000001', ...tlv })).toBe(0);
    await until(uuid, 'delivered');
  });

  test('is delivered by a receipted_message_id that has no NUL at its end', async () => {
    const uuid = await send('tlv');
    await until(uuid, 'sent');
    const id = Buffer.from(String(smsc.lastNumber));
    const fields = Buffer.concat([Buffer.of(0x00, 0x1e, 0, id.length), id, Buffer.of(0x04, 0x27, 0, 1, 2)]);
    expect(await smsc.deliver({ esm_class: 4, source_addr: '972500000001' }, 'user', fields)).toBe(0);
    await until(uuid, 'delivered');
  });

  test.each([
    ['IA5', 1, (text: string) => Buffer.from(text, 'latin1')],
    ['octets', 4, (text: string) => Buffer.from(text, 'latin1')],
    ['UCS-2', 8, (text: string) => Buffer.from(text, 'utf16le').swap16()],
    ['UCS-2 that it is not, as its message was', 8, (text: string) => Buffer.from(text, 'latin1')],
  ])('finds its receipt when that says it is in %s', async (_, data_coding, octets) => {
    smsc.idOf = (number) => `a_${number}@b`;
    const uuid = await send(HEBREW.slice(0, 20));
    await until(uuid, 'sent');
    const text = `id:a_${smsc.lastNumber}@b sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:DELIVRD err:000 text:`;
    await smsc.deliver({ esm_class: 4, source_addr: '972500000001', data_coding, short_message: octets(text) });
    await until(uuid, 'delivered');
  });

  test('that expires is undelivered; a second receipt changes nothing', async () => {
    const uuid = await send('expires');
    await until(uuid, 'sent');
    const [{ messageId } = { messageId: '' }] = smsc.submissions;
    await smsc.receipt('972500000001', messageId, 'EXPIRED', '027');
    expect(await until(uuid, 'undelivered')).toMatchObject({ errorCode: 'expired' });
    await smsc.receipt('972500000001', messageId);
    expect((await store.store.messages.get(appUuid, uuid))?.status).toBe('undelivered');
    expect(await events(uuid)).toEqual(['sending', 'sent', 'undelivered']);
  });

  test('a receipt that overtakes its response is not lost', async () => {
    smsc.idOf = (number) => {
      void smsc.receipt('972500000001', String(number));
      return String(number);
    };
    await until(await send('overtaken'), 'delivered');
  });

  test('a receipt is taken once the outcome of its submission is stored, however long the database is away in between', async () => {
    await dispatcher.close();
    const { messages } = store.store;
    let away = true;
    const change: MessageStore['change'] = (...order) =>
      away ? Promise.reject(new StoreUnavailable('away')) : messages.change(...order);
    smsc.idOf = () => 'stored-late';
    dispatcher = await connected({ messages: { ...messages, change } });
    const uuid = await send('stored late');
    await until(uuid, 'sending');
    while (smsc.submissions.length === 0) await Bun.sleep(5);
    expect(await smsc.receipt('972500000001', 'stored-late')).not.toBe(0);
    away = false;
    // The receipt is looked up once more by itself when the outcome is stored: "sent" may be over at once.
    await until(uuid, 'sent', 'delivered');
    expect(await smsc.receipt('972500000001', 'stored-late')).toBe(0);
    await until(uuid, 'delivered');
    expect(await events(uuid)).toEqual(['sending', 'sent', 'delivered']);
  });

  test('what a claim took whose answer was lost is given back, and goes out once', async () => {
    await dispatcher.close();
    const { messages } = store.store;
    let isLost = true;
    const claim: MessageStore['claim'] = async (...order) => {
      const claimed = await messages.claim(...order);
      if (!isLost || claimed.length === 0) return claimed;
      isLost = false;
      throw new StoreUnavailable('the database did not answer in time');
    };
    dispatcher = await connected({ messages: { ...messages, shared: false, claim } });
    const uuid = await send('claimed by nobody');
    await until(uuid, 'sent');
    expect(await events(uuid)).toEqual(['sending', 'sent']);
    expect(smsc.submissions).toHaveLength(1);
  });

  test('a window of 3 is never exceeded, and everything goes out', async () => {
    await dispatcher.close();
    dispatcher = await connected({ window: 3 });
    let most = 0;
    smsc.misbehave = () => {
      most = Math.max(most, dispatcher.submitting);
      return undefined;
    };
    const uuids = await Promise.all(Array.from({ length: 30 }, (_, at) => send(`message ${at}`)));
    for (const uuid of uuids) await until(uuid, 'sent');
    expect(most).toBeLessThanOrEqual(3);
    expect(smsc.submissions).toHaveLength(30);
  });

  for (const window of [1, 3])
    test(`of several applications take turns (window ${window})`, async () => {
      await dispatcher.close();
      dispatcher = await connected({ window });
      smsc.misbehave = () => 'ignore';
      const held = await Promise.all(Array.from({ length: window }, () => send('held')));
      await smsc.until(() => smsc.attempts === window, 'the window to be full');
      const [second = '', third = ''] = await Promise.all(
        ['second', 'third'].map(async (name) => (await store.store.apps.create({ name })).appUuid),
      );
      for (let at = 0; at < 8; at++) await send('campaign', second);
      for (let at = 0; at < 3; at++) await send(`code ${at}`, third);
      smsc.misbehave = () => undefined;
      smsc.drop();
      for (const uuid of held) await until(uuid, 'failed');
      await smsc.until(() => smsc.submissions.length === 11, 'the rest');
      const texts = smsc.submissions.map(({ octets }) => Buffer.from(octets).toString('latin1'));
      const lastCode = Math.max(...texts.flatMap((text, at) => (text.startsWith('code') ? [at] : [])));
      expect([texts.filter((text) => text === 'campaign').length, lastCode <= 5 + window]).toEqual([8, true]);
    });

  test('a rate is kept to by all parts together, and everything goes out', async () => {
    await dispatcher.close();
    dispatcher = await connected({ ratePerSec: 50 });
    const at: number[] = [];
    smsc.misbehave = () => {
      at.push(performance.now());
      return undefined;
    };
    const uuids = await Promise.all(Array.from({ length: 5 }, () => send('x'.repeat(400))));
    for (const uuid of uuids) await until(uuid, 'sent');
    const tookMs = (at.at(-1) ?? 0) - (at[0] ?? 0);
    expect([at.length, tookMs >= 14 * 20 - 15]).toEqual([15, true]);
  });

  test('garbage, impossible lengths and unknown commands cost the connection at most', async () => {
    await until(await send('first'), 'sent');
    smsc.write(Buffer.from([0, 0, 0, 16, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0, 7]));
    smsc.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    await until(await send('second'), 'sent');
    smsc.write(Buffer.from([0, 0, 0, 20, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 8, 65, 66, 67, 68]));
    await until(await send('third'), 'sent');
    expect(smsc.submissions).toHaveLength(3);
  });

  test('a receipt with an optional field that makes no sense counts, and neither it nor any other request ends the connection', async () => {
    const uuid = await send('first');
    await until(uuid, 'sent');
    const [{ messageId } = { messageId: '' }] = smsc.submissions;
    const receipt = { esm_class: 4, source_addr: '972500000001', receipted_message_id: messageId, message_state: 2 };
    // A callback_num (0x0381) of no octets, and a user_message_reference (0x0204) that ends with the PDU.
    expect(await smsc.deliver(receipt, 'user', Buffer.from([0x03, 0x81, 0, 0, 0x02, 0x04, 0, 0]))).toBe(0);
    await until(uuid, 'delivered');
    // A schedule_delivery_time that is none: refused for good, or the SMSC would send it again and again.
    const addressed = [0, 1, 1, 0x31, 0, 1, 1, 0x32, 0, 4, 0, 0];
    expect(await smsc.request(0x5, Buffer.from([...addressed, ...Buffer.from('xR'), 0]))).toBe(ESME_RX_P_APPN);
    // Every request of SMPP 3.4 but unbind, an alert_notification and an outbind among them, without any field.
    for (const id of [0x1, 0x2, 0x3, 0x4, 0x7, 0x8, 0x9, 0xb, 0x21, 0x102, 0x103]) smsc.write(smsc.frame(id, Buffer.alloc(0)));
    await until(await send('second'), 'sent');
    expect(smsc.binds).toBe(1);
  });

  test('what another process held when it was killed is failed at the next start, and what only waited goes out', async () => {
    await dispatcher.close();
    smsc.misbehave = () => 'ignore';
    dispatcher = await connected({ window: 1 });
    const held = await send('held');
    // Two that are sent within a millisecond are due at once, and either may be the first.
    await smsc.until(() => smsc.attempts === 1, 'a submission');
    const waits = await send('waits');
    // Nobody settles the first, as after a kill -9.
    smsc.misbehave = () => undefined;
    const second = await connected();
    expect(await until(held, 'failed')).toMatchObject({ errorCode: 'outcome_unknown' });
    await until(waits, 'sent');
    smsc.drop();
    await second.close();
    expect(smsc.submissions).toHaveLength(1);
  });
});
