/**
 * The SIP requests that were refused lately, so that an operator sees why a trunk stays silent, and what to do about
 * it.
 */
import { detached } from '../bounds/detached.ts';
import type { Refusal } from '../call/ports/trunks.ts';
import { SIP_REFUSAL_ROWS_MAX, SIP_REFUSAL_URI_MAX_CHARS } from '../limits.ts';
import type { Peer } from '../sip/flow.ts';
import type { SipRequest } from '../sip/message/message.ts';
import { parseNameAddress } from '../sip/message/uri.ts';
import { withoutPasswords } from '../sip/redaction.ts';

export type Why = Pick<Refusal, 'reason' | 'remedy'>;

export class Refusals {
  /** The rows by what makes them one, the one refused longest ago first. */
  readonly #rows = new Map<string, Refusal>();
  readonly #onRefused: (request: SipRequest, source: Peer) => void;

  /** `onRefused` is told each of them. */
  constructor(onRefused: (request: SipRequest, source: Peer) => void = () => {}) {
    this.#onRefused = onRefused;
  }

  /** `device` is the user name of the device that it was about, where it was about one: each has rows of its own. */
  record(request: SipRequest, source: Peer, status: number, why: Why, now: number, device = ''): void {
    this.#note(request, source, status, why, now, device);
    this.#onRefused(request, source);
  }

  /** Records a refusal of someone who has proved who it is, which leads to no ban. */
  ofKnown(request: SipRequest, source: Peer, status: number, why: Why, now: number, device: string): void {
    this.#note(request, source, status, why, now, device);
  }

  /** Records that a source is banned, with the request that was one too many. */
  banned(request: SipRequest, source: Peer, sec: number, now: number): void {
    this.#note(request, source, 0, bannedFor(sec, source.host), now, '');
  }

  #note(request: SipRequest, source: Peer, status: number, why: Why, now: number, device: string): void {
    const method = detached(request.method.slice(0, 32));
    const key = `${source.host} ${source.transport} ${method} ${status} ${why.reason} ${device}`;
    const before = this.#rows.get(key);
    this.#rows.delete(key);
    this.#rows.set(key, {
      at: now,
      firstAt: before?.firstAt ?? now,
      count: (before?.count ?? 0) + 1,
      source: source.host,
      transport: source.transport,
      method,
      from: uriOf(request, 'from'),
      to: uriOf(request, 'to'),
      status,
      ...why,
    });
    if (this.#rows.size <= SIP_REFUSAL_ROWS_MAX) return;
    const [oldest] = this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
  }

  /** The rows, the latest first. */
  list(): readonly Refusal[] {
    return [...this.#rows.values()].reverse();
  }
}

function uriOf(request: SipRequest, name: 'from' | 'to'): string {
  const value = request.headers.get(name) ?? '';
  const uri = withoutPasswords(parseNameAddress(value)?.uri ?? value).slice(0, SIP_REFUSAL_URI_MAX_CHARS);
  return detached(uri.replace(/[\x00-\x1f\x7f]/g, ' '));
}

/** The range that has this address alone. */
const cidrOf = (host: string): string => `${host}${host.includes(':') ? '/128' : '/32'}`;

const bannedFor = (sec: number, host: string): Why => ({
  reason: `Too many of its requests were refused: the source is not listened to for ${sec} s`,
  remedy: `If it is your carrier's, add ${cidrOf(host)} to inbound_cidrs of its trunk; SIP_BAN_AFTER=0 switches bans off`,
});

/** Why a request of an unknown source is refused. */
export const unknownSource = (host: string): Why => ({
  reason: 'The source address is in no trunk',
  remedy: `If it is your carrier's, add ${cidrOf(host)} to inbound_cidrs of its trunk`,
});

export const notAssigned = (number: string): Why => ({
  reason: 'The called number is not assigned to an application',
  remedy: `Assign it with PUT /operator/v1/numbers/${number}`,
});

export const NO_NUMBER: Why = {
  reason: 'The called user is no E.164 number',
  remedy: 'Set country_code and inbound_format of the trunk to the form that the carrier sends',
};

export const LOOKUP_FAILED: Why = {
  reason: 'The called number could not be looked up',
  remedy: 'See that the database is up (GET /readyz)',
};

export const NO_CHANNEL: Why = {
  reason: 'Every channel of the trunk, or every RTP port, is in use',
  remedy: 'Raise max_channels of the trunk, or widen RTP_PORTS',
};

export const NO_PORT: Why = { reason: 'Every RTP port is in use', remedy: 'Widen RTP_PORTS' };

export const TOO_BUSY: Why = {
  reason: 'Calls came faster over the connection than this node works on them',
  remedy: 'Send fewer calls a second to this node, give it more of a processor, or add a node',
};

export const NO_ROOM: Why = {
  reason: 'The application has as many live Sessions as it may, or the node as many as it takes',
  remedy: 'Wait until calls have ended, raise APP_SESSIONS_MAX, or add a node',
};

export const NOT_TAKEN: Why = {
  reason: 'The call could not be stored, or the platform is being stopped or drained',
  remedy: 'See that the database is up (GET /readyz), and that this node is in use (sidetone nodes list)',
};

export const NO_COMMON_AUDIO: Why = {
  reason: 'The offer has no audio stream and codec in common with the trunk',
  remedy:
    'Add a codec of the offer to codecs of the trunk (PCMU, PCMA, G722, opus), and see that it offers RTP/AVP to an address of our IP version',
};

export const NO_AUDIO_OF_DEVICE: Why = {
  reason: 'The offer of the device has no audio stream and codec that we take',
  remedy: 'Switch PCMU, PCMA or G722 on at the telephone, and see that it offers RTP/AVP to an address of our IP version',
};

export const ENCRYPTED_OF_DEVICE: Why = {
  reason: 'The device offers encrypted audio only (RTP/SAVP), and calls without TLS',
  remedy: 'Let the telephone register over TLS, or switch SRTP off there',
};

export const ENCRYPTED: Why = {
  reason: 'The offer has encrypted audio only (RTP/SAVP), and it came over a trunk or a transport that takes none',
  remedy: 'Set srtp of the trunk to optional or required, and let the carrier send over TLS (or set srtp_without_tls)',
};

export const NOT_ENCRYPTED: Why = {
  reason: 'The trunk requires encrypted audio, and the offer has no key (a=crypto) that can be used',
  remedy: 'Switch SRTP with keys in SDP (SDES) on at the carrier, or set srtp of the trunk to optional',
};

export const NO_SRTP: Why = {
  reason: 'The trunk requires encrypted audio, and this build has no SRTP, or the call came without TLS',
  remedy: 'Let the carrier send over TLS (or set srtp_without_tls); for SRTP install libsrtp2-dev and start again',
};

export const BROKEN_OFFER: Why = {
  reason: 'The body is no session description',
  remedy: 'Ask the carrier for a valid session description (RFC 8866)',
};

export const MALFORMED: Why = { reason: 'The request is malformed', remedy: 'Ask the sender for requests as in RFC 3261' };

const BY_USER_AGENT: ReadonlyMap<number, Why> = new Map([
  [
    415,
    {
      reason: 'The body, or its encoding, is none that we read',
      remedy: 'Ask the carrier to send application/sdp, alone or in multipart/mixed',
    },
  ],
  [416, { reason: 'The Request-URI is no sip, sips or tel URI', remedy: 'Ask the carrier for a SIP URI' }],
  [
    420,
    {
      reason: 'The INVITE requires an extension that we do not speak',
      remedy: 'Switch it off for this trunk at the carrier; we speak 100rel and timer',
    },
  ],
  [
    422,
    { reason: 'The session interval is below 90 s', remedy: 'Nothing: the carrier tries again with a longer one (RFC 4028)' },
  ],
  [482, { reason: 'The same INVITE came over another path', remedy: 'Look for a proxy that forks to this platform twice' }],
  [483, { reason: 'Max-Forwards is used up', remedy: 'Look for a loop between the proxies on the way' }],
  [
    503,
    {
      reason: 'The node is being drained or stopped, or has as many calls as it takes',
      remedy: 'Send calls to another node, or wait until it takes calls again',
    },
  ],
]);

/** Why the user agent refuses an INVITE with a status before it is a call. */
export const refusedBy = (status: number): Why => BY_USER_AGENT.get(status) ?? MALFORMED;
