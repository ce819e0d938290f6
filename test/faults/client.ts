/**
 * The application of a load: sends commands, each under an Idempotency-Key and an Operation-Id of its own, and
 * remembers what was answered. What nobody answered is sent again after the outage, under the same key.
 */
import type { Answered, Credentials, Platform } from '../support/platform.ts';
import type { Ledger } from './ledger.ts';
import { CutOff } from './witness.ts';

export interface Tenant {
  readonly app: Credentials;
  readonly number: string;
}

/** The debts of an answer: the outcomes that have to be told. */
type Debts = (body: Readonly<Record<string, unknown>>) => readonly string[];

export interface Command {
  readonly tenant: Tenant;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly key: string;
  readonly operationId: string;
  readonly debts: Debts;
  /** The answer, or undefined where nobody answered. */
  answer: Answered | undefined;
}

/** What a well-formed command may be answered, whatever is broken. 500 is not among them. */
const EXPECTED = [200, 201, 202, 204, 404, 409, 429, 502, 503, 529];
/** A second of patience for each of those that are asked again at once. */
const AGAIN_MAX = 60;
const AGAIN_MS = 250;

export class Client {
  readonly #platform: Platform;
  readonly #ledger: Ledger;
  /** Commands since the last `forget`. */
  commands: Command[] = [];
  readonly breaches: string[] = [];
  /** How often each status was answered. */
  readonly statuses = new Map<number, number>();
  /** The longest that a command took to be answered, in milliseconds. */
  slowestMs = 0;
  /** Commands that were sent again because nobody had answered them. */
  retried = 0;
  /** Commands that were sent again although they had been answered, and were answered the same. */
  replayed = 0;

  constructor(platform: Platform, ledger: Ledger) {
    this.#platform = platform;
    this.#ledger = ledger;
  }

  /** Sends a new command. Throws CutOff where nobody answers. */
  async send(tenant: Tenant, method: string, path: string, body: unknown, debts: Debts = () => []): Promise<Answered> {
    const command: Command = {
      tenant,
      method,
      path,
      body,
      key: crypto.randomUUID(),
      operationId: crypto.randomUUID(),
      debts,
      answer: undefined,
    };
    this.commands.push(command);
    return await this.#ask(command);
  }

  /** Reads. Throws CutOff where nobody answers. */
  async get(tenant: Tenant, path: string): Promise<Answered> {
    return await this.#timed(() => this.#platform.api(tenant.app, 'GET', path), `GET ${path}`);
  }

  /** Sends what nobody answered again, under the same key, until it is answered by other than "not now". */
  async recover(): Promise<void> {
    for (const command of this.commands.filter(({ answer }) => answer === undefined)) {
      this.retried += 1;
      let status = 429;
      for (let asked = 0; asked < AGAIN_MAX && (status === 429 || status === 503); asked += 1) {
        if (asked > 0) await Bun.sleep(AGAIN_MS);
        ({ status } = await this.#ask(command));
      }
      const message = String(command.answer?.body.message ?? '');
      if (status === 409 && message.startsWith('Request already in progress'))
        this.breaches.push(`${command.method} ${command.path} is in progress for ever after the process that had it is gone`);
    }
  }

  /** Sends what was admitted once more, under the same key: the answer has to be the same one. */
  async replay(commands: readonly Command[]): Promise<void> {
    for (const { tenant, method, path, body, key, operationId, answer } of commands) {
      if (answer === undefined || answer.status > 299) continue;
      const headers = { 'idempotency-key': key, 'operation-id': operationId };
      const what = `${method} ${path}`;
      const again = await this.#timed(() => this.#platform.api(tenant.app, method, path, body, headers), what);
      this.replayed += 1;
      if (again.status === 503 || again.status === 429) continue;
      const [one, other] = [answer, again].map((each) => `${each.status} ${JSON.stringify(each.body)}`);
      if (one !== other || again.headers.get('idempotent-replayed') !== 'true')
        this.breaches.push(`${what} under the same key: first ${one}, then ${other}`);
    }
  }

  /** Forgets the commands. What they owe stays in the ledger. */
  forget(): void {
    this.commands = [];
  }

  async #ask(command: Command): Promise<Answered> {
    const { tenant, method, path, body, key, operationId } = command;
    const headers = { 'idempotency-key': key, 'operation-id': operationId };
    const answer = await this.#timed(() => this.#platform.api(tenant.app, method, path, body, headers), `${method} ${path}`);
    command.answer = answer;
    if (answer.status < 300) for (const debt of command.debts(answer.body)) this.#ledger.owe(debt);
    return answer;
  }

  async #timed(ask: () => Promise<Answered>, what: string): Promise<Answered> {
    const began = performance.now();
    try {
      const answer = await ask();
      this.slowestMs = Math.max(this.slowestMs, performance.now() - began);
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
      if (!EXPECTED.includes(answer.status))
        this.breaches.push(`${what} was answered ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer;
    } catch (error) {
      // An answer that is not as documented is a fault of the platform, and not the end of it.
      if (error instanceof Error && error.message.startsWith('not as the OpenAPI')) this.breaches.push(error.message);
      throw new CutOff(String(error));
    }
  }
}
