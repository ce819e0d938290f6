/**
 * PostgreSQL as the product sees it, in memory: the product's own stores run on it, statement by statement. What is
 * faithful: a statement is atomic, rows are locked until the end of a transaction, transactions have numbers in the
 * order in which they began and become visible in the order in which they end, and the outcome of a write may be
 * unknown to whoever asked for it. What is not: SQL itself (docs/decisions/deterministic-simulation.md).
 */
import { drizzle } from 'drizzle-orm/pg-proxy';
import { asUnavailable, type Database, type Parameter, type Queryable, type Row } from '../../../src/database/driver/database.ts';
import { StoreUnavailable } from '../../../src/database/journal/journal.ts';
import { STATEMENT_MAX_MS } from '../../../src/limits.ts';
import type { Random } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import { builtStatements } from './built-statements.ts';
import { callStatements } from './call-statements.ts';
import { journalStatements } from './journal-statements.ts';
import { orderStatements } from './order-statements.ts';
import { outboxStatements } from './outbox-statements.ts';
import type { Execution, Rows, Statement } from './statement.ts';
import { Tables } from './tables.ts';

const STATEMENTS: readonly Statement[] = [
  ...journalStatements,
  ...callStatements,
  ...outboxStatements,
  ...orderStatements,
  ...builtStatements,
];
const known = new Map<string, Statement>();

function statementOf(text: string): Statement {
  const before = known.get(text);
  if (before !== undefined) return before;
  const found = STATEMENTS.find((each) => each.text.test(text));
  if (found === undefined) throw new Error(`the simulated database does not know this statement:\n${text}`);
  known.set(text, found);
  return found;
}

/** The way from one process to the database, as the faults of the moment make it. */
export interface DatabaseLink {
  readonly isAlive: () => boolean;
  /** What comes to the process passes here, once it does not stand still. */
  readonly pass: (run: () => void) => void;
  /** The database cannot be reached. */
  readonly isAway: () => boolean;
  /** Milliseconds that one way of a message takes. */
  readonly latencyMs: () => number;
  /** A write that is asked for now fails, and is rolled back. */
  readonly fails: () => boolean;
  /** The answer to a write that was committed is lost. */
  readonly losesAnswer: () => boolean;
}

interface Transaction {
  readonly link: DatabaseLink;
  xid: number | undefined;
  readonly locks: string[];
  readonly changes: ((xid: number) => void)[];
  readonly executed: Executed[];
  isOver: boolean;
}

interface WaitingForLocks {
  readonly keys: readonly string[];
  readonly transaction: Transaction;
  readonly run: () => void;
}

/** A failed attempt is noticed at once, or after a wait; milliseconds. */
const NOTICED_MS = [1, 20, 1_500] as const;

export interface DatabaseOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** A transaction has been committed. */
  onCommit(): void;
  /** A statement was carried out by itself, or those of a transaction, which is committed. */
  onExecuted?(statements: readonly Executed[]): void;
}

/** A statement that was carried out, and the rows that it gave. */
export interface Executed {
  readonly text: string;
  readonly parameters: readonly Parameter[];
  readonly rows: Rows;
}

export class SimulatedDatabase {
  readonly tables = new Tables();
  readonly #options: DatabaseOptions;
  readonly #locked = new Map<string, Transaction>();
  /** Transactions of several statements that are not over. */
  readonly #open = new Set<Transaction>();
  /** Statements that have begun. */
  readonly #working = new Set<{ readonly link: DatabaseLink; finish: () => void }>();
  #waiting: WaitingForLocks[] = [];
  readonly #listeners = new Set<{ readonly link: DatabaseLink; readonly notified: () => void }>();

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** Statements that wait for a lock, and locks that are held: both are 0 when all is quiet. */
  get load(): number {
    return this.#waiting.length + this.#locked.size;
  }

  /** The database as one process uses it. `shared`: other processes use it too. */
  connect(link: DatabaseLink, shared: boolean): Database {
    const query: Queryable['query'] = (text, parameters = []) => this.#query(link, text, parameters);
    const on = drizzle(async (text, parameters, method) => {
      const rows = await this.#query<Row>(link, text, parameters).catch((error: unknown) => {
        // Drizzle wraps what the driver throws, which is no error of ours yet.
        throw error instanceof StoreUnavailable ? Object.assign(new Error('reset'), { code: 'ECONNRESET' }) : error;
      });
      return { rows: method === 'execute' ? [...rows] : rows.map((row) => Object.values(row)) };
    });
    return {
      drizzle: on,
      shared,
      query,
      run: async (work) => {
        try {
          return await work(on);
        } catch (error) {
          throw asUnavailable(error);
        }
      },
      transaction: (work) => this.#transaction(link, work),
      listen: async (_channel, notified) => {
        for (const each of this.#listeners) if (!each.link.isAlive()) this.#listeners.delete(each);
        this.#listeners.add({ link, notified });
      },
      lock: async () => true,
      close: async () => {},
    };
  }

  #query<R extends Row>(link: DatabaseLink, text: string, parameters: readonly Parameter[]): Promise<readonly R[]> {
    const statement = statementOf(text);
    const { promise, resolve, reject } = Promise.withResolvers<readonly R[]>();
    const { scheduler } = this.#options;
    const answer = this.#answerer(link, resolve, reject);
    if (link.isAway()) {
      answer.lost();
      return promise;
    }
    scheduler.after(link.latencyMs(), () => {
      if (link.isAway()) answer.lost();
      else if (statement.kind === 'read') answer.rows(this.#read(statement, text, parameters));
      else if (statement.kind === 'write') this.#write(link, statement, text, parameters, answer);
      else answer.wrong(new Error(`the statement is meant for a transaction: ${text}`));
    });
    return promise;
  }

  /** Settles a promise of a process, some time later, and only while the process lives. */
  #answerer<R>(link: DatabaseLink, resolve: (rows: readonly R[]) => void, reject: (error: unknown) => void) {
    const { scheduler, random } = this.#options;
    const later = (ms: number, settle: () => void) =>
      void scheduler.after(ms, () =>
        link.pass(() => {
          if (link.isAlive()) settle();
        }),
      );
    const lost = () =>
      later(random.pick(NOTICED_MS) * random.between(0.5, 2), () => reject(new StoreUnavailable('the database is away')));
    return {
      lost,
      wrong: (error: unknown) => later(link.latencyMs(), () => reject(error)),
      // A database that went away after the work takes the answer with it.
      rows: (rows: Rows) => (link.isAway() ? lost() : later(link.latencyMs(), () => resolve(rows.map((row) => row as R)))),
    };
  }

  /** `by`: the transaction of a single statement, which has taken its locks before it looks at rows. */
  #execution(text: string, parameters: readonly Parameter[], by?: Transaction): Execution {
    return {
      tables: this.tables,
      parameters,
      now: Math.floor(this.#options.scheduler.now),
      isLocked: (key) => this.#locked.has(key) && this.#locked.get(key) !== by,
      text,
    };
  }

  #read(statement: Extract<Statement, { kind: 'read' }>, text: string, parameters: readonly Parameter[]): Rows {
    const rows = statement.run(this.#execution(text, parameters));
    this.#options.onExecuted?.([{ text, parameters, rows }]);
    return rows;
  }

  #write(
    link: DatabaseLink,
    statement: Extract<Statement, { kind: 'write' }>,
    text: string,
    parameters: readonly Parameter[],
    answer: { lost(): void; rows(rows: Rows): void },
  ): void {
    const transaction: Transaction = { link, xid: undefined, locks: [], changes: [], executed: [], isOver: false };
    const execution = this.#execution(text, parameters, transaction);
    this.#withLocks(transaction, statement.locks?.(execution) ?? [], () => {
      if (link.fails()) {
        this.#end(transaction);
        answer.lost();
        return;
      }
      const xid = this.tables.beginXid();
      transaction.xid = xid;
      const finish = statement.run(execution);
      const isLost = link.losesAnswer();
      if (isLost) answer.lost();
      // A statement that has begun is finished, whatever becomes of the process that asked for it, and perhaps long
      // after.
      const { scheduler, random } = this.#options;
      const workMs = isLost && random.chance(0.3) ? random.between(1, STATEMENT_MAX_MS * 0.9) : link.latencyMs() / 2;
      const working = { link, finish: () => {} };
      this.#working.add(working);
      working.finish = () => {
        if (!this.#working.delete(working)) return;
        const rows = finish(xid);
        this.#end(transaction);
        this.#options.onExecuted?.([{ text, parameters, rows }]);
        this.#committed();
        if (text.startsWith('NOTIFY')) this.#notify();
        if (!isLost) answer.rows(rows);
      };
      scheduler.after(workMs, () => working.finish());
    });
  }

  async #transaction<T>(link: DatabaseLink, work: (within: Queryable) => Promise<T>): Promise<T> {
    const transaction: Transaction = { link, xid: undefined, locks: [], changes: [], executed: [], isOver: false };
    this.#open.add(transaction);
    const within: Queryable = { query: (text, parameters = []) => this.#step(transaction, text, parameters) };
    let result: T;
    try {
      result = await work(within);
    } catch (error) {
      this.#end(transaction);
      throw error;
    }
    await this.#commit(transaction);
    return result;
  }

  #step<R extends Row>(transaction: Transaction, text: string, parameters: readonly Parameter[]): Promise<readonly R[]> {
    const statement = statementOf(text);
    const { link } = transaction;
    const { promise, resolve, reject } = Promise.withResolvers<readonly R[]>();
    const answer = this.#answerer(link, resolve, reject);
    const isBroken = () => {
      if (link.isAlive() && !link.isAway() && !transaction.isOver) return false;
      this.#end(transaction);
      answer.lost();
      return true;
    };
    this.#options.scheduler.after(link.latencyMs(), () => {
      if (isBroken()) return;
      if (statement.kind !== 'step') throw new Error(`the statement is not meant for a transaction: ${text}`);
      const execution = this.#execution(text, parameters);
      this.#withLocks(transaction, statement.locks?.(execution) ?? [], () => {
        if (isBroken()) return;
        const { rows, locked = [], apply } = statement.run(execution);
        for (const key of locked) this.#lock(transaction, key);
        transaction.executed.push({ text, parameters, rows });
        if (apply !== undefined) {
          transaction.xid ??= this.tables.beginXid();
          transaction.changes.push(apply);
        }
        answer.rows(rows);
      });
    });
    return promise;
  }

  #commit(transaction: Transaction): Promise<void> {
    const { link } = transaction;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const answer = this.#answerer(link, () => resolve(), reject);
    this.#options.scheduler.after(link.latencyMs(), () => {
      if (transaction.isOver || link.isAway() || link.fails()) {
        this.#end(transaction);
        answer.lost();
        return;
      }
      const { xid } = transaction;
      if (xid !== undefined) for (const change of transaction.changes) change(xid);
      this.#options.onExecuted?.(transaction.executed);
      this.#end(transaction);
      this.#committed();
      if (link.losesAnswer()) answer.lost();
      else answer.rows([]);
    });
    return promise;
  }

  #lock(transaction: Transaction, key: string): void {
    this.#locked.set(key, transaction);
    transaction.locks.push(key);
  }

  /** Runs `run` once the transaction has the locks; at once if they are free. */
  #withLocks(transaction: Transaction, keys: readonly string[], run: () => void): void {
    if (transaction.isOver) return;
    const isFree = (key: string) => {
      const holder = this.#locked.get(key);
      return holder === undefined || holder === transaction;
    };
    if (!keys.every(isFree)) {
      this.#waiting.push({ keys, transaction, run });
      return;
    }
    for (const key of keys) this.#lock(transaction, key);
    run();
  }

  /** The transaction is over: its locks are free, and those that wait for them go on. */
  #end(transaction: Transaction): void {
    if (transaction.isOver) return;
    transaction.isOver = true;
    this.#open.delete(transaction);
    if (transaction.xid !== undefined) this.tables.endXid(transaction.xid);
    for (const key of transaction.locks) if (this.#locked.get(key) === transaction) this.#locked.delete(key);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { transaction: other, keys, run } of waiting) this.#withLocks(other, keys, run);
  }

  #committed(): void {
    this.#options.onCommit();
  }

  #notify(): void {
    for (const { link, notified } of this.#listeners)
      if (link.isAlive() && !link.isAway())
        this.#options.scheduler.after(link.latencyMs(), () =>
          link.pass(() => {
            if (link.isAlive()) notified();
          }),
        );
  }

  /**
   * A process is gone: its open transactions are rolled back, and what it has begun is finished before its successor.
   */
  disconnected(link: DatabaseLink): void {
    for (const transaction of this.#open) if (transaction.link === link) this.#end(transaction);
    for (const working of [...this.#working]) if (working.link === link) working.finish();
  }
}
