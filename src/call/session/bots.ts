/**
 * The bots of this node: WebSocket Sessions of `sidetone.v1` or Twilio's messages. A bot hears of the others in its
 * Room and of the phone Session that it works for, and orders them as the application does over HTTP: through the same
 * machines, buckets and refusals, without credentials of its own (docs/api.md).
 */
import type { Clock } from '../../clock.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import { newUuid } from '../../id.ts';
import { DTMF_SEND_DEFAULT_MS, TRANSFER_TIMEOUT_DEFAULT_SEC } from '../../limits.ts';
import type { SessionState } from '../../machine/session/session.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { COMMAND_RETRY_SEC } from '../mailbox.ts';
import type { BotOrder, RoomNews } from '../ports/leg.ts';
import type { RoomMember } from '../ports/room-peers.ts';
import type { Answer, CommandContext, SessionCommand } from '../ports/sessions.ts';
import { SENT_DIGITS, targetOf } from '../ports/target.ts';
import type { BucketName } from '../rate/buckets.ts';
import { bucketOf, type TokenBuckets } from '../rate/token-buckets.ts';
import type { CallsElsewhere } from './transfers.ts';

/** A live Session as bots see it. */
interface Reachable {
  readonly state: Pick<SessionState, 'appUuid' | 'membership'>;
  hear(news: RoomNews): void;
}

interface BotsOptions {
  readonly clock: Clock;
  readonly tokens: TokenBuckets;
  find(sessionUuid: string): Reachable | undefined;
  /** The Sessions that have joined a Room. */
  joined(roomId: string): readonly string[];
  /** Returns the members of the Room that a bot is in, on whatever node. Undefined: that node does not answer now. */
  members(roomId: string, sessionUuid: string): Promise<readonly RoomMember[] | undefined>;
  command(sessionUuid: string, command: SessionCommand, context: CommandContext): Promise<Answer | Problem>;
  /** Has the node of a Session obey. Undefined where all Sessions are here. */
  readonly elsewhere: CallsElsewhere['order'] | undefined;
}

interface Bot {
  readonly appUuid: string;
  readonly traceparent: string;
  readonly phoneSessionUuid: string | undefined;
}

/** Whom an order is about, or why about nobody. */
type Target = { readonly whom: string; readonly reason?: undefined } | { readonly whom?: undefined; readonly reason: string };

const DATABASE_AWAY = 'the database is away';
const NOBODY = 'no phone Session to mean: name a member of your Room by session_uuid';
const STRANGER = 'no such Session in your Room';
const OWN_PHONE = `${STRANGER}; leave session_uuid out to mean your phone Session`;

const BUCKET: Readonly<Record<BotOrder['type'], BucketName>> = {
  hangup: 'hangup',
  transfer: 'transfer',
  send_dtmf: 'dtmf_send',
};

export class Bots {
  readonly #options: BotsOptions;
  readonly #bots = new Map<string, Bot>();
  /** The bots that work for a phone Session. */
  readonly #of = new Map<string, Set<string>>();

  constructor(options: BotsOptions) {
    this.#options = options;
  }

  add(sessionUuid: string, bot: Bot): void {
    this.#bots.set(sessionUuid, bot);
    if (bot.phoneSessionUuid === undefined) return;
    const others = this.#of.get(bot.phoneSessionUuid);
    if (others === undefined) this.#of.set(bot.phoneSessionUuid, new Set([sessionUuid]));
    else others.add(sessionUuid);
  }

  /** A Session has ended, a bot's or not. */
  forget(sessionUuid: string): void {
    const phone = this.#bots.get(sessionUuid)?.phoneSessionUuid ?? '';
    this.#bots.delete(sessionUuid);
    const others = this.#of.get(phone);
    others?.delete(sessionUuid);
    if (others?.size === 0) this.#of.delete(phone);
  }

  /** Tells the bots in the Room and the bots of the Session itself, each once. */
  tell(sessionUuid: string, roomId: string | undefined, news: RoomNews): void {
    if (this.#bots.size === 0) return;
    const hearers = new Set(roomId === undefined ? [] : this.#options.joined(roomId));
    if (news.type === 'dtmf') for (const bot of this.#of.get(sessionUuid) ?? []) hearers.add(bot);
    hearers.delete(sessionUuid);
    for (const hearer of hearers) if (this.#bots.has(hearer)) this.#options.find(hearer)?.hear(news);
  }

  /** Obeys a bot. Resolves with the reason where the order is refused. */
  async order(sessionUuid: string, order: BotOrder): Promise<string | undefined> {
    const bot = this.#bots.get(sessionUuid);
    if (bot === undefined) return 'the Session has ended';
    const { whom, reason } = await this.#target(sessionUuid, bot, order.sessionUuid);
    if (whom === undefined) return reason;
    const { appUuid, traceparent } = bot;
    const { find, elsewhere } = this.#options;
    return find(whom) === undefined && elsewhere !== undefined
      ? await elsewhere(appUuid, whom, order, traceparent).catch(refusedIfAway)
      : await this.obey(appUuid, whom, order, traceparent);
  }

  /**
   * Carries out an order about a Session of this node, before `until` if at all. Resolves with the reason where it is
   * refused.
   */
  async obey(
    appUuid: string,
    whom: string,
    order: BotOrder,
    traceparent: string,
    until = Number.POSITIVE_INFINITY,
  ): Promise<string | undefined> {
    const target = this.#options.find(whom);
    if (target !== undefined && target.state.appUuid !== appUuid) return 'the Session has ended';
    const command = commandOf(order);
    if (typeof command === 'string') return command;
    const { tokens, clock } = this.#options;
    const context = { appUuid, traceparent, operationUuid: newUuid(), idempotencyKey: undefined, until };
    const work = () => this.#options.command(whom, command, context);
    const result = await tokens.spend(bucketOf(BUCKET[order.type], whom), clock.now(), work).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) return problems.unavailable(DATABASE_AWAY, COMMAND_RETRY_SEC);
      throw error;
    });
    if (!isProblem(result)) return undefined;
    return result.problem === 'rate_limited' ? `too many of them, wait ${result.retryAfterSec} s` : result.message;
  }

  /** The Session it names, which must be in its Room; else its phone Session; else the Room's only one. */
  async #target(sessionUuid: string, bot: Bot, named: string | undefined): Promise<Target> {
    const membership = this.#options.find(sessionUuid)?.state.membership;
    const phone = bot.phoneSessionUuid;
    if (named === undefined && phone !== undefined) return { whom: phone };
    const members = membership?.phase === 'joined' ? await this.#options.members(membership.roomId, sessionUuid) : [];
    if (members === undefined) return { reason: 'the node of the Room does not answer now: try again' };
    const [meant, ...more] = members.filter((member) => (named === undefined ? !member.isBot : member.sessionUuid === named));
    if (meant !== undefined && more.length === 0) return { whom: meant.sessionUuid };
    if (named === undefined) return { reason: NOBODY };
    return { reason: named === phone ? OWN_PHONE : STRANGER };
  }
}

/** The database does not tell whose call an order is about. */
function refusedIfAway(error: unknown): string {
  if (error instanceof StoreUnavailable) return DATABASE_AWAY;
  throw error;
}

/** The command of an order, or what is wrong with it. */
function commandOf(order: BotOrder): SessionCommand | string {
  switch (order.type) {
    case 'hangup':
      return { type: 'hangup' };
    case 'send_dtmf': {
      const { digits } = order;
      if (!SENT_DIGITS.test(digits)) return 'digits must be some of 0-9, A-D, *, #, w, W';
      return { type: 'send_digits', digits, durationMs: DTMF_SEND_DEFAULT_MS, gapMs: DTMF_SEND_DEFAULT_MS };
    }
    case 'transfer': {
      const target = targetOf(order.to);
      if (target === undefined) return 'to must be an E.164 number or a sip: URI';
      return { type: 'transfer', target, timeoutMs: TRANSFER_TIMEOUT_DEFAULT_SEC * 1000 };
    }
  }
}
