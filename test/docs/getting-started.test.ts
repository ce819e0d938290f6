/** The programs of docs/getting-started.md, as they stand there, with a caller over a loopback trunk. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { allBlocks, ROOT } from './blocks.ts';

const CALLER = '+15550071';
const CALLED = '+15550072';

let platform: Platform;
let caller: Credentials;
let called: Credentials;
const receiver = new Receiver();
const files = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () => new Response(Bun.file(join(ROOT, 'test/media/fixture/tone-22k-mono.mp3'))),
});
const folder = mkdtempSync(join(tmpdir(), 'sidetone-started-'));

beforeAll(async () => {
  // The folder of a clone, as far as the programs see it.
  symlinkSync(join(ROOT, 'sdk'), join(folder, 'sdk'));
  platform = await Platform.start();
  caller = await platform.application(receiver.url, CALLER);
  called = await platform.application(receiver.url, CALLED);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await files.stop(true);
  rmSync(folder, { recursive: true, force: true });
}, 20_000);

const block = (language: string): string =>
  allBlocks.find(({ page, language: each }) => page === 'docs/getting-started.md' && each === language)?.text ?? '';

/** Runs the handler, calls it, and resolves with what it has printed when its call is over. */
async function answeredBy(command: string, args: readonly string[], environment: Record<string, string>): Promise<string> {
  const child = spawn(command, args, {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      APP: called.appUuid,
      KEY: called.apiKey,
      SECRET: called.webhookSecret,
      SIDETONE_URL: platform.url,
      AUDIO: `http://127.0.0.1:${files.port}/tone.mp3`,
      PORT: '0',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const waiting: (() => void)[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
      for (const look of waiting) look();
    });
  const prints = async (pattern: RegExp): Promise<RegExpExecArray> => {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const timer = setTimeout(() => reject(new Error(`waited for ${pattern}; printed:\n${output}`)), 20_000);
    const look = () => {
      const found = pattern.exec(output);
      if (found !== null) resolve(found);
    };
    waiting.push(look);
    look();
    return await promise.finally(() => clearTimeout(timer));
  };
  try {
    const [, url = ''] = await prints(/waiting for events on (\S+)/);
    // Whoever has no secret is refused.
    const forged = { 'content-length': '2', 'webhook-id': 'evt_1', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' };
    expect((await fetch(url, { method: 'POST', body: '{}', headers: forged })).status).toBe(401);
    const dial = { from: CALLER, to: CALLED, ring_timeout_sec: 10 };
    const session = String((await platform.api(caller, 'POST', '/v1/sessions:dial', dial)).body.session_uuid);
    const ended = await receiver.event('session.ended', session);
    expect(ended.body).toMatchObject({ answered: true, hangup_by: 'callee' });
    await prints(/session\.created[\s\S]*session\.answered[\s\S]*playback\.ended[\s\S]*session\.ended/);
  } finally {
    child.kill();
  }
  return output;
}

test('the handler in TypeScript answers, plays and hangs up', async () => {
  writeFileSync(join(folder, 'handler.ts'), block('ts'));
  expect(await answeredBy(process.execPath, ['handler.ts'], {})).not.toMatch(/rror/);
}, 40_000);

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;
test.skipIf(!hasPython)(
  'the handler in Python answers, plays and hangs up',
  async () => {
    writeFileSync(join(folder, 'handler.py'), block('python'));
    const environment = { PYTHONPATH: 'sdk/python', PYTHONDONTWRITEBYTECODE: '1' };
    expect(await answeredBy('python3', ['handler.py'], environment)).not.toMatch(/rror/);
  },
  40_000,
);
