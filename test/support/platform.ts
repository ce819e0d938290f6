/** The real platform as a child process, on its embedded database, in a directory and on ports of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { dataDirectory } from './data-directory.ts';
import { OpenApiCheck } from './openapi-check.ts';
import { patiently } from './patiently.ts';
import { fillDataDir } from './postgres-template.ts';
import type { Receiver } from './receiver.ts';
import { RtpRange } from './rtp-range.ts';

const ROOT = join(import.meta.dir, '../..');

export interface Credentials {
  readonly appUuid: string;
  readonly apiKey: string;
  readonly webhookSecret: string;
}

interface Ready {
  readonly http_port: number;
  readonly sip_udp_port: number;
  readonly sip_tcp_port: number;
  readonly sip_tls_port?: number;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // A JSON body of any shape: tests look into it.
  readonly body: Record<string, unknown>;
}

export class Platform {
  readonly dataDir: string;
  readonly #environment: Readonly<Record<string, string>>;
  #rtpRange: RtpRange | undefined;
  #isUp = false;
  #isSignalled = false;
  #child: ChildProcess | undefined;
  #ready: Ready | undefined;
  #output = '';
  #check: Promise<OpenApiCheck> | undefined;

  /** The program of the platform, where it is another than the sources on Bun. It runs in its data directory. */
  readonly #program: string | undefined;

  private constructor(environment: Readonly<Record<string, string>>, program: string | undefined) {
    this.dataDir = dataDirectory('sidetone-');
    this.#environment = environment;
    this.#program = program;
  }

  static async start(environment: Readonly<Record<string, string>> = {}, program?: string): Promise<Platform> {
    const platform = new Platform(environment, program);
    // A program that is installed makes its database by itself, as for anybody.
    const isEmbedded = environment.DATABASE_URL === undefined && environment.DATA_DIR === undefined;
    try {
      if (program === undefined && isEmbedded) await fillDataDir(platform.dataDir);
      await platform.start();
    } catch (error) {
      await platform.stop();
      throw error;
    }
    return platform;
  }

  /** Starts it (again, on the same data) and resolves when it takes calls. */
  async start(): Promise<void> {
    const [program, args, cwd] =
      this.#program === undefined
        ? [join(ROOT, 'node_modules/.bin/bun'), ['--no-env-file', 'src/main.ts'], ROOT]
        : [this.#program, [], this.dataDir];
    // The mark of a range is a port, which may lie within the ports that the environment names.
    if (this.#environment.RTP_PORTS === undefined) this.#rtpRange ??= await RtpRange.take();
    const child = spawn(program, args, {
      cwd,
      env: {
        PATH: process.env.PATH ?? '',
        HTTP_PORT: '0',
        BUN_CONFIG_MAX_HTTP_REQUESTS: '4096',
        SIP_LISTEN: 'udp:127.0.0.1:0,tcp:127.0.0.1:0',
        ...(this.#rtpRange === undefined ? {} : { RTP_PORTS: this.#rtpRange.ports }),
        MEDIA_WORKERS: '1',
        SHUTDOWN_GRACE_SEC: '0',
        // Many callers of the tests send no audio, and a busy machine may take more than half a minute for a test.
        MEDIA_TIMEOUT_SEC: '300',
        DATA_DIR: this.dataDir,
        ...this.#environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#isUp = false;
    this.#isSignalled = false;
    const { promise, resolve, reject } = Promise.withResolvers<Ready>();
    const read = (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString()).slice(-200_000);
      const line = /^\{.*"http_port".*\}$/m.exec(this.#output)?.[0];
      if (line !== undefined) resolve(JSON.parse(line));
    };
    this.#output = '';
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`the platform ended with ${code}:\n${this.#output}`)));
    const timer = setTimeout(() => reject(new Error(`the platform was not ready in 60 s:\n${this.#output}`)), 60_000);
    this.#ready = await promise.finally(() => clearTimeout(timer));
    this.#isUp = true;
    // Every later request fails then for want of a listener, which says nothing of the cause.
    child.once('exit', (code, signal) => {
      if (this.#child === child && !this.#isSignalled)
        console.error(`the platform ended by itself with ${code ?? signal}:\n${this.#output}`);
    });
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ready?.http_port}`;
  }

  get sipUdpPort(): number {
    return this.#ready?.sip_udp_port ?? 0;
  }

  get sipUdp(): string {
    return `127.0.0.1:${this.sipUdpPort}`;
  }

  get sipTcp(): string {
    return `127.0.0.1:${this.#ready?.sip_tcp_port}`;
  }

  /** The address of its TLS listener, where SIP_LISTEN has one. */
  get sipTls(): string {
    return `127.0.0.1:${this.#ready?.sip_tls_port}`;
  }

  /** The folder of the rings of its recordings. */
  get ringFolder(): string {
    const { dev, ino } = statSync(this.dataDir, { bigint: true });
    return `/dev/shm/sidetone-${process.getuid?.()}-${dev.toString(16)}-${ino.toString(16)}`;
  }

  /** Any signal. */
  signal(signal: NodeJS.Signals): void {
    this.#isSignalled = true;
    this.#child?.kill(signal);
  }

  /** Resolves with the exit code when the process ends by itself. */
  async ended(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null;
    return await new Promise((resolve) => child.once('exit', (code) => resolve(code)));
  }

  /** SIGKILL, as a crash would; the database server is left to itself. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, as an operator would. */
  async terminate(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Ends it and removes its data. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
    const pidFile = join(this.dataDir, 'postgres/postmaster.pid');
    if (existsSync(pidFile)) process.kill(Number(readFileSync(pidFile, 'utf8').split('\n')[0]), 'SIGKILL');
    // Killed and not started again, it leaves what its recordings had in memory.
    if (existsSync(this.ringFolder)) rmSync(this.ringFolder, { recursive: true, force: true });
    rmSync(this.dataDir, { recursive: true, force: true });
    this.#rtpRange?.free();
    this.#rtpRange = undefined;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    await ended;
  }

  /** The operator API. */
  operator(method: string, path: string, body?: unknown): Promise<Answered> {
    const token = this.#environment.OPERATOR_TOKEN ?? readFileSync(join(this.dataDir, 'operator.token'), 'utf8').trim();
    return this.#call(method, `/operator/v1${path}`, token, body, {});
  }

  /** The application's API. */
  api(app: Credentials, method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answered> {
    return this.#call(method, path, `${app.appUuid}:${app.apiKey}`, body, headers);
  }

  /**
   * Answers a Session from a webhook's handler, where nobody awaits it. A 503 says that the node of the Session was too
   * busy to be reached: it is asked again, as an application would. The platform may be killed before it or meanwhile,
   * and while it starts again it has another port: the request fails then. Every other failure is one.
   */
  answerSoon(app: Credentials, sessionUuid: unknown): Promise<void> {
    const child = this.#isUp ? this.#child : undefined;
    return patiently(() => this.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`)).then(
      () => undefined,
      (error) => {
        if (child !== undefined && this.#child === child) throw error;
      },
    );
  }

  /** Has an application answer each call as it comes. */
  answerEveryCall(app: Credentials, receiver: Pick<Receiver, 'misbehave'>): void {
    receiver.misbehave = (event) => {
      if (event.event === 'session.created') void this.answerSoon(app, event.session_uuid);
      return undefined;
    };
  }

  async #call(method: string, path: string, token: string, body: unknown, headers: Record<string, string>): Promise<Answered> {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    await this.documented(method, path, response, text);
    return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
  }

  /** Holds an answer, and its body, against the platform's own document: those that a test has fetched itself, too. */
  async documented(method: string, path: string, response: Pick<Response, 'status' | 'headers'>, body: string): Promise<void> {
    const wrong = (await this.#openapi()).fault(method, path, response, body);
    if (wrong !== undefined) throw new Error(`not as the OpenAPI document says: ${wrong}`);
  }

  #openapi(): Promise<OpenApiCheck> {
    this.#check ??= fetch(`${this.url}/openapi.json`)
      .then((response) => response.json())
      .then((document) => new OpenApiCheck(document));
    return this.#check;
  }

  /**
   * An application with a webhook, a number, the same number as caller ID, and a trunk at `trunkUri` (host:port) open
   * to loopback.
   */
  async application(webhookUrl: string, number: string): Promise<Credentials> {
    const made = await this.operator('POST', '/apps', { name: 'test', webhook_url: webhookUrl });
    const { app_uuid: appUuid, api_key: apiKey, webhook_secret: webhookSecret } = made.body;
    await this.operator('PUT', `/numbers/${encodeURIComponent(number)}`, { app_uuid: appUuid });
    await this.operator('PUT', `/apps/${appUuid}/caller-ids/${encodeURIComponent(number)}`);
    return { appUuid: String(appUuid), apiKey: String(apiKey), webhookSecret: String(webhookSecret) };
  }

  /** A trunk for calls from loopback and to `address` (host:port). */
  async trunk(address: string, transport: 'udp' | 'tcp' = 'udp', name = 'carrier'): Promise<void> {
    const made = await this.operator('PUT', `/trunks/${name}`, {
      uri: `sip:${address};transport=${transport}`,
      inbound_cidrs: ['127.0.0.0/8'],
    });
    if (made.status !== 204) throw new Error(`trunk: ${made.status} ${JSON.stringify(made.body)}`);
  }
}
