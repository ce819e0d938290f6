/**
 * The ring of a recording as a process left it in memory (native/plane/recording/recording_ring.h): what its WAV does
 * not have yet. It was written by a process that was killed, in a folder that every process of the machine can see, so
 * nothing in it is believed that does not fit the WAV.
 */
import { constants, open } from 'node:fs/promises';
import { RECORDING_RING_MAX_BYTES } from '../../limits.ts';

const HEADER_BYTES = 4096;
const MAGIC = 'SIDERING';
const VERSION = 1;
const CHECK_AT = 24;
const PUT_AT = 64;
const TAKEN_AT = 128;
const NAME_AT = 192;
const NAME_MAX = 255;

const refused = (reason: string) => ({ ring: 'refused', reason }) as const;

/** The recording's file, as far as it got. */
export interface CutOffWav {
  /** The name of the ring without its folder. */
  readonly name: string;
  readonly rateHz: number;
  /** Bytes of sound. */
  readonly dataBytes: number;
}

type LeftRing =
  | { readonly ring: 'none' }
  /** The ring is refused. `reason` is for the log. */
  | { readonly ring: 'refused'; readonly reason: string }
  /** The ring was read. `rest` follows the sound of the WAV and may be empty. */
  | { readonly ring: 'read'; readonly rest: Buffer };

/** The whole file of a ring, or why there is none. */
type RingFile = Exclude<LeftRing, { readonly ring: 'read' }> | { readonly ring: 'there'; readonly file: Buffer };

/**
 * Reads a ring. Call it before the size of the WAV is asked for, because a writer that still lives has written by then
 * what the ring says. It never rejects: a ring that cannot be read is refused.
 */
export async function readRing(path: string | undefined): Promise<RingFile> {
  if (path === undefined) return { ring: 'none' };
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const about = await file.stat();
      if (!about.isFile()) return refused('no file');
      if (about.size > HEADER_BYTES + RECORDING_RING_MAX_BYTES) return refused('too long');
      const bytes = Buffer.alloc(about.size);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return { ring: 'there', file: bytes.subarray(0, bytesRead) };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return code === 'ENOENT' ? { ring: 'none' } : refused(code);
  }
}

/** Returns what a ring holds beyond the WAV. */
export function restOf(of: RingFile, wav: CutOffWav): LeftRing {
  if (of.ring !== 'there') return of;
  const { file } = of;
  if (file.length < HEADER_BYTES) return refused('too short');
  if (file.toString('latin1', 0, MAGIC.length) !== MAGIC || file.readUInt32LE(8) !== VERSION) return refused('of another kind');
  const ringBytes = file.readUInt32LE(16);
  const nameBytes = file.readUInt32LE(20);
  if (file.readUInt32LE(CHECK_AT) !== checkOf(file)) return refused('damaged');
  if (ringBytes === 0 || ringBytes % 2 !== 0 || file.length !== HEADER_BYTES + ringBytes) return refused('of another length');
  if (nameBytes > NAME_MAX || file.toString('utf8', NAME_AT, NAME_AT + nameBytes) !== wav.name)
    return refused('of another recording');
  if (file.readUInt32LE(12) !== wav.rateHz) return refused('of another rate');
  const put = positionAt(file, PUT_AT);
  const taken = positionAt(file, TAKEN_AT);
  if (put === undefined || taken === undefined) return refused('damaged');
  if (put === 0) return { ring: 'read', rest: Buffer.alloc(0) }; // made, and not yet taken over by a tick
  if (put % 2 !== 0 || put < taken || put - taken > ringBytes) return refused('inconsistent');
  // What was written is on the disk, or the two are not of one recording.
  if (wav.dataBytes < taken) return refused('of a longer file');
  const rest = Buffer.alloc(Math.max(0, put - wav.dataBytes));
  const ring = file.subarray(HEADER_BYTES);
  const from = wav.dataBytes % ringBytes;
  const first = Math.min(rest.length, ringBytes - from);
  ring.copy(rest, 0, from, from + first);
  ring.copy(rest, first, 0, rest.length - first);
  return { ring: 'read', rest };
}

/** A position and, above it, its complement. */
function positionAt(file: Buffer, at: number): number | undefined {
  const position = file.readUInt32LE(at);
  return ~position >>> 0 === file.readUInt32LE(at + 4) ? position : undefined;
}

/** FNV-1a of what never changes in a ring. */
function checkOf(file: Buffer): number {
  let hash = 2166136261;
  const over = (from: number, to: number) => {
    for (let at = from; at < to; at++) hash = Math.imul(hash ^ file.readUInt8(at), 16777619);
  };
  over(0, CHECK_AT);
  over(NAME_AT, HEADER_BYTES);
  return hash >>> 0;
}
