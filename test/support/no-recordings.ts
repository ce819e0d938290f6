import { RecordingRegistry } from '../../src/call/recording/recording-registry.ts';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';

/** A platform with `RECORDINGS=off`, for tests of everything else. */
export const noRecordings = new RecordingRegistry({
  storage: undefined,
  rows: {
    get: async () => undefined,
    list: async () => [],
    unfinished: async () => [],
    unmended: async () => [],
    mended: async () => {},
    kept: async () => new Map(),
    sized: async () => {},
    expired: async () => [],
    areRemoved: async () => new Map(),
    mayRemove: async () => true,
    removed: async () => {},
  },
  sign: () => ({ mediaUrl: '', liveUrl: '', expiresAt: 0 }),
  journal: { commit: async () => true, wasStored: async () => false },
  clock: systemClock(),
  log: silentLog,
  volumeId: '',
  livenessMs: 10_000,
  retentionMs: 1,
  session: () => undefined,
});
