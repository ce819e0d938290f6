/** The readings of `/metrics` about all media workers together. */
import { counter, gauge, type Reading } from '../../metrics.ts';
import type { WebrtcCounters } from '../leg/linked-leg.ts';
import type { TickLoad } from './media-worker.ts';
import { stuckThreads } from './thread.ts';
import { ticksOver } from './tick-lateness.ts';

export function mediaReadings(media: { ticks(): readonly TickLoad[] }): readonly Reading[] {
  const sum = (of: (load: TickLoad) => number) => media.ticks().reduce((total, load) => total + of(load), 0);
  return [
    counter('media_ticks_total', 'Ticks of 20 ms that were run', () => sum((load) => load.ticks)),
    counter('media_ticks_late_2ms_total', 'Ticks that began over 2 ms late', () =>
      sum((load) => ticksOver(load.lateness, 2_000)),
    ),
    counter('media_ticks_late_total', 'Ticks that began over 5 ms late', () => sum((load) => ticksOver(load.lateness, 5_000))),
    counter('media_ticks_skipped_total', 'Ticks left out after a stall of half a second or more', () =>
      sum((load) => load.skippedTicks),
    ),
    gauge('media_busy_ratio', 'Busiest media worker: part of the last second it worked', () =>
      Math.max(0, ...media.ticks().map((load) => load.busyUs / 1e6)),
    ),
    gauge('threads_stuck', 'Media and decoding threads that hang, were replaced, and cannot be ended', stuckThreads),
  ];
}

/** The readings about the port of all WebRTC legs; 0 where there is none. */
export function webrtcReadings(media: { webrtcCounters(): WebrtcCounters | undefined }): readonly Reading[] {
  const about = (name: string, help: string, of: keyof WebrtcCounters): Reading =>
    counter(`webrtc_${name}_total`, help, () => media.webrtcCounters()?.[of] ?? 0);
  return [
    about('checks', 'STUN requests of browsers: answered', 'checks'),
    about('checks_unknown', 'STUN requests dropped: malformed, or for no call', 'unknownChecks'),
    about('checks_forged', 'STUN requests dropped: without the password of the call, or from an address in use', 'forgedChecks'),
    about('packets_strange', 'Packets to the WebRTC port dropped: nothing was expected from there', 'strangePackets'),
    about('packets_overflown', 'STUN and DTLS packets dropped: too many waited', 'overflownPackets'),
    about('handshakes', 'DTLS handshakes: complete', 'handshakes'),
    about('handshakes_failed', 'DTLS handshakes: broken off, or with another certificate than in SDP', 'failedHandshakes'),
    about('links_lost', 'Browsers that were not heard for MEDIA_TIMEOUT_SEC', 'lostLinks'),
  ];
}
