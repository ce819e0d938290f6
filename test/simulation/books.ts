/** The application's books: what was admitted, what must be told of it, and what was. */
import { EmissionChecker } from '../../src/event/conformance/emission-checker.ts';
import { eventFaults } from '../support/event-check.ts';
import type { Delivery } from './receiver.ts';

/** Something that was admitted (2xx), and what it must lead to exactly once. */
export interface Admitted {
  readonly what: string;
  /** The field of the event that names it, and its value. */
  readonly field: 'operation_uuid' | 'session_uuid' | 'recording_uuid' | 'room_id' | 'message_uuid';
  readonly value: string;
  /** The events of which exactly one must come, and the status in it. */
  readonly events: RegExp;
  readonly status?: RegExp;
}

interface Told {
  readonly webhookId: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export class Books {
  readonly #checker = new EmissionChecker();
  readonly #admitted: Admitted[] = [];
  readonly #told = new Map<string, Told>();
  readonly #onBreach: (breach: string) => void;

  constructor(onBreach: (breach: string) => void) {
    this.#onBreach = onBreach;
  }

  /** Events that were received, each once. */
  get events(): number {
    return this.#checker.events;
  }

  admitted(admitted: Admitted): void {
    this.#admitted.push(admitted);
  }

  received({ webhookId, body }: Delivery): Told | undefined {
    for (const breach of this.#checker.take(webhookId, body)) this.#onBreach(`received: ${breach}`);
    if (this.#told.has(webhookId)) return undefined;
    const fields: Readonly<Record<string, unknown>> = JSON.parse(body);
    for (const fault of eventFaults(fields)) this.#onBreach(`received: ${fault}`);
    const told = { webhookId, event: String(fields.event), fields };
    this.#told.set(webhookId, told);
    return told;
  }

  has(webhookId: string): boolean {
    return this.#told.has(webhookId);
  }

  /** All is over: what was admitted was told, once, and nothing is missing. */
  end(): void {
    for (const breach of this.#checker.end()) this.#onBreach(`received: ${breach}`);
    for (const admitted of this.#admitted) {
      const count = this.#outcomes(admitted);
      const { what, value } = admitted;
      if (count !== 1) this.#onBreach(`${what} ${value} was admitted, and its outcome came ${count} times`);
    }
    const dials = new Map<string, Set<unknown>>();
    for (const { fields } of this.#told.values()) {
      const { client_state: state, session_uuid: session } = fields;
      if (typeof state === 'string' && state.startsWith('keyed ')) dials.set(state, (dials.get(state) ?? new Set()).add(session));
    }
    for (const [state, sessions] of dials)
      if (sessions.size > 1) this.#onBreach(`the command ${state} made ${sessions.size} Sessions under one Idempotency-Key`);
  }

  #outcomes({ field, value, events, status = /^/ }: Admitted): number {
    let count = 0;
    for (const { event, fields } of this.#told.values())
      if (fields[field] === value && events.test(event) && status.test(String(fields.status))) count += 1;
    return count;
  }
}
