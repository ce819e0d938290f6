/** A program of docs/examples, as it is, on Node. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Credentials, Platform } from './platform.ts';

const ROOT = join(import.meta.dir, '../..');

/** A running example. */
export class Example {
  readonly #child: ChildProcess;
  #output = '';
  readonly #waiting: (() => void)[] = [];

  private constructor(name: string, environment: Readonly<Record<string, string>>) {
    this.#child = spawn('node', [join(ROOT, 'docs/examples', name)], {
      env: { PATH: process.env.PATH, PORT: '0', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString();
        for (const again of this.#waiting) again();
      });
    }
  }

  /** Starts the example for an application, and makes it the application's webhook. */
  static async start(
    name: string,
    platform: Platform,
    app: Credentials,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Example> {
    const credentials = { APP: app.appUuid, KEY: app.apiKey, SECRET: app.webhookSecret };
    const example = new Example(name, { ...credentials, SIDETONE_URL: platform.url, ...environment });
    const [, url] = await example.prints(/waiting for events on (\S+)/);
    await platform.api(app, 'PATCH', '/api/v1/app', { webhook_url: url });
    return example;
  }

  /** All that it has printed so far. */
  get output(): string {
    return this.#output;
  }

  /** Resolves when it has printed this, beyond the first `after` characters of its output. */
  async prints(pattern: RegExp, after = 0): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const look = () => {
      const found = pattern.exec(this.#output.slice(after));
      if (found !== null) resolve(found);
    };
    const timer = setTimeout(() => reject(new Error(`waited for ${pattern}; printed:\n${this.#output}`)), 20_000);
    this.#waiting.push(look);
    look();
    return await promise.finally(() => clearTimeout(timer));
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }
}
