/** `npm run cluster`, with a server that stands for NATS: what was started is stopped, also where not all comes up. */
import { afterAll, expect, test } from 'bun:test';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../..');
const folder = mkdtempSync(join(tmpdir(), 'sidetone-cluster-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Runs it, with a nats-server that says this and runs on. The settings that are given keep its nodes from starting.
 * `natsPid` is the process of that server, once it runs.
 */
function run(natsSays: string) {
  const bin = mkdtempSync(`${folder}/`);
  const pipe = join(bin, 'pid');
  spawnSync('mkfifo', [pipe]);
  const nats = `#!/bin/sh\n[ "$1" = -v ] && exit\nprintf '${natsSays}' >&2\necho $$ > ${pipe}\nexec sleep 600\n`;
  writeFileSync(join(bin, 'nats-server'), nats, { mode: 0o755 });
  const child = spawn(join(ROOT, 'node_modules/.bin/bun'), ['--no-env-file', 'bin/cluster/cluster.ts'], {
    cwd: ROOT,
    env: {
      PATH: `${bin}:${process.env.PATH}`,
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      OPERATOR_TOKEN: 'a'.repeat(32),
      MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
      LOG_LEVEL: 'none of them',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    child,
    ended,
    said: () => said,
    natsPid: async () => Number(await readFile(pipe, 'utf8')),
  };
}

const isThere = (pid: number): boolean => existsSync(`/proc/${pid}`);

test('A node that does not start ends it with what that node said, and leaves no other process behind', async () => {
  const { ended, said, natsPid } = run('Listening for client connections on 127.0.0.1:1\\nServer is ready\\n');
  const nats = await natsPid();
  expect([await ended, said(), isThere(nats)]).toEqual([1, expect.stringMatching(/node 1 ended with .*LOG_LEVEL/), false]);
}, 30_000);

test('Ctrl-C while it starts stops what runs by then', async () => {
  const { child, ended, natsPid } = run('Starting\\n');
  const nats = await natsPid();
  child.kill('SIGINT');
  expect([await ended, isThere(nats)]).toEqual([0, false]);
}, 30_000);
