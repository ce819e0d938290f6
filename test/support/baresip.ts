/** baresip, a telephone that is not ours, driven over its control socket (module ctrl_tcp). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const baresipInstalled = spawnSync('baresip', ['-h'], { stdio: 'ignore' }).error === undefined;

export interface BaresipOptions {
  /** The account, as in baresip's `accounts`, after its address: parameters such as `;regint=60`. */
  readonly account?: string;
  /** `user@host[:port]` of the account's address. */
  readonly address?: string;
  readonly transport?: 'udp' | 'tcp' | 'tls';
  /** Further lines of its configuration. */
  readonly config?: readonly string[];
  /** The one codec that it has. */
  readonly codec?: 'PCMU' | 'opus';
  /** The tone that it says, in Hz. */
  readonly hz?: number;
  /** The network namespace that it runs in, its address there, and the one at which it takes commands. */
  readonly home?: { readonly namespace: string; readonly address: string; readonly control: string };
}

export interface BaresipEvent {
  readonly type: string;
  readonly param?: string;
}

const STARTS_MAX = 5;

export class Baresip {
  readonly port: number;
  /** The URI at which it takes calls. */
  readonly uri: string;
  readonly events: BaresipEvent[] = [];
  readonly #child: ChildProcess;
  readonly #control: Socket;
  readonly #folder: string;
  readonly #output: Output;
  #waiting: { readonly ready: () => boolean; readonly resolve: () => void }[] = [];

  private constructor(child: ChildProcess, control: Socket, folder: string, port: number, output: Output) {
    this.#child = child;
    this.#control = control;
    this.#folder = folder;
    this.#output = output;
    this.port = port;
    this.uri = `sip:+15550100@127.0.0.1:${port}`;
    output.more = () => this.#look();
    let text = '';
    control.on('data', (chunk) => {
      text += chunk.toString();
      // Netstrings: a length, a colon, the bytes, a comma.
      for (let colon = text.indexOf(':'); colon > 0; colon = text.indexOf(':')) {
        const end = colon + 1 + Number(text.slice(0, colon));
        if (text.length <= end) return;
        const message: { readonly event?: boolean } & BaresipEvent = JSON.parse(text.slice(colon + 1, end));
        text = text.slice(end + 1);
        if (message.event === true) this.events.push(message);
        this.#look();
      }
    });
    control.on('error', () => {});
  }

  /** Starts one on free ports, and again where another program was quicker to take one of them. */
  static async start(options: BaresipOptions = {}): Promise<Baresip> {
    for (let tries = 1; ; tries++) {
      const started = await tryStart(options);
      if ('child' in started) {
        const { child, control, folder, port, output } = started;
        return new Baresip(child, control, folder, port, output);
      }
      if (tries === STARTS_MAX) throw new Error(`baresip did not start:\n${started.output.said}`);
    }
  }

  /** What it printed. */
  get log(): string {
    return this.#output.said;
  }

  /** Gives a command, such as `dial` with a URI. */
  command(command: string, params = ''): void {
    const text = JSON.stringify({ command, params });
    this.#control.write(`${text.length}:${text},`);
  }

  /** The first event of that type, now or to come. */
  async event(type: string, timeoutMs = 20_000): Promise<BaresipEvent> {
    const find = () => this.events.find((event) => event.type === type);
    await this.until(() => find() !== undefined, type, timeoutMs);
    return find() ?? { type };
  }

  /** The first event of a type after the first one of another type, now or to come. */
  async eventAfter(before: string, type: string): Promise<BaresipEvent> {
    const find = () => {
      const at = this.events.findIndex((event) => event.type === before);
      return at < 0 ? undefined : this.events.find((event, place) => place > at && event.type === type);
    };
    await this.until(() => find() !== undefined, `${type} after ${before}`);
    return find() ?? { type };
  }

  /** Resolves when its account is registered. The event for it may have come before anybody listened. */
  async registered(): Promise<void> {
    const isTold = () => / 200 OK \(/.test(this.log) || this.events.some(({ type }) => type === 'REGISTER_OK');
    await this.until(isTold, 'registration');
  }

  /** Resolves when `ready` holds, which is looked at whenever it says something. */
  async until(ready: () => boolean, what: string, timeoutMs = 20_000): Promise<void> {
    if (ready()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const told = () => `baresip: no ${what}; ${this.events.map(({ type }) => type).join(', ')}\n${this.log}`;
    const timer = setTimeout(() => reject(new Error(told())), timeoutMs);
    this.#waiting.push({ ready, resolve });
    await promise.finally(() => clearTimeout(timer));
  }

  /** The samples that it heard since this was asked last, once its call is over (module sndfile). */
  heard(): number[] {
    const samples: number[] = [];
    for (const name of readdirSync(this.#folder).filter((each) => /^dump-.*dec\.wav$/.test(each))) {
      const path = join(this.#folder, name);
      const pcm = readFileSync(path).subarray(44);
      for (let at = 0; at + 1 < pcm.length; at += 2) samples.push(pcm.readInt16LE(at));
      rmSync(path);
    }
    return samples;
  }

  async stop(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    this.#control.destroy();
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #look(): void {
    this.#waiting = this.#waiting.filter(({ ready, resolve }) => {
      if (!ready()) return true;
      resolve();
      return false;
    });
  }
}

/** What a process prints, none of it missed between its start and whoever reads it. */
class Output {
  said = '';
  more: () => void = () => {};

  constructor({ stdout, stderr }: ChildProcess) {
    for (const stream of [stdout, stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.said = (this.said + chunk).slice(-100_000);
        this.more();
      });
  }
}

type Started =
  | {
      readonly child: ChildProcess;
      readonly control: Socket;
      readonly folder: string;
      readonly port: number;
      readonly output: Output;
    }
  | { readonly output: Output };

async function tryStart(options: BaresipOptions): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'baresip-'));
  const [port, control] = [await freePair(), await freePair()];
  writeFileSync(join(folder, 'config'), configOf(options, folder, port, control));
  const { transport = 'udp', account = '' } = options;
  const address = options.address ?? `+15550100@127.0.0.1:${port}`;
  writeFileSync(
    join(folder, 'accounts'),
    `<sip:${address};transport=${transport}>;audio_codecs=${options.codec === 'opus' ? 'opus/48000/2' : 'PCMU'}${account}\n`,
  );
  writeFileSync(join(folder, 'contacts'), '');
  const [program = '', ...args] = [
    ...(options.home === undefined ? [] : ['ip', 'netns', 'exec', options.home.namespace]),
    ...['baresip', '-f', folder, '-v'],
  ];
  const child = spawn(program, args, { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] });
  const output = new Output(child);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  output.more = () => {
    if (output.said.includes('baresip is ready')) resolve(!output.said.includes('Address already in use'));
  };
  child.once('exit', () => resolve(false));
  const timer = setTimeout(() => resolve(false), 10_000);
  const isUp = await promise.finally(() => clearTimeout(timer));
  if (isUp) {
    const socket = connect(control, options.home?.control ?? '127.0.0.1');
    await new Promise<void>((connected, failed) => socket.once('connect', connected).once('error', failed));
    return { child, control: socket, folder, port, output };
  }
  child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
  return { output };
}

function configOf(options: BaresipOptions, folder: string, port: number, control: number): string {
  const modules = [options.codec === 'opus' ? 'opus' : 'g711', 'ausine', 'aubridge', 'sndfile', 'srtp'];
  return [
    'poll_method epoll',
    `sip_listen ${options.home?.address ?? '127.0.0.1'}:${port}`,
    `net_interface ${options.home === undefined ? '127.0.0.1' : 'eth0'}`,
    'call_max_calls 8',
    `audio_source ausine,${options.hz ?? 440}`,
    'audio_player aubridge,ear',
    'ausrc_srate 48000', // its tone is made at this rate, in stereo
    'ausrc_channels 2',
    ...(options.codec === 'opus' ? ['auplay_srate 48000', 'auplay_channels 2'] : ['auplay_srate 8000']),
    'jitter_buffer_delay 2-5',
    'module_path /usr/lib/baresip/modules',
    ...modules.map((name) => `module ${name}.so`),
    `snd_path ${folder}`,
    'module_tmp uuid.so',
    'module_tmp account.so',
    'module_app ctrl_tcp.so',
    'module_app menu.so',
    `ctrl_tcp_listen ${options.home?.control ?? '127.0.0.1'}:${control}`,
    ...(options.config ?? []),
    '',
  ].join('\n');
}

/** A port that is free, as is the next one: baresip takes it for TLS. */
export async function freePair(): Promise<number> {
  const open = async (port: number) => {
    const server = createServer();
    const isOpen = new Promise<boolean>((resolve) => {
      server.once('listening', () => resolve(true)).once('error', () => resolve(false));
    });
    server.listen(port, '127.0.0.1');
    return (await isOpen) ? server : undefined;
  };
  for (;;) {
    const first = await open(0);
    const address = first?.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const second = await open(port + 1);
    const closed = [first, second].map(
      (server) => new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve())),
    );
    await Promise.all(closed);
    if (first !== undefined && second !== undefined && port > 0) return port;
  }
}
