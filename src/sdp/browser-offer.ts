/**
 * The offer of a browser (JSEP, RFC 8829; WHIP, RFC 9725) and our answer: one audio stream over ICE and DTLS-SRTP, with
 * RTCP on the same port. We are ICE-lite (RFC 8445 §2.5) and the server of the handshake. Whatever else is offered
 * (video, a data channel, a second audio stream) is refused with port 0, or taken as inactive where the audio is
 * bundled into it. Header extensions, REMB and transport-cc are passed over.
 */
import type { ParsedMedia, parse } from 'sdp-transform';
import { detached } from '../bounds/detached.ts';
import { SDP_MAX_BYTES, SDP_MEDIA_MAX, SDP_PAYLOADS_MAX } from '../limits.ts';
import { type AudioCodec, codecOf, eventsOf, formatLines, type NumberedEvents, payloadTypes } from './codec.ts';
import { type Direction, directionOf, type Format, formatOf, readParsed } from './description.ts';
import {
  candidateLines,
  type Fingerprint,
  fingerprintOf,
  type HostCandidate,
  type IceCredentials,
  iceCredentials,
} from './ice.ts';
import type { AudioAgreement, Refused } from './negotiation.ts';
import { PTIME_MS, packetTime } from './packet-time.ts';

interface Section {
  readonly type: string;
  readonly protocol: string;
  readonly formats: string;
  readonly mid: string;
}

/** What an offer asks for, as far as we can do it. */
export interface BrowserOffer {
  /** The sections of the offer, in order; the answer has the same ones. */
  readonly sections: readonly Section[];
  /** The place of the audio stream among them. */
  readonly audio: number;
  /** Whether the offer bundles the audio stream, alone or with others (RFC 9143). */
  readonly isBundled: boolean;
  /** The section that the audio stream is bundled into, where that is another one. */
  readonly carrier: Carrier | undefined;
  readonly direction: Direction;
  readonly codec: AudioCodec;
  readonly payloadType: number;
  readonly events: NumberedEvents | undefined;
  readonly ptimeMs: number;
  /** The bits a second that the browser takes of the codec on average, at most. */
  readonly maxBitrate: number | undefined;
  readonly ice: IceCredentials;
  readonly fingerprint: Fingerprint;
}

/**
 * The first section of a BUNDLE group has the transport of all (the offerer-tagged section, RFC 9143 §7.2). A browser
 * that gathers for it alone (`max-bundle`) cannot be moved to another one, so it is taken, as inactive.
 */
interface Carrier {
  /** The place of the section. */
  readonly at: number;
  /** The one format that it is answered with, and the attributes of that. */
  readonly format: string;
  readonly lines: string;
}

/** Our side of the answer. */
export interface BrowserAnswer {
  readonly ice: IceCredentials;
  /** The SHA-256 of our certificate as SDP writes it. */
  readonly fingerprint: string;
  readonly candidates: readonly HostCandidate[];
  /** The source that we send as. */
  readonly ssrc: number;
  readonly sessionId: number;
  readonly version: number;
}

const PROTOCOL = /^(UDP|TCP)\/TLS\/RTP\/SAVPF?$/;
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,64}$/;
/** An attribute that is repeated in our answer. */
const ATTRIBUTE = /^a=[\x20-\x7e]{1,500}$/;
const decoder = new TextDecoder();

const refused = (status: Refused['refused'], why: string): Refused => ({ refused: status, why });

/** Reads an offer. It never throws. `codecs` are those that we can do; the browser's order decides. */
export function readBrowserOffer(body: Uint8Array, codecs: readonly AudioCodec[]): BrowserOffer | Refused {
  if (body.length === 0 || body.length > SDP_MAX_BYTES) return refused(400, `an SDP offer of 1 to ${SDP_MAX_BYTES} bytes`);
  const text = decoder.decode(body);
  const parsed = text.startsWith('v=0') ? readParsed(text) : undefined;
  if (parsed === undefined || parsed.media.length === 0) return refused(400, 'an SDP offer with a media section');
  if (parsed.media.length > SDP_MEDIA_MAX) return refused(400, `an SDP offer of at most ${SDP_MEDIA_MAX} media sections`);
  if (parsed.icelite !== undefined) return refused(488, 'an offer of a full ICE agent, because we are ICE-lite');
  // The sections are kept for as long as the call, and the rest of the offer is not.
  const sections = parsed.media.map(({ type, protocol, payloads, mid }) => ({
    type: detached(String(type ?? '')),
    protocol: detached(String(protocol ?? '')),
    formats: detached(String(payloads ?? '').trim()),
    mid: detached(String(mid ?? '')),
  }));
  if (!sections.every(isWellFormed)) return refused(400, 'an SDP offer with well-formed media sections');
  const fingerprints = fingerprintsOf(text);
  const taggedOf = taggedSections(parsed);
  let why = 'an offer with an audio stream';
  for (const [at, media] of parsed.media.entries()) {
    const tagged = media.mid === undefined ? undefined : taggedOf.get(String(media.mid));
    // RFC 9143 §6: port 0 with a=bundle-only is no refusal.
    const isOpen = media.port !== 0 || (media.bundleOnly !== undefined && tagged !== undefined);
    if (media.type !== 'audio' || !isOpen) continue;
    // Audio that has a port of its own may be moved out of the transport of a data channel, which is refused then.
    const isCarried = tagged !== undefined && (media.port === 0 || PROTOCOL.test(String(tagged.protocol)));
    const shared = isCarried ? tagged : media;
    const stream = readStream(media, shared, parsed, fingerprints, codecs);
    if (typeof stream !== 'string') {
      const carrier = shared === media ? undefined : carrierOf(shared, parsed);
      return { ...stream, sections, audio: at, isBundled: tagged !== undefined, carrier };
    }
    why = stream;
  }
  return refused(488, why);
}

/** Formats of a section are repeated in our answer, so they are tokens and nothing else. */
const isWellFormed = ({ type, protocol, formats, mid }: Section): boolean =>
  /^[a-z]{1,32}$/.test(type) &&
  protocol.split('/').every((part) => TOKEN.test(part)) &&
  formats.split(' ').every((format) => TOKEN.test(format)) &&
  (mid === '' || TOKEN.test(mid));

/**
 * All fingerprints of the session, and then of each section, in order; undefined for one that we cannot check.
 * sdp-transform keeps the last one alone.
 */
function fingerprintsOf(text: string): (Fingerprint | undefined)[][] {
  const parts: (Fingerprint | undefined)[][] = [[]];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line.startsWith('m=')) parts.push([]);
    const [, hash, value] = /^a=fingerprint:(\S+) +(\S+)/.exec(line) ?? [];
    if (hash !== undefined) parts.at(-1)?.push(fingerprintOf(hash, value));
  }
  return parts;
}

/**
 * The section with the transport of each BUNDLE group, the first one that is open, by the names of those that are in
 * the group. Each name is looked at once: an offer may repeat thousands of them.
 */
function taggedSections({ groups, media }: ReturnType<typeof parse>): ReadonlyMap<string, ParsedMedia | undefined> {
  const byName = new Map(media.toReversed().map((each) => [String(each.mid ?? ''), each]));
  const tagged = new Map<string, ParsedMedia | undefined>();
  for (const { type, mids } of groups ?? []) {
    if (type !== 'BUNDLE') continue;
    const names = String(mids).split(' ');
    const sections = names.flatMap((name) => byName.get(name) ?? []);
    const open = sections.find(({ port }) => port !== 0);
    for (const name of names) if (!tagged.has(name)) tagged.set(name, open);
  }
  return tagged;
}

function carrierOf(tagged: ParsedMedia, { media }: ReturnType<typeof parse>): Carrier {
  const at = media.indexOf(tagged);
  const format = detached(
    String(tagged.payloads ?? '')
      .trim()
      .split(' ', 1)
      .join(''),
  );
  const port = Number(tagged.sctpPort);
  if (Number.isInteger(port)) return { at, format, lines: `a=sctp-port:${port}\r\n` };
  const lines = [
    ...tagged.rtp.flatMap(({ payload, codec, rate, encoding }) =>
      String(payload) === format ? [`a=rtpmap:${format} ${codec}/${rate}${encoding === undefined ? '' : `/${encoding}`}`] : [],
    ),
    ...tagged.fmtp.flatMap(({ payload, config }) => (String(payload) === format ? [`a=fmtp:${format} ${config}`] : [])),
  ];
  return { at, format, lines: detached(lines.flatMap((line) => (ATTRIBUTE.test(line) ? [`${line}\r\n`] : [])).join('')) };
}

/** The stream of an audio section whose transport is that of `tagged`, which may be itself; or what it lacks. */
function readStream(
  media: ParsedMedia,
  tagged: ParsedMedia,
  session: ReturnType<typeof parse>,
  fingerprints: ReturnType<typeof fingerprintsOf>,
  codecs: readonly AudioCodec[],
): Omit<BrowserOffer, 'sections' | 'audio' | 'isBundled' | 'carrier'> | string {
  if (!PROTOCOL.test(String(media.protocol))) return 'audio over UDP/TLS/RTP/SAVPF';
  if ((media.rtcpMux ?? tagged.rtcpMux) === undefined) return 'a=rtcp-mux, because there is one port';
  const [ufrag, password] = [tagged.iceUfrag ?? media.iceUfrag, tagged.icePwd ?? media.icePwd];
  const ice = iceCredentials(ufrag ?? session.iceUfrag, password ?? session.icePwd);
  if (ice === undefined) return 'a=ice-ufrag and a=ice-pwd';
  const [ofTagged, ofOwn] = [tagged, media].map((each) => fingerprints[session.media.indexOf(each) + 1] ?? []);
  const given = [ofTagged, ofOwn, fingerprints[0]].find((each) => each !== undefined && each.length > 0) ?? [];
  // RFC 8122 §5: each is of the same certificate, or of one that may be shown as well.
  const fingerprint = given.find((each) => each !== undefined);
  if (fingerprint === undefined) return 'a=fingerprint of SHA-256, SHA-384 or SHA-512';
  const setup = tagged.setup ?? media.setup ?? session.setup ?? 'actpass';
  if (setup !== 'actpass' && setup !== 'active') return 'a=setup:actpass or active, because we are passive';
  const numbers = String(media.payloads ?? '').split(/\s+/, SDP_PAYLOADS_MAX);
  const formats = numbers.flatMap((number) => formatOf(number, media));
  const chosen = firstCodec(formats, codecs);
  if (chosen === undefined) return `one of the codecs ${codecs.join(', ')}`;
  const { codec, format } = chosen;
  return {
    direction: directionOf(media.direction) ?? directionOf(session.direction) ?? 'sendrecv',
    codec,
    payloadType: format.payloadType,
    events: eventsOf(formats, codec),
    ptimeMs: packetTime(media),
    maxBitrate: format.maxBitrate,
    ice,
    fingerprint,
  };
}

/** The first format of the offer that we can do. */
function firstCodec(
  formats: readonly Format[],
  codecs: readonly AudioCodec[],
): { readonly format: Format; readonly codec: AudioCodec } | undefined {
  for (const format of formats) {
    const codec = codecOf(format, codecs);
    if (codec !== undefined) return { format, codec };
  }
  return undefined;
}

/**
 * The direction that answers theirs (RFC 3264 §6.1). Our hold is not told: no offer of ours could take it back, and the
 * browser would stay silent. What it says meanwhile is dropped at our side.
 */
const answerTo = (direction: Direction): Direction =>
  direction === 'sendonly' ? 'recvonly' : direction === 'recvonly' ? 'sendonly' : direction;

/** Our answer, in text. */
export function browserAnswer(offer: BrowserOffer, own: BrowserAnswer): string {
  const [first] = own.candidates;
  const mids = [offer.carrier?.at ?? [], offer.audio].flat().map((at) => offer.sections[at]?.mid ?? '');
  const bundle = offer.isBundled ? `a=group:BUNDLE ${mids.join(' ')}\r\n` : '';
  const sections = offer.sections.map((section, at) => {
    if (at === offer.audio) return audioSection(offer, own);
    if (at === offer.carrier?.at) return carrierSection(section, offer.carrier, own);
    // RFC 8866 §5.7: each has an address, one that is refused too.
    return `m=${section.type} 0 ${section.protocol} ${section.formats}\r\nc=IN IP4 0.0.0.0\r\n${mid(section.mid)}`;
  });
  return (
    `v=0\r\no=- ${own.sessionId} ${own.version} IN ${family(first?.host ?? '')} ${first?.host ?? '127.0.0.1'}\r\ns=-\r\nt=0 0\r\n` +
    `a=ice-lite\r\n${bundle}${sections.join('')}`
  );
}

const family = (host: string): string => (host.includes(':') ? 'IP6' : 'IP4');
const mid = (name: string): string => (name === '' ? '' : `a=mid:${name}\r\n`);

/** The address at which we are reached, as each section that is taken has it. */
const connectionLine = ([first]: readonly HostCandidate[]): string =>
  `c=IN ${family(first?.host ?? '')} ${first?.host ?? '0.0.0.0'}\r\n`;

const transportLines = ({ ice, fingerprint }: BrowserAnswer): string =>
  `a=ice-ufrag:${ice.ufrag}\r\na=ice-pwd:${ice.password}\r\na=fingerprint:sha-256 ${fingerprint}\r\na=setup:passive\r\n`;

function carrierSection({ type, protocol, mid: name }: Section, { format, lines }: Carrier, own: BrowserAnswer): string {
  const [first] = own.candidates;
  const ofRtp = PROTOCOL.test(protocol) ? 'a=rtcp-mux\r\na=inactive\r\n' : '';
  return (
    `m=${type} ${first?.port ?? 9} ${protocol} ${format}\r\n${connectionLine(own.candidates)}${mid(name)}` +
    `${transportLines(own)}${ofRtp}${lines}${candidateLines(own.candidates)}a=end-of-candidates\r\n`
  );
}

function audioSection(offer: BrowserOffer, own: BrowserAnswer): string {
  const formats = [offer];
  const events = offer.events === undefined ? [] : [offer.events];
  const section = offer.sections[offer.audio];
  const [first] = own.candidates;
  return (
    `m=audio ${first?.port ?? 9} ${section?.protocol ?? 'UDP/TLS/RTP/SAVPF'} ${payloadTypes(formats, events)}\r\n` +
    `${connectionLine(own.candidates)}${mid(section?.mid ?? '')}${transportLines(own)}` +
    `a=rtcp-mux\r\na=${answerTo(offer.direction)}\r\na=msid:sidetone audio\r\n` +
    `${formatLines(formats, events)}a=ptime:${PTIME_MS}\r\na=ssrc:${own.ssrc} cname:sidetone\r\n${candidateLines(own.candidates)}a=end-of-candidates\r\n`
  );
}

/** What offer and answer agree on. Where media goes is ICE's affair, so the address is nobody's. */
export function browserAgreement(offer: BrowserOffer): AudioAgreement {
  const sends = offer.direction === 'sendrecv' || offer.direction === 'sendonly';
  const receives = offer.direction === 'sendrecv' || offer.direction === 'recvonly';
  return {
    remoteHost: '0.0.0.0',
    remotePort: 9,
    remoteRtcpPort: 9,
    codec: offer.codec,
    payloadType: offer.payloadType,
    telephoneEventPayloadType: offer.events?.payloadType,
    telephoneEventClockHz: offer.events?.clockHz,
    ptimeMs: offer.ptimeMs,
    maxBitrate: offer.maxBitrate,
    send: receives,
    receive: sends,
    held: false,
    isHolding: false,
    srtp: undefined,
  };
}

/** The ICE part of a `trickle-ice-sdpfrag` (RFC 8840 §9). */
export interface IceFragment {
  readonly ice: IceCredentials | undefined;
}

/** Reads a fragment. Undefined when it is none. Candidates are not read: a lite agent sends no checks. */
export function readIceFragment(body: Uint8Array): IceFragment | undefined {
  if (body.length === 0 || body.length > SDP_MAX_BYTES) return undefined;
  const lines = decoder.decode(body).split(/\r\n|\r|\n/);
  if (!lines.every((line) => line === '' || /^[am]=[\x20-\x7e]{1,1024}$/.test(line))) return undefined;
  const value = (name: string) => lines.find((line) => line.startsWith(`a=${name}:`))?.slice(name.length + 3);
  const [ufrag, password] = [value('ice-ufrag'), value('ice-pwd')];
  const ice = iceCredentials(ufrag, password);
  return (ufrag !== undefined || password !== undefined) && ice === undefined ? undefined : { ice };
}

/** The fragment that answers an ICE restart (RFC 9725 §4.3.3). */
export const iceFragment = (ice: IceCredentials, midName: string, candidates: readonly HostCandidate[]): string =>
  `a=ice-lite\r\na=ice-ufrag:${ice.ufrag}\r\na=ice-pwd:${ice.password}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n${mid(midName)}` +
  `${candidateLines(candidates)}a=end-of-candidates\r\n`;
