/**
 * `npm run cluster`: three nodes on loopback, to try a cluster on one machine. They share an embedded PostgreSQL (or
 * DATABASE_URL) and a nats-server, and each has its own ports and DATA_DIR below ./data/cluster.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { createLog } from '../../src/log.ts';
import { keptSecret } from '../../src/settings/secret-file.ts';

const ROOT = join(import.meta.dir, '../..');
const NODES = 3;
const HTTP_PORT = 8081;
const SIP_PORT = 5061;
const RTP_PORT = 21_000;
const RTP_PORTS = 2_000;

if (spawnSync('nats-server', ['-v'], { stdio: 'ignore' }).error !== undefined) {
  process.stderr.write('sidetone: nats-server is not installed (Debian: apt-get install nats-server)\n');
  process.exit(1);
}
const folder = join(ROOT, 'data/cluster');
mkdirSync(folder, { recursive: true });
const log = createLog('warn');
const operatorToken = process.env.OPERATOR_TOKEN ?? keptSecret(folder, 'operator.token', 32, 'base64url');
const masterKey = process.env.MASTER_KEY ?? keptSecret(folder, 'master.key', 32, 'base64');
let embedded: EmbeddedServer | undefined;
let nats: ChildProcess | undefined;
const nodes: ChildProcess[] = [];
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop(0));
const started = start();
await started.catch((error: unknown) => {
  if (!stopping) process.stderr.write(`sidetone: ${error instanceof Error ? error.message : String(error)}\n`);
  return stop(1);
});

/** Starts everything, one after the other, and says what is there. It starts nothing more once all is to stop. */
async function start(): Promise<void> {
  if (process.env.DATABASE_URL === undefined) embedded = await startEmbedded(folder, log);
  const databaseUrl = process.env.DATABASE_URL ?? `postgres://sidetone@localhost/postgres?host=${embedded?.socketDir}`;
  if (stopping) return;
  const natsUrl = `nats://127.0.0.1:${await startNats()}`;
  for (let n = 0; n < NODES && !stopping; n++) await startNode(n, databaseUrl, natsUrl);
  if (stopping) return;
  process.stdout.write(`
${NODES} nodes are up. A request about any call may go to any of them.

${nodes.map((_, n) => `  node ${n + 1}   http://127.0.0.1:${HTTP_PORT + n}   sip:127.0.0.1:${SIP_PORT + n} (UDP, TCP)   log ${nodeFolder(n)}/node.log`).join('\n')}

  export OPERATOR_TOKEN=${operatorToken}
  bin/sidetone --url http://127.0.0.1:${HTTP_PORT} nodes list
  bin/sidetone --url http://127.0.0.1:${HTTP_PORT} nodes drain NODE
  kill -9 ${nodes[0]?.pid}        # node 1: it is declared dead after 15 s, and its calls are lost

Ctrl-C stops all.
`);
}

/** A nats-server of our own, on a free port. Resolves with that. */
async function startNats(): Promise<number> {
  const child = spawn('nats-server', ['-a', '127.0.0.1', '-p', '-1'], { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  nats = child;
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let said = '';
  child.stderr?.on('data', (chunk) => {
    said = (said + chunk).slice(-10_000);
    const [, port] = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(said) ?? [];
    if (port !== undefined && said.includes('Server is ready')) resolve(Number(port));
  });
  child.once('exit', () => reject(new Error(`nats-server ended: ${said}`)));
  return await promise;
}

function nodeFolder(n: number): string {
  return `data/cluster/node-${n + 1}`;
}

/** Resolves when the node takes calls. */
async function startNode(n: number, databaseUrl: string, natsUrl: string): Promise<void> {
  const dataDir = join(ROOT, nodeFolder(n));
  mkdirSync(dataDir, { recursive: true });
  const first = RTP_PORT + n * RTP_PORTS;
  const child = spawn(join(ROOT, 'node_modules/.bin/bun'), ['--no-env-file', 'src/main.ts'], {
    cwd: ROOT,
    detached: true,
    env: {
      BUN_CONFIG_MAX_HTTP_REQUESTS: '4096',
      ...process.env,
      DATABASE_URL: databaseUrl,
      NATS_URL: natsUrl,
      OPERATOR_TOKEN: operatorToken,
      MASTER_KEY: masterKey,
      DATA_DIR: dataDir,
      HTTP_PORT: String(HTTP_PORT + n),
      SIP_LISTEN: `udp:127.0.0.1:${SIP_PORT + n},tcp:127.0.0.1:${SIP_PORT + n}`,
      RTP_PORTS: `${first}-${first + RTP_PORTS - 1}`,
      MEDIA_WORKERS: process.env.MEDIA_WORKERS ?? '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  nodes.push(child);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let said = '';
  let file: Bun.FileSink | undefined;
  const read = (chunk: Buffer) => {
    if (file !== undefined) {
      file.write(chunk);
      void file.flush();
      return;
    }
    said = (said + chunk.toString()).slice(-20_000);
    if (!said.includes('"http_port"')) return;
    file = Bun.file(join(dataDir, 'node.log')).writer();
    // The secrets of the first application are shown once, and go into no file.
    const [secrets] = /A first application[\s\S]*?\/app\n/.exec(said) ?? [];
    if (secrets !== undefined) process.stdout.write(`\n${secrets}`);
    resolve();
  };
  child.stdout?.on('data', read);
  child.stderr?.on('data', read);
  child.once('exit', (code) => {
    reject(new Error(`node ${n + 1} ended with ${code}: ${said.split('\n').slice(-5).join(' ')}`));
    if (!stopping) process.stdout.write(`node ${n + 1} has ended (${code ?? 'killed'})\n`);
  });
  await promise;
}

/** Stops what was started so far, in the order in which each needs the others, and ends this process. */
async function stop(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  await Promise.all(nodes.map(ended));
  if (nats !== undefined) await ended(nats);
  // What was being started is there by now, or has ended.
  await started.catch(() => {});
  await embedded?.stop();
  process.exit(code);
}

/** Ends a process. Resolves when it has ended. */
function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
}
