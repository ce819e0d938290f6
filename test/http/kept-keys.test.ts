/** What becomes of an Idempotency-Key when its request is answered. */
import { expect, test } from 'bun:test';
import type { IdempotencyStore } from '../../src/database/idempotency/idempotency.ts';
import { keep, mark } from '../../src/http/admission/idempotency.ts';
import type { Outcome, RequestContext, RouteFacts } from '../../src/http/request-context.ts';
import { bareRoute, route } from '../../src/http/route.ts';
import { problems } from '../../src/problem.ts';

const facts: RouteFacts = {
  ...{ method: 'POST', path: '/v1/things', auth: 'application', summary: '', tag: '', success: [202, ''], command: true },
};

/** A store that notes what it is asked, and answers `found`. */
function noted(found: Awaited<ReturnType<IdempotencyStore['begin']>> = { state: 'fresh' }) {
  const calls: string[] = [];
  const fingerprints: string[] = [];
  const store: IdempotencyStore = {
    async begin({ fingerprint }) {
      fingerprints.push(fingerprint);
      return found;
    },
    stored: ({ key }) => void calls.push(`stored ${key}`),
    async finish({ key }, status, body) {
      await Promise.resolve();
      calls.push(`finish ${key} ${status} ${body}`);
    },
    async release({ key }) {
      await Promise.resolve();
      calls.push(`release ${key}`);
    },
    left: ({ key }) => void calls.push(`left ${key}`),
    releaseLeft: async () => 0,
  };
  return { store, calls, fingerprints };
}

function requestOf(more: Partial<RequestContext> = {}): RequestContext {
  return {
    request: new Request('http://127.0.0.1/v1/things', { method: 'POST', headers: { 'idempotency-key': 'k' } }),
    route: bareRoute(facts, () => () => ({ status: 202, body: {} })),
    ...{ params: {}, path: '/v1/things', search: '', traceparent: '', raw: undefined, body: {}, appUuid: 'app' },
    ...{ isOperator: false, mayOnlyRead: false, operationUuid: '', keyed: undefined, find: () => undefined, work: undefined },
    ...{ sessionUuid: undefined, refund: undefined },
    ...more,
  };
}

/** What the store is asked where a request whose key is marked ends so. */
async function ending(outcome: Outcome, more: Partial<RouteFacts> = {}, mayKeep = () => true): Promise<string> {
  const { store, calls } = noted();
  const context = requestOf({ route: bareRoute({ ...facts, ...more }, () => () => outcome) });
  expect(await mark(store, context)).toBeUndefined();
  expect(context.keyed?.key).toBe('k');
  await keep(store, context, outcome, mayKeep);
  // Whatever comes after the answer does nothing to the key.
  const before = calls.length;
  await keep(store, context, outcome, mayKeep);
  expect(calls.length).toBe(before);
  return calls.join(', ');
}

test('An answer is kept, by the commit of its effect or by itself, and so are a 422 and a 403 of the request', async () => {
  expect(await ending({ status: 202, body: { a: 1 } }, { answerStoredBy: 'journal' })).toBe('stored k');
  expect(await ending({ status: 202, body: { a: 1 } })).toBe('finish k 202 {"a":1}');
  expect(await ending({ status: 204, body: {} })).toBe('finish k 204 ');
  const { problem, message } = problems.callerId();
  expect(await ending(problems.callerId())).toBe(`finish k 403 ${JSON.stringify({ code: problem, message })}`);
  expect(await ending({ ...problems.callerId(), status: 422 })).toBe(
    `finish k 422 ${JSON.stringify({ code: problem, message })}`,
  );
});

test('What passes gives the key back, and what is in doubt leaves it to its lease', async () => {
  const passing = [problems.notFound('Session'), problems.conflict('busy'), problems.tooManyRooms()];
  for (const each of [...passing, problems.rateLimited(1), problems.unavailable('away', 1)])
    expect(await ending(each)).toBe('release k');
  expect(await ending({ ...problems.unavailable('away', 1), isInDoubt: true })).toBe('left k');
});

test('A refusal beyond what may be kept gives the key back, and an answer is kept all the same', async () => {
  const none = () => false;
  expect(await ending(problems.callerId(), {}, none)).toBe('release k');
  expect(await ending({ ...problems.callerId(), status: 422 }, {}, none)).toBe('release k');
  expect(await ending({ status: 202, body: {} }, {}, none)).toBe('finish k 202 {}');
});

test('A response that is whole already, and an answer that is not stored, leave the key to its lease', async () => {
  const { store, calls } = noted();
  const context = requestOf();
  await mark(store, context);
  await keep(store, context, new Response('{}'), () => true);
  expect(calls).toEqual(['left k']);

  const away = () => Promise.reject(new Error('away'));
  const failing: IdempotencyStore = { ...store, finish: away, release: away };
  for (const outcome of [{ status: 202, body: {} }, problems.callerId(), problems.conflict('busy')]) {
    calls.length = 0;
    const second = requestOf();
    await mark(failing, second);
    await expect(keep(failing, second, outcome, () => true)).rejects.toThrow('away');
    expect(calls).toEqual(['left k']);
  }
});

test('A replay has the first status and body; one of a 204 has no body and no type', async () => {
  const full = await mark(noted({ state: 'replay', status: 202, body: '{"a":1}' }).store, requestOf());
  if (!(full instanceof Response)) throw new Error('no replay');
  expect([full.status, full.headers.get('idempotent-replayed'), await full.json()]).toEqual([202, 'true', { a: 1 }]);
  expect(full.headers.get('content-type')).toContain('application/json');
  const empty = await mark(noted({ state: 'replay', status: 204, body: '' }).store, requestOf());
  if (!(empty instanceof Response)) throw new Error('no replay');
  expect([empty.status, empty.body, empty.headers.get('content-type')]).toEqual([204, null, null]);
});

test('Requests are told apart by method, path and body, the body by what it says', async () => {
  const { store, fingerprints } = noted();
  const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
  const asked: readonly Partial<RequestContext>[] = [
    { body: { a: 1, b: [1, { c: 2, d: 'é' }] } },
    { body: { b: [1, { d: 'é', c: 2 }], a: 1 } },
    { body: { a: 1, b: [{ c: 2, d: 'é' }, 1] } },
    { body: { a: '1', b: [1, { c: 2, d: 'é' }] } },
    { body: { a: 1, b: [1, { c: 2, d: 'é' }] }, path: '/v1/others' },
    { body: { a: null } },
    { body: {} },
    { body: [] },
    // What is too deep is compared as it came.
    { body: deep(40), raw: new Uint8Array([1]) },
    { body: deep(40), raw: new Uint8Array([2]) },
    { body: deep(31), raw: new Uint8Array([1]) },
    { body: deep(31), raw: new Uint8Array([2]) },
    // A route without a body does not look at one.
    { route: route(facts, () => () => ({ status: 202, body: {} })), body: { a: 1 } },
    { route: route(facts, () => () => ({ status: 202, body: {} })), body: { a: 2 } },
  ];
  for (const each of asked) await mark(store, requestOf(each));
  const names = fingerprints.map((each) => fingerprints.indexOf(each));
  expect(names).toEqual([0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 12, 12]);
});
