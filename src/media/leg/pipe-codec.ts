/** The codecs in which the sound of legs goes to other nodes. */
import type { LegCodec, PipeCodec } from '../audio.ts';

/**
 * The codec of a pipe for a leg of RTP: the leg's own, so that packets are passed on undecoded. Opus goes as samples,
 * since it sends nothing in silence (DTX), and 300 ms of nothing in a pipe count as its loss.
 */
export const rtpPipeCodec = (codec: LegCodec): PipeCodec => (codec === 'opus' ? 'L16/24000' : codec);

/** The codec of a pipe for samples of a rate. 20 ms at 48 kHz would not fit into a packet of 1,500 bytes. */
export const pcmPipeCodec = (rateHz: number): PipeCodec =>
  rateHz > 16_000 ? 'L16/24000' : rateHz > 8_000 ? 'L16/16000' : 'L16/8000';
