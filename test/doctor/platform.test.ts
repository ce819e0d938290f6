/** What the doctor makes of the answers of a running platform, without one. */
import { expect, test } from 'bun:test';
import { OperatorApi } from '../../src/doctor/operator-api.ts';
import { platformChecks } from '../../src/doctor/platform.ts';
import type { Names } from '../../src/doctor/trunks.ts';
import { type Outbound, OutboundError, type OutboundFailure } from '../../src/outbound/outbound.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';

/** Names of which only these are known. */
const namesOf = (addresses: Record<string, string[]>, services: Record<string, string[]> = {}): Names => {
  const find = async (all: Record<string, string[]>, name: string) => all[name] ?? Promise.reject(new Error('ENOTFOUND'));
  return { addresses: (name) => find(addresses, name), services: (name) => find(services, name) };
};

/**
 * Examines a platform that has these trunks and applications. `answers`: the status to OPTIONS of each trunk, 0 for
 * none.
 */
async function examined(told: {
  readonly trunks?: readonly { readonly name: string; readonly uri: string; readonly outbound_proxy?: string }[];
  readonly answers?: Readonly<Record<string, number>>;
  readonly apps?: readonly object[];
  /** What is told under further paths. */
  readonly more?: Readonly<Record<string, object>>;
  readonly names?: Names;
  readonly nats?: boolean;
  readonly nodes?: readonly object[];
  /** What receivers of webhooks answer to HEAD. Left out: they are asked. */
  readonly head?: number;
  /** How each request to a receiver fails. */
  readonly fails?: OutboundFailure;
  /** How far the platform's clock is ahead of ours, in milliseconds. */
  readonly ahead?: number;
  /** What came of the last probe is known from before, and none is answered any more. */
  readonly isStale?: boolean;
}) {
  const { head, fails, trunks = [], answers = {}, apps = [], names = namesOf({}), nats, nodes = [], more = {} } = told;
  const { ahead = 0, isStale = false } = told;
  const started = Date.now();
  const bodies: Readonly<Record<string, () => object>> = {
    '/readyz': () => ({ status: 'ok', ...(nats === undefined ? {} : { nats }) }),
    '/operator/v1/nodes': () => ({ nodes }),
    '/operator/v1/apps': () => ({ apps }),
    '/operator/v1/refusals': () => ({ refusals: [] }),
    '/operator/v1/trunks': () => ({
      trunks: trunks.map((trunk) => {
        const status = answers[trunk.name] ?? 0;
        const at = new Date((isStale ? started : Date.now()) + ahead).toISOString();
        const probe = { at, ok: status === 200, sip_status: status, rtt_ms: 1 };
        return { register: false, ...trunk, status: { registered: false, last_probe: probe } };
      }),
    }),
  };
  const api = new OperatorApi('http://platform.invalid', 'token', async (request) =>
    Response.json(bodies[new URL(request.url).pathname]?.() ?? more[new URL(request.url).pathname] ?? {}),
  );
  const answered = (status: number): Outbound => ({ fetch: async () => ({ status, headers: new Headers(), body: undefined }) });
  const failing = (failure: OutboundFailure): Outbound => ({
    fetch: () => Promise.reject(new OutboundError(failure, 'it fails')),
  });
  const outbound = fails !== undefined ? failing(fails) : head === undefined ? createOutbound([]) : answered(head);
  const found = await platformChecks(api, outbound, Date.now(), names);
  return {
    farEnds: found?.farEnds,
    check: (name: string) => found?.checks.find((check) => check.name === name),
  };
}

test('a trunk is looked up as a call looks it up: by its outbound proxy, and by SRV', async () => {
  const { farEnds, check } = await examined({
    trunks: [
      { name: 'proxied', uri: 'sip:domain.example', outbound_proxy: 'sip:proxy.example:5070' },
      { name: 'served', uri: 'sip:served.example;transport=tcp' },
    ],
    answers: { proxied: 200, served: 200 },
    names: namesOf(
      { 'proxy.example': ['192.0.2.1'], 'a.served.example': ['192.0.2.2'] },
      { '_sip._tcp.served.example': ['a.served.example'] },
    ),
  });
  expect(check('trunk:proxied')).toMatchObject({ status: 'ok', found: expect.stringContaining('proxy.example') });
  expect(check('trunk:served')).toMatchObject({ status: 'ok' });
  expect(farEnds).toEqual(['192.0.2.1', '192.0.2.2']);
});

test('a trunk whose name has no address is a fault only when it does not answer', async () => {
  const { check } = await examined({
    trunks: [
      { name: 'answers', uri: 'sip:a.example' },
      { name: 'silent', uri: 'sip:b.example' },
      { name: 'proxied', uri: 'sip:b.example', outbound_proxy: 'sip:c.example' },
    ],
    answers: { answers: 200 },
  });
  expect(check('trunk:answers')).toMatchObject({ status: 'ok' });
  expect(check('trunk:silent')).toMatchObject({
    status: 'fault',
    found: expect.stringContaining('b.example has no address'),
    remedy: expect.stringMatching(/trunks set silent --uri … .*trunks show silent/),
  });
  expect(check('trunk:proxied')).toMatchObject({
    found: expect.stringContaining('c.example has no address'),
    remedy: expect.stringMatching(/trunks set proxied --uri 'sip:b\.example' --set outbound_proxy=… .*trunks show proxied/),
  });
});

test('whether a trunk answers does not depend on the clock of the machine from which the doctor is run', async () => {
  const trunk = { name: 'trunk', uri: 'sip:192.0.2.1' };
  for (const ahead of [-3_600_000, 3_600_000]) {
    const { check } = await examined({ trunks: [trunk], answers: { trunk: 200 }, ahead });
    expect(check('trunk:trunk')).toMatchObject({ status: 'ok', found: expect.stringContaining('192.0.2.1 answers') });
  }
  const { check } = await examined({ trunks: [trunk], answers: { trunk: 200 }, ahead: 3_600_000, isStale: true });
  expect(check('trunk:trunk')).toMatchObject({ status: 'fault', found: '192.0.2.1 does not answer OPTIONS' });
}, 20_000);

test('a webhook that is switched off is a fault, with the command that sets its URL again', async () => {
  const app = { app_uuid: 'app_1', name: 'gone', webhook_url: 'http://127.0.0.1:9/hook', webhook_disabled: true };
  const { check } = await examined({ apps: [app] });
  expect(check('webhook:gone')).toMatchObject({
    status: 'fault',
    found: expect.stringContaining('switched off'),
    remedy: expect.stringContaining("apps update app_1 --webhook-url 'http://127.0.0.1:9/hook'"),
  });
});

test('no webhook is a warning only for an application that is called', async () => {
  const named = (name: string) => ({ app_uuid: `app_${name}`, name, webhook_url: '', webhook_disabled: false });
  const { check } = await examined({
    apps: [named('numbered'), named('phoned'), named('unused')],
    more: {
      '/operator/v1/apps/app_numbered': { inbound_phone_numbers: ['+15550001'] },
      '/operator/v1/apps/app_phoned': { inbound_phone_numbers: [] },
      '/operator/v1/apps/app_phoned/devices': { devices: [{ username: 'alice' }] },
      '/operator/v1/apps/app_unused': { inbound_phone_numbers: [] },
      '/operator/v1/apps/app_unused/devices': { devices: [] },
    },
  });
  expect(check('webhook:numbered')).toMatchObject({ status: 'warning', remedy: expect.stringContaining('app_numbered') });
  expect(check('webhook:phoned')).toMatchObject({ status: 'warning' });
  expect(check('webhook:unused')).toMatchObject({ status: 'ok', found: expect.stringContaining('no number') });
});

test('a gateway whose receiver is away is a warning, and so is a redirect; any other answer is somebody who listens', async () => {
  const app = { app_uuid: 'app_1', name: 'a', webhook_url: 'https://a.example/hook', webhook_disabled: false };
  const check = async (head: number) => (await examined({ apps: [app], head })).check('webhook:a');
  for (const status of [200, 204, 401, 404, 405, 500, 501]) expect(await check(status)).toMatchObject({ status: 'ok' });
  for (const status of [502, 503, 504])
    expect(await check(status)).toMatchObject({
      status: 'warning',
      found: `a.example answers ${status}: what stands there does not reach the receiver`,
      remedy: expect.stringContaining('Start the receiver'),
    });
  for (const status of [301, 308])
    expect(await check(status)).toMatchObject({
      status: 'warning',
      found: `a.example redirects (${status}), and deliveries follow no redirect`,
      remedy: expect.stringContaining('--webhook-url URL'),
    });
});

test('a webhook whose certificate is not trusted is told to mend that, not to start', async () => {
  const app = { app_uuid: 'app_1', name: 'a', webhook_url: 'https://a.example/hook', webhook_disabled: false };
  const { check } = await examined({ apps: [app], fails: 'tls' });
  expect(check('webhook:a')).toMatchObject({ status: 'fault', remedy: expect.stringContaining('certificate') });
});

test('a webhook at a port of another protocol is told to move, not to be allowed', async () => {
  const app = { app_uuid: 'app_1', name: 'sip', webhook_url: 'http://127.0.0.1:5060/', webhook_disabled: false };
  const { check } = await examined({ apps: [app] });
  expect(check('webhook:sip')).toMatchObject({ status: 'fault', remedy: expect.stringContaining('listen on another port') });
});

test('a node without NATS is a fault, and another node without a sign of life a warning', async () => {
  const node = { http_host: '10.0.0.1', http_port: 8080, version: '1.0.0', dead_at: '', suspect: false, unreached: false };
  const silent = { ...node, http_host: '10.0.0.2', suspect: true };
  const dead = { ...silent, http_host: '10.0.0.3', dead_at: '2026-01-01T00:00:00.000Z' };
  const alone = await examined({});
  expect([alone.check('nats'), alone.check('nodes')]).toEqual([undefined, undefined]);
  const well = await examined({ nats: true, nodes: [node, dead] });
  expect([well.check('nats')?.status, well.check('nodes')]).toEqual([
    'ok',
    expect.objectContaining({ status: 'ok', found: '1 give signs of life (version 1.0.0)' }),
  ]);
  const cut = await examined({ nats: false, nodes: [node, silent, dead] });
  expect(cut.check('nats')).toMatchObject({ status: 'fault', remedy: expect.stringContaining('NATS_URL') });
  expect(cut.check('nodes')).toMatchObject({ status: 'warning', found: expect.stringContaining('10.0.0.2:8080 of 2') });
  expect(cut.check('platform')).toMatchObject({ status: 'ok' });
  const split = await examined({ nats: true, nodes: [node, { ...node, http_host: '2001:db8::4', unreached: true }] });
  expect(split.check('nodes')).toMatchObject({
    status: 'fault',
    found: expect.stringContaining('[2001:db8::4]:8080 of 2 live and do not answer over NATS'),
    remedy: expect.stringContaining('NATS_URL'),
  });
  const other = { ...node, http_host: '10.0.0.5', settings_apart: ['OPERATOR_TOKEN', 'RECORDINGS'] };
  const mixed = await examined({ nats: true, nodes: [{ ...node, settings_apart: [] }, other] });
  expect(mixed.check('nodes')).toMatchObject({
    status: 'warning',
    found: '10.0.0.5:8080 of 2 have another OPERATOR_TOKEN, RECORDINGS than this one',
  });
});

test('a platform that does not know the token runs all the same, and its token is asked for', async () => {
  const api = new OperatorApi('http://platform.invalid', 'token', async () =>
    Response.json({ code: 'unauthorized' }, { status: 401 }),
  );
  const found = await platformChecks(api, createOutbound([]), Date.now());
  expect(found?.checks).toEqual([
    expect.objectContaining({ name: 'platform', status: 'fault', remedy: expect.stringContaining('OPERATOR_TOKEN') }),
  ]);
});

test('a server that is no platform, and a platform without its database, are told by what they answer', async () => {
  const answers: readonly (readonly [body: unknown, status: number, found: string])[] = [
    [{}, 200, '/operator/v1/trunks was answered without the trunks of a platform'],
    [{ trunks: 1 }, 200, '/operator/v1/trunks was answered without the trunks of a platform'],
    [{ trunks: [null] }, 200, '/operator/v1/trunks was answered without the trunks of a platform'],
    [{ trunks: [{}] }, 200, '/operator/v1/trunks was answered without the trunks of a platform'],
    [{ trunks: [] }, 200, '/operator/v1/apps was answered without the apps of a platform'],
    ['nginx', 200, '/operator/v1/trunks was answered with 200 and no object of JSON'],
    [{ code: 1 }, 404, '/operator/v1/trunks was answered with 404: no word of a platform'],
    [
      { code: 'unavailable', message: 'The database is away' },
      503,
      '/operator/v1/trunks was answered with 503: The database is away',
    ],
  ];
  for (const [body, status, found] of answers) {
    const api = new OperatorApi('http://platform.invalid', 'token', async () => Response.json(body, { status }));
    expect(await platformChecks(api, createOutbound([]), Date.now())).toEqual({
      checks: [{ name: 'platform', status: 'fault', found, remedy: expect.stringContaining('SIDETONE_URL') }],
      farEnds: [],
    });
  }
  const nobody = new OperatorApi('http://platform.invalid', 'token', () => Promise.reject(new TypeError('refused')));
  expect(await platformChecks(nobody, createOutbound([]), Date.now())).toBeUndefined();
});

test('an application is named from four fifths of what it may keep in recordings on, and where further ones are refused', async () => {
  const app = (name: string, kept?: number) => ({
    ...{ app_uuid: 'a', name, webhook_url: '', webhook_disabled: false },
    ...(kept === undefined ? {} : { recording_store: { kept_bytes: kept, max_bytes: 1_000 } }),
  });
  const some = await examined({ apps: [app('little', 799), app('near', 800), app('full', 1_200)] });
  expect(some.check('recordings:little')).toBeUndefined();
  expect(some.check('recordings:near')).toMatchObject({ status: 'warning', found: 'keeps 80 % of its 1000 bytes of recordings' });
  expect(some.check('recordings:full')?.found).toContain('120 % of its 1000 bytes of recordings: further ones are refused');
  expect((await examined({ apps: [app('little', 799)] })).check('recordings')?.status).toBe('ok');
  expect((await examined({ apps: [app('unbounded')] })).check('recordings')).toBeUndefined();
});

test('a trunk whose registrar says nothing is not told to check its password; one that is refused is', async () => {
  const trunk = (name: string, status: object) => ({
    name,
    uri: 'sip:192.0.2.1',
    register: true,
    status: { registered: false, ...status },
  });
  const api = new OperatorApi('http://platform.invalid', 'token', async (request) => {
    const told: Readonly<Record<string, object>> = {
      '/operator/v1/trunks': {
        trunks: [
          trunk('silent', { register_sip_status: 0 }),
          trunk('refused', { register_sip_status: 403 }),
          trunk('full', { register_sip_status: 500 }),
          trunk('old', {}),
        ].map((each) => ({
          ...each,
          status: { ...each.status, last_probe: { at: new Date(Date.now() + 60_000).toISOString() } },
        })),
      },
      '/operator/v1/apps': { apps: [] },
      '/operator/v1/refusals': { refusals: [] },
    };
    return Response.json(told[new URL(request.url).pathname] ?? {});
  });
  const found = await platformChecks(api, createOutbound([]), Date.now(), namesOf({}));
  const check = (name: string) => found?.checks.find((each) => each.name === `trunk:${name}`);
  expect(check('silent')).toMatchObject({ status: 'fault', found: expect.stringContaining('does not answer REGISTER') });
  expect(check('silent')?.remedy).not.toContain('password');
  expect(check('refused')).toMatchObject({
    found: expect.stringContaining('403'),
    // A trunk is set up whole: without these it would not register at all, and have no other setting of its own.
    remedy: expect.stringMatching(
      /trunks set refused --uri 'sip:192\.0\.2\.1' --register --username … --password-file … .*trunks show refused/,
    ),
  });
  expect(check('full')).toMatchObject({ found: expect.stringContaining('answers REGISTER with 500') });
  expect(check('old')).toMatchObject({ remedy: expect.stringContaining('--password-file') });
});

test('a platform without its database is told to be that, and not to be another server', async () => {
  const api = new OperatorApi('http://platform.invalid', 'token', async (request) =>
    new URL(request.url).pathname === '/readyz'
      ? Response.json({ status: 'unavailable', database: false, media: true, sip: true, nats: true }, { status: 503 })
      : Response.json({ code: 'unavailable', message: 'Service temporarily unavailable.' }, { status: 503 }),
  );
  const found = await platformChecks(api, createOutbound([]), Date.now(), namesOf({}));
  expect(found?.checks).toMatchObject([
    { name: 'platform', status: 'fault', found: 'runs without database', remedy: expect.stringContaining('DATABASE_URL') },
    { name: 'nats', status: 'ok' },
  ]);
});

test('a platform that answers too late runs, and is told what it lacks, or to look into its log', async () => {
  const late = () => Promise.reject(new DOMException('The operation timed out.', 'TimeoutError'));
  const found = async (readiness: () => Promise<Response>) => {
    const api = new OperatorApi('http://platform.invalid', 'token', ({ url }) =>
      new URL(url).pathname === '/readyz' ? readiness() : late(),
    );
    return (await platformChecks(api, createOutbound([]), Date.now(), namesOf({})))?.checks;
  };
  expect(await found(async () => Response.json({ status: 'unavailable', database: false }, { status: 503 }))).toMatchObject([
    { name: 'platform', status: 'fault', found: 'runs without database' },
  ]);
  expect(await found(late)).toMatchObject([
    {
      name: 'platform',
      status: 'fault',
      found: '/operator/v1/trunks was not answered within 20 s',
      remedy: expect.stringContaining('Look into the log'),
    },
  ]);
});

test('repeats of a refused request are told with the time since which they were counted, which may be long ago', async () => {
  const now = Date.UTC(2026, 0, 2);
  const refusal = { at: new Date(now).toISOString(), source: '203.0.113.9', reason: 'It is in no trunk', remedy: 'Add it' };
  const firstAt = '2026-01-01T00:00:00.000Z';
  const found = async (refusals: readonly unknown[]) => {
    const told: Readonly<Record<string, unknown>> = { refusals, trunks: [], apps: [] };
    const api = new OperatorApi('http://platform.invalid', 'token', async () => Response.json(told));
    const checks = (await platformChecks(api, createOutbound([]), now, namesOf({})))?.checks;
    return checks?.find(({ name }) => name === 'refusals')?.found;
  };
  const [once, often] = [1, 3].map((count) => ({ ...refusal, count, first_at: firstAt }));
  expect(await found([once])).toBe('203.0.113.9: It is in no trunk');
  expect(await found([often, once])).toBe(
    `203.0.113.9: It is in no trunk, 3 times since ${firstAt}; 1 more in the last hour: bin/sidetone refusals list`,
  );
});
