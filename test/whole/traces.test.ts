/** Traces as an OpenTelemetry collector gets them: one from the HTTP command over SIP and media to the webhook. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550001';
const CALLER_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SECRET = 'a-secret-of-the-caller';

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

describe('a trace', () => {
  const receiver = new Receiver();
  const spans: Span[] = [];
  const texts: string[] = [];
  const waiting: (() => void)[] = [];
  const collector = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (new URL(request.url).pathname !== '/v1/traces') return new Response(null, { status: 404 });
      const text = await request.text();
      texts.push(text);
      for (const { scopeSpans } of JSON.parse(text).resourceSpans) for (const { spans: told } of scopeSpans) spans.push(...told);
      for (const look of waiting.splice(0)) look();
      return Response.json({});
    },
  });
  let platform: Platform;
  let app: Credentials;
  let trace = '';
  let root = '';
  let call = '';
  const tones = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(440, 0.5)) });
  const named = async (name: string, traceId = trace): Promise<Span> => {
    for (;;) {
      const found = spans.find((span) => span.name === name && span.traceId === traceId);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };

  beforeAll(async () => {
    platform = await Platform.start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}` });
    app = await platform.application(receiver.url, NUMBER);
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    receiver.misbehave = ({ event, type, session_uuid: uuid }) => {
      if (event === 'session.created' && type === 'phone_in') void platform.answerSoon(app, uuid);
      return undefined;
    };
    const dialled = await platform.api(
      app,
      'POST',
      '/v1/sessions:dial',
      { from: NUMBER, to: NUMBER, ring_timeout_sec: 30, trunk: 'loop', sip_headers: { 'X-Secret': SECRET } },
      { traceparent: `00-${CALLER_TRACE}-00f067aa0ba902b7-01` },
    );
    [, trace = '', root = ''] = (dialled.headers.get('traceparent') ?? '').split('-');
    call = String(dialled.body.session_uuid);
  }, 60_000);
  afterAll(async () => {
    await platform?.stop();
    await receiver.stop();
    await collector.stop(true);
    await tones.stop(true);
  });

  test('begins with the command, and links the trace of who sent it', async () => {
    const command = await named('POST /v1/sessions:dial');
    expect(command.spanId).toBe(root);
    expect(command.parentSpanId ?? '').toBe('');
    expect(command.links?.map(({ traceId }) => traceId)).toEqual([CALLER_TRACE]);
    expect(command.attributes).toContainEqual({ key: 'http.response.status_code', value: { intValue: 202 } });
  }, 30_000);

  test('goes on with the SIP and the audio that the command caused', async () => {
    for (const name of ['SIP INVITE', 'SIP 200', 'SIP ACK', 'media connected'])
      expect((await named(name)).parentSpanId).toBe(root);
  }, 30_000);

  test('ends at the webhook, whose receiver is told the span of its delivery', async () => {
    const delivery = await named('webhook session.answered');
    expect(delivery.parentSpanId).toBe(root);
    const sent = receiver.events.map(({ headers }) => headers.get('traceparent'));
    expect(sent).toContain(`00-${trace}-${delivery.spanId}-01`);
  }, 30_000);

  test('is that of the command which caused an event, although the call has taken others since', async () => {
    await named('webhook session.answered');
    const order = async (what: string, body = {}) => {
      const { headers } = await platform.api(app, 'POST', `/v1/sessions/${call}/${what}`, body);
      return headers.get('traceparent')?.split('-')[1];
    };
    const files = { type: 'files', urls: [`${tones.url}tone.wav`] };
    const played = await order('playback/play', files);
    const sent = await order('dtmf/send', { digits: '1' });
    await named('media playback_completed', played);
    await named('webhook playback.ended', played);
    await named('media digits_sent', sent);
    await named('webhook dtmf.sent', sent);
    await order('playback/play', { ...files, loop: 0 });
    const stopped = await order('playback/stop');
    await named('media playback_stopped', stopped);
    await named('webhook playback.ended', stopped);
  }, 30_000);

  test('tells nothing that is not there, as the operation of what the operator orders', async () => {
    await platform.operator('POST', `/apps/${app.appUuid}/dial`, { from: NUMBER, to: 'sip:nobody' });
    while (!spans.some(({ name }) => name.includes('/operator/'))) await new Promise<void>((resolve) => waiting.push(resolve));
    const attributes = spans.flatMap((span) => span.attributes);
    expect(attributes.filter(({ value }) => value.stringValue === '')).toEqual([]);
  }, 30_000);

  test('has no number, no secret and no key', () => {
    const all = texts.join('\n');
    for (const secret of [NUMBER, SECRET, app.apiKey, app.webhookSecret]) expect(all).not.toContain(secret);
  });
});

test('a collector that is away holds nothing up', async () => {
  const platform = await Platform.start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  expect((await platform.operator('POST', '/apps', { name: 'one' })).status).toBe(201);
  await platform.terminate();
  await platform.stop();
}, 60_000);

test('the library is loaded by one file, and that file only where it is asked for', () => {
  const root = join(import.meta.dir, '../../src');
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const having = (text: string) => sources.filter((name) => readFileSync(join(root, name), 'utf8').includes(text));
  expect(having("from '@opentelemetry/")).toEqual(['tracing/otlp.ts']);
  expect(having("otlp.ts'")).toEqual(['compose/compose.ts']);
  expect(readFileSync(join(root, 'compose/compose.ts'), 'utf8')).toContain("await import('../tracing/otlp.ts')");
});
