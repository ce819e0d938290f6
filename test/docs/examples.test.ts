/**
 * The first day of the programs of docs/examples: what is missing is said in one line, and what befalls a receiver does
 * not end them. They run without a platform.
 */
import { afterEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { refusedPort } from '../support/refused-port.ts';
import { ROOT } from './blocks.ts';

const FOLDER = join(ROOT, 'docs/examples');
const names = readdirSync(FOLDER).filter((name) => name.endsWith('.mjs'));

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A URL at which connections are refused until the test is over. */
async function nobody(): Promise<string> {
  const { port, close } = await refusedPort();
  closers.push(close);
  return `http://127.0.0.1:${port}`;
}

/** Reads a stream until it has this text, and resolves with all of it; with what there was if it ends before. */
function reader(stream: ReadableStream<Uint8Array>): (text: string) => Promise<string> {
  const parts = stream.getReader();
  const decoder = new TextDecoder();
  let output = '';
  return async (text) => {
    for (;;) {
      if (output.includes(text)) return output;
      const { done, value } = await parts.read();
      if (done) return output;
      output += decoder.decode(value, { stream: true });
    }
  };
}

/** What all of them are told; each also has what its head says. */
const CREDENTIALS = { APP: 'app_1', KEY: 'sk_1' };
/** The settings that some of them cannot do without. */
const REST = {
  OPENAI_API_KEY: 'none',
  BUCKET: 'http://127.0.0.1:9/calls',
  AWS_ACCESS_KEY_ID: 'none',
  AWS_SECRET_ACCESS_KEY: 'none',
  FOLDER: '/nowhere',
  FROM: '+15550001',
  NUMBERS: '+15550100',
  COLLEAGUE: '+15550100',
  AGENT: 'sip:alice',
  AGENTS: 'sip:alice',
  PERSON: '+15550100',
};

/** Runs an example to its end, and resolves with what it said and its exit code. */
async function runToEnd(name: string, environment: Readonly<Record<string, string>>) {
  const child = Bun.spawn(['node', join(FOLDER, name)], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [printed, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { printed, said, code: await child.exited };
}

/** The settings that the command in the head of an example gives it. The address of Pipecat has a default. */
const settingsInHead = (name: string): readonly string[] => {
  const command = /^\/\/.*\bAPP=.* node .*$/m.exec(readFileSync(join(FOLDER, name), 'utf8'))?.[0] ?? '';
  return [...command.matchAll(/\b([A-Z_]+)=/g)].map(([, setting = '']) => setting).filter((each) => each !== 'PIPECAT_URL');
};

for (const name of names)
  test(`${name} says in one line which settings of its head are missing`, async () => {
    const wanted = settingsInHead(name);
    expect(wanted).toContain('APP');
    const { printed, said, code } = await runToEnd(name, {});
    expect({ printed, code }).toEqual({ printed: '', code: 1 });
    expect(said).toMatch(new RegExp(`^set ${wanted.join(', ')}: .*apps create.*\\n$`));
    // Settings that are there are not asked for.
    const rest = wanted.filter((each) => !Object.hasOwn(CREDENTIALS, each));
    if (rest.length > 0) expect((await runToEnd(name, CREDENTIALS)).said).toMatch(new RegExp(`^set ${rest.join(', ')}: .*\\n$`));
  }, 30_000);

for (const name of names.filter((each) => each !== 'fetch-recordings.mjs'))
  test(`${name} says in one line that its port is taken`, async () => {
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    const { printed, said, code } = await runToEnd(name, { ...CREDENTIALS, ...REST, PORT: String(other.port) });
    expect({ printed, code }).toEqual({ printed: '', code: 1 });
    expect(said).toBe(`listen EADDRINUSE: address already in use 127.0.0.1:${other.port}: set PORT to another one\n`);
  }, 30_000);

/** They call the platform by themselves, and are told nothing. */
const ASK = ['campaign.mjs', 'fetch-recordings.mjs'];

for (const name of names.filter((each) => !ASK.includes(each)))
  test(`${name} survives a look from a browser, a body that is no event, and a platform that is away`, async () => {
    const child = Bun.spawn(['node', join(FOLDER, name)], {
      env: {
        PATH: process.env.PATH ?? '',
        PORT: '0',
        ...CREDENTIALS,
        ...REST,
        BUCKET: await nobody(),
        SIDETONE_URL: await nobody(),
      },
      stdout: 'pipe',
      stderr: 'inherit',
    });
    try {
      const prints = reader(child.stdout);
      const url = /http:\S+/.exec(await prints('/\n'))?.[0] ?? '';
      for (const method of ['HEAD', 'GET']) expect((await fetch(url, { method })).status).toBe(405);
      const post = (body: string) =>
        fetch(url, {
          method: 'POST',
          headers: { 'webhook-id': `evt_${crypto.randomUUID()}` },
          body,
          signal: AbortSignal.timeout(10_000),
        });
      expect([204, 500]).toContain((await post('no event')).status);
      expect(await prints('failed: ')).toContain('failed: ');
      const created = { event: 'session.created', session_uuid: 'a', caller_id: '', did: '' };
      expect([204, 500]).toContain((await post(JSON.stringify(created))).status);
      expect(await prints('ECONNREFUSED')).toContain('ECONNREFUSED');
      expect(child.exitCode).toBeNull();
    } finally {
      child.kill();
      await child.exited;
    }
  }, 30_000);

test('fetch-recordings.mjs ends with the reason when the platform is away, so that cron tells of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-fetched-'));
  try {
    const child = Bun.spawn(['node', join(FOLDER, 'fetch-recordings.mjs')], {
      env: {
        PATH: process.env.PATH ?? '',
        ...CREDENTIALS,
        FOLDER: folder,
        SIDETONE_URL: await nobody(),
      },
      stdout: 'pipe',
      stderr: 'inherit',
    });
    expect(await reader(child.stdout)('ECONNREFUSED')).toContain('failed: fetch failed connect ECONNREFUSED');
    expect(await child.exited).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 30_000);

test('fetch-recordings.mjs ends with the reason when its folder cannot be made', async () => {
  const { printed, said, code } = await runToEnd('fetch-recordings.mjs', { ...CREDENTIALS, FOLDER: '/dev/null/calls' });
  expect({ said, code }).toEqual({ said: '', code: 1 });
  expect(printed).toMatch(/^failed: ENOTDIR: .*\n$/);
}, 30_000);

test('campaign.mjs ends with the reason when the platform is away, because nobody is called then', async () => {
  const child = Bun.spawn(['node', join(FOLDER, 'campaign.mjs')], {
    env: { PATH: process.env.PATH ?? '', PORT: '0', ...CREDENTIALS, ...REST, SIDETONE_URL: await nobody() },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  expect(await reader(child.stdout)('ECONNREFUSED')).toContain('the list was not finished: fetch failed connect ECONNREFUSED');
  expect(await child.exited).toBe(1);
}, 30_000);
