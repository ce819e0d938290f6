/** What lasts in a call, out of its timeline: playbacks, recordings, stays in a Room, holds, speech, masked audio. */
import type { Entry, EventEntry, Timeline } from '../platform/types.ts';

export interface Span {
  readonly what: 'playback' | 'recording' | 'room' | 'held' | 'speech' | 'masked';
  /** Milliseconds since the epoch. `until` is that of the call, or now, while it lasts. */
  readonly from: number;
  readonly until: number;
  /** The recording that speech and masks belong to; empty where none is named. */
  readonly recordingUuid: string;
}

/** A recording that can be played. */
export interface Take {
  readonly recordingUuid: string;
  /** Path and query on this platform. */
  readonly url: string;
  readonly from: number;
  readonly durationSec: number;
}

interface Mark {
  readonly what: Span['what'];
  readonly name: string;
  readonly edge: 'begins' | 'ends';
  readonly recordingUuid: string;
}

const MEDIA: Readonly<Record<string, readonly [Span['what'], Mark['edge']]>> = {
  playback_started: ['playback', 'begins'],
  playback_completed: ['playback', 'ends'],
  playback_stopped: ['playback', 'ends'],
  playback_failed: ['playback', 'ends'],
  recording_started: ['recording', 'begins'],
  recording_ended: ['recording', 'ends'],
  recording_failed: ['recording', 'ends'],
  room_joined: ['room', 'begins'],
  room_left: ['room', 'ends'],
  held: ['held', 'begins'],
  resumed: ['held', 'ends'],
  speech_started: ['speech', 'begins'],
  speech_ended: ['speech', 'ends'],
};

/** The edge of a span that an entry is, or undefined. */
function markOf(entry: Entry): Mark | undefined {
  if (entry.kind === 'media') {
    const [what, edge] = MEDIA[entry.what] ?? [];
    if (what === undefined || edge === undefined) return undefined;
    const recordingUuid = String(entry.recording_uuid ?? '');
    return { what, edge, recordingUuid, name: `${what} ${entry.operation_uuid ?? ''}${recordingUuid}` };
  }
  if (entry.kind === 'command' && entry.status < 300) {
    const [, recordingUuid = '', order] = /\/recordings\/([^/]+)\/(mask|unmask)$/.exec(entry.path) ?? [];
    if (order !== undefined)
      return { what: 'masked', edge: order === 'mask' ? 'begins' : 'ends', recordingUuid, name: `mask ${recordingUuid}` };
    // A card's digits are kept out of every recording.
    if (/\/payment\/(card|cvv)\/collect$/.test(entry.path))
      return { what: 'masked', edge: 'begins', recordingUuid: '', name: `payment ${entry.operation_uuid}` };
  }
  if (entry.kind === 'event' && /^payment\.(card|cvv)\.collected$/.test(entry.name))
    return { what: 'masked', edge: 'ends', recordingUuid: '', name: `payment ${entry.body.operation_uuid}` };
  return undefined;
}

/** The spans of a call. What has not ended lasts until `end`. */
export function spansOf(entries: readonly Entry[], end: number): readonly Span[] {
  const open = new Map<string, { readonly what: Span['what']; readonly from: number; readonly recordingUuid: string }>();
  const spans: Span[] = [];
  for (const entry of entries) {
    const mark = markOf(entry);
    if (mark === undefined) continue;
    const { what, name, recordingUuid } = mark;
    const at = Date.parse(entry.at);
    const begun = open.get(name);
    if (mark.edge === 'begins' && begun === undefined) open.set(name, { what, from: at, recordingUuid });
    if (mark.edge === 'ends' && begun !== undefined) {
      spans.push({ ...begun, until: at });
      open.delete(name);
    }
  }
  for (const begun of open.values()) spans.push({ ...begun, until: Math.max(begun.from, end) });
  return spans.sort((a, b) => a.from - b.from);
}

/** The ended recordings of a call. One begins with the command that asked for it. */
export function takesOf(entries: readonly Entry[]): readonly Take[] {
  return entries.flatMap((entry): readonly Take[] => {
    if (entry.kind !== 'event' || entry.name !== 'recording.ended') return [];
    const { pull_url: url, recording_uuid: uuid, operation_uuid: operation, duration } = entry.body;
    if (typeof url !== 'string' || !URL.canParse(url) || typeof duration !== 'number' || duration <= 0) return [];
    const { pathname, search } = new URL(url);
    const recordingUuid = String(uuid);
    return [
      { recordingUuid, url: pathname + search, durationSec: duration, from: beginOf(entries, entry, recordingUuid, operation) },
    ];
  });
}

function beginOf(entries: readonly Entry[], ended: EventEntry, recordingUuid: string, operation: unknown): number {
  const command = entries.find((each) => each.kind === 'command' && each.operation_uuid === operation);
  const started = entries.find(
    (each) => each.kind === 'media' && each.what === 'recording_started' && each.recording_uuid === recordingUuid,
  );
  return Date.parse((command ?? started ?? ended).at);
}

/** From the first to the last of a call, in ms since the epoch. */
export function extentOf({ session, entries }: Timeline, now: number): readonly [number, number] {
  const from = Math.min(Date.parse(session.created_at), Date.parse(entries[0]?.at ?? session.created_at));
  const last = Date.parse(entries.at(-1)?.at ?? session.created_at);
  const until = session.ended_at === '' ? Math.max(now, last) : Math.max(Date.parse(session.ended_at), last);
  return [from, Math.max(until, from + 100)];
}
