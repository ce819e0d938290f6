/** The head of a WAV of plain samples: of any length, or of one that is known. Pure. */
import type { PlainFormat } from './wav-format.ts';

const HEAD_BYTES = 44;
const TAG: Readonly<Record<PlainFormat['encoding'], number>> = { integer: 1, float: 3, alaw: 6, mulaw: 7 };

/** The 44 bytes before samples of that format, the low byte first. Infinity: they never end. */
export function wavHead(format: PlainFormat, dataBytes: number): Uint8Array<ArrayBuffer> {
  const { encoding, hz, channels, sampleBytes } = format;
  const head = new Uint8Array(HEAD_BYTES);
  const view = new DataView(head.buffer);
  const text = (at: number, id: string) => head.set(new TextEncoder().encode(id), at);
  text(0, 'RIFF');
  view.setUint32(4, Math.min(0xffff_ffff, dataBytes + HEAD_BYTES - 8), true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, TAG[encoding], true);
  view.setUint16(22, channels, true);
  view.setUint32(24, hz, true);
  view.setUint32(28, hz * channels * sampleBytes, true);
  view.setUint16(32, channels * sampleBytes, true);
  view.setUint16(34, 8 * sampleBytes, true);
  text(36, 'data');
  view.setUint32(40, Math.min(0xffff_ffff, dataBytes), true);
  return head;
}
