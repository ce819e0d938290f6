/**
 * What the operator sees of a call while it lives and after it: the list, its timeline with an entry of every kind, its
 * SIP as text and as a capture, and its erasure. On the whole platform, with a call over a loopback trunk.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { patiently } from '../support/patiently.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550061';
const READ_TOKEN = 'a-token-for-reading-only';
const ANSWER = `${'no, '.repeat(700)}`;

let platform: Platform;
let app: Credentials;
let caller = '';
let callee = '';
const receiver = new Receiver();

/** The operator's text routes. */
async function text(path: string, token?: string) {
  const kept = readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
  const response = await fetch(`${platform.url}/operator/v1${path}`, { headers: { authorization: `Bearer ${token ?? kept}` } });
  const bytes = Buffer.from(await response.arrayBuffer());
  await platform.documented('GET', `/operator/v1${path}`, response, bytes.toString('latin1'));
  return { status: response.status, type: response.headers.get('content-type'), bytes };
}

type Entry = Readonly<Record<string, unknown>>;

async function timeline(sessionUuid: string): Promise<readonly Entry[]> {
  // A machine that stalls for seconds is a 503 with Retry-After.
  const { status, body } = await patiently(() => platform.operator('GET', `/sessions/${sessionUuid}/timeline`));
  expect(status).toBe(200);
  const { entries } = body;
  if (!Array.isArray(entries)) throw new Error('no entries');
  return entries;
}

/** Asks for the timeline until it holds what is waited for. */
async function timelineWith(sessionUuid: string, ready: (entries: readonly Entry[]) => boolean): Promise<readonly Entry[]> {
  for (let tries = 0; tries < 150; tries++) {
    const entries = await timeline(sessionUuid);
    if (ready(entries)) return entries;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not in the timeline: ${JSON.stringify(await timeline(sessionUuid))}`);
}

beforeAll(async () => {
  platform = await Platform.start({ WEBHOOK_RETRY_SCALE: '0.2', OPERATOR_READ_TOKEN: READ_TOKEN, SIP_TRACE_HIDE: 'X-Hidden' });
  app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  let refused = false;
  receiver.misbehave = (event) => {
    if (event.event !== 'session.created' || refused) return undefined;
    refused = true;
    return new Response(ANSWER, { status: 500 });
  };
  const dialled = await platform.api(app, 'POST', '/v1/sessions:dial', {
    from: NUMBER,
    to: NUMBER,
    ring_timeout_sec: 30,
    display_name: 'Zoë',
    sip_headers: { 'X-Hidden': 'a-secret', 'X-Shown': 'in-the-open' },
  });
  caller = String(dialled.body.session_uuid);
  callee = String((await receiver.event('session.created')).body.session_uuid);
  await platform.api(app, 'POST', `/v1/sessions/${callee}/answer`);
  await receiver.event('session.answered', caller);
  await platform.api(app, 'POST', `/v1/sessions/${callee}/dtmf/send`, { digits: '42' });
  await receiver.event('dtmf.sent', callee);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

describe('a live call', () => {
  test('is in the list with its trunk, and can be looked for by number, state and application', async () => {
    const list = async (query: string) => (await platform.operator('GET', `/sessions${query}`)).body;
    const { sessions, after } = await list(`?number=${encodeURIComponent(NUMBER)}&state=live&app_uuid=${app.appUuid}`);
    expect(after).toBe('');
    expect(sessions).toMatchObject([
      { session_uuid: callee, type: 'phone_in', state: 'answered', trunk: 'loop', did: NUMBER, ended_at: '', hangup_cause: '' },
      { session_uuid: caller, type: 'phone_out', state: 'answered', trunk: 'loop', ended_at: '', duration_seconds: 0 },
    ]);
    for (const bare of [NUMBER, NUMBER.slice(1)]) expect((await list(`?number=${bare}`)).sessions).toHaveLength(2);
    expect(await list('?number=%2B15550999')).toEqual({ sessions: [], after: '' });
    expect(await list('?state=ended')).toEqual({ sessions: [], after: '' });
  });

  test('tells its commands, SIP, media, events and webhook attempts before it is over', async () => {
    const entries = await timelineWith(callee, (all) => all.filter(({ kind }) => kind === 'webhook').length >= 2);
    const kinds = new Set(entries.map(({ kind }) => kind));
    for (const kind of ['command', 'sip', 'media', 'event', 'webhook']) expect(kinds).toContain(kind);
    expect(entries).toContainEqual(
      expect.objectContaining({ kind: 'command', method: 'POST', path: `/v1/sessions/${callee}/answer`, status: 202 }),
    );
    const attempts = entries.filter(({ kind }) => kind === 'webhook');
    expect(attempts[0]).toMatchObject({ attempt: 1, status: 500, error: 'http_status', response: ANSWER.slice(0, 2_048) });
    expect(attempts[0]?.next_at).not.toBe('');
    expect(attempts[1]).toMatchObject({ attempt: 2, status: 204, error: '', response: '', next_at: '' });
    const times = entries.map(({ at }) => String(at));
    expect(times).toEqual([...times].sort());
  });

  test('shows the digits that were sent to it nowhere', async () => {
    const entries = await timeline(callee);
    expect(entries).toContainEqual(expect.objectContaining({ kind: 'media', what: 'digits_sent' }));
    const sent = entries.find(({ kind, name }) => kind === 'event' && name === 'dtmf.sent');
    expect(sent?.body).toMatchObject({ digits: '' });
  });

  test('tells every ten seconds how it sounds', async () => {
    const entries = await timelineWith(caller, (all) => all.some(({ kind }) => kind === 'quality'));
    expect(entries.find(({ kind }) => kind === 'quality')).toMatchObject({ packets_lost: 0, mos: expect.any(Number) });
  }, 20_000);

  test('cannot be erased', async () => {
    expect(await platform.operator('DELETE', `/sessions/${caller}`)).toMatchObject({ status: 409 });
  });
});

describe('an ended call', () => {
  test('is in the list with its end, its timeline is stored whole, and each side of a loopback call has its own SIP', async () => {
    await platform.api(app, 'DELETE', `/v1/sessions/${caller}`);
    await receiver.event('session.ended', callee);
    const entries = await timelineWith(caller, (all) =>
      all.some(({ first_line }) => first_line === 'SIP/2.0 200 OK' && all.some(({ cseq }) => String(cseq).endsWith('BYE'))),
    );
    const lines = entries
      .filter(({ kind }) => kind === 'sip')
      .map(({ direction, first_line }) => `${direction} ${String(first_line).split(' ').slice(0, 2).join(' ')}`);
    expect(lines[0]).toMatch(/^out INVITE sip:/);
    expect(lines.filter((line) => line.startsWith('out BYE')).length).toBe(1);
    expect(lines.filter((line) => line.startsWith('in BYE'))).toEqual([]);
    const [row] = [(await platform.operator('GET', '/sessions?state=ended&limit=1')).body].map(({ sessions }) => sessions);
    expect(row).toMatchObject([{ state: 'ended', hangup_cause: 'completed', quality: { codec: 'PCMU', packets_lost: 0 } }]);
  });

  test('survives a restart with its timeline', async () => {
    const count = (all: readonly Entry[], of: string) => all.filter(({ kind }) => kind === of).length;
    const before = await timelineWith(
      caller,
      (all) =>
        all.filter(({ cseq }) => String(cseq).endsWith('BYE')).length === 2 && count(all, 'webhook') >= count(all, 'event'),
    );
    await platform.terminate();
    await platform.start();
    const again = await timeline(caller);
    expect(again).toEqual([...before]);
  }, 60_000);

  test('has its SIP as text and as a capture, without what is hidden', async () => {
    const { status, type, bytes } = await text(`/sessions/${caller}/sip.txt`);
    expect([status, type]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(bytes.toString()).toContain('X-Shown: in-the-open');
    expect(bytes.toString()).toContain('X-Hidden: (not kept)');
    // What proves that a call over the loopback trunk is of this process.
    expect(bytes.toString()).toContain('x-sidetone-loopback: (not kept)');
    expect(bytes.toString()).not.toContain('a-secret');
    expect(bytes.toString()).toContain('Zoë');
    for (const each of [caller, callee]) expect(JSON.stringify(await timeline(each))).not.toContain('a-secret');
    const created = (await timeline(callee)).find(({ name }) => name === 'session.created');
    expect(created?.body).toMatchObject({ sip: { headers: { 'X-Hidden': '(not kept)', 'X-Shown': 'in-the-open' } } });
    // The application itself is told.
    expect((await receiver.event('session.created', callee)).body).toMatchObject({
      sip: { headers: { 'X-Hidden': 'a-secret' } },
    });
    expect(bytes.toString()).not.toContain('m=audio');
    const capture = await text(`/sessions/${caller}/sip.pcap`);
    expect([capture.status, capture.type]).toEqual([200, 'application/vnd.tcpdump.pcap']);
    expect(capture.bytes.readUInt32LE(0)).toBe(0xa1b2c3d4);
    expect(capture.bytes.includes('a-secret')).toBe(false);
  });

  test('is read page by page, and a wrong filter is refused', async () => {
    const first = (await platform.operator('GET', '/sessions?limit=1')).body;
    expect(first.after).not.toBe('');
    const second = (await platform.operator('GET', `/sessions?limit=1&after=${String(first.after)}`)).body;
    expect(second.after).toBe('');
    expect(JSON.stringify(second.sessions)).not.toBe(JSON.stringify(first.sessions));
    for (const query of ['state=dead', 'limit=0', 'after=%20', 'number=', 'app_uuid=x', 'created_after=now', 'more=1'])
      expect([query, (await platform.operator('GET', `/sessions?${query}`)).status]).toEqual([query, 400]);
  });

  test('is read with the reading token too, which may change nothing', async () => {
    expect((await text(`/sessions/${caller}/timeline`, READ_TOKEN)).status).toBe(200);
    const response = await fetch(`${platform.url}/operator/v1/sessions/${caller}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${READ_TOKEN}` },
    });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ code: 'forbidden', message: 'This operator token may only read' });
  });

  test('is erased whole', async () => {
    await receiver.event('session.ended', caller);
    expect((await platform.operator('DELETE', `/sessions/${caller}`)).status).toBe(204);
    for (const path of ['timeline', 'sip.txt', 'sip.pcap']) expect((await text(`/sessions/${caller}/${path}`)).status).toBe(404);
    expect((await platform.operator('GET', `/events?session_uuid=${caller}`)).body).toEqual({ events: [], next: '' });
    expect((await platform.operator('DELETE', `/sessions/${caller}`)).status).toBe(404);
    expect((await timeline(callee)).length).toBeGreaterThan(5);
  });
});

test('A call is erased as soon as its end was delivered, and not while that is tried again.', async () => {
  const dialled = async () => {
    const { body } = await platform.api(app, 'POST', '/v1/sessions:dial', {
      from: NUMBER,
      to: '+15559999',
      ring_timeout_sec: 30,
    });
    return String(body.session_uuid);
  };
  const delivered = await dialled();
  await receiver.event('session.ended', delivered);
  expect((await platform.operator('DELETE', `/sessions/${delivered}`)).status).toBe(204);

  const tried = Promise.withResolvers<void>();
  receiver.misbehave = ({ event }) => {
    if (event !== 'session.ended') return undefined;
    tried.resolve();
    return new Response(null, { status: 500, headers: { 'retry-after': '3600' } });
  };
  const undelivered = await dialled();
  await tried.promise;
  const refused = await platform.operator('DELETE', `/sessions/${undelivered}`);
  receiver.misbehave = undefined;
  expect([refused.status, refused.body]).toEqual([
    409,
    { code: 'conflict', message: 'An event of the Session is still to come, or being delivered' },
  ]);
});

test('A call whose charge is under way is erased with the outcome of that.', async () => {
  await platform.operator('PUT', `/apps/${app.appUuid}/payment-terminals/1234567`);
  const terms = { from: NUMBER, to: NUMBER, ring_timeout_sec: 30 };
  const from = String((await platform.api(app, 'POST', '/v1/sessions:dial', terms)).body.session_uuid);
  const arrived = () => receiver.events.findLast(({ event }) => event === 'session.created')?.body.session_uuid;
  await receiver.until(() => arrived() !== callee, 'the call');
  const uuid = String(arrived());
  const order = (path: string, body: object, key: string) =>
    platform.api(app, 'POST', `/v1/sessions/${path}`, body, { 'idempotency-key': key });
  await order(`${uuid}/answer`, {}, 'answer');
  await receiver.event('session.answered', from);
  const collected = async (kind: 'card' | 'cvv', digits: string) => {
    await order(`${uuid}/payment/${kind}/collect`, {}, kind);
    await order(`${from}/dtmf/send`, { digits, duration_ms: 40, gap_ms: 40 }, digits);
    return (await receiver.event(`payment.${kind}.collected`, uuid)).body[`${kind}_uuid`];
  };
  const card_uuid = await collected('card', '4000000000000119#');
  const cvv_uuid = await collected('cvv', '123#');
  const money = { amount: 1000, currency: 'ils', provider: 'sandbox', terminal_number: '1234567' };
  const charge = { card_uuid, cvv_uuid, exp_month: 12, exp_year: 2099, ...money };
  expect((await order(`${uuid}/payment/charges`, charge, 'charge')).status).toBe(202);
  await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
  await receiver.event('session.ended', uuid);
  const erased = await patiently(() => platform.operator('DELETE', `/sessions/${uuid}`));
  await receiver.event('payment.charge.completed', uuid);
  expect(erased.status).toBe(204);
  expect((await platform.operator('GET', `/events?session_uuid=${uuid}`)).body).toEqual({ events: [], next: '' });
}, 40_000);

test('A timeline tells what the operator commanded.', async () => {
  const dialled = await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: NUMBER, to: '+15559999' });
  expect(dialled.status).toBe(202);
  const uuid = String(dialled.body.session_uuid);
  await receiver.event('session.ended', uuid);
  const entries = await timelineWith(uuid, (all) => all.some(({ kind }) => kind === 'command'));
  expect(entries.find(({ kind }) => kind === 'command')).toMatchObject({
    method: 'POST',
    path: `/operator/v1/apps/${app.appUuid}/dial`,
    status: 202,
  });
});

test('with CALL_HISTORY_DAYS=0 nothing is kept of a call that has ended', async () => {
  const quiet = await Platform.start({ CALL_HISTORY_DAYS: '0' });
  try {
    const owner = await quiet.application(receiver.url, NUMBER);
    await quiet.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    const { body } = await quiet.api(owner, 'POST', '/v1/sessions:dial', { from: NUMBER, to: NUMBER, ring_timeout_sec: 30 });
    const uuid = String(body.session_uuid);
    const live = (await quiet.operator('GET', `/sessions/${uuid}/timeline`)).body;
    expect(live.session).toMatchObject({ session_uuid: uuid });
    expect(JSON.stringify(live.entries)).not.toMatch(/"kind":"(sip|command|media)"/);
    await quiet.api(owner, 'DELETE', `/v1/sessions/${uuid}`);
    await receiver.event('session.ended', uuid);
    for (const path of ['timeline', 'sip.txt', 'sip.pcap'])
      expect([path, (await quiet.operator('GET', `/sessions/${uuid}/${path}`)).status]).toEqual([path, 404]);
    expect((await quiet.operator('GET', '/sessions?state=ended')).body.sessions).toEqual([]);
    // Commands to it are answered all the same.
    expect((await quiet.api(owner, 'DELETE', `/v1/sessions/${uuid}`)).body).toMatchObject({ already_ended: true });
  } finally {
    await quiet.stop();
  }
}, 60_000);
