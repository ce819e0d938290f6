/** Debian's icecast2 on loopback, and ffmpeg as the source of its mounts. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/sipp.ts';

const installed = (program: string, flag: string): boolean => spawnSync(program, [flag], { stdio: 'ignore' }).error === undefined;

/** Whether both programs are there. */
export const icecastInstalled = installed('icecast2', '-v') && installed('ffmpeg', '-version');

const PASSWORD = 'hackme';

export class Icecast implements AsyncDisposable {
  readonly #port: number;
  readonly #folder: string;
  #server: ChildProcess;
  readonly #sources = new Set<ChildProcess>();

  private constructor(port: number, folder: string, server: ChildProcess) {
    this.#port = port;
    this.#folder = folder;
    this.#server = server;
  }

  /**
   * Starts the server; resolves once it answers. Another program may take its port first: then it is tried with others.
   */
  static async start(): Promise<Icecast> {
    for (let attempt = 1; ; attempt++) {
      const icecast = await Icecast.#spawn();
      try {
        await icecast.#until('/status-json.xsl');
        return icecast;
      } catch (error) {
        await icecast[Symbol.asyncDispose]();
        if (attempt === 5) throw error;
      }
    }
  }

  static async #spawn(): Promise<Icecast> {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'sidetone-icecast-'));
    const owner = process.getuid?.() === 0 ? '<changeowner><user>nobody</user><group>nogroup</group></changeowner>' : '';
    const logs = owner === '' ? folder : '/tmp';
    writeFileSync(
      join(folder, 'icecast.xml'),
      `<icecast><hostname>localhost</hostname><limits><clients>100</clients><sources>10</sources><burst-size>65535</burst-size></limits>
       <authentication><source-password>${PASSWORD}</source-password><admin-user>admin</admin-user><admin-password>${PASSWORD}</admin-password></authentication>
       <listen-socket><port>${port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
       <mount><mount-name>/main.mp3</mount-name><fallback-mount>/spare.mp3</fallback-mount><fallback-override>1</fallback-override></mount>
       <paths><logdir>${logs}</logdir><webroot>/usr/share/icecast2/web</webroot><adminroot>/usr/share/icecast2/admin</adminroot></paths>
       <logging><accesslog>-</accesslog><errorlog>-</errorlog><loglevel>1</loglevel></logging>
       <security><chroot>0</chroot>${owner}</security></icecast>`,
    );
    return new Icecast(port, folder, serve(folder));
  }

  url(mount: string): string {
    return `http://127.0.0.1:${this.#port}${mount}`;
  }

  /**
   * Sends a tone to a mount at the pace of speech; resolves once the mount can be heard. The result ends it. Icecast
   * 2.4.4 itself now and then ends with a segmentation fault when a source comes: it is started again then.
   */
  async source(mount: string, hz: number, codec: readonly string[], format: string): Promise<() => Promise<void>> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#source(mount, hz, codec, format);
      } catch (error) {
        if (this.#server.signalCode === null || attempt === 3) throw error;
        this.#server = serve(this.#folder);
        await this.#until('/status-json.xsl');
      }
    }
  }

  async #source(mount: string, hz: number, codec: readonly string[], format: string): Promise<() => Promise<void>> {
    const to = `icecast://source:${PASSWORD}@127.0.0.1:${this.#port}${mount}`;
    const input = ['-re', '-f', 'lavfi', '-i', `sine=frequency=${hz}:sample_rate=44100`];
    const ffmpeg = spawn('ffmpeg', ['-v', 'error', ...input, ...codec, '-f', format, '-content_type', contentType(format), to], {
      stdio: 'ignore',
    });
    this.#sources.add(ffmpeg);
    const end = () => {
      this.#sources.delete(ffmpeg);
      return ended(ffmpeg);
    };
    try {
      await this.#until(mount);
    } catch (error) {
      await end();
      throw error;
    }
    return end;
  }

  /** Gives a mount another title, as a station does with each song. */
  async title(mount: string, song: string): Promise<void> {
    const query = new URLSearchParams({ mount, mode: 'updinfo', song });
    const authorization = `Basic ${btoa(`admin:${PASSWORD}`)}`;
    const response = await fetch(this.url(`/admin/metadata?${query}`), { headers: { authorization } });
    if (!response.ok) throw new Error(`the title was not taken: ${response.status}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sources, this.#server].map(ended));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #until(path: string): Promise<void> {
    for (const started = Date.now(); Date.now() - started < 15_000 && isRunning(this.#server); ) {
      const abort = new AbortController();
      const response = await fetch(this.url(path), { signal: abort.signal }).catch(() => undefined);
      const ready = response?.ok === true;
      abort.abort();
      if (ready) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`icecast has no ${path}`);
  }
}

const CONTENT_TYPES: Readonly<Record<string, string>> = { mp3: 'audio/mpeg', adts: 'audio/aac', ogg: 'application/ogg' };
const contentType = (format: string): string => CONTENT_TYPES[format] ?? 'application/octet-stream';

const serve = (folder: string): ChildProcess => spawn('icecast2', ['-c', join(folder, 'icecast.xml')], { stdio: 'ignore' });

const isRunning = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;

function ended(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
