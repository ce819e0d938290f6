/** Following what happens: the event stream, and the commands that stand on it, against the running platform. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550062';
const READ_TOKEN = 'a-token-for-reading-only';
const CLI = join(import.meta.dir, '../../bin/sidetone');

let platform: Platform;
let app: Credentials;
let other: Credentials;
const receiver = new Receiver();

beforeAll(async () => {
  platform = await Platform.start({ OPERATOR_READ_TOKEN: READ_TOKEN });
  app = await platform.application(receiver.url, NUMBER);
  other = await platform.application(receiver.url, '+15550063');
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** Opens a stream and hands out its messages one by one. */
async function follow(query = '', headers: Record<string, string> = {}) {
  const token = readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
  const abort = new AbortController();
  const response = await fetch(`${platform.url}/operator/v1/events/stream${query}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.signal,
  });
  const reader = response.body?.getReader();
  let text = '';
  const read = async (): Promise<boolean> => {
    const chunk = await reader?.read();
    if (chunk === undefined || chunk.done) return false;
    text += new TextDecoder().decode(chunk.value);
    return true;
  };
  if (response.ok) await read();
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    text: () => text,
    read,
    async next(): Promise<Message> {
      for (;;) {
        const end = text.indexOf('\n\n');
        if (end < 0) {
          if (!(await read())) throw new Error('the stream ended');
          continue;
        }
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const of = (field: string) => lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2);
        const data = of('data');
        if (data !== undefined) return { id: of('id') ?? '', event: of('event') ?? '', data: JSON.parse(data) };
      }
    },
    close: () => abort.abort(),
  };
}

const trigger = (of: Credentials, event: string) => platform.operator('POST', `/apps/${of.appUuid}/events`, { event });

describe('the event stream', () => {
  test('tells each event as it happens, and goes on after the last one that was read', async () => {
    const stream = await follow();
    expect([stream.status, stream.type]).toEqual([200, 'text/event-stream']);
    const first = await trigger(app, 'session.created');
    const told = await stream.next();
    expect(told).toMatchObject({
      event: 'session.created',
      data: { webhook_id: first.body.webhook_id, aud: app.appUuid, test: true },
    });
    stream.close();
    await trigger(app, 'session.ended');
    await trigger(app, 'room.created');
    const again = await follow('', { 'last-event-id': told.id });
    expect((await again.next()).event).toBe('session.ended');
    expect((await again.next()).event).toBe('room.created');
    again.close();
  });

  test('of one application tells nothing of another', async () => {
    const stream = await follow(`?app_uuid=${app.appUuid}`);
    await trigger(other, 'session.created');
    await trigger(app, 'dtmf.received');
    expect(await stream.next()).toMatchObject({ event: 'dtmf.received', data: { aud: app.appUuid } });
    stream.close();
  });

  test('with signatures gives what a delivery has, signed with the secret of the application', async () => {
    const stream = await follow('?signed=true');
    await trigger(app, 'recording.ended');
    const { data } = await stream.next();
    const headers = data.headers;
    if (typeof headers !== 'object' || headers === null) throw new Error('no headers');
    const verified = new Webhook(app.webhookSecret).verify(String(data.body), Object.fromEntries(Object.entries(headers)));
    expect(verified).toMatchObject({ event: 'recording.ended', test: true });
    expect(JSON.stringify(data)).not.toContain('whsec_');
    stream.close();
  });

  test('is open to the reading token, but not with signatures', async () => {
    const ask = (query: string) =>
      fetch(`${platform.url}/operator/v1/events/stream${query}`, { headers: { authorization: `Bearer ${READ_TOKEN}` } });
    const plain = await ask('');
    expect(plain.status).toBe(200);
    await plain.body?.cancel();
    expect((await ask('?signed=true')).status).toBe(403);
  });

  test('says a comment every five seconds when nothing happens', async () => {
    const stream = await follow(`?app_uuid=${other.appUuid}`);
    while (!stream.text().includes(': nothing new')) expect(await stream.read()).toBe(true);
    stream.close();
  }, 15_000);

  test('refuses a wrong id and parameters that it does not know', async () => {
    for (const [query, headers] of [
      ['', { 'last-event-id': 'x' }],
      ['?app_uuid=x', {}],
      ['?signed=maybe', {}],
      ['?more=1', {}],
    ] as const)
      expect((await follow(query, headers)).status).toBe(400);
  });

  test('begins with the id from which who comes back before the first event goes on', async () => {
    const stream = await follow();
    const id = /^id: ([0-9]+)$/m.exec(stream.text())?.[1];
    stream.close();
    const missed = await trigger(app, 'session.created');
    const again = await follow('', { 'last-event-id': String(id) });
    expect(await again.next()).toMatchObject({ data: { webhook_id: missed.body.webhook_id } });
    again.close();
  });

  test('tells who comes with the id of another log that there is a gap, and goes on from the end', async () => {
    const stream = await follow('', { 'last-event-id': '999999999' });
    expect(await stream.next()).toMatchObject({ event: 'gap' });
    const next = await trigger(app, 'session.created');
    expect(await stream.next()).toMatchObject({ data: { webhook_id: next.body.webhook_id } });
    stream.close();
  });

  test('takes no place for a HEAD, whose body nobody reads', async () => {
    const headers = { authorization: `Bearer ${READ_TOKEN}` };
    for (let n = 0; n < 40; n++)
      expect((await fetch(`${platform.url}/operator/v1/events/stream`, { method: 'HEAD', headers })).status).toBe(200);
    const stream = await follow();
    expect(stream.status).toBe(200);
    stream.close();
  });

  test('has 32 readers at most, and takes another one when one has left', async () => {
    const streams = await Promise.all(Array.from({ length: 32 }, () => follow()));
    const statuses = streams.map(({ status }) => status);
    expect(statuses).toEqual(statuses.map(() => 200));
    expect((await follow()).status).toBe(503);
    for (const stream of streams) stream.close();
    const until = performance.now() + 10_000;
    let status = 503;
    while (status === 503 && performance.now() < until) {
      const one = await follow();
      status = one.status;
      one.close();
    }
    expect(status).toBe(200);
  }, 20_000);
});

describe('a sample of an event', () => {
  test('is sent to the webhook, signed, with identifiers of its own, and is marked', async () => {
    const before = receiver.events.length;
    const [one, two] = [await trigger(app, 'session.answered'), await trigger(app, 'session.answered')];
    expect(one).toMatchObject({ status: 202, body: { event: 'session.answered', status: 'pending' } });
    await receiver.until(() => receiver.events.length >= before + 2, 'two samples');
    const bodies = [one, two].map(({ body }) => receiver.events.find(({ webhookId }) => webhookId === body.webhook_id)?.body);
    expect(bodies[0]).toMatchObject({ event: 'session.answered', test: true, aud: app.appUuid });
    expect(bodies[0]?.session_uuid).not.toBe(bodies[1]?.session_uuid);
    expect(receiver.badSignatures).toBe(0);
  });

  test('of an unknown name is 400, for an unknown application 404', async () => {
    expect(await trigger(app, 'session.exploded')).toMatchObject({ status: 400 });
    expect(await trigger({ ...app, appUuid: 'app_00000000-0000-4000-8000-000000000000' }, 'session.created')).toMatchObject({
      status: 404,
    });
  });
});

/** Runs a command of the CLI; `until` ends it by SIGINT once its output holds that text. */
function sidetone(args: readonly string[], until?: string, env: Readonly<Record<string, string>> = {}) {
  const child = spawn('node', [CLI, '--url', platform.url, '--data-dir', platform.dataDir, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let output = '';
  let isStopped = false;
  const done = new Promise<{ readonly code: number | null; readonly output: string }>((resolve) => {
    child.once('exit', (code) => resolve({ code, output }));
  });
  const take = (chunk: Buffer) => {
    output += chunk.toString();
    // Once: a second one would end it at once, as it should.
    if (until === undefined || isStopped || !output.includes(until)) return;
    isStopped = true;
    child.kill('SIGINT');
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  return { done };
}

describe('the command line', () => {
  test('listen forwards each event to a local URL, signed as the platform signs', async () => {
    const local = new Receiver();
    local.secrets.set(app.appUuid, app.webhookSecret);
    try {
      const listening = sidetone(['listen', '--app', app.appUuid, '--forward', local.url], '→ 204');
      // It may not be connected yet: samples are sent until one has come through.
      let over = false;
      void listening.done.then(() => {
        over = true;
      });
      while (!over) {
        await trigger(app, 'dtmf.received');
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      const { code, output } = await listening.done;
      expect(code).toBe(0);
      expect(output).toMatch(/dtmf\.received .*digit=5.*test=true {2}→ 204 \(\d+ ms\)/);
      expect(local.events.length).toBeGreaterThan(0);
      expect(local.badSignatures).toBe(0);
    } finally {
      await local.stop();
    }
  }, 20_000);

  test('trigger, calls list, calls show and tail tell what there is', async () => {
    expect(await sidetone(['trigger', 'room.created', '--app', app.appUuid]).done).toMatchObject({
      code: 0,
      output: expect.stringContaining('pending'),
    });
    const { body } = await platform.api(app, 'POST', '/v1/sessions:dial', {
      from: NUMBER,
      to: NUMBER,
      ring_timeout_sec: 30,
      display_name: 'a\u009b2J\u202e',
      client_state: '\u001b]0;b\u0007\n12:00:00.000  session.ended  forged',
    });
    const uuid = String(body.session_uuid);
    const tailing = sidetone(['tail', '--session', uuid], 'INVITE sip:');
    expect(await tailing.done).toMatchObject({ code: 0 });
    await platform.api(app, 'DELETE', `/v1/sessions/${uuid}`);
    await receiver.event('session.ended', uuid);
    const list = await sidetone(['calls', 'list', '--number', NUMBER]).done;
    expect(list.output).toContain(uuid);
    expect(await sidetone(['calls', '--number', NUMBER]).done).toMatchObject({ code: 0, output: expect.stringContaining(uuid) });
    const shown = await sidetone(['calls', 'show', uuid]).done;
    expect(shown.output).toMatch(/command {2}POST \/v1\/sessions:dial {2}202 in/);
    expect(shown.output).toMatch(/sip {6}-> INVITE sip:/);
    // It ends by itself after a call that is over.
    expect(await sidetone(['tail', '--session', uuid]).done).toMatchObject({
      code: 0,
      output: expect.stringContaining('session.ended'),
    });
    const text = await sidetone(['calls', 'show', uuid, '--sip']).done;
    expect(text.output).toContain('Call-ID: ');
    // What the application and the caller wrote is neither obeyed by a terminal nor a line of its own.
    expect(shown.output).toContain('client_state=\\u001b]0;b\\u0007\\u000a12:00:00.000  session.ended  forged');
    expect(text.output).toContain('From: "a\\u009b2J\\u202e" <sip:');
    for (const { output } of [shown, text]) expect(output).not.toMatch(/(?!\r\n|\n)[\p{Cc}\p{Cf}]/u);
    expect(await sidetone(['calls', 'show', 'no-such-call']).done).toMatchObject({
      code: 1,
      output: expect.stringContaining('404'),
    });
  }, 20_000);

  test('tail ends with the refusal where it may not read the Session, or there is none', async () => {
    const unknown = '6a1f6f4e-58a5-4d0e-9a3c-2f9c8f6e0000';
    expect(await sidetone(['tail', '--session', unknown]).done).toMatchObject({
      code: 1,
      output: expect.stringContaining('404 not_found: Session not found'),
    });
    expect(await sidetone(['tail', '--session', unknown], undefined, { OPERATOR_TOKEN: 'wrong' }).done).toMatchObject({
      code: 1,
      output: expect.stringContaining('401 unauthorized'),
    });
  }, 20_000);

  test('tail waits an outage out, and says so', async () => {
    let looks = 0;
    const shaky = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch({ url }) {
        if (!new URL(url).pathname.endsWith('/timeline')) return Response.json({ sessions: [], after: '' });
        looks += 1;
        if (looks === 2) return Response.json({ code: 'unavailable', message: 'away' }, { status: 503 });
        const entries = [{ at: '2026-01-01T00:00:00.000Z', kind: 'media', what: `look ${looks}` }];
        return Response.json({ session: { ended_at: '' }, entries });
      },
    });
    try {
      const { output } = await sidetone(['tail', '--session', 'x', '--url', `http://127.0.0.1:${shaky.port}`], 'connected again')
        .done;
      expect(output).toMatch(/look 1\n.*503 unavailable: away; trying again\n.*look 3\n.*connected again/s);
    } finally {
      await shaky.stop(true);
    }
  }, 20_000);

  test('tail ends after a call of which no history is kept, and after one that is erased', async () => {
    let looks = 0;
    const forgetful = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch() {
        looks += 1;
        if (looks > 1) return Response.json({ code: 'not_found', message: 'Session not found' }, { status: 404 });
        const entries = [{ at: '2026-01-01T00:00:00.000Z', kind: 'media', what: 'a live call' }];
        return Response.json({ session: { ended_at: '' }, entries });
      },
    });
    try {
      const { code, output } = await sidetone(['tail', '--session', 'x', '--url', `http://127.0.0.1:${forgetful.port}`]).done;
      expect([code, output]).toEqual([0, expect.stringContaining('a live call')]);
    } finally {
      await forgetful.stop(true);
    }
  }, 20_000);

  test('tail shows a call that began and ended between two looks, once', async () => {
    const uuid = '6a1f6f4e-58a5-4d0e-9a3c-2f9c8f6e0001';
    const asked: string[] = [];
    let looks = 0;
    // A platform on which each look finds no live call, and the second one a call that is over.
    const brief = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch({ url }) {
        const { pathname, searchParams } = new URL(url);
        const at = new Date().toISOString();
        if (pathname.endsWith('/timeline'))
          return Response.json({
            session: { ended_at: at },
            entries: [{ at: '2026-01-01T00:00:00.000Z', kind: 'media', what: 'a short call' }],
          });
        if (searchParams.get('state') === 'live') looks += 1;
        const after = searchParams.get('created_after');
        if (after !== null) asked.push(after);
        const sessions = after === null ? [] : [{ session_uuid: looks < 4 ? uuid : uuid.replace(/1$/, '2'), created_at: at }];
        return Response.json({ sessions, after: '' });
      },
    });
    const started = Date.now();
    try {
      const { code, output } = await sidetone(['tail', '--json', '--url', `http://127.0.0.1:${brief.port}`], '0002').done;
      expect(code).toBe(0);
      expect(output.match(/0001.*a short call/g)).toHaveLength(1);
      const [first = ''] = asked;
      expect(Date.parse(first)).toBeLessThan(Date.now());
      expect(Date.parse(first)).toBeGreaterThan(started - 5_000);
      expect(asked.toSorted()).toEqual(asked);
    } finally {
      await brief.stop(true);
    }
  }, 20_000);
});
