/**
 * An application's webhook endpoint: verifies each signature, keeps each event once by its `Webhook-Id`, and can
 * misbehave.
 */
import { Webhook } from 'standardwebhooks';
import { EmissionChecker } from '../../src/event/conformance/emission-checker.ts';
import { eventFaults } from './event-check.ts';

export interface Received {
  readonly webhookId: string;
  readonly event: string;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

/** So long an event is waited for: on a busy machine some come late, and a test that fails has the time. */
const WAIT_MS = 25_000;

export class Receiver {
  readonly #server: ReturnType<typeof Bun.serve>;
  readonly #waiting: { ready: () => boolean; resolve: () => void }[] = [];
  /**
   * Whether what comes is held against the emission contract. Not where webhooks are given up within milliseconds, or
   * replayed: an event that was set aside comes after later ones.
   */
  isJudged = true;
  readonly #checker = new EmissionChecker();
  readonly #breaches: string[] = [];
  /** First successful deliveries, in the order in which they came. */
  readonly events: Received[] = [];
  readonly #seen = new Set<string>();
  /** Every request, failed ones too. */
  attempts = 0;
  badSignatures = 0;
  /** The secrets of every application whose events come here. Signatures are not looked at when it is empty. */
  readonly secrets = new Map<string, string>();
  /** What to answer; undefined: 200. Called before the event counts as received. */
  misbehave: ((event: Record<string, unknown>) => Response | Promise<Response | undefined> | undefined) | undefined;

  constructor() {
    this.#server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 60, fetch: (request) => this.#receive(request) });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/hook`;
  }

  async #receive(request: Request): Promise<Response> {
    if (request.method !== 'POST') return new Response(null, { status: 405 });
    this.attempts++;
    const text = await request.text();
    const webhookId = request.headers.get('webhook-id') ?? '';
    try {
      if (this.secrets.size > 0) {
        const { aud } = JSON.parse(text);
        new Webhook(this.secrets.get(aud) ?? '').verify(text, Object.fromEntries(request.headers));
      }
    } catch {
      this.badSignatures++;
      return new Response(null, { status: 401 });
    }
    const body: Record<string, unknown> = JSON.parse(text);
    const bad = await this.misbehave?.(body);
    if (bad !== undefined) return bad;
    this.#breaches.push(...this.#checker.take(webhookId, text), ...eventFaults(body));
    if (!this.#seen.has(webhookId)) {
      this.#seen.add(webhookId);
      this.events.push({ webhookId, event: String(body.event), body, headers: request.headers });
    }
    for (const waiter of this.#waiting.filter((candidate) => candidate.ready())) {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.resolve();
    }
    return new Response(null, { status: 204 });
  }

  of(sessionUuid: string): Received[] {
    return this.events.filter((event) => event.body.session_uuid === sessionUuid);
  }

  names(sessionUuid?: string): string[] {
    return (sessionUuid === undefined ? this.events : this.of(sessionUuid)).map((event) => event.event);
  }

  count(event: string): number {
    return this.events.filter((received) => received.event === event).length;
  }

  /** Resolves with the first event of that name (and Session); rejects after `timeoutMs`. */
  async event(name: string, sessionUuid?: string, timeoutMs = WAIT_MS): Promise<Received> {
    const find = () =>
      this.events.find((event) => event.event === name && (sessionUuid === undefined || event.body.session_uuid === sessionUuid));
    await this.until(() => find() !== undefined, `event ${name}`, timeoutMs);
    const found = find();
    if (found === undefined) throw new Error('unreachable');
    return found;
  }

  /** Resolves when `ready` holds after some delivery. */
  async until(ready: () => boolean, what: string, timeoutMs = WAIT_MS): Promise<void> {
    if (ready()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () =>
        reject(
          new Error(
            `waited for ${what}; came: ${this.names().slice(-30).join(', ')}; last: ${JSON.stringify(this.events.at(-1)?.body)}`,
          ),
        ),
      timeoutMs,
    );
    this.#waiting.push({ ready, resolve });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Stops. Throws where something that came broke the emission contract, or was not of its schema. Calls may still run.
   */
  async stop(): Promise<void> {
    await this.#server.stop(true);
    if (this.#breaches.length > 0)
      throw new Error(`the emission contract was broken:\n${this.#breaches.slice(0, 20).join('\n')}`);
  }
}
