import type { CallQuality } from '../event/call-report.ts';
import type { LegCounters } from './audio.ts';

/** How a call sounded, by the counters of its leg and its codec as SDP names it. */
export function qualityOf(counters: LegCounters, codec: string): CallQuality {
  const ms = (value: number) => Math.round(value * 10) / 10;
  return {
    packets_in: counters.packetsReceived,
    packets_out: counters.packetsSent,
    packets_lost: counters.packetsLost,
    packets_late: counters.packetsLate,
    jitter_ms: ms(counters.jitterMs),
    round_trip_ms: ms(counters.roundTripMs),
    buffer_ms: ms(counters.delayMs),
    mos: ms(counters.mos),
    codec,
  };
}
