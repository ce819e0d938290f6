/**
 * The numbers that our RTP packets begin with (RFC 3550 §5.1). Where a call goes on from another process, its stream
 * has an SSRC of its own and could begin anywhere; some far ends pass over that SSRC, though, and drop what is numbered
 * lower than what they have heard last. So it begins a little ahead of where the other one can have come to.
 */
import { clockHzOf } from '../../sdp/codec.ts';
import type { AudioAgreement } from '../../sdp/negotiation.ts';

interface PacketNumbers {
  readonly sequence: number;
  readonly timestamp: number;
}

/** What a stream began with, and when, in milliseconds since the epoch. It is plain data. */
export interface StreamBegin extends PacketNumbers {
  readonly at: number;
  readonly ptimeMs: number;
  /** The clock of its timestamps. */
  readonly clockHz: number;
}

const SEQUENCES = 2 ** 16;
const TIMESTAMPS = 2 ** 32;
/** The packets that a stream which goes on is ahead: keys took some more, and the clocks of two nodes may differ. */
const AHEAD_PACKETS = 250;
/**
 * The packets before a roll-over with which no stream begins. A far end that loses the first ones of an encrypted
 * stream would not know of it (RFC 3711 §3.3.1).
 */
const ROLL_OVER_PACKETS = 500;

/** What a stream begins with: one that goes on for another of `before`, or the first of a call. */
export function streamAfter(
  before: StreamBegin | undefined,
  { ptimeMs, codec }: Pick<AudioAgreement, 'ptimeMs' | 'codec'>,
  now: number,
): StreamBegin {
  const numbers = before === undefined ? atRandom() : after(before, now);
  return { ...numbers, at: now, ptimeMs, clockHz: clockHzOf(codec) };
}

/** In the lower half of the sequence numbers, so that their roll-over is far. */
function atRandom(): PacketNumbers {
  const [sequence = 0, timestamp = 0] = crypto.getRandomValues(new Uint32Array(2));
  return { sequence: sequence % (SEQUENCES / 2), timestamp };
}

function after(before: StreamBegin, now: number): PacketNumbers {
  const elapsedMs = Math.max(0, now - before.at);
  const packets = Math.ceil(elapsedMs / before.ptimeMs) + AHEAD_PACKETS;
  const next = (before.sequence + packets) % SEQUENCES;
  const sequence = next > SEQUENCES - ROLL_OVER_PACKETS ? 0 : next;
  const timestamp = (before.timestamp + Math.round((elapsedMs * before.clockHz) / 1000)) % TIMESTAMPS;
  return { sequence, timestamp };
}
