/** Texts from telephones over SMPP, to the events of the applications that have the numbers, on a real PostgreSQL. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { IncomingMessages } from '../../src/call/message/incoming-messages.ts';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { ReceivedStore } from '../../src/database/received-messages.ts';
import { mayReach } from '../../src/destinations.ts';
import { silentLog } from '../../src/log.ts';
import { concatenationHeader, segment } from '../../src/machine/message/segments.ts';
import { SmppGateway } from '../../src/provider/smpp-gateway.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { Kannel, kannelInstalled } from './kannel.ts';
import { Smsc } from './smsc.ts';

/** SMPP 3.4 §5.1.3. */
const ESME_RINVDSTADR = 0x0b;
const ESME_RX_T_APPN = 0x64;
const TEN_MINUTES_MS = 600_000;

let store: TestStore;
let appUuid: string;
let smsc: Smsc;
let dispatcher: MessageDispatcher;
/** A further one on the same database, with messages off. */
let withoutMessages: MessageDispatcher;
let incoming: IncomingMessages;
/** What the clock is ahead by, in milliseconds. */
let ahead = 0;
/** The store that the messages go to. */
let received: ReceivedStore;
let numbers = 1000;
/** A number of the application that nobody has written to. */
let number = '';

beforeAll(async () => {
  store = await openTestStore();
  appUuid = (await store.store.apps.create({ name: 'inbox' })).appUuid;
});
afterAll(() => store.close());
beforeEach(async () => {
  received = store.store.received;
  number = `+1555${++numbers}`;
  await store.store.numbers.assign(number, appUuid);
  smsc = await Smsc.open();
  const wall = systemClock();
  const clock: Clock = { ...wall, now: () => wall.now() + ahead, at: (time, call) => wall.at(time - ahead, call) };
  const settings = { host: '127.0.0.1', port: smsc.port, systemId: 'user', password: 'secret', systemType: '', window: 5 };
  incoming = new IncomingMessages({
    store: { take: (...part) => received.take(...part), giveUp: (...time) => received.giveUp(...time) },
    clock,
    log: silentLog,
    owner: store.store.numbers.owner,
  });
  const options = {
    ...{ store: store.store.messages, clock, log: silentLog, incoming },
    ...{ reachOf: async () => mayReach(), mayCallFrom: async () => true },
  };
  const gateway = new SmppGateway({ kind: 'smpp', ...settings, longMessages: 'udh' }, clock, silentLog);
  dispatcher = new MessageDispatcher({ ...options, gateway });
  withoutMessages = new MessageDispatcher({ ...options, gateway: undefined });
  await dispatcher.start();
  await smsc.until(() => smsc.bound === 1, 'the bind');
});
afterEach(async () => {
  await dispatcher.close();
  await smsc.close();
});

/** The events of texts to the number, in order. */
async function told(): Promise<{ from: string; text: string; segments: number; missing_segments: number }[]> {
  const query = { appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 1000 };
  const bodies = (await store.store.events.list(query)).map(({ body }) => JSON.parse(body));
  return bodies.filter(({ event, to }) => event === 'message.received' && to === number);
}
const texts = async () => (await told()).map(({ text }) => text);
const addressed = (from = '972501112222') => ({ source_addr_ton: 1, source_addr: from, destination_addr: number.slice(1) });
const write = (text: string, more: Readonly<Record<string, unknown>> = {}) =>
  smsc.deliver({ ...addressed(), short_message: Buffer.from(text, 'latin1'), ...more });
/** The segments of a text, as a telephone sends them. */
const segmentsOf = (text: string, reference = 7) => {
  const { encoding, segments } = segment(text);
  return segments.map((octets, at) => ({
    ...addressed(),
    esm_class: 0x40,
    data_coding: encoding === 'ucs2' ? 8 : 0,
    short_message: Buffer.concat([concatenationHeader(reference, segments.length, at + 1), octets]),
  }));
};
const LONG = 'שלום, אשמח שתחזרו אלי מחר בבוקר 😀. '.repeat(6);

describe('A text from a telephone', () => {
  test('is told to the application that has its number, whole, and acknowledged', async () => {
    expect(await write('Yes, please')).toBe(0);
    expect(await told()).toEqual([
      expect.objectContaining({ from: '+972501112222', to: number, text: 'Yes, please', segments: 1, missing_segments: 0 }),
    ]);
  });

  test('to a number that nobody has is refused, and told to nobody', async () => {
    await store.store.numbers.unassign(number);
    expect(await write('Anybody?')).toBe(ESME_RINVDSTADR);
    // A number in a national form, and none at all, are nobody's either.
    for (const destination_addr of ['0501112222', '', 'BANK'])
      expect(await write('Anybody?', { destination_addr })).toBe(ESME_RINVDSTADR);
    expect(await told()).toEqual([]);
  });

  test('in segments is one text, in whatever order they come', async () => {
    const parts = segmentsOf(LONG);
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts.toReversed()) expect(await smsc.deliver(part)).toBe(0);
    expect(await told()).toEqual([expect.objectContaining({ text: LONG, segments: parts.length, missing_segments: 0 })]);
  });

  test('in segments that come twice is one text', async () => {
    const [first, ...more] = segmentsOf(LONG);
    for (const part of [first, first, ...more]) expect(await smsc.deliver(part ?? {})).toBe(0);
    expect(await texts()).toEqual([LONG]);
  });

  test('in segments by TLVs, or in a message_payload, is one text', async () => {
    const tlvs = (at: number) => ({ sar_msg_ref_num: 300, sar_total_segments: 2, sar_segment_seqnum: at });
    expect(await write('one ', tlvs(1))).toBe(0);
    expect(await write('two', tlvs(2))).toBe(0);
    const payload = { ...addressed(), short_message: Buffer.alloc(0), message_payload: Buffer.from('x'.repeat(400)) };
    expect(await smsc.deliver(payload)).toBe(0);
    expect(await texts()).toEqual(['one two', 'x'.repeat(400)]);
  });

  test('of two telephones with one reference is two texts', async () => {
    const [mine = {}, ...others] = segmentsOf(LONG);
    const [yours = {}, ...rest] = segmentsOf(LONG.toUpperCase().replaceAll('ש', 'ת')).map((part) => ({
      ...part,
      source_addr: '447700900000',
    }));
    for (const part of [mine, yours, ...others, ...rest]) await smsc.deliver(part);
    expect((await told()).map(({ from }) => from)).toEqual(['+972501112222', '+447700900000']);
  });

  test('that a person writes twice is two texts', async () => {
    await write('Yes');
    await write('Yes');
    expect(await texts()).toEqual(['Yes', 'Yes']);
  });

  test('that comes again on another link, because its acknowledgement was lost, is one text; a third one is another', async () => {
    await write('Yes');
    smsc.drop();
    await smsc.until(() => smsc.binds === 2, 'another bind');
    expect(await write('Yes')).toBe(0);
    expect(await texts()).toEqual(['Yes']);
    expect(await write('Yes')).toBe(0);
    expect(await texts()).toEqual(['Yes', 'Yes']);
  });

  test('that came long before the link was lost is not taken for one that comes again', async () => {
    await write('Yes');
    ahead += 61_000;
    smsc.drop();
    await smsc.until(() => smsc.binds === 2, 'another bind');
    await write('Yes');
    expect(await texts()).toEqual(['Yes', 'Yes']);
  });

  test('of which a segment never comes is told after ten minutes, without it', async () => {
    const parts = segmentsOf(LONG);
    for (const part of parts.slice(1)) await smsc.deliver(part);
    await incoming.giveUp();
    expect(await told()).toEqual([]);
    ahead += TEN_MINUTES_MS + 1_000;
    await incoming.giveUp();
    await incoming.giveUp();
    expect(await told()).toEqual([expect.objectContaining({ segments: parts.length, missing_segments: 1 })]);
    expect(LONG.endsWith((await texts())[0] ?? 'nothing')).toBe(true);
  });

  test('of which a segment never comes is told so, too, where messages are off by then', async () => {
    const parts = segmentsOf(LONG);
    for (const part of parts.slice(1)) await smsc.deliver(part);
    await dispatcher.close();
    ahead += TEN_MINUTES_MS + 1_000;
    await withoutMessages.start();
    await withoutMessages.close();
    expect(await told()).toEqual([expect.objectContaining({ segments: parts.length, missing_segments: 1 })]);
  });

  test('is asked for again where the database does not take it', async () => {
    received = { take: () => Promise.reject(new StoreUnavailable('away')), giveUp: async () => {} };
    expect(await write('Now?')).toBe(ESME_RX_T_APPN);
    received = store.store.received;
    expect(await write('Now?')).toBe(0);
    expect(await texts()).toEqual(['Now?']);
  });

  test('is one text where the answer of the database was lost; the same one written again is another', async () => {
    let losing = true;
    received = {
      ...store.store.received,
      async take(...part) {
        await store.store.received.take(...part);
        if (losing) throw new StoreUnavailable('the answer was lost');
      },
    };
    const parts = [{ ...addressed(), short_message: Buffer.from('Now?') }, ...segmentsOf(LONG)];
    for (const part of parts) expect(await smsc.deliver(part)).toBe(ESME_RX_T_APPN);
    // The answer to the second try is lost too.
    for (const part of parts) expect(await smsc.deliver(part)).toBe(ESME_RX_T_APPN);
    losing = false;
    for (const part of parts) expect(await smsc.deliver(part)).toBe(0);
    expect(await texts()).toEqual(['Now?', LONG]);
    expect(await write('Now?')).toBe(0);
    ahead += TEN_MINUTES_MS + 1_000;
    await incoming.giveUp();
    expect(await texts()).toEqual(['Now?', LONG, 'Now?']);
  });

  test('is one of 200 at most that are being stored; more are asked for again', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    received = { ...store.store.received, take: () => promise };
    const answers = Array.from({ length: 201 }, (_, at) => write(`text ${at}`));
    expect(await answers[200]).toBe(ESME_RX_T_APPN);
    resolve();
    expect(new Set(await Promise.all(answers.slice(0, 200)))).toEqual(new Set([0]));
  });

  test('comes in the order in which a telephone sent it', async () => {
    const sent = Array.from({ length: 30 }, (_, at) => `text ${at}`);
    await Promise.all(sent.map((text) => write(text)));
    expect(await texts()).toEqual(sent);
  });

  test('that says what a receipt of a message under way says, or is marked as one, is none', async () => {
    expect(await write('id:1 sub:001 dlvrd:000 submit date:1 done date:1 stat:ENROUTE err:000 text:')).toBe(0);
    expect(await write('id:1 sub:001 dlvrd:000 submit date:1 done date:1 stat:SCHEDULED err:000 text:')).toBe(0);
    expect(await write('on its way', { esm_class: 0x20 })).toBe(0);
    expect(await told()).toEqual([]);
  });

  test('with NUL where its sender or its number stands is not asked for again', async () => {
    // The codec reads seven bits of each octet of an address.
    const nul = { length: 2, copy: (to: Buffer, at: number) => Buffer.of(0x41, 0x80).copy(to, at) };
    expect(await write('Anybody?', { destination_addr: nul })).toBe(ESME_RINVDSTADR);
    expect(await write('Hello', { source_addr_ton: 5, source_addr: nul })).toBe(0);
    expect(await told()).toEqual([expect.objectContaining({ from: 'A\ufffd', text: 'Hello' })]);
  });

  test('in Turkish, by a national language shift table, is read', async () => {
    const header = Buffer.of(3, 0x24, 1, 1);
    expect(await write('', { esm_class: 0x40, short_message: Buffer.concat([header, Buffer.of(0x1b, 0x53, 0x61)]) })).toBe(0);
    expect(await texts()).toEqual(['Şa']);
  });

  test('is forgotten after a day, and not while a segment is missing', async () => {
    ahead -= 25 * 3600_000;
    await write('Old');
    const [part] = segmentsOf(LONG, 99);
    await smsc.deliver(part ?? {});
    ahead += 25 * 3600_000;
    expect((await store.store.forget()).received).toBe(1);
    expect((await store.store.forget()).received).toBe(0);
  });

  // Skipped where Kannel is not installed (apt-get install kannel).
  test.skipIf(!kannelInstalled)(
    'that Kannel writes arrives as it was written',
    async () => {
      const kannel = await Kannel.start(smsc, 'http://127.0.0.1:9/');
      try {
        smsc.relayTo = 'user';
        const written = ['Hello', 'Grüße {à} 5 € [ok] ~ ^ \\ |', 'abcdefghij'.repeat(40), LONG];
        for (const [at, text] of written.entries()) {
          await kannel.write('+972501112222', number, text);
          await smsc.until(() => smsc.submissions.length >= at + 1, 'a submission of Kannel');
          for (let look = 0; look < 100 && (await told()).length <= at; look++) await Bun.sleep(50);
        }
        expect(await texts()).toEqual(written);
      } finally {
        await kannel.stop();
      }
    },
    60_000,
  );
});
