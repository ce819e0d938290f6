/**
 * Reads the part of a session description (RFC 8866) that telephone audio needs: sdp-transform parses it, then it is
 * checked.
 */
import { type ParsedConnection, type ParsedMedia, parse } from 'sdp-transform';
import { SDP_MAX_BYTES, SDP_MEDIA_MAX, SDP_PAYLOADS_MAX } from '../limits.ts';
import { packetTime } from './packet-time.ts';
import { type CryptoLine, cryptoLines } from './sdes.ts';

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

/** One format of an m-line. */
export interface Format {
  readonly payloadType: number;
  /** The encoding name in upper case. Static types of RFC 3551 need no rtpmap. `""` when unknown. */
  readonly name: string;
  readonly clockRate: number;
  readonly channels: number;
  /** The bits a second that are taken on average, at most (`maxaveragebitrate` of Opus, RFC 7587 §6.1). */
  readonly maxBitrate?: number;
}

export interface Media {
  readonly type: string;
  readonly port: number;
  readonly protocol: string;
  /** The fmt list as text, which a rejection repeats. `""` where there is none. */
  readonly formatText: string;
  readonly formats: readonly Format[];
  /** The IP address of `c=`. `""` when neither the media nor the session has a usable one. */
  readonly host: string;
  /** The name in `c=` in place of an address, which is to be resolved. `""` when there is none. */
  readonly hostName: string;
  readonly direction: Direction;
  /** The packet time that it is sent. */
  readonly ptimeMs: number;
  readonly rtcpPort: number | undefined;
  /** The keys that may encrypt it, in order of preference. */
  readonly crypto: readonly CryptoLine[];
}

export interface Description {
  readonly media: readonly Media[];
}

const STATIC: ReadonlyMap<number, readonly [name: string, clockRate: number]> = new Map([
  [0, ['PCMU', 8000]],
  [3, ['GSM', 8000]],
  [4, ['G723', 8000]],
  [8, ['PCMA', 8000]],
  [9, ['G722', 8000]],
  [13, ['CN', 8000]],
  [18, ['G729', 8000]],
]);

/** Opus goes no lower (RFC 7587 §6.1). */
const OPUS_BITRATE_MIN = 6000;

const decoder = new TextDecoder();

/** Addresses of the names in `c=` lines. A name without an entry has no usable address. */
export type Addresses = ReadonlyMap<string, string>;

const NO_ADDRESSES: Addresses = new Map();

/**
 * Descriptions by the body that they were read from, for as long as that is in use. An offer is asked for its names,
 * for its codecs and for an answer, up to five times before it is answered.
 */
const read = new WeakMap<Uint8Array, Description>();

/**
 * Reads a session description. Undefined when it is not one, which is answered 400. It never throws. A body must not
 * change after it was read.
 */
export function parseDescription(body: Uint8Array, addresses = NO_ADDRESSES): Description | undefined {
  // Addresses may be other ones the next time.
  if (addresses.size > 0) return readDescription(body, addresses);
  const known = read.get(body);
  if (known !== undefined) return known;
  const description = readDescription(body, addresses);
  if (description !== undefined) read.set(body, description);
  return description;
}

function readDescription(body: Uint8Array, addresses: Addresses): Description | undefined {
  if (body.length === 0 || body.length > SDP_MAX_BYTES) return undefined;
  // A number of ports after the port (RFC 8866 §5.14) is left out: an RTP session uses the first one.
  const text = decoder.decode(body).replace(/^(m=[a-z]{1,32} [0-9]{1,5})\/[0-9]{1,5} /gm, '$1 ');
  if (!text.startsWith('v=0')) return undefined;
  const parsed = readParsed(text);
  if (parsed === undefined || parsed.media.length === 0 || parsed.media.length > SDP_MEDIA_MAX) return undefined;
  const media: Media[] = [];
  // sdp-transform reads the first session parameter of a crypto line only.
  const sections = text.split(/(?:\r\n|\r|\n)(?=m=)/).slice(1);
  for (const [at, each] of parsed.media.entries()) {
    const checked = checkMedia(each, parsed.connection, directionOf(parsed.direction) ?? 'sendrecv', addresses);
    if (checked === undefined) return undefined;
    media.push({ ...checked, crypto: cryptoLines(sections[at] ?? '') });
  }
  return { media };
}

/** A session description as sdp-transform reads it. Undefined where it throws. */
export function readParsed(text: string) {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function checkMedia(
  parsed: ParsedMedia,
  session: ParsedConnection | undefined,
  fallback: Direction,
  addresses: Addresses,
): Omit<Media, 'crypto'> | undefined {
  // Some far ends write no format where they refuse a stream.
  const { type, port, protocol, payloads = '' } = parsed;
  if (typeof type !== 'string' || typeof protocol !== 'string' || typeof port !== 'number') return undefined;
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return undefined;
  const formatText = String(payloads).trim();
  const numbers = formatText.split(/\s+/).slice(0, SDP_PAYLOADS_MAX);
  return {
    type,
    port,
    protocol,
    formatText,
    formats: protocol.startsWith('RTP/') ? numbers.flatMap((number) => formatOf(number, parsed)) : [],
    host: hostOf(parsed.connection ?? session, addresses),
    hostName: nameOf(parsed.connection ?? session),
    direction: directionOf(parsed.direction) ?? fallback,
    ptimeMs: packetTime(parsed),
    rtcpPort:
      typeof parsed.rtcp?.port === 'number' && parsed.rtcp.port > 0 && parsed.rtcp.port < 65_536 ? parsed.rtcp.port : undefined,
  };
}

/** One format of a section, or none when it is not a payload type. */
export function formatOf(text: string, media: ParsedMedia): Format[] {
  if (!/^[0-9]{1,3}$/.test(text) || Number(text) > 127) return [];
  const payloadType = Number(text);
  const map = media.rtp.find((each) => each.payload === payloadType);
  if (map === undefined) {
    const fixed = STATIC.get(payloadType);
    return [{ payloadType, name: fixed?.[0] ?? '', clockRate: fixed?.[1] ?? 0, channels: 1 }];
  }
  const channels = map.encoding === undefined ? 1 : Number(map.encoding);
  const format = { payloadType, name: String(map.codec ?? '').toUpperCase(), clockRate: Number(map.rate ?? 0), channels };
  const maxBitrate = maxBitrateOf(media, payloadType);
  return [maxBitrate === undefined ? format : { ...format, maxBitrate }];
}

/** What a payload type takes by its parameters. Undefined where they say nothing, or less than Opus can do. */
function maxBitrateOf({ fmtp }: ParsedMedia, payloadType: number): number | undefined {
  const config = fmtp.find(({ payload }) => payload === payloadType)?.config;
  const [, bits] = /(?:^|;)\s*maxaveragebitrate\s*=\s*([0-9]{1,9})\s*(?:;|$)/i.exec(String(config ?? '')) ?? [];
  return Number(bits) >= OPUS_BITRATE_MIN ? Number(bits) : undefined;
}

/** The direction that an attribute names. */
export const directionOf = (text: unknown): Direction | undefined =>
  text === 'sendrecv' || text === 'sendonly' || text === 'recvonly' || text === 'inactive' ? text : undefined;

const IPV4 = /^(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])$/;
const IPV6 = /^[0-9A-Fa-f:.]{2,45}$/;

const NAME = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*\.?$/;

/** The name in a c= line (RFC 8866 §5.7). `""` when it has an address, or nothing usable. */
function nameOf(connection: ParsedConnection | undefined): string {
  const host = String(connection?.ip ?? '');
  return NAME.test(host) && /[A-Za-z]/.test(host) ? host : '';
}

/**
 * The address of a c= line (RFC 8866 §5.7). `""` for multicast, broadcast, and a name that `addresses` does not know.
 */
function hostOf(connection: ParsedConnection | undefined, addresses: Addresses): string {
  const name = nameOf(connection);
  const host = name === '' ? String(connection?.ip ?? '') : (addresses.get(name) ?? '');
  if (name !== '') return host;
  if (Number(connection?.version) === 6) return IPV6.test(host) && host.includes(':') && !/^ff/i.test(host) ? host : '';
  return IPV4.test(host) && Number(host.split('.', 1)[0]) < 224 ? host : '';
}
