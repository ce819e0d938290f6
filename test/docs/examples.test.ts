/** What befalls a receiver on its first day must not end the programs of docs/examples. They run without a platform. */
import { afterEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
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

/** They call the platform by themselves, and are told nothing. */
const ASK = ['campaign.mjs', 'fetch-recordings.mjs'];

for (const name of names.filter((each) => !ASK.includes(each)))
  test(`${name} survives a look from a browser, a body that is no event, and a platform that is away`, async () => {
    const child = Bun.spawn(['node', join(FOLDER, name)], {
      env: {
        PATH: process.env.PATH ?? '',
        PORT: '0',
        APP: 'app_1',
        KEY: 'sk_1',
        OPENAI_API_KEY: 'none',
        BUCKET: await nobody(),
        AWS_ACCESS_KEY_ID: 'none',
        AWS_SECRET_ACCESS_KEY: 'none',
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
        APP: 'app_1',
        KEY: 'sk_1',
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

test('campaign.mjs ends with the reason when the platform is away, because nobody is called then', async () => {
  const child = Bun.spawn(['node', join(FOLDER, 'campaign.mjs')], {
    env: { PATH: process.env.PATH ?? '', PORT: '0', APP: 'app_1', KEY: 'sk_1', SIDETONE_URL: await nobody() },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  expect(await reader(child.stdout)('ECONNREFUSED')).toContain('the list was not finished: fetch failed connect ECONNREFUSED');
  expect(await child.exited).toBe(1);
}, 30_000);
