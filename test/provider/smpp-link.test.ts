/** The link to an SMSC on a clock of our own: signs of life, refused binds, silence, growing pauses. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createServer } from 'node:net';
import smpp from 'smpp';
import { SMPP_TURN_MAX_PDUS } from '../../src/limits.ts';
import { type Log, silentLog } from '../../src/log.ts';
import type { SmsListener } from '../../src/machine/message/gateway.ts';
import type { Receipt } from '../../src/machine/message/receipt.ts';
import { SmppConnection, SmppLost } from '../../src/provider/smpp-connection.ts';
import { SmppGateway } from '../../src/provider/smpp-gateway.ts';
import { isAnswered, type Pdu, readPdu, refusalOfFrame } from '../../src/provider/smpp-pdu.ts';
import { refusalOf } from '../../src/provider/smpp-status.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Smsc } from './smsc.ts';

let smsc: Smsc;
let clock: VirtualClock;
let gateway: SmppGateway;
let ready: () => Promise<void>;
let listener: SmsListener;
/** How long the gateway waits after its next loss, in ms. */
let nextLoss: () => Promise<number>;

beforeEach(async () => {
  smsc = await Smsc.open();
  clock = new VirtualClock();
  let tell = (_pauseMs: number) => {};
  nextLoss = () =>
    new Promise((resolve) => {
      tell = resolve;
    });
  const log: Log = { ...silentLog, warn: ({ retry_ms }) => tell(Number(retry_ms)) };
  const settings = { host: '127.0.0.1', port: smsc.port, systemId: 'user', password: 'secret', systemType: '', window: 5 };
  gateway = new SmppGateway({ kind: 'smpp', ...settings, longMessages: 'udh' }, clock, log);
  const waiting: (() => void)[] = [];
  ready = () => (gateway.ready() ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve)));
  listener = {
    onReceipt: async () => {},
    onMessage: async () => true,
    onReady: () => {
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
  gateway.start(listener);
});
afterEach(async () => {
  smsc.drop();
  await gateway.close();
  await smsc.close();
});

const submit = () =>
  gateway
    .submit({ messageUuid: 'aa', from: '+15550001', to: '+15550002', text: 'x', parts: [0], total: 1 })
    .then(([first]) => first?.outcome);

test('A number is international and E.164, and its receipt is asked for', async () => {
  await ready();
  expect(await submit()).toMatchObject({ outcome: 'accepted' });
  expect(smsc.submissions).toMatchObject([{ from: '15550001', to: '15550002', plans: [1, 1, 1, 1], registeredDelivery: 1 }]);
});

test('What comes is told with its link: each has an id of its own, and the time at which the one before it was lost or let go', async () => {
  const links: { readonly id: string; readonly since: number }[] = [];
  listener.onMessage = async (_part, link) => links.push(link) > 0;
  const text = { source_addr: '15550100', destination_addr: '15550001', short_message: Buffer.from('Hello') };
  await ready();
  const began = clock.now();
  await smsc.deliver(text);
  await smsc.deliver(text);
  await clock.advance(10_000);
  const lost = nextLoss();
  smsc.drop();
  const pauseMs = await lost;
  const lostAt = clock.now();
  await clock.advance(pauseMs);
  await smsc.until(() => smsc.binds === 2, 'another bind');
  await smsc.deliver(text);
  const letGoAt = clock.now();
  await gateway.rest();
  await clock.advance(10_000);
  gateway.start(listener);
  await smsc.until(() => smsc.binds === 3, 'a bind after the rest');
  await smsc.deliver(text);
  const [first, second, third, fourth] = links;
  expect([first, second?.id === first?.id, third?.id === first?.id]).toEqual([
    { id: expect.any(String), since: began },
    true,
    false,
  ]);
  expect([third?.since, fourth?.since]).toEqual([lostAt, letGoAt]);
}, 20_000);

test('What is asked of a connection that is not up, or no longer, was certainly not sent', async () => {
  const { promise: opened, resolve } = Promise.withResolvers<void>();
  const options = { host: '127.0.0.1', port: smsc.port, clock, onRequest: () => {}, onLeaving: () => {}, onClose: () => {} };
  const connection = new SmppConnection(options, resolve);
  const asked = () =>
    connection.request('enquire_link', {}).then(
      () => 'answered',
      (error: unknown) => error instanceof SmppLost && error.sent,
    );
  expect(await asked()).toBe(false);
  await opened;
  expect(await asked()).toBe('answered');
  connection.close('done');
  expect(await asked()).toBe(false);
});

test('A connection that ends leaves no timer behind, whatever was under way on it', async () => {
  const own = new VirtualClock();
  const { promise: opened, resolve: onOpen } = Promise.withResolvers<void>();
  const { promise: asked, resolve: onLeaving } = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    // It asks us to go once it has a request of ours, which it never answers.
    socket.on('error', () => {}).once('data', () => socket.write(new smpp.PDU('unbind', { sequence_number: 1 }).toBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const options = { host: '127.0.0.1', port, clock: own, onRequest: () => {}, onLeaving, onClose: () => {} };
  const connection = new SmppConnection(options, onOpen);
  await opened;
  const lost = connection.request('enquire_link', {}).catch((error: unknown) => error);
  await asked;
  // The next sign of life, the response, and the end of the wait for it.
  expect(own.armed).toBe(3);
  connection.close('done');
  expect(own.armed).toBe(0);
  expect(await lost).toMatchObject({ sent: true });
  await new Promise((resolve) => server.close(resolve));
});

test('A connection that is not up after ten seconds is given up', async () => {
  const closed: string[] = [];
  const onClose = (reason: string) => void closed.push(reason);
  const options = { host: '127.0.0.1', port: smsc.port, clock, onRequest: () => {}, onLeaving: () => {}, onClose };
  // No turn of the event loop passes until the ten seconds are over, so that the network cannot tell that it is up.
  const connection = new SmppConnection(options, () => closed.push('open'));
  await clock.advance(9_999);
  expect(closed).toEqual([]);
  await clock.advance(1);
  expect(closed).toEqual(['connect timeout']);
  connection.close('done');
});

test('A response that comes byte by byte, or together with the next, is heard whole', async () => {
  // The second is a generic_nack of status 0: a sign of life may be any response.
  const responses = [0x8000_0015, 0x8000_0000].map((commandId, at) => {
    const frame = Buffer.alloc(16);
    for (const [field, value] of [16, commandId, 0, at + 1].entries()) frame.writeUInt32BE(value, 4 * field);
    return frame;
  });
  const server = createServer((socket) => {
    let asked = 0;
    socket.setNoDelay(true).on('error', () => {});
    socket.on('data', async (bytes) => {
      asked += bytes.length;
      if (asked < 32) return;
      const all = Buffer.concat(responses);
      for (let at = 0; at < 20; at++) {
        socket.write(all.subarray(at, at + 1));
        await new Promise((resolve) => setImmediate(resolve));
      }
      socket.write(all.subarray(20));
    });
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  const { promise: opened, resolve } = Promise.withResolvers<void>();
  const options = { host: '127.0.0.1', port, clock, onRequest: () => {}, onLeaving: () => {}, onClose: () => {} };
  const connection = new SmppConnection(options, resolve);
  await opened;
  const answers = await Promise.all([connection.request('enquire_link', {}), connection.request('enquire_link', {})]);
  expect(answers.map((each) => [each.command, each.sequence_number])).toEqual([
    ['enquire_link_resp', 1],
    ['generic_nack', 2],
  ]);
  connection.close('done');
  server.close();
});

test('A response that is none to its request is no success, and ends the connection', async () => {
  // A generic_nack, and the responses to deliver_sm, enquire_link and a command that there is not, all of status 0.
  for (const commandId of [0x8000_0000, 0x8000_0005, 0x8000_0015, 0x8000_0f05]) {
    await ready();
    const { binds } = smsc;
    smsc.misbehave = () => ({ commandId });
    const lost = nextLoss();
    expect([commandId, await submit()]).toEqual([commandId, { outcome: 'unknown' }]);
    await clock.advance(await lost);
    await smsc.until(() => smsc.binds > binds, 'another bind');
  }
});

test('A PDU of a length that cannot be ends the connection', async () => {
  for (const length of [0, 15, 16 * 1024 + 1]) {
    await ready();
    const { binds } = smsc;
    const lost = nextLoss();
    const header = Buffer.alloc(16);
    header.writeUInt32BE(length, 0);
    smsc.write(header);
    await clock.advance(await lost);
    await smsc.until(() => smsc.binds > binds, 'another bind');
  }
});

test('A request that cannot be read is refused by its own command and number, a response by nothing', () => {
  const header = (commandId: number) => {
    const frame = Buffer.alloc(20, 0xff);
    for (const [at, value] of [20, commandId, 0, 7].entries()) frame.writeUInt32BE(value, 4 * at);
    return frame;
  };
  // deliver_sm, and the response to it.
  expect(refusalOfFrame(header(0x05), 0x65)).toEqual(Buffer.from('00000010800000050000006500000007', 'hex'));
  for (const response of [0x8000_0000, 0x8000_0004]) expect(refusalOfFrame(header(response), 0x65)).toBeUndefined();
});

test('A request that has no response is given none', () => {
  const answered = ['outbind', 'alert_notification', 'deliver_sm', 'data_sm'].map((command) =>
    isAnswered(new smpp.PDU(command, {})),
  );
  expect(answered).toEqual([false, false, true, true]);
});

test('An optional field without a value is passed over, also one that is looked at, where another makes no sense', () => {
  const frame = Buffer.concat([
    new smpp.PDU('deliver_sm', { source_addr: '15550002', sequence_number: 1 }).toBuffer(),
    Buffer.from('03810000' + '04270000', 'hex'), // callback_num and message_state
  ]);
  frame.writeUInt32BE(frame.length, 0);
  expect(readPdu(frame)).toMatchObject({ command: 'deliver_sm', source_addr: '15550002' });
});

test('No more is under way at a time than leaves in a second', () => {
  const settings = { host: '127.0.0.1', port: smsc.port, systemId: 'user', password: 'secret', systemType: '', window: 5 };
  const windowAt = (ratePerSec: number | undefined) =>
    new SmppGateway({ kind: 'smpp', ...settings, longMessages: 'udh', ratePerSec }, clock, silentLog).window;
  expect([undefined, 3, 50].map(windowAt)).toEqual([5, 3, 5]);
});

test('A receipt may come as data_sm, a text of a phone is taken and is none, and a request of another kind is refused', async () => {
  const receipts: Receipt[] = [];
  listener.onReceipt = async (receipt) => void receipts.push(receipt);
  await ready();
  const message_payload = Buffer.from('id:77 sub:001 dlvrd:001 stat:DELIVRD err:000 text:');
  const addressed = { source_addr: '15550002', destination_addr: '15550001' };
  const dataSm = new smpp.PDU('data_sm', { ...addressed, esm_class: 4, message_payload }).toBuffer();
  expect(await smsc.request(dataSm.readUInt32BE(4), dataSm.subarray(16))).toBe(0);
  expect(receipts).toMatchObject([{ smscId: '77', state: 'delivered', recipient: '15550002', isMarked: true }]);
  expect(await smsc.deliver({ ...addressed, short_message: Buffer.from('Stop') })).toBe(0);
  const query = new smpp.PDU('query_sm', { message_id: '77', source_addr: '15550001' }).toBuffer();
  expect(await smsc.request(query.readUInt32BE(4), query.subarray(16))).toBe(0x03);
  expect(receipts).toHaveLength(1);
});

test('A receipt is acknowledged once it is stored, and asked for again where it could not be', async () => {
  const { promise: stored, resolve: store } = Promise.withResolvers<void>();
  listener.onReceipt = () => stored;
  await ready();
  const statuses: number[] = [];
  const first = smsc.receipt('15550002', '1').then((status) => statuses.push(status));
  // The answer to what comes later overtakes that of a receipt which is being stored.
  await smsc.deliver({ source_addr: '15550002', short_message: Buffer.from('Hi') });
  expect(statuses).toEqual([]);
  store();
  await first;
  listener.onReceipt = () => Promise.reject(new Error('no database'));
  statuses.push(await smsc.receipt('15550002', '1'));
  expect(statuses).toEqual([0, 0x64]);
});

describe('the link to an SMSC', () => {
  test('is asked for a sign of life every 30 s, again after each answer', async () => {
    await ready();
    await clock.advance(29_999);
    expect(smsc.enquiries).toBe(0);
    for (const count of [1, 2]) {
      await clock.advance(count === 1 ? 1 : 30_000);
      await smsc.until(() => smsc.enquiries === count, 'an enquire_link');
      // Its answer is on its way: something that comes after it shows that it has arrived.
      expect(await submit()).toMatchObject({ outcome: 'accepted' });
    }
  });

  test('that leaves a submission unanswered for 20 s is given up; what was on it is unknown, and the next link takes the next', async () => {
    await ready();
    smsc.misbehave = (attempt) => (attempt === 1 ? 'ignore' : undefined);
    const lost = submit();
    await smsc.until(() => smsc.attempts === 1, 'the submission');
    await clock.advance(20_000);
    expect(await lost).toEqual({ outcome: 'unknown' });
    expect(gateway.ready()).toBe(false);
    expect(await submit()).toEqual({ outcome: 'later' });
    await clock.advance(500);
    await ready();
    expect(await submit()).toMatchObject({ outcome: 'accepted' });
  });

  test('that refuses the bind is asked again, with growing pauses of half a minute at most', async () => {
    await ready();
    smsc.bindStatus = 0x0d;
    let lost = nextLoss();
    smsc.drop();
    const pauses: number[] = [];
    for (let time = 0; time < 7; time++) {
      const pause = await lost;
      pauses.push(pause);
      lost = nextLoss();
      await clock.advance(pause);
    }
    expect(pauses).toEqual([500, 1_000, 2_000, 5_000, 10_000, 30_000, 30_000]);
    await lost;
    expect(gateway.ready()).toBe(false);
    expect(await submit()).toEqual({ outcome: 'later' });
  });

  test('that takes the bind and is gone at each submission costs fewer and fewer messages; one that has answered is bound at once', async () => {
    await ready();
    const pauses: number[] = [];
    const losing = async (lose: () => unknown) => {
      const lost = nextLoss();
      await lose();
      pauses.push(await lost);
      await clock.advance(pauses.at(-1) ?? 0);
      await ready();
    };
    smsc.misbehave = () => 'drop';
    for (let time = 0; time < 3; time++) await losing(async () => expect(await submit()).toEqual({ outcome: 'unknown' }));
    smsc.misbehave = () => undefined;
    expect(await submit()).toMatchObject({ outcome: 'accepted' });
    await losing(() => smsc.drop());
    await losing(() => smsc.drop());
    const enquired = smsc.enquiries;
    await clock.advance(30_000);
    await smsc.until(() => smsc.enquiries > enquired, 'a sign of life');
    await losing(() => smsc.drop());
    expect(pauses).toEqual([500, 1_000, 2_000, 500, 1_000, 500]);
  });

  test('that does not know of the bind any more is bound anew, once what it has is answered, later and later', async () => {
    await ready();
    smsc.misbehave = (attempt) => (attempt < 4 ? { status: 0x04 } : undefined);
    const pauses: number[] = [];
    for (let time = 0; time < 2; time++) {
      const lost = nextLoss();
      // Two at once before the first bind is given up, one before the second.
      const outcomes = await Promise.all(time === 0 ? [submit(), submit()] : [submit()]);
      expect(outcomes.every((outcome) => outcome?.outcome === 'later')).toBe(true);
      expect(gateway.ready()).toBe(false);
      const pause = await lost;
      pauses.push(pause);
      await clock.advance(pause);
      await ready();
    }
    expect(await submit()).toMatchObject({ outcome: 'accepted' });
    expect([pauses, smsc.binds]).toEqual([[500, 1_000], 3]);
  });

  test('that throttles is left alone for half a second', async () => {
    await ready();
    smsc.misbehave = () => ({ status: 0x58 });
    expect(await submit()).toEqual({ outcome: 'later' });
    expect(gateway.ready()).toBe(false);
    await clock.advance(500);
    expect(gateway.ready()).toBe(true);
  });
});

describe('an SMSC that throttles', () => {
  test('is given no further part of the message that it did not take', async () => {
    await ready();
    smsc.misbehave = (attempt) => (attempt === 2 ? { status: 0x58 } : undefined);
    const addressed = { messageUuid: 'aa', from: '+15550001', to: '+15550002' };
    const long = gateway.submit({ ...addressed, text: 'x'.repeat(400), parts: [0, 1, 2], total: 3 });
    expect((await long).map(({ part, outcome }) => [part, outcome.outcome])).toEqual([
      [0, 'accepted'],
      [1, 'later'],
    ]);
    await clock.advance(500);
    expect(smsc.attempts).toBe(2);
  });

  test('is sent no further part of a long message either for half a second', async () => {
    await ready();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    smsc.answersAfter = promise;
    smsc.misbehave = (attempt) => (attempt === 2 ? { status: 0x58 } : undefined);
    const addressed = { messageUuid: 'aa', from: '+15550001', to: '+15550002' };
    const long = gateway.submit({ ...addressed, text: 'x'.repeat(200), parts: [0, 1], total: 2 });
    await smsc.until(() => smsc.attempts === 1, 'the first part');
    expect(await submit()).toEqual({ outcome: 'later' });
    answer();
    // What the gateway wrote before its answer to this has been read.
    await smsc.deliver({ esm_class: 4, source_addr: '15550002', short_message: Buffer.from('id:1 stat:ENROUTE') });
    await smsc.deliver({ esm_class: 4, source_addr: '15550002', short_message: Buffer.from('id:1 stat:ENROUTE') });
    expect(smsc.attempts).toBe(2);
    await clock.advance(500);
    expect((await long).map(({ outcome }) => outcome.outcome)).toEqual(['accepted', 'accepted']);
    expect(smsc.attempts).toBe(3);
  });

  test('is sent nothing in that time either of what waits for its turn', async () => {
    await gateway.close();
    const settings = { host: '127.0.0.1', port: smsc.port, systemId: 'user', password: 'secret', systemType: '', window: 4 };
    gateway = new SmppGateway({ kind: 'smpp', ...settings, longMessages: 'udh', ratePerSec: 4 }, clock, silentLog);
    gateway.start(listener);
    await ready();
    smsc.misbehave = (attempt) => (attempt === 1 ? { status: 0x58 } : undefined);
    const [first, second] = [submit(), submit()];
    expect(await first).toEqual({ outcome: 'later' });
    await clock.advance(499);
    // What the gateway wrote before its answer to this has been read.
    await smsc.deliver({ esm_class: 4, source_addr: '15550002', short_message: Buffer.from('id:1 stat:ENROUTE') });
    expect(smsc.attempts).toBe(1);
    await clock.advance(1);
    expect(await second).toMatchObject({ outcome: 'accepted' });
  });
});

describe('a link that is let go', () => {
  test('is unbound, so that another may bind, and bound again by the next start, once', async () => {
    smsc.permitsOneBind = true;
    await ready();
    await gateway.rest();
    expect([smsc.unbinds, gateway.ready()]).toEqual([1, false]);
    expect(await submit()).toEqual({ outcome: 'later' });
    await clock.advance(60_000);
    expect(smsc.binds).toBe(1);
    gateway.start(listener);
    gateway.start(listener);
    await ready();
    expect(await submit()).toMatchObject({ outcome: 'accepted' });
    expect(smsc.binds).toBe(2);
  });

  test('answers what it was given before it is unbound, and is given nothing more', async () => {
    await ready();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    smsc.answersAfter = promise;
    const parts = gateway.submit({
      messageUuid: 'aa',
      from: '+15550001',
      to: '+15550002',
      text: 'x'.repeat(200),
      parts: [0, 1],
      total: 2,
    });
    await smsc.until(() => smsc.attempts === 1, 'the submission');
    const letGo = gateway.rest();
    // What the gateway wrote before its answer to this has been read.
    await smsc
      .deliver({ esm_class: 4, source_addr: '15550002', short_message: Buffer.from('id:1 stat:ENROUTE') })
      .catch(() => {});
    expect(smsc.unbinds).toBe(0);
    answer();
    expect((await parts).map(({ outcome }) => outcome.outcome)).toEqual(['accepted', 'later']);
    await letGo;
    expect([smsc.attempts, smsc.unbinds]).toEqual([1, 1]);
  });

  test('that unbinds us is let answer what it was given, is given nothing more, and is bound again', async () => {
    await ready();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    smsc.answersAfter = promise;
    const given = submit();
    await smsc.until(() => smsc.attempts === 1, 'the submission');
    const lost = nextLoss();
    smsc.unbind();
    // What comes after it shows that it has arrived.
    await smsc.deliver({ esm_class: 4, source_addr: '15550002', short_message: Buffer.from('id:1 stat:ENROUTE') });
    expect([gateway.ready(), await submit()]).toEqual([false, { outcome: 'later' }]);
    expect(smsc.unbindAnswers).toBe(0);
    answer();
    expect(await given).toMatchObject({ outcome: 'accepted' });
    await smsc.until(() => smsc.unbindAnswers === 1, 'the answer to the unbind');
    await clock.advance(await lost);
    await ready();
    expect([smsc.binds, smsc.attempts]).toEqual([2, 1]);
  });

  test('that ends the link which was let go leaves the next one bound', async () => {
    await ready();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    smsc.answersAfter = promise;
    const last = submit();
    await smsc.until(() => smsc.attempts === 1, 'the submission');
    const letGo = gateway.rest();
    gateway.start(listener);
    await ready();
    smsc.unbindFirst();
    answer();
    expect(await last).toMatchObject({ outcome: 'accepted' });
    await smsc.until(() => smsc.unbindAnswers === 1, 'the answer to the unbind');
    await letGo;
    expect([gateway.ready(), smsc.binds]).toEqual([true, 2]);
    expect(await submit()).toMatchObject({ outcome: 'accepted' });
  });

  test('that unbinds us while nothing is under way is answered at once', async () => {
    await ready();
    const lost = nextLoss();
    smsc.unbind();
    await smsc.until(() => smsc.unbindAnswers === 1, 'the answer to the unbind');
    await lost;
  });

  test('that unbinds us as it answers the bind has not bound us', async () => {
    smsc.unbindsAtOnce = true;
    const pauseMs = await nextLoss();
    await smsc.until(() => smsc.unbindAnswers === 1, 'the answer');
    expect([gateway.ready(), await submit()]).toEqual([false, { outcome: 'later' }]);
    smsc.unbindsAtOnce = false;
    await clock.advance(pauseMs);
    await ready();
    expect(await submit()).toMatchObject({ outcome: 'accepted' });
  });

  test('that unbinds us and answers no more is left after five seconds; what it was given is unknown', async () => {
    await ready();
    smsc.misbehave = () => 'ignore';
    const given = submit();
    await smsc.until(() => smsc.attempts === 1, 'the submission');
    const lost = nextLoss();
    smsc.unbind();
    await smsc.deliver({ esm_class: 4, source_addr: '15550002', short_message: Buffer.from('id:1 stat:ENROUTE') });
    await clock.advance(5_000);
    expect(await given).toEqual({ outcome: 'unknown' });
    await lost;
  });

  test('that leaves a submission unanswered is waited for no longer than five seconds', async () => {
    await ready();
    smsc.misbehave = () => 'ignore';
    const lost = submit();
    await smsc.until(() => smsc.attempts === 1, 'the submission');
    const letGo = gateway.rest();
    await clock.advance(5_000);
    await letGo;
    expect([await lost, smsc.unbinds]).toEqual([{ outcome: 'unknown' }, 1]);
  });

  test('while it waits to connect again does not do so', async () => {
    await ready();
    const lost = nextLoss();
    smsc.drop();
    const pause = await lost;
    await gateway.rest();
    await clock.advance(pause);
    expect([smsc.binds, smsc.unbinds]).toEqual([1, 0]);
    gateway.start(listener);
    await ready();
    expect(smsc.binds).toBe(2);
  });
});

describe('an SMSC that floods', () => {
  test('is heard in turns: between any two of them the event loop does other work', async () => {
    let heard = 0;
    const server = createServer((socket) => {
      socket.on('error', () => {});
      const pdu = Buffer.alloc(16);
      pdu.writeUInt32BE(16, 0);
      pdu.writeUInt32BE(0x15, 4); // enquire_link
      socket.write(Buffer.concat(Array.from({ length: 20_000 }, () => pdu)));
      socket.on('data', (bytes) => {
        heard += bytes.length / 16;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    let inTurn = 0;
    let most = 0;
    const connection = new SmppConnection(
      { host: '127.0.0.1', port, clock, onRequest: () => {}, onLeaving: () => {}, onClose: () => {} },
      () => {},
    );
    const { answer } = connection;
    connection.answer = (...given) => {
      most = Math.max(most, ++inTurn);
      answer.apply(connection, given);
    };
    while (heard < 20_000) {
      await new Promise(setImmediate);
      inTurn = 0;
    }
    connection.close('done');
    await new Promise((resolve) => server.close(resolve));
    expect(most).toBeLessThanOrEqual(2 * SMPP_TURN_MAX_PDUS);
  });

  test('and reads nothing is left once more than a megabyte of answers waits for it', async () => {
    const { promise: reason, resolve: onClose } = Promise.withResolvers<string>();
    const { promise: judged, resolve: leave } = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.pause().on('error', () => {});
      void judged.then(() => socket.destroy());
      socket.write(new smpp.PDU('data_sm', { source_addr: '15550002', sequence_number: 1 }).toBuffer());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    // The buffers of the two sockets take some megabytes before any waits.
    const onRequest = (pdu: Pdu) => {
      for (let time = 0; time < 500; time++) connection.answer(pdu, { message_id: 'x'.repeat(64 * 1024) });
      connection.close('never left');
    };
    const options = { host: '127.0.0.1', port, clock, onRequest, onLeaving: () => {}, onClose };
    const connection = new SmppConnection(options, () => {});
    expect(await reason).toBe('the far end does not read');
    leave();
    await new Promise((resolve) => server.close(resolve));
  });
});

test('A status of the SMSC is the code that the API tells, or says that the message may go later', () => {
  const codes: Readonly<Record<string, readonly number[]>> = {
    message_too_long: [0x01],
    invalid_sender: [0x0a, 0x48],
    invalid_recipient: [0x0b, 0x50],
    submit_failed: [0x45],
    rejected: [0x66, 0x02, 0x400],
  };
  for (const [code, statuses] of Object.entries(codes))
    for (const status of statuses) {
      const told = `(command_status 0x${status.toString(16).padStart(8, '0')})`;
      expect(refusalOf(status)).toEqual({ outcome: 'refused', code, message: expect.stringContaining(told) });
    }
  for (const status of [0x04, 0x08, 0x14, 0x58, 0x64]) expect(refusalOf(status)).toEqual({ outcome: 'later' });
});
