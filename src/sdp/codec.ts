/** The audio codecs as SDP names them: RFC 3551 table 4, and Opus (RFC 7587). */
import type { Format } from './description.ts';

export type AudioCodec = 'PCMU' | 'PCMA' | 'G722' | 'opus';

/** G722 says 8000 although it samples at 16 kHz (RFC 3551 §4.5.2). Opus always says two channels (RFC 7587 §7). */
const FACTS: Readonly<Record<AudioCodec, { readonly payloadType: number; readonly clockHz: number; readonly channels: number }>> =
  {
    PCMU: { payloadType: 0, clockHz: 8000, channels: 1 },
    PCMA: { payloadType: 8, clockHz: 8000, channels: 1 },
    G722: { payloadType: 9, clockHz: 8000, channels: 1 },
    opus: { payloadType: 111, clockHz: 48_000, channels: 2 },
  };

/** The clock of a codec's RTP timestamps. */
export const clockHzOf = (codec: AudioCodec): number => FACTS[codec].clockHz;
const OPUS_PARAMETERS = 'minptime=10;useinbandfec=1';
/** The payload types of telephone-event in our offers, by its clock (contract §2). */
const EVENT_PAYLOAD_TYPES: ReadonlyMap<number, number> = new Map([
  [8000, 101],
  [48_000, 102],
]);

/** A format that both sides name by its number. */
export interface NumberedCodec {
  readonly payloadType: number;
  readonly codec: AudioCodec;
}
/** telephone-event on a clock, which is that of the audio beside it (RFC 4733 §2.1). */
export interface NumberedEvents {
  readonly payloadType: number;
  readonly clockHz: number;
}

/** The formats of a description of ours. */
export interface Formats {
  readonly codecs: readonly NumberedCodec[];
  readonly events: readonly NumberedEvents[];
}

/** The payload types that are no codec's own (RFC 3551 §3). */
const DYNAMIC = Array.from({ length: 32 }, (_, at) => 96 + at);

/** The codec of a format, if it is one of these. */
export const codecOf = (format: Format, codecs: readonly AudioCodec[]): AudioCodec | undefined =>
  codecs.find((codec) => {
    const { clockHz, channels } = FACTS[codec];
    return codec.toUpperCase() === format.name && clockHz === format.clockRate && channels === format.channels;
  });

/**
 * The telephone-event of a description that goes with a codec: the one of its clock, else that of 8 kHz, which is all
 * that Firefox offers beside Opus.
 */
export function eventsOf(formats: readonly Format[], codec: AudioCodec): NumberedEvents | undefined {
  const events = formats.filter(({ name }) => name === 'TELEPHONE-EVENT');
  const at = (clockHz: number) => events.find(({ clockRate }) => clockRate === clockHz);
  const found = at(FACTS[codec].clockHz) ?? at(8000);
  return found && { payloadType: found.payloadType, clockHz: found.clockRate };
}

/**
 * The formats of our offer, and a telephone-event for each of their clocks, by our own numbers. A number that was
 * agreed on before for something else is not used for it (RFC 3264 §8.3.2): then the one that was agreed on is, or a
 * free one.
 */
export function offeredFormats(codecs: readonly AudioCodec[], agreed: Formats): Formats {
  const taken = new Set([...agreed.codecs, ...agreed.events].map(({ payloadType }) => payloadType));
  const number = (own: number, known: number | undefined): number => {
    const payloadType = taken.has(own) ? (known ?? DYNAMIC.find((each) => !taken.has(each)) ?? own) : own;
    taken.add(payloadType);
    return payloadType;
  };
  return {
    codecs: codecs.map((codec) => {
      const known = agreed.codecs.find((each) => each.codec === codec)?.payloadType;
      return { payloadType: number(FACTS[codec].payloadType, known), codec };
    }),
    events: [...new Set(codecs.map((codec) => FACTS[codec].clockHz))].map((clockHz) => {
      const known = agreed.events.find((each) => each.clockHz === clockHz)?.payloadType;
      return { payloadType: number(EVENT_PAYLOAD_TYPES.get(clockHz) ?? 101, known), clockHz };
    }),
  };
}

/** What is agreed on now and was before; a number or a codec of now takes the place of an earlier one. */
export function agreedFormats(now: Formats, before: Formats): Formats {
  const numbers = new Set([...now.codecs, ...now.events].map(({ payloadType }) => payloadType));
  const isLeft = ({ payloadType }: NumberedCodec | NumberedEvents) => !numbers.has(payloadType);
  return {
    codecs: [
      ...now.codecs,
      ...before.codecs.filter((each) => isLeft(each) && !now.codecs.some(({ codec }) => codec === each.codec)),
    ],
    events: [
      ...now.events,
      ...before.events.filter((each) => isLeft(each) && !now.events.some(({ clockHz }) => clockHz === each.clockHz)),
    ],
  };
}

/**
 * What the far end may send beside `chosen`, of the formats in its answer: what we have offered under the same number,
 * and with the same clock, by which events are counted.
 */
export function othersOf(
  formats: readonly Format[],
  offered: readonly NumberedCodec[],
  chosen: AudioCodec,
): readonly NumberedCodec[] {
  const codecs = offered.map(({ codec }) => codec);
  return formats.flatMap((format) => {
    const codec = codecOf(format, codecs);
    if (codec === undefined || codec === chosen || FACTS[codec].clockHz !== FACTS[chosen].clockHz) return [];
    return offered.filter((each) => each.codec === codec && each.payloadType === format.payloadType);
  });
}

/**
 * The numbers of our offer for what its answer names by others. A far end sends by ours then (RFC 3264 §5.1), and hears
 * by its own; some send by their own all the same. A number that the answer uses for something else is left out.
 */
export function ownNumbers(
  offered: Formats,
  chosen: NumberedCodec,
  events: NumberedEvents | undefined,
): { readonly ownPayloadType?: number; readonly ownEventPayloadType?: number } {
  const theirs = [chosen.payloadType, events?.payloadType];
  const audio = offered.codecs.find(({ codec }) => codec === chosen.codec)?.payloadType;
  const event = offered.events.find(({ clockHz }) => clockHz === events?.clockHz)?.payloadType;
  return {
    ...(audio === undefined || theirs.includes(audio) ? {} : { ownPayloadType: audio }),
    ...(event === undefined || theirs.includes(event) ? {} : { ownEventPayloadType: event }),
  };
}

/** The payload types of an m-line. */
export const payloadTypes = (formats: readonly NumberedCodec[], events: readonly NumberedEvents[]): string =>
  [...formats, ...events].map(({ payloadType }) => payloadType).join(' ');

/** The lines that say what they are. */
export function formatLines(formats: readonly NumberedCodec[], events: readonly NumberedEvents[]): string {
  let text = '';
  for (const { payloadType, codec } of formats) {
    const { clockHz, channels } = FACTS[codec];
    text += `a=rtpmap:${payloadType} ${codec}/${clockHz}${channels === 1 ? '' : `/${channels}`}\r\n`;
    if (codec === 'opus') text += `a=fmtp:${payloadType} ${OPUS_PARAMETERS}\r\n`;
  }
  for (const { payloadType, clockHz } of events)
    text += `a=rtpmap:${payloadType} telephone-event/${clockHz}\r\na=fmtp:${payloadType} 0-15\r\n`;
  return text;
}
