/**
 * Hands queued messages to the gateway and what comes back to their rows. The queue is the database: what waits is not
 * in memory, and a process that dies loses nothing that was not with the gateway at that moment. Applications take
 * turns, so that a campaign of one does not hold up the codes that another sends.
 */
import type { Clock } from '../../clock.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import type { MessageQuery, MessageStore } from '../../database/messages.ts';
import type { MayReach } from '../../destinations.ts';
import { newUuid } from '../../id.ts';
import { MESSAGE_LONE_POLL_MS, MESSAGE_POLL_MS, STORE_LAST_OUTCOME_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { SmsGateway, SmsListener, Submitted } from '../../machine/message/gateway.ts';
import {
  claim,
  interrupted,
  type MessageState,
  outwaited,
  PUT_OFF_MAX_MS,
  QUEUED_MAX_MS,
  submitted,
  unclaimed,
} from '../../machine/message/message.ts';
import { segment } from '../../machine/message/segments.ts';
import { type Problem, problems } from '../../problem.ts';
import type { MessageRequest, Messages } from '../ports/messages.ts';
import type { Answer, CommandContext } from '../ports/sessions.ts';
import { storedAnswer } from '../step-change.ts';
import { untilStored } from '../until-stored.ts';
import type { IncomingMessages } from './incoming-messages.ts';
import { Receipts } from './receipts.ts';

const QUEUE_RETRY_SEC = 30;
/**
 * The interval, in milliseconds, at which messages are looked for whose outcome neither a gateway nor a process has
 * told, and those that have waited for too long.
 */
const HELD_EVERY_MS = 30_000;
/** A fault that is no outage is looked at once more after this. */
const FAULT_PAUSE_MS = 1_000;
/** What is due, and was not taken although the gateway has room, is asked for again after this, in milliseconds. */
const DUE_PAUSE_MS = 1_000;

export interface DispatcherOptions {
  readonly store: MessageStore;
  /** The gateway; undefined when messages are off (`SMS_PROVIDER=off`). */
  readonly gateway: SmsGateway | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Messages from telephones go there. */
  readonly incoming: Pick<IncomingMessages, 'take' | 'giveUp'>;
  mayCallFrom(appUuid: string, from: string): Promise<boolean>;
  /** Tells which numbers the application may reach. */
  reachOf(appUuid: string): Promise<MayReach>;
  /** A message waits for the node of the cluster that submits. */
  onWaiting?(): void;
  /** Tells whether this is that node now. Absent where there is one process. */
  submits?(): boolean;
}

export class MessageDispatcher implements Messages {
  readonly #options: DispatcherOptions;
  readonly #receipts: Receipts;
  readonly #atGateway = new Set<Promise<void>>();
  /**
   * The messages that this process has with the gateway, by their attempt: the outcome of the one before may be stored
   * late.
   */
  readonly #held = new Map<string, number>();
  /** The application whose turn was last. */
  #turn = '';
  /** Messages that were stored under a clock that ran ahead are due by then, in ms since the epoch; else 0. */
  #dueAhead = 0;
  /** What the last look at once was for: one that finds the same again waits for the next. */
  #lookedAheadTo = 0;
  /** The messages of claims that the database did not answer, with the time that the claim wrote in `dueAt`. */
  readonly #doubted = new Map<string, number>();
  #pumping: Promise<void> | undefined;
  #again = false;
  #lookForHeldAt = 0;
  #started = false;
  /** When the stop was asked for, in ms since the epoch. */
  #closedAt: number | undefined;
  #cancelTimer: (() => void) | undefined;
  readonly #listener: SmsListener = {
    onReceipt: (receipt) => this.#receipts.take(receipt),
    onMessage: (part, link) => this.#options.incoming.take(part, link),
    onReady: () => this.#wake(),
  };

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { store, clock, log } = options;
    this.#receipts = new Receipts({ store, clock, log, isSubmitting: () => this.#held.size > 0 });
  }

  /** Ends what an earlier process left at a gateway, then begins to submit, at first or after `rest`. */
  async start(): Promise<void> {
    const { gateway } = this.#options;
    await this.#giveUpHeld(this.#options.store.shared ? this.#options.clock.now() : Number.MAX_SAFE_INTEGER);
    if (this.#isClosed) return;
    this.#started = true;
    gateway?.start(this.#listener);
    await this.#resumeReceipts();
    this.#wake();
  }

  /**
   * Leaves the submitting to another node: waits for what is with the gateway, as `close` does, and lets go of the
   * carrier, which may permit one bind.
   */
  async rest(): Promise<void> {
    if (!this.#started || this.#isClosed) return;
    this.#started = false;
    await this.#pumping;
    this.#cancelTimer?.();
    await Promise.all(this.#atGateway);
    await this.#options.gateway?.rest?.();
    if (this.#doubted.size > 0) void this.#giveBackAtRest();
  }

  /** Gives back what the next node would have to give up: the database that lost an answer may be away still. */
  async #giveBackAtRest(): Promise<void> {
    const { clock, log, onWaiting } = this.#options;
    const rests = () => !this.#started && !this.#isClosed;
    const given = untilStored(clock, async () => await this.#giveBack(), rests);
    await given.catch((error: unknown) => log.error({ reason: String(error) }, 'messages were not given back'));
    if (rests()) onWaiting?.();
  }

  /** Makes the receipts that are owed. Another node may owe them that is gone; one that comes twice changes nothing. */
  async #resumeReceipts(): Promise<void> {
    const own = this.#options.gateway?.ownReceipts;
    if (own !== undefined) own.resume(await this.#options.store.openParts(own.idPrefix));
  }

  get #isClosed(): boolean {
    return this.#closedAt !== undefined;
  }

  /** Another node took a message: it is looked for. */
  look(): void {
    this.#wake();
  }

  /** Messages with the gateway, for `/metrics`. */
  get submitting(): number {
    return this.#atGateway.size;
  }

  async send(request: MessageRequest, context: CommandContext): Promise<Answer | Problem> {
    const { store, gateway, clock } = this.#options;
    if (gateway === undefined) return problems.notConfigured('SMS');
    if (!(await this.#options.mayCallFrom(context.appUuid, request.from))) return problems.sender();
    if (!(await this.#options.reachOf(context.appUuid))(request.to)) return problems.destination();
    const now = clock.now();
    const { encoding, segments } = segment(request.text);
    const message: MessageState = {
      messageUuid: newUuid(),
      appUuid: context.appUuid,
      operationUuid: context.operationUuid,
      from: request.from,
      to: request.to,
      text: request.text,
      encoding,
      segments: segments.length,
      status: 'queued',
      errorCode: '',
      errorMessage: '',
      createdAt: now,
      updatedAt: now,
      sentAt: undefined,
      deliveredAt: undefined,
      parts: Array.from({ length: gateway.partsOf(segments.length) }, () => ({ smscId: '', delivered: false })),
      stage: 'waiting',
      dueAt: now,
      attempts: 0,
      traceparent: context.traceparent,
    };
    const body = { message_uuid: message.messageUuid, operation_uuid: context.operationUuid, status: 'queued' };
    const answer = { status: 202, body };
    const stored = await store.insert(message, storedAnswer(context, answer));
    if (!this.#started) this.#options.onWaiting?.();
    if (!stored) return problems.unavailable('Too many messages are waiting. See Retry-After header.', QUEUE_RETRY_SEC);
    this.#wake();
    return answer;
  }

  get(appUuid: string, messageUuid: string): Promise<MessageState | undefined> {
    return this.#options.store.get(appUuid, messageUuid);
  }

  async list(appUuid: string, query: MessageQuery): Promise<readonly MessageState[] | Problem> {
    const found = await this.#options.store.list(appUuid, query);
    return found === 'too_many' ? problems.tooManySessions() : found;
  }

  /** Submits nothing more, and waits for what is with the gateway: the gateway's own timeouts bound it. */
  async close(): Promise<void> {
    this.#closedAt = this.#options.clock.now();
    this.#cancelTimer?.();
    await this.#pumping;
    await this.#options.gateway?.close();
    await Promise.all(this.#atGateway);
  }

  #wake(): void {
    if (!this.#started || this.#isClosed) return;
    this.#again = true;
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined;
      if (this.#again) this.#wake();
    });
  }

  async #pump(): Promise<void> {
    const { store, gateway, clock, log } = this.#options;
    let sleepMs = store.shared ? MESSAGE_POLL_MS : MESSAGE_LONE_POLL_MS;
    let hasRoom = false;
    try {
      await this.#giveBack();
      while (this.#again && !this.#isClosed) {
        this.#again = false;
        if (this.#options.submits?.() === false) break;
        // With messages off, those that are left still end after their day, and texts without a segment are told.
        if (gateway === undefined) break;
        const free = gateway.window - this.#atGateway.size;
        if (free <= 0 || !gateway.ready()) break;
        const now = clock.now();
        const claimed = await this.#claim(now, free);
        for (const message of claimed) if (message.stage === 'submitting') this.#submit(gateway, message);
        if (claimed.length === free) this.#again = true;
        else hasRoom = true;
      }
      if (clock.now() >= this.#lookForHeldAt) {
        this.#lookForHeldAt = clock.now() + HELD_EVERY_MS;
        await this.#giveUpHeld(clock.now());
        await this.#giveUpLate(clock.now());
        await this.#resumeReceipts();
        await this.#options.incoming.giveUp();
        await this.#receipts.lookForEarly();
      }
      const due = await store.nextDue();
      this.#lookAhead(due, clock.now());
      if (due !== undefined && due > clock.now()) sleepMs = Math.min(sleepMs, due - clock.now());
      // A claim does not wait for a message that a receipt of another part has locked, and ends early where it is slow.
      else if (due !== undefined && hasRoom) sleepMs = Math.min(sleepMs, DUE_PAUSE_MS);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) log.error({ reason: String(error) }, 'messages could not be claimed');
      this.#again = false;
      sleepMs = FAULT_PAUSE_MS;
    }
    this.#cancelTimer?.();
    this.#cancelTimer = this.#isClosed ? undefined : clock.at(clock.now() + Math.max(1, sleepMs), () => this.#wake());
  }

  /**
   * A first message that is due later than any is put off was stored under another clock: that of a node which runs
   * ahead, or of this machine before it was set back. It is due now.
   */
  #lookAhead(due: number | undefined, now: number): void {
    this.#dueAhead = due !== undefined && due > now + PUT_OFF_MAX_MS ? due : 0;
    if (this.#dueAhead === 0 || this.#dueAhead === this.#lookedAheadTo) return;
    this.#lookedAheadTo = this.#dueAhead;
    this.#again = true;
  }

  async #claim(now: number, most: number): Promise<readonly MessageState[]> {
    const { store, clock } = this.#options;
    const until = Math.max(now, this.#dueAhead);
    // What the carrier puts off meanwhile waits for its time.
    this.#dueAhead = 0;
    const taken: MessageState[] = [];
    try {
      const claimed = await store.claim(until, most, this.#turn, (state) => {
        const step = claim(state, clock.now());
        taken.push(step.state);
        return step;
      });
      this.#turn = claimed.at(-1)?.appUuid ?? this.#turn;
      return claimed;
    } catch (error) {
      for (const { messageUuid, dueAt } of taken) this.#doubted.set(messageUuid, Math.floor(dueAt));
      throw error;
    }
  }

  /** Gives back what a claim took whose answer never came. The claim has locked its messages until it is over. */
  async #giveBack(): Promise<void> {
    const { store, clock } = this.#options;
    for (const [messageUuid, dueAt] of this.#doubted) {
      const now = clock.now();
      await store.change(messageUuid, now, (state) => unclaimed(state, dueAt, now));
      this.#doubted.delete(messageUuid);
      this.#again = true;
    }
  }

  #submit(gateway: SmsGateway, message: MessageState): void {
    const parts = message.parts.flatMap(({ smscId }, part) => (smscId === '' ? [part] : []));
    const { messageUuid, from, to, text, attempts } = message;
    this.#held.set(messageUuid, attempts);
    const work: Promise<void> = gateway
      .submit({ messageUuid, from, to, text, parts, total: message.parts.length })
      .then((outcomes) => this.#taken(message, outcomes))
      .catch((error: unknown) =>
        this.#options.log.error({ message_uuid: messageUuid, reason: String(error) }, 'a message was left'),
      )
      .finally(() => {
        this.#atGateway.delete(work);
        if (this.#held.get(messageUuid) === attempts) this.#held.delete(messageUuid);
        this.#wake();
      });
    this.#atGateway.add(work);
  }

  /** Stores what the gateway said. A receipt that is quicker than the database waits for that, or has to come again. */
  #taken(message: MessageState, outcomes: readonly Submitted[]): Promise<void> {
    const ids = outcomes.flatMap(({ outcome }) => (outcome.outcome === 'accepted' ? [outcome.smscId] : []));
    return this.#receipts.storing(ids, () => this.#settle(message, outcomes));
  }

  async #settle({ messageUuid, attempts }: MessageState, outcomes: readonly Submitted[]): Promise<void> {
    const { store, clock, log } = this.#options;
    const began = clock.now();
    const change = async (): Promise<true> => {
      const now = clock.now();
      await store.change(messageUuid, now, (state) => submitted(state, outcomes, attempts, now));
      return true;
    };
    // A database that is away does not hold up a stop: the outcome is told as unknown after the next start.
    const mayGoOn = () => this.#closedAt === undefined || clock.now() < Math.max(began, this.#closedAt) + STORE_LAST_OUTCOME_MS;
    if ((await untilStored(clock, change, mayGoOn)) === undefined)
      log.error({ message_uuid: messageUuid }, 'the database did not take the outcome of a message before the stop');
  }

  /** Ends what is held past its time, but for what this process has: its outcome may only wait for the database. */
  async #giveUpHeld(until: number): Promise<void> {
    const { store, clock } = this.#options;
    for (const messageUuid of await store.held(until)) {
      if (this.#held.has(messageUuid)) continue;
      const now = clock.now();
      await this.#giveUp(messageUuid, now, (state) => interrupted(state, now));
    }
  }

  /** Ends what has waited for a day, also while there is nobody to submit it to. */
  async #giveUpLate(now: number): Promise<void> {
    for (const messageUuid of await this.#options.store.waitingSince(now - QUEUED_MAX_MS))
      await this.#giveUp(messageUuid, now, (state) => outwaited(state, now));
  }

  /** Takes one of several through a step. One that the database refuses keeps no other from its own. */
  async #giveUp(...step: Parameters<MessageStore['change']>): Promise<void> {
    const { store, log } = this.#options;
    await store.change(...step).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) throw error;
      log.error(
        { message_uuid: step[0], reason: String(error) },
        'the end of a message is refused by the database: it is told later',
      );
    });
  }
}
