/**
 * Puts the SIP messages of a call into its timeline. A message is found by its Call-ID. A call over the loopback trunk
 * has two Sessions with one Call-ID, which the tag of the caller tells apart.
 */
import { detached } from '../bounds/detached.ts';
import type { Clock } from '../clock.ts';
import { factText } from '../event/call-report.ts';
import {
  SIP_TRACE_EARLY_MAX_MESSAGES,
  SIP_TRACE_END_MAX_MESSAGES,
  SIP_TRACE_MAX_CHARS,
  SIP_TRACE_MAX_MESSAGES,
  SIP_TRACE_UNBOUND_MAX_CALLS,
  SIP_TRACE_UNBOUND_MS,
} from '../limits.ts';
import { type MessageFacts, messageFacts, plainText, redactor, type TraceLevel } from '../sip/redaction.ts';
import type { HistorySink } from './call-history.ts';
import type { SipEntry } from './entry.ts';

/** Which end of the dialog the Session is: the one that sent the first INVITE, or the one that received it. */
export type DialogSide = 'caller' | 'callee';

/** The far end of a message. */
interface TracedPeer {
  readonly transport: string;
  readonly host: string;
  readonly port: number;
}

interface Traced {
  readonly since: number;
  /** The From tag of the first INVITE. */
  callerTag: string;
  readonly sessions: Partial<Record<DialogSide, string>>;
  /** The messages that came before their Session was known. */
  early: { readonly side: DialogSide; readonly entry: SipEntry }[];
}

export interface SipTraceOptions {
  readonly history: HistorySink;
  readonly clock: Clock;
  readonly level: TraceLevel;
  /** Names of header fields that are never kept, in lower case. */
  readonly hidden: readonly string[];
}

export class SipTrace {
  readonly #options: SipTraceOptions;
  readonly #redacted: ReturnType<typeof redactor>;
  /** Calls of Sessions, by Call-ID as events tell it. */
  readonly #calls = new Map<string, Traced>();
  /** Calls that came in and are not known to be a Session's yet, oldest first. */
  readonly #unbound = new Map<string, Traced>();
  readonly #callIds = new Map<string, string[]>();
  /** How many messages were kept of each Session, whatever number of calls it made (forks, further trunks). */
  readonly #counts = new Map<string, number>();

  constructor(options: SipTraceOptions) {
    this.#options = options;
    this.#redacted = redactor(options.level, options.hidden, SIP_TRACE_MAX_CHARS);
  }

  /** A message was received or is sent. */
  message(direction: 'in' | 'out', bytes: Uint8Array, peer: TracedPeer): void {
    if (this.#options.level === 'off') return;
    const text = plainText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'));
    const read = messageFacts(text);
    if (read === undefined) return;
    // The rest of a message that is kept in part is not to stay in memory with that part.
    const own = text.length > SIP_TRACE_MAX_CHARS ? detached : (part: string) => part;
    const facts = { ...read, callId: own(factText(read.callId)), fromTag: own(read.fromTag) };
    const call = this.#calls.get(facts.callId) ?? this.#unbound.get(facts.callId) ?? this.#opened(facts);
    if (call === undefined) return;
    if (call.callerTag === '' && facts.isRequest) call.callerTag = detached(facts.fromTag);
    const side = sideOf(call, direction, facts);
    const session = call.sessions[side];
    if (session === undefined ? call.early.length >= SIP_TRACE_EARLY_MAX_MESSAGES : this.#isFull(session, facts)) return;
    const entry: SipEntry = {
      kind: 'sip',
      direction,
      transport: peer.transport,
      peer: peer.host.includes(':') ? `[${peer.host}]:${peer.port}` : `${peer.host}:${peer.port}`,
      first_line: own(facts.firstLine.slice(0, SIP_TRACE_MAX_CHARS)),
      call_id: facts.callId.slice(0, SIP_TRACE_MAX_CHARS),
      cseq: own(facts.cseq.slice(0, SIP_TRACE_MAX_CHARS)),
      text: own(this.#redacted(text, facts.cseq)),
    };
    if (session === undefined) call.early.push({ side, entry });
    else this.#keep(session, entry);
  }

  /**
   * Whether a message of the Session has no place. That of a BYE has one beyond the others: the session of a call of
   * hours is refreshed so often that its end would not be in its trace.
   */
  #isFull(sessionUuid: string, { cseq }: Pick<SipEntry, 'cseq'>): boolean {
    const most = SIP_TRACE_MAX_MESSAGES + (/\bBYE$/i.test(cseq) ? SIP_TRACE_END_MAX_MESSAGES : 0);
    return (this.#counts.get(sessionUuid) ?? 0) >= most;
  }

  #keep(sessionUuid: string, entry: SipEntry): void {
    if (this.#isFull(sessionUuid, entry)) return;
    this.#counts.set(sessionUuid, (this.#counts.get(sessionUuid) ?? 0) + 1);
    this.#options.history.add(sessionUuid, entry);
  }

  /** The call with that Call-ID, whole or as events tell it, belongs to the Session. What came before is added now. */
  bind(callId: string, sessionUuid: string, side: DialogSide): void {
    if (this.#options.level === 'off') return;
    const key = factText(callId);
    const call = this.#calls.get(key) ?? this.#unbound.get(key) ?? this.#begun('');
    this.#unbound.delete(key);
    this.#calls.set(key, call);
    call.sessions[side] = sessionUuid;
    this.#callIds.set(sessionUuid, [...(this.#callIds.get(sessionUuid) ?? []), key]);
    for (const early of call.early) if (early.side === side) this.#keep(sessionUuid, early.entry);
    call.early = call.early.filter((early) => early.side !== side);
  }

  /** The Session is over, and its last messages have been seen. */
  forget(sessionUuid: string): void {
    for (const callId of this.#callIds.get(sessionUuid) ?? []) {
      const call = this.#calls.get(callId);
      if (call === undefined) continue;
      for (const side of ['caller', 'callee'] as const) if (call.sessions[side] === sessionUuid) delete call.sessions[side];
      if (call.sessions.caller === undefined && call.sessions.callee === undefined) this.#calls.delete(callId);
    }
    this.#callIds.delete(sessionUuid);
    this.#counts.delete(sessionUuid);
  }

  /** Calls whose messages are looked for. */
  get size(): number {
    return this.#calls.size + this.#unbound.size;
  }

  /** Begins with an INVITE of a new call. Other messages without a Session are of no call: OPTIONS, REGISTER. */
  #opened(facts: MessageFacts): Traced | undefined {
    if (!facts.isRequest || !facts.firstLine.startsWith('INVITE ')) return undefined;
    const call = this.#begun(facts.fromTag);
    for (const [callId, { since }] of this.#unbound) {
      if (this.#unbound.size < SIP_TRACE_UNBOUND_MAX_CALLS && call.since - since <= SIP_TRACE_UNBOUND_MS) break;
      this.#unbound.delete(callId);
    }
    this.#unbound.set(facts.callId, call);
    return call;
  }

  #begun(callerTag: string): Traced {
    const since = this.#options.clock.now();
    return { since, callerTag, sessions: {}, early: [] };
  }
}

/**
 * The end of the dialog that we are for this message. A request has the tag of its sender in From, and so has the
 * response to it (RFC 3261 §8.2.6.2).
 */
function sideOf({ callerTag }: Traced, direction: 'in' | 'out', { fromTag, isRequest }: MessageFacts): DialogSide {
  const isRequestOfCaller = fromTag === callerTag;
  const isSentByRequester = isRequest === (direction === 'out');
  return isRequestOfCaller === isSentByRequester ? 'caller' : 'callee';
}
