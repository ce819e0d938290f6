/** Three nodes on loopback, with one PostgreSQL, one nats-server, and a proxy of its own before each for every node. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { silentLog } from '../../src/log.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { fillDataDir } from '../support/postgres-template.ts';
import type { Receiver } from '../support/receiver.ts';
import { FaultProxy } from './proxy.ts';

export const natsInstalled = spawnSync('nats-server', ['-v'], { stdio: 'ignore' }).error === undefined;

const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');
export const OPERATOR_TOKEN = 'operator-token-of-the-cluster';

export interface TestNode {
  readonly platform: Platform;
  readonly nats: FaultProxy;
  readonly postgres: FaultProxy;
}

interface NatsServer {
  readonly child: ChildProcess;
  readonly port: number;
  /** What it has logged. */
  said(): string;
}

/** A nats-server on a free port. */
export async function startNats(...more: readonly string[]): Promise<NatsServer> {
  const child = spawn('nats-server', ['-a', '127.0.0.1', '-p', '-1', ...more], { stdio: ['ignore', 'ignore', 'pipe'] });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let said = '';
  child.stderr?.on('data', (chunk) => {
    said += chunk;
    const [, port] = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(said) ?? [];
    if (port !== undefined && said.includes('Server is ready')) resolve(Number(port));
  });
  child.once('exit', () => reject(new Error(`nats-server ended: ${said}`)));
  return { child, port: await promise, said: () => said };
}

async function startPostgres(dataDir: string): Promise<EmbeddedServer> {
  await fillDataDir(dataDir);
  return await startEmbedded(dataDir, silentLog);
}

export class TestCluster {
  readonly nodes: TestNode[] = [];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #dataDir: string;
  readonly #database: EmbeddedServer;
  readonly #nats: ChildProcess;
  readonly natsPort: number;
  /** Nodes reach NATS and PostgreSQL without the proxies, which add this process to every way. */
  readonly #isDirect: boolean;

  private constructor(
    environment: Readonly<Record<string, string>>,
    dataDir: string,
    database: EmbeddedServer,
    nats: { readonly child: ChildProcess; readonly port: number },
    isDirect: boolean,
  ) {
    this.#isDirect = isDirect;
    this.#environment = environment;
    this.#dataDir = dataDir;
    this.#database = database;
    this.#nats = nats.child;
    this.natsPort = nats.port;
  }

  static async start(count: number, environment: Readonly<Record<string, string>> = {}, isDirect = false): Promise<TestCluster> {
    const dataDir = dataDirectory('sidetone-cluster-');
    const [database, nats] = await Promise.all([startPostgres(dataDir), startNats()]);
    const cluster = new TestCluster(environment, dataDir, database, nats, isDirect);
    // The first one migrates; the others find nothing to do, and start side by side.
    await cluster.add();
    await Promise.all(Array.from({ length: count - 1 }, () => cluster.add()));
    return cluster;
  }

  /** The environment of a further process on the same cluster, through its own proxies or directly. */
  environment(natsPort = this.natsPort, postgresPort?: number): Record<string, string> {
    const { socketDir } = this.#database;
    const database =
      postgresPort === undefined
        ? `postgres://sidetone@localhost/postgres?host=${socketDir}`
        : `postgres://sidetone@127.0.0.1:${postgresPort}/postgres`;
    return {
      DATABASE_URL: database,
      NATS_URL: `nats://127.0.0.1:${natsPort}`,
      MASTER_KEY,
      OPERATOR_TOKEN,
      ...this.#environment,
    };
  }

  /** Starts a further node. */
  async add(more: Readonly<Record<string, string>> = {}): Promise<TestNode> {
    const { socketDir, port } = this.#database;
    const postgres = await FaultProxy.start({ path: `${socketDir}/.s.PGSQL.${port}` });
    const nats = await FaultProxy.start({ host: '127.0.0.1', port: this.natsPort });
    const own = this.#isDirect ? this.environment() : this.environment(nats.port, postgres.port);
    const platform = await Platform.start({ ...own, ...more });
    const node = { platform, nats, postgres };
    this.nodes.push(node);
    return node;
  }

  node(at: number): TestNode {
    const found = this.nodes[at];
    if (found === undefined) throw new Error('no such node');
    return found;
  }

  /** An application whose events come to `receiver`, with a number and a trunk that every node knows. */
  async application(receiver: Receiver, number: string): Promise<Credentials> {
    const [first, ...others] = this.nodes;
    if (first === undefined) throw new Error('there are no nodes');
    const app = await first.platform.application(receiver.url, number);
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    await first.platform.trunk('127.0.0.1:9');
    for (const { platform } of others)
      await eventually(
        async () => JSON.stringify((await platform.operator('GET', '/trunks')).body).includes('carrier'),
        'the trunk',
      );
    return app;
  }

  async stop(): Promise<void> {
    for (const { platform, nats, postgres } of this.nodes) {
      nats.set('pass');
      postgres.set('pass');
      platform.signal('SIGCONT');
    }
    await Promise.all(this.nodes.map(({ platform }) => platform.stop()));
    for (const { nats, postgres } of this.nodes) {
      nats.stop();
      postgres.stop();
    }
    this.#nats.kill('SIGKILL');
    // Its data is thrown away, so it need not be written out first.
    process.kill(this.#database.pid, 'SIGQUIT');
    await eventually(() => !this.#database.alive(), 'PostgreSQL to end');
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}

/** Waits until `holds` is true, looking often. Rejects after `timeoutMs`. */
export async function eventually(holds: () => boolean | Promise<boolean>, what: string, timeoutMs = 15_000): Promise<void> {
  const until = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`waited for ${what}`);
    await Bun.sleep(20);
  }
}
