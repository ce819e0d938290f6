/** FLAC that takes long to decode: 28 bytes stand for 65,535 samples in each of eight channels. */
import { flacCrc8, flacCrc16 } from '../../../src/media/format/crc.ts';

const CHANNELS = 8;

/** RFC 9639 §8.2: blocks of 65,535 samples, 192 kHz, eight channels, 8 bits. */
const HEAD = [
  ...new TextEncoder().encode('fLaC'),
  ...[0x80, 0, 0, 34, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
  ...[0x2e, 0xe0, 0x0e, 0x70, 0, 0, 0, 0],
  ...new Array<number>(16).fill(0),
];

/** A frame of constant subframes (§9). Its rate is 192 kHz, in tens of hertz. */
function frame(number: number): readonly number[] {
  const header = [0xff, 0xf8, 0x7e, ((CHANNELS - 1) << 4) | 2, number, 0xff, 0xfe, 0x4b, 0x00];
  const begun = [...header, flacCrc8(new Uint8Array(header), 0, header.length)];
  for (let channel = 0; channel < CHANNELS; channel++) begun.push(0, 10);
  const crc = flacCrc16(new Uint8Array(begun), 0, begun.length, 0);
  return [...begun, crc >> 8, crc & 0xff];
}

/** So many frames, fewer than 128, behind the head of a file. */
export const packedSilence = (frames: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array([...HEAD, ...Array.from({ length: frames }, (_, number) => frame(number)).flat()]);
