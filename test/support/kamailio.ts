/** Kamailio, a SIP proxy that is not ours, with a configuration of test/foreign; and certificates for it and others. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from './sipp.ts';

export const kamailioInstalled =
  spawnSync('kamailio', ['-v'], { stdio: 'ignore' }).error === undefined &&
  spawnSync('openssl', ['version'], { stdio: 'ignore' }).error === undefined;

/** Makes `<name>.crt` and `<name>.key`, valid for localhost, under an authority of its own in `folder`. */
export function certificate(folder: string, name: string, authority = 'ca'): void {
  const file = (part: string) => join(folder, part);
  const run = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const [caKey, caFile] = [file(`${authority}.key`), file(`${authority}.crt`)];
  try {
    readFileSync(caFile);
  } catch {
    run('req', '-x509', ...curve, '-keyout', caKey, '-out', caFile, '-subj', `/CN=${authority}`, '-days', '2');
  }
  writeFileSync(file('san.cnf'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  run('req', ...curve, '-keyout', file(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/CN=${name}`);
  const signed = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-days', '2', '-extfile', file('san.cnf')];
  run('x509', '-req', '-in', file(`${name}.csr`), ...signed, '-out', file(`${name}.crt`));
}

export interface KamailioOptions {
  /** A folder for its files, with `kamailio.crt` and `kamailio.key`. */
  readonly folder: string;
  /** The name of its configuration in test/foreign, and what stands in the place of each {{name}} there. */
  readonly config: string;
  readonly values: Readonly<Record<string, string>>;
}

const STARTS_MAX = 5;

export class Kamailio {
  /** Its port of UDP and TCP. */
  readonly port: number;
  readonly tlsPort: number;
  readonly #options: KamailioOptions;
  #child: ChildProcess | undefined;
  #said = '';

  private constructor(options: KamailioOptions, port: number, tlsPort: number) {
    this.#options = options;
    this.port = port;
    this.tlsPort = tlsPort;
  }

  /** Starts one on free ports, and again where another program was quicker to take one of them. */
  static async open(options: KamailioOptions): Promise<Kamailio> {
    for (let tries = 1; ; tries++) {
      const kamailio = new Kamailio(options, await freePort(), await freePort());
      try {
        await kamailio.start();
        return kamailio;
      } catch (error) {
        await kamailio.stop();
        if (tries === STARTS_MAX) throw error;
      }
    }
  }

  get log(): string {
    return this.#said;
  }

  /** Starts it, with nobody registered. Resolves when it takes connections. */
  async start(): Promise<void> {
    const { folder } = this.#options;
    const { port, tlsPort } = this;
    const values: Record<string, string> = {
      folder,
      port: String(port),
      tlsPort: String(tlsPort),
      ...this.#options.values,
    };
    const template = readFileSync(join(import.meta.dir, '../foreign', this.#options.config), 'utf8');
    const config = join(folder, 'kamailio.cfg');
    writeFileSync(
      config,
      template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? ''),
    );
    const own = [`private_key = ${folder}/kamailio.key`, `certificate = ${folder}/kamailio.crt`];
    const server = ['[server:default]', 'method = TLSv1.2+', 'verify_certificate = no', ...own];
    const client = ['[client:default]', 'method = TLSv1.2+', 'verify_certificate = yes', `ca_list = ${folder}/ca.crt`];
    writeFileSync(join(folder, 'tls.cfg'), [...server, ...client, ''].join('\n'));
    const child = spawn('kamailio', ['-f', config, '-DD', '-E', '-m', '64', '-M', '8', '-Y', folder, '-w', folder], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a group of its own, so that its children end with it
    });
    this.#child = child;
    const read = (chunk: Buffer) => {
      this.#said = (this.#said + chunk).slice(-20_000);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    const until = performance.now() + 10_000;
    while (!(await takes(tlsPort))) {
      if (child.exitCode !== null || performance.now() > until) throw new Error(`kamailio did not start:\n${this.#said}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Ends it at once, as a crash would: whoever was registered is forgotten. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    process.kill(-child.pid, 'SIGKILL');
    await ended;
    // Its children end a moment later, and listen until then.
    for (let looks = 0; looks < 500 && (await takes(this.tlsPort)); looks++)
      await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether somebody listens on a port. */
const takes = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
