/** What is read without a key: each answer has a trace, and a bug below one is told as a bug of any other route. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Marked } from 'marked';
import { readingOf } from '../../src/http/documentation/reading.ts';
import type { PublicOptions } from '../../src/http/route/public.ts';
import { publicRoutes } from '../../src/http/route/public.ts';
import { silentLog } from '../../src/log.ts';
import { OPERATOR_TOKEN } from '../support/http-deps.ts';
import { openPlatform, type Platform } from './platform.ts';
import { rawRequest } from './raw-http.ts';

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/;
const OPTIONS: PublicOptions = {
  metrics: { exposition: async () => ({ text: '', contentType: 'text/plain' }) },
  ready: async () => ({}),
  openapi: () => ({}),
};

describe('what is read without a key', () => {
  let platform: Platform;
  /** What `ready` throws. */
  let bug: unknown;
  const logged: unknown[] = [];
  beforeAll(async () => {
    platform = await openPlatform({
      log: Object.assign(Object.create(silentLog), { error: (facts: unknown) => void logged.push(facts) }),
      ready: async () => {
        if (bug !== undefined) throw bug;
        return { database: true };
      },
    });
  });
  afterAll(() => platform.close());

  test('has a trace on every path, for GET, HEAD and a method that it does not take', async () => {
    const paths = [...publicRoutes(OPTIONS).keys()];
    expect(paths.length).toBeGreaterThan(20);
    for (const path of [...paths, '/no-such-path'])
      for (const method of ['GET', 'HEAD', 'PUT']) {
        const { headers } = await platform.raw(path, { method });
        expect([method, path, headers.get('traceparent')]).toEqual([method, path, expect.stringMatching(TRACEPARENT)]);
      }
  });

  test('is where a person who opens the address in a browser is led; a program is told 404, as for every unknown path', async () => {
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const open = (path: string, accept: string, method = 'GET') =>
      platform.raw(path, { method, headers: { accept }, redirect: 'manual' });
    for (const method of ['GET', 'HEAD']) {
      const led = await open('/', browser, method);
      expect([led.status, led.headers.get('location'), led.headers.get('vary')]).toEqual([302, '/docs', 'accept']);
    }
    for (const [path, accept, method] of [
      ['/', '*/*'],
      ['/', 'application/json'],
      ['/', browser, 'POST'],
      ['/v1', browser],
    ] as const) {
      const told = await open(path, accept, method);
      expect([told.status, told.body]).toEqual([404, { code: 'not_found', message: 'No route matches this path' }]);
    }
  });

  test('is rendered once, since whoever asks for it has no key: a page costs no time that calls need', async () => {
    const render = spyOn(Marked.prototype, 'use');
    try {
      const pages = publicRoutes(OPTIONS);
      for (let times = 0; times < 3; times++)
        for (const path of ['/docs/operations', '/docs/api', '/docs/decisions', '/docs/decisions/README'])
          expect((await pages.get(path)?.())?.status).toBe(200);
      expect(render).toHaveBeenCalledTimes(3);
    } finally {
      render.mockRestore();
    }
  });

  test('tells by HEAD the length that GET has, or none', async () => {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => platform.app.fetch(request) });
    const lengthOf = async (method: string, path: string) => {
      const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, connection: 'close' };
      const response = await rawRequest(server.port ?? 0, method, path, headers);
      return response?.headers.get('content-length');
    };
    try {
      for (const path of ['/operator/v1/apps', '/v1/sessions', '/no-such-path', '/v1/media/x']) {
        const length = await lengthOf('GET', path);
        expect([path, Number(length) > 0]).toEqual([path, true]);
        expect([path, await lengthOf('HEAD', path)]).toEqual([path, length]);
      }
      for (const path of publicRoutes(OPTIONS).keys()) expect([path, await lengthOf('HEAD', path)]).not.toEqual([path, '0']);
    } finally {
      await server.stop(true);
    }
  });

  test('answers internal_error with a support_id that is in the log, where a part below it throws', async () => {
    bug = new Error('a bug');
    const { status, headers, body, text } = await platform.raw('/readyz');
    bug = undefined;
    expect(status).toBe(500);
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('traceparent')).toMatch(TRACEPARENT);
    expect(body).toEqual({ code: 'internal_error', message: 'Internal error', support_id: expect.any(String) });
    expect(text).not.toContain('a bug');
    expect(logged).toEqual([{ support_id: body.support_id, route: '/readyz', error: expect.stringContaining('a bug') }]);
    expect((await platform.raw('/readyz')).status).toBe(200);
  });
});

test('every link between the pages of the documentation leads to a page, and to a heading on it', async () => {
  const paths = publicRoutes(OPTIONS);
  const pages = new Map<string, string>();
  for (const [path, handler] of paths) if (path.startsWith('/docs')) pages.set(path, await (await handler()).text());
  let anchors = 0;
  for (const [path, text] of pages)
    for (const [, href = ''] of /\.(md|js|css|yaml|mjs|html)$/.test(path) ? [] : text.matchAll(/<a href="([^"]*)"/g)) {
      if (/^(https?:|mailto:)/.test(href)) continue;
      const [target = '', anchor] = href.split('#');
      const there = target === '' ? text : pages.get(target);
      expect([path, href, there !== undefined || paths.has(target) || target === '/console']).toEqual([path, href, true]);
      if (anchor === undefined) continue;
      anchors += 1;
      expect([path, href, there?.includes(`id="${anchor}"`)]).toEqual([path, href, true]);
    }
  expect(anchors).toBeGreaterThan(5);
});

test('a link to the overview of a folder leads there, from outside of the folder and from within', async () => {
  const linksOf = (markdown: string, name: string) => [...readingOf(markdown, name).html.matchAll(/href="([^"]*)"/g)];
  for (const [href, name] of [
    ['decisions/README.md', 'architecture'],
    ['README.md', 'decisions/pipes'],
    ['../decisions/README.md', 'how-to/add-a-route'],
  ] as const)
    expect(linksOf(`[it](${href})`, name).map(([, to]) => to)).toEqual(['/docs/decisions/README']);
});

test('each page of the documentation is once on the first page, and in the list beside every page, where that one is marked', async () => {
  const paths = publicRoutes(OPTIONS);
  const names = [...paths.keys()].flatMap((path) => /^\/docs\/(.+)\.md$/.exec(path)?.[1] ?? []);
  expect(names.length).toBeGreaterThan(40);
  const read = async (path: string) => (await (await paths.get(path)?.())?.text()) ?? '';
  const linked = (text: string) => [...text.matchAll(/<li><a href="\/docs\/([^".]+)"/g)].map(([, name]) => name).sort();
  const index = linked(await read('/docs'));
  expect(index).toEqual([...names].sort());
  for (const name of names) {
    const [, list = ''] = (await read(`/docs/${name}`)).split('<nav id="pages"');
    const marked = [...list.matchAll(/<a href="\/docs\/([^"]+)" aria-current="page">/g)].map(([, each]) => each);
    expect([name, marked, linked(list)]).toEqual([name, [name], index]);
  }
});

test('the programs of the documentation are read where the pages are, with what each does', async () => {
  const paths = publicRoutes(OPTIONS);
  const read = async (path: string) => (await (await paths.get(path)?.())?.text()) ?? '';
  const names = readdirSync(join(import.meta.dir, '../../docs/examples'));
  expect(names.length).toBeGreaterThan(12);
  const [index, list] = [await read('/docs'), await read('/llms.txt')];
  for (const name of names) {
    const answer = await paths.get(`/docs/examples/${name}`)?.();
    expect([name, answer?.headers.get('content-type')]).toEqual([name, 'text/plain; charset=utf-8']);
    expect(await answer?.text()).toBe(readFileSync(join(import.meta.dir, '../../docs/examples', name), 'utf8'));
    expect(index).toMatch(new RegExp(`<a href="/docs/examples/${name}">${name}</a>: \\S+ \\S+`));
    expect(list).toMatch(new RegExp(`\\(/docs/examples/${name}\\): \\S+ \\S+`));
  }
  const page = await read('/docs/how-to/move-from-twilio-or-telnyx');
  expect(page).toContain('<a href="/docs/examples/phone-menu.mjs">');
});

test('a file of the reference that could not be read is read again for the next request', async () => {
  let reads = 0;
  const readText = async () => {
    reads += 1;
    if (reads === 1) throw new Error('EMFILE');
    return 'body {}';
  };
  const css = publicRoutes({ ...OPTIONS, readText }).get('/docs/swagger-ui.css');
  await expect(css?.()).rejects.toThrow('EMFILE');
  expect(await (await css?.())?.text()).toBe('body {}');
  expect(await (await css?.())?.text()).toBe('body {}');
  expect(reads).toBe(2);
});

test('a file of the reference is read once for all who ask for it meanwhile', async () => {
  let reads = 0;
  const { promise, resolve } = Promise.withResolvers<string>();
  const readText = () => {
    reads += 1;
    return promise;
  };
  const css = publicRoutes({ ...OPTIONS, readText }).get('/docs/swagger-ui.css');
  const answers = Promise.all(Array.from({ length: 3 }, async () => (await css?.())?.text()));
  resolve('body {}');
  expect(await answers).toEqual(['body {}', 'body {}', 'body {}']);
  expect(reads).toBe(1);
});

test('tables and code of the documentation are scrolled by keyboard, and no column has an empty heading', async () => {
  for (const [path, handler] of publicRoutes(OPTIONS)) {
    if (!path.startsWith('/docs/') || /\.(md|js|css|yaml|mjs|html)$/.test(path)) continue;
    const text = await (await handler()).text();
    const count = (what: RegExp) => text.match(what)?.length ?? 0;
    const tables = [count(/<table>/g), count(/<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>/g)];
    const code = [count(/<pre>/g), count(/<th[^>]*>\s*<\/th>/g)];
    expect([path, tables[1], ...code]).toEqual([path, tables[0], 0, 0]);
  }
});
