/** Kannel, somebody else's SMPP: it binds to an SMSC, puts segments together again, and hands each message to a URL. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Smsc } from './smsc.ts';

/** Both boxes answer `-v`. */
const runs = (program: string) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
const PATHS = ['', '/usr/sbin/'];
const pathOf = (box: string) => PATHS.map((path) => path + box).find(runs);
const bearerbox = pathOf('bearerbox');
const smsbox = pathOf('smsbox');
export const kannelInstalled = bearerbox !== undefined && smsbox !== undefined;

async function freeTcpPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

export class Kannel {
  readonly #directory = mkdtempSync(join(tmpdir(), 'kannel-'));
  readonly #boxes: ChildProcess[] = [];
  #said = '';
  #sendUrl = '';

  /**
   * Binds to the SMSC as `kannel`; each whole message becomes a GET of `url` with `from`, `to`, `coding` and `text`.
   */
  static async start(smsc: Smsc, url: string): Promise<Kannel> {
    const kannel = new Kannel();
    const others = smsc.binds;
    const [admin, box, http] = [await freeTcpPort(), await freeTcpPort(), await freeTcpPort()];
    const config = join(kannel.#directory, 'kannel.conf');
    const groups = [
      `group = core\nadmin-port = ${admin}\nadmin-password = unused\nsmsbox-port = ${box}\nsms-combine-concatenated-mo = true`,
      `group = smsc\nsmsc = smpp\nsmsc-id = smsc\nhost = 127.0.0.1\nport = ${smsc.port}\ntransceiver-mode = true\nsmsc-username = kannel\nsmsc-password = secret\nsystem-type = ""`,
      `group = smsbox\nbearerbox-host = 127.0.0.1\nsendsms-port = ${http}\nglobal-sender = 1`,
      'group = sendsms-user\nusername = user\npassword = unused\nmax-messages = 20\nconcatenation = true',
      `group = sms-service\nkeyword = default\ncatch-all = true\nmax-messages = 0\nget-url = "${url}?from=%p&to=%P&coding=%c&text=%b"`,
    ];
    writeFileSync(config, `${groups.join('\n\n')}\n`);
    kannel.#run(bearerbox ?? '', config);
    // By then it listens for its other half too.
    await smsc.until(() => smsc.binds > others, 'Kannel to bind');
    kannel.#run(smsbox ?? '', config);
    kannel.#sendUrl = `http://127.0.0.1:${http}/cgi-bin/sendsms`;
    return kannel;
  }

  #run(program: string, config: string): void {
    const child = spawn(program, ['-v', '1', config], { cwd: this.#directory, stdio: ['ignore', 'pipe', 'pipe'] });
    const read = (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString('latin1')).slice(-20_000);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    this.#boxes.push(child);
  }

  /** Has it send a text, as somebody with a telephone would. It answers once its other half has taken it. */
  async write(from: string, to: string, text: string): Promise<void> {
    const coding = /^[\x20-\x7eäöüßà€]*$/.test(text) ? '0' : '2';
    const query = new URLSearchParams({ username: 'user', password: 'unused', from, to, text, coding, charset: 'UTF-8' });
    for (let attempt = 0; ; attempt++) {
      const answer = await fetch(`${this.#sendUrl}?${query}`).catch(() => undefined);
      if (answer?.ok === true) return;
      if (attempt > 100) throw new Error(`Kannel sent nothing: ${await answer?.text()}; ${this.#said.slice(-500)}`);
      await Bun.sleep(100);
    }
  }

  get said(): string {
    return this.#said;
  }

  async stop(): Promise<void> {
    for (const box of this.#boxes) {
      const ended = new Promise<void>((resolve) => box.once('exit', () => resolve()));
      if (box.exitCode === null && box.signalCode === null) {
        box.kill('SIGKILL');
        await ended;
      }
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
