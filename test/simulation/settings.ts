/** The settings of simulated processes. Times are short, so that much happens in little time. */

import type { Config } from '../../src/config.ts';
import { EVERYWHERE } from '../../src/destinations.ts';

export const MASTER_KEY = new Uint8Array(32).fill(7);

export const SETTINGS = {
  masterKey: MASTER_KEY,
  callHistoryDays: 0,
  recordingUrlTtlSec: 3_600,
  recordingLivenessSec: 4,
  masterKeyBefore: undefined,
  recordingRetentionDays: 30,
  appSessionsMax: 50_000,
  destinations: EVERYWHERE,
  appRecordingsMax: 5_000,
  appRecordingMaxGb: 0,
  orphanTimeoutSec: 12,
  paymentReferenceTtlSec: 600,
  webhookTimeoutSec: 5,
  webhookRetryScale: 0.05,
  node: { host: '127.0.0.1', labels: [], burialSec: 5, takesOver: false },
  rtp: { host: '127.0.0.1', firstPort: 1, lastPort: 2_000 },
} satisfies Partial<Config>;

/** The caps of the one application. */
export const MAX_ROOMS = 2;
export const MAX_MEMBERS = 2;

export const APP_UUID = 'app_00000000-0000-4000-8000-000000000001';
export const API_KEY = 'sk_simulated';
export const CALLER_ID = '+15550001';
export const TERMINAL = '0010001';
