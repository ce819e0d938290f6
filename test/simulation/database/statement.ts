/** How the simulated database knows a statement of the product, and what it does. */
import type { Parameter, Row } from '../../../src/database/driver/database.ts';
import type { Tables } from './tables.ts';

export type Rows = readonly Row[];

export interface Execution {
  readonly tables: Tables;
  readonly parameters: readonly Parameter[];
  /** The database's own clock, in milliseconds since the epoch. */
  readonly now: number;
  /**
   * Tells whether a transaction has locked a row. Its own counts as well: it has changed what it has claimed, and does
   * not claim it again.
   */
  isLocked(key: string): boolean;
  /** The SQL, for statements that come in several forms. */
  readonly text: string;
}

/** Reads what is committed when it starts. */
interface Read {
  readonly kind: 'read';
  run(execution: Execution): Rows;
}

/**
 * A statement that is a transaction by itself. `run` sees what is committed when it starts; what it returns sees, and
 * changes, what is committed when it ends.
 */
interface Write {
  readonly kind: 'write';
  locks?(execution: Execution): readonly string[];
  run(execution: Execution): (xid: number) => Rows;
}

/** A statement within a transaction: its rows at once, its change with the commit. */
interface Step {
  readonly kind: 'step';
  /** Rows that are locked until the transaction is over; the statement waits until it has them all. */
  locks?(execution: Execution): readonly string[];
  run(execution: Execution): StepOutcome;
}

interface StepOutcome {
  readonly rows: Rows;
  /** Rows that were locked where they were free (SKIP LOCKED). */
  readonly locked?: readonly string[];
  readonly apply?: (xid: number) => void;
}

export type Statement = (Read | Write | Step) & { readonly text: RegExp };

export const read = (text: RegExp, run: Read['run']): Statement => ({ kind: 'read', text, run });
export const write = (text: RegExp, run: Write['run'], locks?: Write['locks']): Statement => ({
  kind: 'write',
  text,
  run,
  ...(locks === undefined ? {} : { locks }),
});
export const step = (text: RegExp, run: Step['run'], locks?: Step['locks']): Statement => ({
  kind: 'step',
  text,
  run,
  ...(locks === undefined ? {} : { locks }),
});

export const ONE: Rows = [{ one: 1 }];
export const NONE: Rows = [];

/** A parameter that is text. */
export function textAt({ parameters }: Execution, at: number): string {
  const value = parameters[at - 1];
  if (typeof value !== 'string') throw new Error(`parameter $${at} is no text: ${String(value)}`);
  return value;
}

export function numberAt({ parameters }: Execution, at: number): number {
  const value = parameters[at - 1];
  if (typeof value !== 'number' && !(typeof value === 'string' && /^-?[0-9]+$/.test(value)))
    throw new Error(`parameter $${at} is no number: ${String(value)}`);
  return Number(value);
}

export const numberOrNullAt = (execution: Execution, at: number): number | null =>
  execution.parameters[at - 1] == null ? null : numberAt(execution, at);

export const textOrNullAt = (execution: Execution, at: number): string | null =>
  execution.parameters[at - 1] == null ? null : textAt(execution, at);

export const listAt = <T>(execution: Execution, at: number): readonly T[] => JSON.parse(textAt(execution, at));
