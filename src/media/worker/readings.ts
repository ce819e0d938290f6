/** The readings of `/metrics` about all media workers together. */
import type { Reading } from '../../metrics.ts';
import type { TickLoad } from './media-worker.ts';
import { ticksOver } from './tick-lateness.ts';

export function mediaReadings(media: { ticks(): readonly TickLoad[] }): readonly Reading[] {
  const sum = (of: (load: TickLoad) => number) => media.ticks().reduce((total, load) => total + of(load), 0);
  return [
    { name: 'media_ticks_total', help: 'Ticks of 20 ms that were run', kind: 'counter', read: () => sum((load) => load.ticks) },
    {
      name: 'media_ticks_late_2ms_total',
      help: 'Ticks that began over 2 ms late',
      kind: 'counter',
      read: () => sum((load) => ticksOver(load.lateness, 2_000)),
    },
    {
      name: 'media_ticks_late_total',
      help: 'Ticks that began over 5 ms late',
      kind: 'counter',
      read: () => sum((load) => ticksOver(load.lateness, 5_000)),
    },
    {
      name: 'media_ticks_skipped_total',
      help: 'Ticks left out after a stall of half a second or more',
      kind: 'counter',
      read: () => sum((load) => load.skippedTicks),
    },
    {
      name: 'media_busy_ratio',
      help: 'Busiest media worker: part of the last second it worked',
      kind: 'gauge',
      read: () => Math.max(0, ...media.ticks().map((load) => load.busyUs / 1e6)),
    },
  ];
}
