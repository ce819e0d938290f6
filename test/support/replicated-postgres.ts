/** Two PostgreSQL servers on Unix sockets: a primary whose commits wait for its standby, and the standby. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { silentLog } from '../../src/log.ts';
import { eventually } from '../cluster/harness.ts';
import { dataDirectory } from './data-directory.ts';
import { fillDataDir } from './postgres-template.ts';

const socketOf = ({ socketDir, port }: EmbeddedServer) => ({ path: `${socketDir}/.s.PGSQL.${port}` });

export class ReplicatedPostgres {
  readonly #dirs: readonly string[];
  readonly #primary: EmbeddedServer;
  readonly #standby: EmbeddedServer;

  private constructor(dirs: readonly string[], primary: EmbeddedServer, standby: EmbeddedServer) {
    this.#dirs = dirs;
    this.#primary = primary;
    this.#standby = standby;
  }

  static async start(): Promise<ReplicatedPostgres> {
    const [first, second] = [dataDirectory('sidetone-primary-'), dataDirectory('sidetone-standby-')];
    await fillDataDir(first);
    // What the platform writes at each start into postgresql.conf gives way to this file.
    appendFileSync(
      join(first, 'postgres/postgresql.auto.conf'),
      "wal_level = replica\nmax_wal_senders = 4\nhot_standby = on\nsynchronous_standby_names = '*'\n",
    );
    // A standby begins behind a start with that level.
    await (await startEmbedded(first, silentLog)).stop();
    spawnSync('cp', ['-a', join(first, 'postgres'), join(second, 'postgres')]);
    const primary = await startEmbedded(first, silentLog);
    appendFileSync(
      join(second, 'postgres/postgresql.auto.conf'),
      `primary_conninfo = 'host=${primary.socketDir} port=${primary.port} user=sidetone'\nsynchronous_standby_names = ''\n`,
    );
    writeFileSync(join(second, 'postgres/standby.signal'), '');
    const standby = await startEmbedded(second, silentLog);
    return new ReplicatedPostgres([first, second], primary, standby);
  }

  get primary() {
    return socketOf(this.#primary);
  }

  get standby() {
    return socketOf(this.#standby);
  }

  /** Ends the primary as a loss of power would, and has the standby take writes. */
  async failOver(): Promise<void> {
    await this.#lose(this.#primary);
    const admin = postgres({ ...this.standby, user: 'sidetone', database: 'postgres', max: 1 });
    // A query that waits for it would hold a snapshot, for which what is left to be replayed may wait 30 s.
    await admin`SELECT pg_promote(false)`;
    const isPromoted = async () => (await admin`SELECT pg_is_in_recovery() AS recovers`)[0]?.recovers === false;
    await eventually(isPromoted, 'the standby to take writes');
    await admin.end();
  }

  async #lose(server: EmbeddedServer): Promise<void> {
    if (server.alive()) process.kill(server.pid, 'SIGQUIT');
    await eventually(() => !server.alive(), 'PostgreSQL to end');
  }

  async stop(): Promise<void> {
    await this.#lose(this.#primary);
    await this.#lose(this.#standby);
    for (const dir of this.#dirs) rmSync(dir, { recursive: true, force: true });
  }
}
