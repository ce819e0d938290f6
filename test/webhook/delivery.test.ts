/** One attempt, on virtual time, with the answer that the test gives. */
import { expect, test } from 'bun:test';
import { WEBHOOK_ANSWER_KEPT_BYTES, WEBHOOK_ANSWER_MAX_BYTES } from '../../src/limits.ts';
import { type Outbound, OutboundError, type OutboundRequest, type OutboundResponse } from '../../src/outbound/outbound.ts';
import { attemptDelivery } from '../../src/webhook/delivery.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const endpoint = { url: 'http://receiver.invalid/', disabled: false, since: 0, keys: [], blocks: () => false };
const event = { appUuid: 'app_1', webhookId: 'evt_1', body: '{}' };

const answer = (status: number, body?: ReadableStream<Uint8Array>): OutboundResponse => ({
  ...{ status, body, headers: new Headers({ 'retry-after': '7' }) },
});

function attempt(fetch: Outbound['fetch'], clock = new VirtualClock()) {
  return attemptDelivery({ outbound: { fetch }, clock, timeoutSec: 5 }, endpoint, event, '');
}

/** A body of these pieces. Resolves `cancelled` when the reader wants no more of it. */
function bodyOf(pieces: readonly Uint8Array[]) {
  const cancelled = Promise.withResolvers<number>();
  let given = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = pieces[given];
        given += 1;
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
      cancel: () => cancelled.resolve(given),
    },
    { highWaterMark: 0 },
  );
  return { body, cancelled: cancelled.promise };
}

test('Only 2xx delivers, 410 is told apart, and only a failure has a wait', async () => {
  const of = async (status: number) => await attempt(async () => answer(status));
  for (const status of [200, 204, 299]) expect(await of(status)).toEqual({ status, error: '', retryAfterMs: 0, response: '' });
  for (const status of [101, 199, 300, 301, 304, 404, 409, 411, 429, 500, 999])
    expect(await of(status)).toEqual({ status, error: 'http_status', retryAfterMs: 7_000, response: '' });
  expect(await of(410)).toEqual({ status: 410, error: 'gone', retryAfterMs: 7_000, response: '' });
});

test('An attempt ends when its time is over, and leaves no timer behind when it ended before', async () => {
  const clock = new VirtualClock();
  let isAborted = false;
  const hangs = ({ signal }: OutboundRequest) =>
    new Promise<OutboundResponse>((_, reject) =>
      signal.addEventListener('abort', () => {
        isAborted = true;
        reject(new Error('aborted'));
      }),
    );
  const outcome = attempt(hangs, clock);
  await clock.advance(4_999);
  expect(isAborted).toBe(false);
  await clock.advance(1);
  expect(await outcome).toEqual({ status: null, error: 'timeout', retryAfterMs: 0, response: '' });
  await attempt(async () => answer(200), clock);
  expect(clock.armed).toBe(0);
});

test('An attempt that had no answer says why', async () => {
  const failed = (error: Error) => attempt(() => Promise.reject(error));
  expect((await failed(new OutboundError('dns', ''))).error).toBe('dns');
  expect((await failed(new Error('another'))).error).toBe('unreachable');
});

test('An attempt is signed with its own second', async () => {
  const clock = new VirtualClock(1_700_000_000_999);
  let headers: Readonly<Record<string, string>> = {};
  await attempt(async (request) => {
    headers = request.headers;
    return answer(200);
  }, clock);
  const named = new Headers({ ...headers });
  expect([named.get('webhook-id'), named.get('webhook-timestamp')]).toEqual(['evt_1', '1700000000']);
});

test('The beginning of an answer is kept as text that the database takes', async () => {
  const text = new TextEncoder();
  const short = bodyOf([text.encode('He\0'), text.encode('llo')]);
  expect((await attempt(async () => answer(200, short.body))).response).toBe('He\ufffdllo');
  const long = bodyOf([text.encode('a'.repeat(WEBHOOK_ANSWER_KEPT_BYTES - 1)), text.encode('bcd')]);
  expect((await attempt(async () => answer(500, long.body))).response).toBe(`${'a'.repeat(WEBHOOK_ANSWER_KEPT_BYTES - 1)}b`);
});

test('An answer that is too long is given up, and counts all the same', async () => {
  const piece = new Uint8Array(WEBHOOK_ANSWER_MAX_BYTES / 4);
  const { body, cancelled } = bodyOf(new Array<Uint8Array>(100).fill(piece));
  const response = '\ufffd'.repeat(WEBHOOK_ANSWER_KEPT_BYTES);
  expect(await attempt(async () => answer(200, body))).toMatchObject({ status: 200, error: '', response });
  await settle();
  expect(await cancelled).toBe(5);
});
