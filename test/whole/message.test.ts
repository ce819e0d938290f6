/**
 * Whole messages: the platform against the sandbox, and against an SMSC on a socket that is there before and after a
 * kill -9.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Smsc } from '../provider/smsc.ts';
import { until } from '../recording-storage/harness.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const FROM = '+15550002';
const TO = '+972500000001';

const statuses = (receiver: Receiver, messageUuid: unknown) =>
  receiver.events.filter(({ body }) => body.message_uuid === messageUuid).map(({ body }) => body.status);
const told = (receiver: Receiver, messageUuid: unknown, status: string) =>
  receiver.until(() => statuses(receiver, messageUuid).includes(status), `${status} of a message`);

describe('a message', () => {
  let platform: Platform;
  let app: Credentials;
  let smsc: Smsc;
  const receiver = new Receiver();

  beforeAll(async () => {
    smsc = await Smsc.open();
    platform = await Platform.start({ SMS_PROVIDER: `smpp://user:secret@127.0.0.1:${smsc.port}?window=2` });
    app = await platform.application(receiver.url, FROM);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
  }, 60_000);
  afterAll(async () => {
    await platform?.stop();
    await smsc?.close();
    await receiver.stop();
  });

  const send = async (text: string) => {
    const sent = await platform.api(app, 'POST', '/v1/messages', { from: FROM, to: TO, text });
    expect(sent.status).toBe(202);
    return sent.body.message_uuid;
  };

  test('goes from the POST over the SMSC to its receipt, each status an event in order', async () => {
    const uuid = await send('hello');
    await told(receiver, uuid, 'sent');
    const [submitted] = smsc.submissions;
    expect(await smsc.receipt('972500000001', submitted?.messageId ?? '')).toBe(0);
    await told(receiver, uuid, 'delivered');
    expect(statuses(receiver, uuid)).toEqual(['sending', 'sent', 'delivered']);
    const read = await platform.api(app, 'GET', `/v1/messages/${uuid}`);
    expect(read.body).toMatchObject({ status: 'delivered', direction: 'outbound', segments: 1, encoding: 'gsm7' });
    expect(receiver.events.find(({ body }) => body.message_uuid === uuid)?.body).toMatchObject({
      aud: app.appUuid,
      event: 'message.status_changed',
      from: FROM,
      to: TO,
      error_code: '',
    });
  }, 30_000);

  test('from a telephone comes as an event to the application that has the number', async () => {
    const text = Buffer.from('שלום', 'utf16le').swap16();
    const fields = { source_addr_ton: 1, source_addr: TO.slice(1), destination_addr: FROM.slice(1), data_coding: 8 };
    expect(await smsc.deliver({ ...fields, short_message: text })).toBe(0);
    await receiver.until(() => receiver.count('message.received') === 1, 'the text');
    expect(receiver.events.find(({ body }) => body.event === 'message.received')?.body).toEqual({
      aud: app.appUuid,
      event: 'message.received',
      timestamp: expect.any(String),
      message_uuid: expect.any(String),
      from: TO,
      to: FROM,
      text: 'שלום',
      segments: 1,
      missing_segments: 0,
    });
  }, 30_000);

  test('is neither lost nor sent twice by a kill -9: what was with the SMSC is told as unknown, all else goes out once', async () => {
    const taken = smsc.submissions.length;
    // Two answered, then two that never are: the window is full, the others wait in the database.
    let seen = 0;
    smsc.misbehave = () => (++seen > 2 ? 'ignore' : undefined);
    const uuids = await Promise.all(Array.from({ length: 8 }, (_, at) => send(`number ${at}`)));
    await smsc.until(() => seen === 4, 'four submissions');
    await receiver.until(() => uuids.filter((uuid) => statuses(receiver, uuid).includes('sent')).length === 2, 'two sent');
    await platform.kill();
    smsc.misbehave = () => undefined;
    await platform.start();
    const over = () => uuids.every((uuid) => ['sent', 'failed'].includes(String(statuses(receiver, uuid).at(-1))));
    await receiver.until(over, 'all messages', 30_000);
    const failed = uuids.filter((uuid) => statuses(receiver, uuid).at(-1) === 'failed');
    expect(failed).toHaveLength(2);
    for (const uuid of failed)
      expect((await platform.api(app, 'GET', `/v1/messages/${uuid}`)).body).toMatchObject({ error_code: 'outcome_unknown' });
    const texts = smsc.submissions.slice(taken).map(({ octets }) => Buffer.from(octets).toString('latin1'));
    expect(texts).toHaveLength(6);
    expect(new Set(texts).size).toBe(6);
    // A receipt for what was submitted before the kill still finds its message.
    await smsc.receipt('972500000001', smsc.submissions[taken]?.messageId ?? '');
    await receiver.until(() => uuids.some((uuid) => statuses(receiver, uuid).includes('delivered')), 'a late receipt');
  }, 90_000);

  test('is not submitted any more once a stop has begun its end, and what was with the SMSC is told before it', async () => {
    const taken = smsc.submissions.length;
    const answered = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    smsc.answersAfter = answered.promise;
    // The stop waits for webhooks that are under way.
    receiver.misbehave = () => heard.promise.then(() => undefined);
    const uuids = await Promise.all(Array.from({ length: 12 }, (_, at) => send(`last ${at}`)));
    await smsc.until(() => smsc.submissions.length === taken + 2, 'a full window');
    const { unbinds } = smsc;
    platform.signal('SIGTERM');
    const ended = platform.ended();
    await until(() => platform.output.includes('"draining"'));
    smsc.answersAfter = undefined;
    answered.resolve();
    await smsc.until(() => smsc.unbinds > unbinds || smsc.submissions.length > taken + 2, 'the end of the link');
    receiver.misbehave = undefined;
    heard.resolve();
    expect(await ended).toBe(0);
    expect(smsc.submissions.length - taken).toBe(2);
    expect(uuids.filter((uuid) => statuses(receiver, uuid).join() === 'sending,sent')).toHaveLength(2);
    await platform.start();
    await receiver.until(() => uuids.every((uuid) => statuses(receiver, uuid).includes('sent')), 'all sent');
    expect(smsc.submissions.length - taken).toBe(uuids.length);
  }, 60_000);

  test('from a telephone is told once, although the platform is killed as it stores it: the SMSC sends it until it is taken', async () => {
    const texts = Array.from({ length: 400 }, (_, at) => `text ${at}`);
    const left = [...texts];
    let isOver = false;
    const telephone = async () => {
      for (let text = left.shift(); text !== undefined; text = left.shift()) while (!isOver && !(await isTaken(text)));
    };
    const isTaken = async (text: string): Promise<boolean> => {
      const link = smsc.binds;
      const fields = { source_addr_ton: 1, source_addr: TO.slice(1), destination_addr: FROM.slice(1) };
      const answer = smsc
        .deliver({ ...fields, short_message: Buffer.from(text) })
        .catch(() => smsc.until(() => isOver, 'a link'));
      return (await Promise.race([answer, smsc.until(() => smsc.binds > link, 'another link')]).catch(() => 1)) === 0;
    };
    const telephones = Promise.all(Array.from({ length: 20 }, telephone));
    const heard = () => receiver.events.flatMap(({ body }) => (texts.includes(String(body.text)) ? [String(body.text)] : []));
    for (const share of [0.1, 0.4, 0.7]) {
      await receiver.until(() => heard().length >= texts.length * share, 'some of the texts');
      await platform.kill();
      await platform.start();
    }
    await receiver.until(() => new Set(heard()).size === texts.length, 'all texts', 30_000);
    await telephones;
    isOver = true;
    expect(heard().toSorted()).toEqual(texts.toSorted());
  }, 90_000);
});

describe('a message through the sandbox', () => {
  test('is delivered within a second', async () => {
    const receiver = new Receiver();
    const platform = await Platform.start();
    try {
      const app = await platform.application(receiver.url, FROM);
      // A machine with much else to do may hold one up, but not each of five.
      const took: number[] = [];
      while (took.length < 5 && !took.some((each) => each < 1_000)) {
        const started = performance.now();
        const sent = await platform.api(app, 'POST', '/v1/messages', { from: FROM, to: TO, text: 'x'.repeat(400) });
        await told(receiver, sent.body.message_uuid, 'delivered');
        took.push(performance.now() - started);
        expect(statuses(receiver, sent.body.message_uuid)).toEqual(['sending', 'sent', 'delivered']);
      }
      expect(Math.min(...took)).toBeLessThan(1_000);
    } finally {
      await platform.stop();
      await receiver.stop();
    }
  }, 60_000);

  test('does not stay sent for ever when a kill -9 comes between its sending and its receipt', async () => {
    const receiver = new Receiver();
    const platform = await Platform.start();
    try {
      const app = await platform.application(receiver.url, FROM);
      const post = () => platform.api(app, 'POST', '/v1/messages', { from: FROM, to: TO, text: 'x'.repeat(400) });
      const posted = await Promise.all(Array.from({ length: 30 }, post));
      const uuids = posted.flatMap(({ status, body }) => (status === 202 ? [String(body.message_uuid)] : []));
      expect(uuids.length).toBeGreaterThan(4);
      await receiver.until(() => uuids.some((uuid) => statuses(receiver, uuid).includes('sent')), 'one sent');
      await platform.kill();
      await platform.start();
      // What was with the carrier at that moment is failed, its outcome unknown; all else is delivered.
      const over = () => uuids.every((uuid) => ['delivered', 'failed'].includes(String(statuses(receiver, uuid).at(-1))));
      await receiver.until(over, 'all receipts', 30_000);
      expect(uuids.some((uuid) => statuses(receiver, uuid).at(-1) === 'delivered')).toBe(true);
    } finally {
      await platform.stop();
      await receiver.stop();
    }
  }, 60_000);
});
