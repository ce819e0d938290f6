/**
 * The recordings of a call as they lie on its time axis. A file leaves out what was masked, on hold or interrupted,
 * unless the application asked for `include_gaps`, so it may lie there in several pieces.
 */
import type { Entry } from '../platform/types.ts';

/** A stretch of time, in ms since the epoch. */
export interface Stretch {
  readonly from: number;
  readonly until: number;
}

/** A recording, from the command that asked for it until it takes nothing more. */
export interface Recorded extends Stretch {
  readonly recordingUuid: string;
}

/** A part of the file, and where it lies on the axis. */
export interface Piece extends Stretch {
  /** The place of its first sample in the file. Milliseconds. */
  readonly offsetMs: number;
}

/** A recording that has ended and can be played. */
export interface Take extends Recorded {
  /** Path and query on this platform. */
  readonly url: string;
  /** The length of the file. */
  readonly durationMs: number;
  readonly pieces: readonly Piece[];
  /** The time that is not in the file although nothing in the timeline says why: no sound came. Milliseconds. */
  readonly missingMs: number;
}

/** A file takes this long to be finished, and entries are this much apart from the sound, at most. */
const SLACK_MS = 1500;

/** The recordings of a call, in the order of their entries. What has not ended lasts until `end`. */
export function recordingsOf(entries: readonly Entry[], end: number): readonly Recorded[] {
  const found = new Map<string, Recorded>();
  for (const entry of entries) {
    const recordingUuid = recordingOf(entry);
    if (recordingUuid === '') continue;
    const at = Date.parse(entry.at);
    const known = found.get(recordingUuid) ?? { recordingUuid, from: beginOf(entries, recordingUuid) ?? at, until: end };
    found.set(recordingUuid, endsHere(entry) ? { ...known, until: Math.min(known.until, at) } : known);
  }
  return [...found.values()];
}

/** The recording that an entry names; empty for none. */
function recordingOf(entry: Entry): string {
  if (entry.kind === 'media') return String(entry.recording_uuid ?? '');
  if (entry.kind === 'event') return String(entry.body.recording_uuid ?? '');
  if (entry.kind === 'command' && entry.status < 300) return /\/recordings\/([^/]+)\/\w+$/.exec(entry.path)?.[1] ?? '';
  return '';
}

function endsHere(entry: Entry): boolean {
  if (entry.kind === 'media') return entry.what === 'recording_ended' || entry.what === 'recording_failed';
  if (entry.kind === 'event') return entry.name === 'recording.ended';
  return entry.kind === 'command' && entry.status < 300 && entry.path.endsWith('/stop');
}

/** When a recording was asked for. Its events name the operation; the command has no name of the recording. */
function beginOf(entries: readonly Entry[], recordingUuid: string): number | undefined {
  const event = entries.find((each) => each.kind === 'event' && each.body.recording_uuid === recordingUuid);
  const operation = event?.kind === 'event' ? event.body.operation_uuid : undefined;
  const command = entries.find((each) => each.kind === 'command' && each.operation_uuid === operation);
  return command && Date.parse(command.at);
}

/** The ended recordings of a call. `gaps` are what a file leaves out of each: masks and holds. */
export function takesOf(
  entries: readonly Entry[],
  end: number,
  gaps: (recordingUuid: string) => readonly Stretch[],
): readonly Take[] {
  const recordings = recordingsOf(entries, end);
  return entries.flatMap((entry): readonly Take[] => {
    if (entry.kind !== 'event' || entry.name !== 'recording.ended') return [];
    const { pull_url: url, recording_uuid: uuid } = entry.body;
    const recorded = recordings.find(({ recordingUuid }) => recordingUuid === uuid);
    const durationMs = durationOf(entries, entry.body);
    if (typeof url !== 'string' || !URL.canParse(url) || recorded === undefined || durationMs <= 0) return [];
    const { pathname, search } = new URL(url);
    const laid = piecesOf(recorded, durationMs, gaps(recorded.recordingUuid));
    return [{ ...recorded, url: pathname + search, durationMs, ...laid }];
  });
}

/** The length of a file: the event has it in whole seconds, rounded down, and the media entry in milliseconds. */
function durationOf(entries: readonly Entry[], body: Readonly<Record<string, unknown>>): number {
  const ended = entries.find(
    (each) => each.kind === 'media' && each.what === 'recording_ended' && each.recording_uuid === body.recording_uuid,
  );
  const exact = ended?.kind === 'media' ? Number(ended.duration_ms ?? 0) : 0;
  return exact > 0 ? exact : Number(body.duration ?? 0) * 1000;
}

/**
 * Lays a file on the axis. Its length says whether the gaps are in it, as silence, or were left out. A file that is
 * shorter than either lies at the beginning, because nothing says when it was interrupted.
 */
export function piecesOf(
  { from, until }: Stretch,
  durationMs: number,
  gaps: readonly Stretch[],
): Pick<Take, 'pieces' | 'missingMs'> {
  const whole = [{ from, until }];
  const kept = without({ from, until }, gaps);
  const hasGaps = Math.abs(durationMs - lengthOf(whole)) <= Math.abs(durationMs - lengthOf(kept));
  const stretches = hasGaps || kept.length === 0 ? whole : kept;
  const pieces: Piece[] = [];
  let offsetMs = 0;
  for (const stretch of stretches) {
    const left = durationMs - offsetMs;
    if (left <= 0) break;
    // What is over, because times are not exact, belongs to the last piece.
    const length = stretch === stretches.at(-1) ? left : Math.min(stretch.until - stretch.from, left);
    pieces.push({ from: stretch.from, until: stretch.from + length, offsetMs });
    offsetMs += length;
  }
  const missingMs = lengthOf(stretches) - durationMs;
  return { pieces, missingMs: missingMs > SLACK_MS ? missingMs : 0 };
}

const lengthOf = (stretches: readonly Stretch[]): number => stretches.reduce((sum, { from, until }) => sum + until - from, 0);

/** A stretch without others, which may lie over each other. */
function without({ from, until }: Stretch, others: readonly Stretch[]): readonly Stretch[] {
  const left: Stretch[] = [];
  let at = from;
  for (const other of [...others].sort((a, b) => a.from - b.from)) {
    if (other.from > at) left.push({ from: at, until: Math.min(other.from, until) });
    at = Math.max(at, other.until);
    if (at >= until) break;
  }
  if (at < until) left.push({ from: at, until });
  return left.filter((each) => each.until > each.from);
}

/** The time on the axis of a place in the file, in ms since the epoch. */
export function placeOf(pieces: readonly Piece[], positionMs: number): number {
  const piece = pieces.findLast(({ offsetMs }) => offsetMs <= positionMs) ?? pieces[0];
  return piece === undefined ? 0 : Math.min(piece.until, piece.from + positionMs - piece.offsetMs);
}
