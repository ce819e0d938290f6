/** The bounds of a storage in one place, so that a test can make them small. */
import {
  OBJECT_COMPLAINT_MS,
  OBJECT_PART_BYTES,
  OBJECT_PART_MAX_MS,
  OBJECT_PART_MIN_MS,
  OBJECT_RETRY_MAX_MS,
  OBJECT_RETRY_MIN_MS,
  OBJECT_SET_BACK_MAX_MS,
  OBJECT_SWEEP_MS,
  OBJECT_UPLOADS_MAX,
  RECORDING_ADMISSION_CACHE_MS,
  RECORDING_DISK_FREE_MIN_BYTES,
  SPOOL_MAX_BYTES,
  SPOOL_MAX_FILES,
} from '../limits.ts';

export const STORAGE_LIMITS = {
  diskFreeMinBytes: RECORDING_DISK_FREE_MIN_BYTES,
  admissionCacheMs: RECORDING_ADMISSION_CACHE_MS,
  spoolMaxBytes: SPOOL_MAX_BYTES,
  spoolMaxFiles: SPOOL_MAX_FILES,
  partBytes: OBJECT_PART_BYTES,
  partMinMs: OBJECT_PART_MIN_MS,
  partMaxMs: OBJECT_PART_MAX_MS,
  uploads: OBJECT_UPLOADS_MAX,
  sweepMs: OBJECT_SWEEP_MS,
  retryMinMs: OBJECT_RETRY_MIN_MS,
  retryMaxMs: OBJECT_RETRY_MAX_MS,
  setBackMaxMs: OBJECT_SET_BACK_MAX_MS,
  complaintMs: OBJECT_COMPLAINT_MS,
};

export type StorageLimits = Readonly<Record<keyof typeof STORAGE_LIMITS, number>>;
