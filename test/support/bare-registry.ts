import { TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import type { RegistryOptions } from '../../src/call/session/session-registry.ts';
import { mayReach } from '../../src/destinations.ts';
import { silentLog } from '../../src/log.ts';
import { noRecordings } from './no-recordings.ts';

const refused = { refused: { reason: 'not_found', retryable: false } } as const;

/** What a registry of Sessions needs beside clock and journal, where nothing is stored before, played or recorded. */
export const bareRegistry = (): Omit<RegistryOptions, 'clock' | 'journal'> => ({
  ...{ log: silentLog, nodeId: 'node', tokens: new TokenBuckets(), orphanTimeoutMs: 120_000 },
  records: { find: async () => undefined, list: async () => [], mine: async () => [], adopt: async () => [] },
  media: {
    openPlaylist: async () => refused,
    openStream: async () => refused,
    openPush: () => {
      throw new Error('nothing is pushed');
    },
  },
  publicUrl: 'https://voice.test',
  recordings: noRecordings,
  reachOf: async () => mayReach(),
  mayCallFrom: async () => true,
});
