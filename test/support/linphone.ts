/** linphonec, a softphone that is not ours, driven by its own command line. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const linphoneInstalled = spawnSync('linphonec', ['-v'], { stdio: 'ignore' }).error === undefined;

export class Linphone {
  readonly #child: ChildProcess;
  readonly #folder: string;
  #said = '';
  #waiting: { readonly pattern: RegExp; readonly resolve: () => void }[] = [];

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
    const read = (chunk: Buffer) => {
      this.#said = (this.#said + chunk).slice(-100_000);
      this.#waiting = this.#waiting.filter(({ pattern, resolve }) => {
        if (!pattern.test(this.#said)) return true;
        resolve();
        return false;
      });
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
  }

  /**
   * Starts one without sound devices, on ports that the system chooses. Over TLS it insists on encrypted audio, and
   * takes any certificate.
   */
  static start(transport: 'udp' | 'tcp' | 'tls'): Linphone {
    const folder = mkdtempSync(join(tmpdir(), 'linphone-'));
    const ports = ['udp', 'tcp', 'tls'].map(
      (each) => `sip_${each === 'udp' ? 'port' : `${each}_port`}=${each === transport ? -1 : 0}`,
    );
    const config = [
      '[sip]',
      ...ports,
      'guess_hostname=0',
      'contact="tester" <sip:tester@127.0.0.1>',
      ...(transport === 'tls'
        ? ['verify_server_certs=0', 'verify_server_cn=0', 'media_encryption=srtp', 'media_encryption_mandatory=1']
        : []),
      '[rtp]',
      'audio_rtp_port=-1',
      '',
    ];
    writeFileSync(join(folder, 'linphonerc'), config.join('\n'));
    mkdirSync(join(folder, '.local/share/linphone'), { recursive: true });
    const child = spawn('linphonec', ['-c', join(folder, 'linphonerc')], {
      env: { ...process.env, HOME: folder },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    return new Linphone(child, folder);
  }

  /** What it printed. */
  get log(): string {
    return this.#said;
  }

  command(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Resolves when what it printed matches. */
  async until(pattern: RegExp, timeoutMs = 15_000): Promise<void> {
    if (pattern.test(this.#said)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`linphonec: no ${pattern}:\n${this.#said}`)), timeoutMs);
    this.#waiting.push({ pattern, resolve });
    await promise.finally(() => clearTimeout(timer));
  }

  async stop(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
