/** What lasts in a call, out of its timeline: playbacks, recordings, stays in a Room, holds, speech, masked audio. */
import type { Call, Entry, Timeline } from '../platform/types.ts';
import { type Recorded, recordingsOf } from './takes.ts';

export interface Span {
  readonly what: 'playback' | 'recording' | 'room' | 'held' | 'speech' | 'masked' | 'card';
  /** Milliseconds since the epoch. `until` is that of the call, or now, while it lasts. */
  readonly from: number;
  readonly until: number;
  /** The recording that speech and masks belong to; empty where none is named. */
  readonly recordingUuid: string;
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

/** Whether an entry is the command by which a card or its CVV is keyed in from now on. */
const collects = (entry: Entry): entry is Extract<Entry, { kind: 'command' }> =>
  entry.kind === 'command' && entry.status < 300 && /\/payment\/(card|cvv)\/collect$/.test(entry.path);

/** The edge of a span that an entry is, or undefined. */
function markOf(entry: Entry): Mark | undefined {
  if (entry.kind === 'media') {
    const [what, edge] = MEDIA[entry.what] ?? [];
    if (what === undefined || edge === undefined) return undefined;
    const recordingUuid = String(entry.recording_uuid ?? '');
    return { what, edge, recordingUuid, name: `${what} ${entry.operation_uuid ?? ''}${recordingUuid}` };
  }
  if (collects(entry)) return { what: 'card', edge: 'begins', recordingUuid: '', name: `card ${entry.operation_uuid}` };
  if (entry.kind === 'event' && /^payment\.(card|cvv)\.collected$/.test(entry.name))
    return { what: 'card', edge: 'ends', recordingUuid: '', name: `card ${entry.body.operation_uuid}` };
  return undefined;
}

/** The spans of a call. What has not ended lasts until `end`: that of the call, or now. */
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
  for (const recorded of recordingsOf(entries, end)) spans.push(...masksOf(entries, recorded));
  return spans.sort((a, b) => a.from - b.from);
}

/**
 * What of a recording is masked: from `mask`, or from the collection of a card, which masks every recording, until
 * `unmask` or its own end.
 */
function masksOf(entries: readonly Entry[], { recordingUuid, from, until }: Recorded): readonly Span[] {
  const spans: Span[] = [];
  let since: number | undefined;
  for (const entry of entries) {
    const at = Date.parse(entry.at);
    if (entry.kind !== 'command' || entry.status >= 300 || at < from || at >= until) continue;
    const [, named, order] = /\/recordings\/([^/]+)\/(mask|unmask)$/.exec(entry.path) ?? [];
    if (collects(entry) || (named === recordingUuid && order === 'mask')) since ??= at;
    if (named !== recordingUuid || order !== 'unmask' || since === undefined) continue;
    spans.push({ what: 'masked', from: since, until: at, recordingUuid });
    since = undefined;
  }
  if (since !== undefined) spans.push({ what: 'masked', from: since, until, recordingUuid });
  return spans;
}

/** What the file of a recording leaves out, as far as the timeline tells. */
export const gapsOf = (spans: readonly Span[], recordingUuid: string): readonly Span[] =>
  spans.filter(({ what, recordingUuid: named }) => what === 'held' || (what === 'masked' && named === recordingUuid));

/** What comes so much later than a call's end is not on its axis: a webhook may be sent again a day later. */
const TAIL_MS = 10_000;

/** The time until which a call lasted, or lasts by now, in milliseconds since the epoch. */
export const endOf = ({ ended_at: endedAt }: Call, now: number): number => (endedAt === '' ? now : Date.parse(endedAt));

/** The first and the last time of a call, in ms since the epoch. */
export function extentOf({ session, entries }: Timeline, now: number): readonly [number, number] {
  const from = Math.min(Date.parse(session.created_at), Date.parse(entries[0]?.at ?? session.created_at));
  const end = endOf(session, now);
  const last = entries.findLast(({ at }) => session.ended_at === '' || Date.parse(at) <= end + TAIL_MS);
  return [from, Math.max(end, last === undefined ? 0 : Date.parse(last.at), from + 100)];
}
