/**
 * The ledger of a multipart upload, kept durably beside its spool file: a process that comes after a crash goes on with
 * the parts that are missing. It is written after every part the store confirmed and never before, so it may know less
 * than the store does, never more.
 */
import { open, rename } from 'node:fs/promises';
import { OBJECT_LEDGER_MAX_BYTES } from '../../limits.ts';
import { isMissing } from '../file/local-file.ts';

interface ConfirmedPart {
  readonly etag: string;
  readonly bytes: number;
}

export interface UploadLedger {
  /** The store and bucket it was begun in. */
  readonly place: string;
  readonly uploadId: string;
  readonly partBytes: number;
  /** The confirmed parts, by part number from 1. */
  readonly parts: Map<number, ConfirmedPart>;
}

const PART_MAX = 10_000;

/**
 * Reads a ledger. It is undefined when there is none, and when it cannot be understood: the upload starts over then.
 * Rejects on errors of the disk.
 */
export async function readLedger(path: string): Promise<UploadLedger | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      if ((await file.stat()).size > OBJECT_LEDGER_MAX_BYTES) return undefined;
      return parsed(await file.readFile('utf8'));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Durable when it resolves: whoever reads sees the former one or this one. */
export async function writeLedger(path: string, ledger: UploadLedger): Promise<void> {
  const parts = [...ledger.parts].map(([number, { etag, bytes }]) => ({ number, etag, bytes }));
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(JSON.stringify({ ...ledger, parts }));
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

function parsed(json: string): UploadLedger | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || !Array.isArray(value.parts)) return undefined;
  const { place, uploadId, partBytes } = value;
  if (typeof place !== 'string' || typeof uploadId !== 'string' || uploadId === '' || !isWhole(partBytes)) return undefined;
  const parts = new Map<number, ConfirmedPart>();
  for (const part of value.parts) {
    if (!isRecord(part)) return undefined;
    const { number, etag, bytes } = part;
    if (!isWhole(number) || number > PART_MAX || typeof etag !== 'string' || !isWhole(bytes)) return undefined;
    parts.set(number, { etag, bytes });
  }
  return { place, uploadId, partBytes, parts };
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;
