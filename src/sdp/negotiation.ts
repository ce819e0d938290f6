/**
 * Offer and answer for one telephone call (RFC 3264): one audio stream, G.711, G.722 or Opus, with telephone-event. It
 * keeps our last description, so that the version of `o=` rises exactly when the description changes (RFC 3264 §8).
 */

import { detached } from '../bounds/detached.ts';
import {
  type AudioCodec,
  agreedFormats,
  codecOf,
  eventsOf,
  type Formats,
  formatLines,
  type NumberedCodec,
  type NumberedEvents,
  offeredFormats,
  othersOf,
  ownNumbers,
  payloadTypes,
} from './codec.ts';
import { type Addresses, type Description, type Direction, type Media, parseDescription } from './description.ts';
import { PTIME_MS } from './packet-time.ts';
import { KeyExchange, type OwnKey, type SrtpKeys, type SrtpTerms } from './sdes.ts';

export type { AudioCodec };

/** The part of a refused stream's format list that we repeat. Any one format would do (RFC 3264 §6). */
const REFUSED_FORMATS_MAX_CHARS = 64;

/** The audio that both sides agreed on. */
export interface AudioAgreement {
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly remoteRtcpPort: number;
  readonly codec: AudioCodec;
  readonly payloadType: number;
  /** Further codecs that the far end may change to at any time: those that its answer names too (RFC 3264 §5.1). */
  readonly others?: readonly NumberedCodec[];
  readonly telephoneEventPayloadType: number | undefined;
  readonly telephoneEventClockHz?: number | undefined;
  /** The numbers of our offer, where the answer has others: the far end may send by either. */
  readonly ownPayloadType?: number | undefined;
  readonly ownEventPayloadType?: number | undefined;
  readonly ptimeMs: number;
  /** The bits a second that the far end takes of the codec on average, at most (RFC 7587 §7.1). */
  readonly maxBitrate?: number | undefined;
  readonly send: boolean;
  readonly receive: boolean;
  /** The far end put us on hold: its direction is not sendrecv, or its address is 0.0.0.0 (contract §2, Hold). */
  readonly held: boolean;
  /** We hold the far end. It may hold us as well. */
  readonly isHolding: boolean;
  /** The keys that encrypt the audio. Undefined when it is in clear. */
  readonly srtp: SrtpKeys | undefined;
}

/** A description that is refused. 400 means that it is no session description, 488 that it has no audio we can do. */
export interface Refused {
  readonly refused: 400 | 488;
  readonly why: string;
}

export const isRefused = (value: object): value is Refused => 'refused' in value;

interface NegotiationOptions {
  /** Our address and RTP port as the far end shall see them. */
  readonly host: string;
  readonly port: number;
  /**
   * Our address for a far end whose audio is there, of its IP version. Undefined where our ports do not speak that, and
   * left out where they speak that of `host` only.
   */
  hostTowards?(remote: string): string | undefined;
  /** The codecs that we take, in our order of preference. */
  readonly codecs: readonly AudioCodec[];
  /** The session id of `o=`. It is unique among our sessions. */
  readonly sessionId: number;
  /** The last description of the session by another node. Undefined: there was none. */
  readonly before?: Omit<Described, 'sessionId'> | undefined;
  /** Whether audio is encrypted. Undefined: never. */
  readonly srtp?: SrtpTerms;
  /** The key that another node has sent with. Absent: there was none, or it is not known. */
  readonly ownKey?: OwnKey | undefined;
  /**
   * Whether a first offer of ours also permits an answer in clear: RTP/AVP with keys (RFC 8643) in place of RTP/SAVP.
   */
  readonly isOpportunistic?: boolean;
}

/** Our last description, as another node needs it to go on with the session. It is plain data. */
export interface Described {
  readonly sessionId: number;
  readonly version: number;
  /** Every m-line, and the numbers that our answers agreed to. Absent where a node of an older release described it. */
  readonly slots?: readonly Slot[];
  readonly agreed?: Formats;
  /** Whether the audio is encrypted. Absent where it is not agreed on, and where it is in clear by an older release. */
  readonly isEncrypted?: boolean | undefined;
}

/** One m-line: our audio stream with its transport protocol, or the line of a stream that is refused. */
type Slot = { readonly protocol: string } | { readonly refused: string };

/** The stream of a description that we take. */
interface Chosen {
  readonly media: Media;
  readonly agreement: AudioAgreement;
  readonly direction: Direction;
  /** Our line that answers its keys. `""` when it is in clear. */
  readonly crypto: string;
  readonly events: readonly NumberedEvents[];
}

const encoder = new TextEncoder();

export class Negotiation {
  readonly #options: NegotiationOptions;
  #version: number;
  /** Our address in the descriptions to come: of the IP version of the far end's last one (RFC 6157 §5.1). */
  #host: string;
  #described = '';
  /** Whether we hold the far end: we send to it and take nothing from it. */
  #holding = false;
  /** Whether our last offer held it. Its answer is one to that, whatever was wanted since. */
  #offeredHold = false;
  /** Whether the far end holds us, by its last description. */
  #held = false;
  /**
   * The m-lines of the last description of either side, ours among them: a later offer repeats them all (RFC 3264 §8).
   */
  #slots: readonly Slot[];
  readonly #keys: KeyExchange | undefined;
  /** The numbers that our answers agreed to, which our offers keep. */
  #agreed: Formats;
  /** The numbers of our last offer. */
  #offered: Formats | undefined;
  /** Whether the audio that was agreed on is encrypted. Undefined until then. */
  #isEncrypted: boolean | undefined;

  constructor(options: NegotiationOptions) {
    this.#options = options;
    const { srtp, isOpportunistic = false, before, ownKey } = options;
    this.#version = before?.version ?? 0;
    this.#agreed = before?.agreed ?? { codecs: [], events: [] };
    this.#host = options.host;
    this.#keys = srtp === undefined ? undefined : new KeyExchange(srtp, ownKey);
    if (before !== undefined && isOnTermsOf(before, srtp)) this.#isEncrypted = before.isEncrypted ?? false;
    const isClear = srtp === undefined || isOpportunistic || this.#isEncrypted === false;
    const first = { protocol: isClear ? 'RTP/AVP' : 'RTP/SAVP' };
    const isKept = this.#isEncrypted !== undefined;
    this.#slots = before?.slots?.map((slot) => (isKept || 'refused' in slot ? slot : first)) ?? [first];
  }

  /** Our last description. */
  get described(): Described {
    const { sessionId } = this.#options;
    const isEncrypted = this.#isEncrypted;
    return { sessionId, version: this.#version, slots: this.#slots, agreed: this.#agreed, isEncrypted };
  }

  /** The key that we send with. Undefined while the audio is in clear, or not agreed on. */
  get ownKey(): OwnKey | undefined {
    return this.#isEncrypted === true ? this.#keys?.inUse : undefined;
  }

  /** Our offer after another node has described the session once: its version is higher than that one's. */
  offerAgain(): Uint8Array {
    this.#version++;
    this.#described = '';
    return this.offer();
  }

  /** Holds the far end, or no longer, from our next description on (RFC 3264 §8.4). */
  hold(on: boolean): void {
    this.#holding = on;
  }

  /**
   * Our offer: every codec of ours, telephone-event, sendrecv. Streams that were refused before stay refused, in their
   * places.
   */
  offer(): Uint8Array {
    const { codecs: formats, events } = offeredFormats(this.#options.codecs, this.#agreed);
    this.#offered = { codecs: formats, events };
    this.#offeredHold = this.#holding;
    const crypto = this.#isEncrypted === false ? '' : (this.#keys?.offer() ?? '');
    const lines = this.#slots.map((slot) =>
      'refused' in slot
        ? slot.refused
        : this.#audio(slot.protocol, formats, events, this.#holding ? 'sendonly' : 'sendrecv') + crypto,
    );
    return this.#describe(lines);
  }

  /** Reads the answer to our offer. */
  acceptAnswer(body: Uint8Array, addresses?: Addresses): AudioAgreement | Refused {
    const answer = parseDescription(body, addresses);
    if (answer === undefined) return { refused: 400, why: 'not a session description' };
    const agreed = this.#choose(answer, 'answer');
    if (agreed === undefined) return { refused: 488, why: 'no usable audio in the answer' };
    const { protocol } = agreed.media;
    this.#slots = this.#slots.map((slot) => ('refused' in slot ? slot : { protocol: detached(protocol) }));
    return agreed.agreement;
  }

  /** Answers an offer: the first audio stream we can do is taken, every other one refused with port 0 (§6). */
  answer(body: Uint8Array, addresses?: Addresses): { readonly body: Uint8Array; readonly agreement: AudioAgreement } | Refused {
    const offer = parseDescription(body, addresses);
    if (offer === undefined) return { refused: 400, why: 'not a session description' };
    const chosen = this.#choose(offer, 'offer');
    if (chosen === undefined) return { refused: 488, why: 'no audio stream and codec in common' };
    const { media, agreement, direction, crypto, events } = chosen;
    this.#slots = offer.media.map((each) =>
      each === media ? { protocol: detached(each.protocol) } : { refused: detached(refusal(each)) },
    );
    const formats = [agreement];
    this.#agreed = agreedFormats(
      { codecs: [{ payloadType: agreement.payloadType, codec: agreement.codec }], events },
      this.#agreed,
    );
    const lines = this.#slots.map((slot) =>
      'refused' in slot ? slot.refused : this.#audio(slot.protocol, formats, events, answerTo(direction, this.#holding)) + crypto,
    );
    return { body: this.#describe(lines), agreement };
  }

  #choose(description: Description, role: 'offer' | 'answer'): Chosen | undefined {
    for (const media of description.media) {
      if (media.type !== 'audio' || media.port === 0 || media.host === '') continue;
      const { codecs } = this.#options;
      const format = media.formats.find((each) => codecOf(each, codecs) !== undefined);
      const codec = format && codecOf(format, codecs);
      if (format === undefined || codec === undefined) continue;
      const nowhere = media.host === '0.0.0.0' || media.host === '::';
      // Nothing that we send reaches an address of an IP version that our ports do not speak.
      const host = nowhere || isOneVersion(media.host, this.#host) ? this.#host : this.#options.hostTowards?.(media.host);
      if (host === undefined) continue;
      // RFC 3264 §8.4: the old way to hold is an address to which nothing can be sent.
      const direction: Direction = nowhere && media.direction === 'sendrecv' ? 'sendonly' : media.direction;
      const silenced = nowhere || direction === 'sendonly' || direction === 'inactive';
      const encryption = this.#encryption(media, role);
      if (encryption === undefined) continue;
      const events = eventsOf(media.formats, codec);
      const offered = this.#offered ?? offeredFormats(codecs, this.#agreed);
      const others = role === 'answer' ? othersOf(media.formats, offered.codecs, codec) : [];
      const agreement: AudioAgreement = {
        remoteHost: detached(media.host),
        remotePort: media.port,
        remoteRtcpPort: media.rtcpPort ?? Math.min(media.port + 1, 65_535),
        codec,
        payloadType: format.payloadType,
        ...(others.length === 0 ? {} : { others }),
        telephoneEventPayloadType: events?.payloadType,
        ...(events === undefined || events.clockHz === 8000 ? {} : { telephoneEventClockHz: events.clockHz }),
        ...(role === 'answer' ? ownNumbers(offered, { payloadType: format.payloadType, codec }, events) : {}),
        ptimeMs: media.ptimeMs,
        ...(format.maxBitrate === undefined ? {} : { maxBitrate: format.maxBitrate }),
        send: !silenced,
        receive: !silenced && direction !== 'recvonly' && !this.#holding,
        // While we hold the far end, its recvonly is the answer to that and no hold of its own.
        held: silenced || (direction === 'recvonly' && this.#isTheirHold(role)),
        isHolding: this.#holding,
        srtp: encryption.keys,
      };
      this.#isEncrypted = encryption.keys !== undefined;
      if (!this.#isEncrypted) this.#keys?.renew();
      this.#held = agreement.held;
      this.#host = host;
      return { media, agreement, direction, crypto: encryption.line, events: events === undefined ? [] : [events] };
    }
    return undefined;
  }

  /**
   * Whether recvonly says that the far end holds us. While we hold it, that is all it can answer: it holds us as before
   * (RFC 3264 §6.1). In an offer of its own it takes a hold of before back.
   */
  #isTheirHold(role: 'offer' | 'answer'): boolean {
    return role === 'answer' ? !this.#offeredHold || this.#held : !this.#holding;
  }

  /**
   * The keys of a stream, none when it is in clear, and our line that answers its offer. Undefined when the stream
   * cannot be taken: its protocol is another, it must be encrypted and is not, or its keys are none that we can use.
   */
  #encryption(
    media: Media,
    role: 'offer' | 'answer',
  ): { readonly keys: SrtpKeys | undefined; readonly line: string } | undefined {
    // AVPF without its feedback is AVP (RFC 4585 §3), SAVPF is SAVP (RFC 5124 §3).
    const isPlain = media.protocol === 'RTP/AVP' || media.protocol === 'RTP/AVPF';
    if (!isPlain && media.protocol !== 'RTP/SAVP' && media.protocol !== 'RTP/SAVPF') return undefined;
    if (role === 'offer') {
      const answered = this.#keys?.answer(media.crypto);
      if (answered !== undefined) return answered;
    } else {
      const keys = this.#isEncrypted === false ? undefined : this.#keys?.accept(media.crypto);
      if (keys !== undefined) return { keys, line: '' };
    }
    return isPlain && this.#options.srtp?.mode !== 'required' ? { keys: undefined, line: '' } : undefined;
  }

  #audio(protocol: string, formats: readonly NumberedCodec[], events: readonly NumberedEvents[], direction: Direction): string {
    const line = `m=audio ${this.#options.port} ${protocol} ${payloadTypes(formats, events)}\r\n`;
    return `${line}${formatLines(formats, events)}a=ptime:${PTIME_MS}\r\na=${direction}\r\n`;
  }

  #describe(lines: readonly string[]): Uint8Array {
    const { sessionId } = this.#options;
    const host = this.#host;
    const family = host.includes(':') ? 'IP6' : 'IP4';
    const rest = `s=-\r\nc=IN ${family} ${host}\r\nt=0 0\r\n${lines.join('')}`;
    if (rest !== this.#described) {
      this.#version++;
      // In one piece: the engine would keep all the parts that it was put together of.
      this.#described = detached(rest);
    }
    return encoder.encode(`v=0\r\no=- ${sessionId} ${this.#version} IN ${family} ${host}\r\n${rest}`);
  }
}

/** Whether audio as another node has described it is within the terms of the trunk as they are now. */
const isOnTermsOf = ({ isEncrypted = false }: Pick<Described, 'isEncrypted'>, srtp: SrtpTerms | undefined): boolean =>
  isEncrypted ? srtp !== undefined : srtp?.mode !== 'required';

/**
 * The agreement where the far end sends another of the codecs in its answer: so do we then. Undefined where that
 * payload type is none of them.
 */
export function followed(agreement: AudioAgreement, payloadType: number): AudioAgreement | undefined {
  const { others = [], codec } = agreement;
  const other = others.find((each) => each.payloadType === payloadType);
  if (other === undefined) return undefined;
  const before = { payloadType: agreement.payloadType, codec };
  return { ...agreement, ...other, ownPayloadType: undefined, others: [before, ...others.filter((each) => each !== other)] };
}

/** The line that refuses a stream. It has a format in any case (RFC 8866 §5.14). */
const refusal = ({ type, protocol, formatText }: Media): string =>
  `m=${type} 0 ${protocol} ${formatText.slice(0, REFUSED_FORMATS_MAX_CHARS) || '0'}\r\n`;

const isOneVersion = (one: string, other: string): boolean => one.includes(':') === other.includes(':');

/** The direction that answers theirs (RFC 3264 §6.1). */
function answerTo(direction: Direction, holding: boolean): Direction {
  const open: Direction = direction === 'sendonly' ? 'recvonly' : direction === 'recvonly' ? 'sendonly' : direction;
  if (!holding) return open;
  return open === 'sendrecv' ? 'sendonly' : open === 'recvonly' ? 'inactive' : open;
}
