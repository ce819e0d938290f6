/**
 * The traces of the commands that a Session or Room has taken: each event continues that of its cause (contract §9).
 */
import type { Event } from '../event/event.ts';
import { TRACED_OPERATIONS_MAX } from '../limits.ts';
import type { CommandContext } from './ports/sessions.ts';

export class Traces {
  #latest: string;
  /** The `traceparent` of each operation, the oldest first. */
  readonly #ofOperation = new Map<string, string>();

  constructor(latest = '') {
    this.#latest = latest;
  }

  /** The `traceparent` of the command that was taken last; empty where none was. */
  get latest(): string {
    return this.#latest;
  }

  /** A command was taken. Of very many the oldest are forgotten. */
  take({ operationUuid, traceparent }: CommandContext): void {
    this.#latest = traceparent;
    this.#ofOperation.delete(operationUuid);
    this.#ofOperation.set(operationUuid, traceparent);
    const [oldest] = this.#ofOperation.keys();
    if (this.#ofOperation.size > TRACED_OPERATIONS_MAX && oldest !== undefined) this.#ofOperation.delete(oldest);
  }

  /** The trace of an operation; that of the latest command where the operation is not known. */
  of(operationUuid: string | undefined): string {
    const known = operationUuid === undefined ? undefined : this.#ofOperation.get(operationUuid);
    return known ?? this.#latest;
  }

  /** The trace of the command that caused an event. What another command has cut short was caused by the latest one. */
  behind(event: Event): string {
    const operation = 'operation_uuid' in event ? event.operation_uuid : undefined;
    return this.of(isCutShort(event) ? undefined : operation);
  }
}

const CUT_SHORT: readonly unknown[] = ['stopped', 'cancelled', 'session_ended'];

const isCutShort = (event: Event): boolean =>
  event.event === 'recording.ended' ||
  ('reason' in event && CUT_SHORT.includes(event.reason)) ||
  ('status' in event && CUT_SHORT.includes(event.status));
