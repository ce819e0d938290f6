/**
 * The mailbox of one actor: a Session's or a Room's. Inputs are taken one at a time, in the order in which they came,
 * and the actor sleeps until its next deadline in between.
 *
 *   signal, ask → waiting → take (step → commit → perform) → next, or sleep
 *
 * When the database is away, a command is refused (503). Whether it was stored all the same may not be known then, so
 * the actor takes nothing more before the database has told: what is stored counts, and takes effect. A signal is a
 * fact: its step is kept and tried again until it is stored. Commands are refused at once meanwhile. A bug in a turn is
 * logged with a `support_id` and makes the actor take the input `broken`; a bug in that closes the mailbox.
 */
import { type Clock, sleep } from '../clock.ts';
import type { Change, Journal } from '../database/journal/journal.ts';
import { stackOf } from '../error-facts.ts';
import { newUuid } from '../id.ts';
import { MAILBOX_CROWDED_INPUTS, MAILBOX_MAX_INPUTS, STATEMENT_MAX_MS } from '../limits.ts';
import type { Log, LogFields } from '../log.ts';
import type { Playlist } from '../media/engine.ts';
import { type Problem, problems } from '../problem.ts';
import type { Answer, CommandContext } from './ports/sessions.ts';
import { untilStored } from './until-stored.ts';

/** The Retry-After of a command that could not be taken: the database is away, or too much waits. */
export const COMMAND_RETRY_SEC = 2;

/** One input, and who waits for its answer. */
export interface Envelope<Input> {
  readonly input: Input;
  readonly context: CommandContext | undefined;
  readonly answer: Answer | undefined;
  readonly playlist: Playlist | undefined;
  /** Takes the answer. It is undefined for a signal, whose answer nobody waits for. */
  readonly reply: ((answer: Answer | Problem) => void) | undefined;
}

/**
 * What became of a change. `late`: it is stored, and its sender was told that it could not be. `gone`: it is stored,
 * and the object became another process's meanwhile, so that nothing of it is to be performed here. `refused`: nothing
 * of it is stored. `elsewhere`: the object had been ended by another process, and nothing of it is stored.
 * `room_moved`: the Room that a Session enters is another node's by now, and nothing of it is stored.
 */
type Committed = 'stored' | 'late' | 'gone' | 'refused' | 'elsewhere' | 'room_moved';

/** The context, answer and audio that a command brings beside itself. */
export interface Enclosed {
  readonly context: CommandContext | undefined;
  readonly answer: Answer | undefined;
  readonly playlist?: Playlist | undefined;
}

export interface MailboxOptions<Input> {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /** Names the actor in the log, and in the 503 of a command that cannot be taken: `Session`, `Room`. */
  readonly owner: string;
  readonly logged: LogFields;
  /** Takes one input: its step, its commit and its effects. */
  take(envelope: Envelope<Input>): Promise<void>;
  /**
   * Asks for a turn of the event loop to take an input in. Undefined: it may be taken at once. Where `isGone`, nothing
   * waits for the turn any more.
   */
  turn?(isGone: () => boolean): Promise<void> | undefined;
  /** An input is not taken any more, because the mailbox is closed or was emptied. */
  dropped(input: Input): void;
  /** The time of the next deadline, in milliseconds since the epoch. */
  nextDeadline(): number | undefined;
  readonly deadline: Input;
  readonly broken: Input;
  /** A bug came up while `broken` was taken: the actor gives up what it holds. The mailbox is closed. */
  brokenAgain(): void;
}

export class Mailbox<Input extends { readonly type: string }> {
  readonly #options: MailboxOptions<Input>;
  readonly #waiting: Envelope<Input>[] = [];
  readonly #drained: (() => void)[] = [];
  #busy = false;
  #stalled = false;
  #closed = false;
  #cancelTimer = () => {};

  constructor(options: MailboxOptions<Input>) {
    this.#options = options;
  }

  /** Posts a fact. It is never lost while the actor lives; one too many ends the actor as broken. */
  signal(input: Input): void {
    const { log, logged, owner, dropped, broken } = this.#options;
    if (this.#closed) {
      dropped(input);
      return;
    }
    if (this.#waiting.length < MAILBOX_MAX_INPUTS) {
      this.#post(fact(input));
      return;
    }
    log.error(logged, `the mailbox of a ${owner} is full: it is ended`);
    this.#waiting.push(fact(input));
    this.#empty(this.#unable());
    this.#post(fact(broken));
  }

  /** Posts a fact that is taken next, before anything that waits. */
  signalNext(input: Input): void {
    if (this.#closed) this.#options.dropped(input);
    else this.#waiting.unshift(fact(input));
  }

  /** Takes back the facts that wait and are void by now. */
  withdraw(isVoid: (input: Input) => boolean): void {
    const waiting = this.#waiting.splice(0);
    this.#waiting.push(...waiting.filter(({ input, reply }) => reply !== undefined || !isVoid(input)));
  }

  /** Takes back the last fact that waits and is so, where very many wait. False: none is so, or there is room. */
  takeBack(isSo: (input: Input) => boolean): boolean {
    if (this.#waiting.length < MAILBOX_CROWDED_INPUTS) return false;
    const at = this.#waiting.findLastIndex(({ input, reply }) => reply === undefined && isSo(input));
    return at >= 0 && this.#waiting.splice(at, 1).length > 0;
  }

  /** Posts a command. Resolves with its answer, or why it was refused; then its playlist is released. */
  ask(input: Input, { context, answer, playlist }: Enclosed): Promise<Answer | Problem> {
    const { promise, resolve } = Promise.withResolvers<Answer | Problem>();
    const envelope = { input, context, answer, playlist, reply: resolve };
    if (this.#closed) refuse(envelope, this.#gone());
    else if (this.#stalled || this.#waiting.length >= MAILBOX_MAX_INPUTS) refuse(envelope, this.#unable());
    else this.#post(envelope);
    return promise;
  }

  /** Tells whether nothing is being taken and nothing waits. */
  get isIdle(): boolean {
    return !this.#busy && this.#waiting.length === 0;
  }

  /** Resolves when all that waits now has been taken. */
  drained(): Promise<void> {
    if (!this.#busy) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  /** Commits the change of an envelope. A command whose change cannot be committed is answered by a 503. */
  async commit(change: Change, envelope: Envelope<Input>): Promise<Committed> {
    const { journal, clock } = this.#options;
    const isCommand = envelope.reply !== undefined;
    const stored = await untilStored(
      clock,
      () => journal.commit(change),
      () => {
        this.#stalled = true;
        this.#refuseCommands();
        return !isCommand;
      },
    );
    const told = typeof stored === 'string' ? stored : stored ? 'stored' : 'elsewhere';
    const committed = stored === undefined ? await this.#settle(change, envelope) : told;
    this.#stalled = false;
    if (!this.#closed || (committed !== 'stored' && committed !== 'late')) return committed;
    envelope.reply?.(envelope.answer ?? { status: 202, body: {} });
    envelope.playlist?.release();
    return 'gone';
  }

  /** Finds out what became of a command whose commit failed. Its sender does not wait for a database that is away. */
  async #settle(change: Change, envelope: Envelope<Input>): Promise<Committed> {
    const { journal, clock } = this.#options;
    const overAt = clock.now() + STATEMENT_MAX_MS;
    // A statement that is still under way has locked the row, and the look has waited for it.
    const hasRow = change.session !== undefined || change.room !== undefined;
    const first = await untilStored<boolean>(
      clock,
      () => journal.wasStored(change),
      () => false,
    );
    if (first === true) return 'stored';
    if (first === false && hasRow) {
      refuse(envelope, this.#unable());
      return 'refused';
    }
    envelope.reply?.({ ...this.#unable(), isInDoubt: true });
    const look = () => untilStored(clock, () => journal.wasStored(change));
    if (first === undefined && (await look())) return 'late';
    // A statement that was under way and has no row is over by then.
    if (!hasRow && clock.now() < overAt) await sleep(clock, overAt - clock.now());
    if (!hasRow && (await look())) return 'late';
    envelope.playlist?.release();
    return 'refused';
  }

  /** Takes nothing more. Commands that wait are answered as 404. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer();
    this.#empty(this.#gone());
  }

  #post(envelope: Envelope<Input>): void {
    this.#waiting.push(envelope);
    if (!this.#busy) void this.#run();
  }

  async #run(): Promise<void> {
    this.#busy = true;
    this.#cancelTimer();
    while (this.#waiting.length > 0) {
      const turn = this.#options.turn?.(() => this.#waiting.length === 0);
      if (turn !== undefined) await turn;
      const next = this.#waiting.shift();
      if (next === undefined) break;
      if ((next.context?.until ?? Infinity) <= this.#options.clock.now()) {
        refuse(next, this.#unable());
        this.#options.dropped(next.input);
        continue;
      }
      try {
        await this.#options.take(next);
      } catch (error) {
        this.#break(next, error);
      }
    }
    this.#busy = false;
    for (const resolve of this.#drained.splice(0)) resolve();
    if (!this.#closed) this.#sleep();
  }

  /** A bug in this actor ends this actor, and nothing else. */
  #break(envelope: Envelope<Input>, error: unknown): void {
    const { input } = envelope;
    const { log, logged, owner, broken, brokenAgain } = this.#options;
    log.error({ ...logged, support_id: newUuid(), reason: stackOf(error) }, `a bug ended a ${owner}`);
    refuse(envelope, this.#unable());
    if (input.type === broken.type) {
      brokenAgain();
      this.close();
      return;
    }
    this.#empty(this.#unable());
    if (!this.#closed) this.#waiting.push(fact(broken));
  }

  /** Facts wait for the database, people do not. */
  #refuseCommands(): void {
    const all = this.#waiting.splice(0);
    this.#waiting.push(...all.filter(({ reply }) => reply === undefined));
    for (const each of all) if (each.reply !== undefined) refuse(each, this.#unable());
  }

  #empty(why: Problem): void {
    for (const each of this.#waiting.splice(0)) {
      refuse(each, why);
      this.#options.dropped(each.input);
    }
  }

  #sleep(): void {
    const { clock, deadline, nextDeadline } = this.#options;
    const at = nextDeadline();
    if (at !== undefined) this.#cancelTimer = clock.at(at, () => this.signal(deadline));
  }

  #unable(): Problem {
    return problems.unavailable(`The ${this.#options.owner} could not take the command; try again.`, COMMAND_RETRY_SEC);
  }

  #gone(): Problem {
    return problems.notFound(this.#options.owner);
  }
}

/** Answers a command that changes nothing, and gives its playlist back. */
export function refuse<Input>({ reply, playlist }: Envelope<Input>, why: Problem): void {
  reply?.(why);
  playlist?.release();
}

const fact = <Input>(input: Input): Envelope<Input> => ({
  input,
  context: undefined,
  answer: undefined,
  playlist: undefined,
  reply: undefined,
});
