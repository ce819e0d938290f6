/** The words for a call, and for an entry of its timeline. */
import type { Call, Entry, MediaEntry, QualityEntry } from '../platform/types.ts';

/** What a call is, by its `type`. */
export const TYPE_NAMES: Readonly<Record<string, string>> = {
  phone_in: 'inbound call',
  phone_out: 'outbound call',
  sip: 'call of a SIP device',
  webrtc: 'call from a browser',
  websocket: 'WebSocket',
};

/** The way that a call goes, in a word, by its `type`. */
export const DIRECTIONS: Readonly<Record<string, string>> = {
  phone_in: 'in',
  phone_out: 'out',
  webrtc: 'browser',
  websocket: 'websocket',
};

/** Whether anything was heard by then. The MOS of a call without a packet is 0, and its other figures say nothing. */
export const hasPackets = ({ mos }: Pick<QualityEntry, 'mos'>): boolean => mos > 0;

/** How a call sounded, as a MOS of 1 to 4.5; empty where nothing was heard, or nothing is known. */
export const mosOf = ({ quality }: Pick<Call, 'quality'>): string =>
  quality?.mos === undefined || !hasPackets({ mos: quality.mos }) ? '' : quality.mos.toFixed(1);

/** Why nothing is known of how a call sounds. */
export function noFigures({ type, ended_at: endedAt }: Pick<Call, 'type' | 'ended_at'>): string {
  if (type === 'websocket') return 'A WebSocket has no packets that could be lost or late: there are no figures.';
  if (endedAt !== '') return 'There are no figures: they are taken every ten seconds of a call.';
  return 'The first figures come within ten seconds of the answer.';
}

export const KINDS = ['command', 'sip', 'media', 'event', 'webhook', 'quality'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  command: 'HTTP',
  sip: 'SIP',
  media: 'Media',
  event: 'Events',
  webhook: 'Webhooks',
  quality: 'Quality',
};

/** Names an entry in a list, without its time. Entries have no identifier, and one may come twice in a millisecond. */
export const keyOf = (entry: Entry): string => `${entry.at} ${entry.kind} ${titleOf(entry)} ${idOf(entry)}`;

const idOf = (entry: Entry): string =>
  entry.kind === 'event' || entry.kind === 'webhook' ? entry.webhook_id : entry.kind === 'sip' ? entry.direction : '';

/** What happened, in a few words. */
export function titleOf(entry: Entry): string {
  switch (entry.kind) {
    case 'command':
      return `${entry.method} ${shortPath(entry.path)}`;
    case 'sip':
      return shortLine(entry.first_line);
    case 'media':
      return MEDIA_WORDS[entry.what] ?? entry.what.replaceAll('_', ' ');
    case 'event':
      return entry.name;
    case 'webhook':
      return entry.status > 0 ? `HTTP ${entry.status}` : entry.error.replaceAll('_', ' ') || 'no answer';
    case 'quality':
      return hasPackets(entry) ? `MOS ${entry.mos.toFixed(1)}` : 'no packets';
  }
}

const MEDIA_WORDS: Readonly<Record<string, string>> = {
  connected: 'media connected',
  started: 'first audio heard',
  timeout: 'no audio for too long',
  lost: 'media lost',
  held: 'put on hold',
  resumed: 'taken off hold',
};

/** What else is worth a line. */
export function detailOf(entry: Entry): string {
  switch (entry.kind) {
    case 'command':
      return `${entry.status} in ${entry.took_ms} ms`;
    case 'sip':
      return `${entry.cseq}, ${entry.transport} ${entry.peer}`;
    case 'media':
      return mediaDetail(entry);
    case 'event':
      return '';
    case 'webhook':
      return `attempt ${entry.attempt}, ${entry.took_ms} ms${entry.next_at === '' ? '' : ', to be tried again'}`;
    case 'quality':
      return qualityDetail(entry);
  }
}

function mediaDetail({ at: _at, kind: _kind, what: _what, ...more }: MediaEntry): string {
  return Object.entries(more)
    .filter(([name]) => !name.endsWith('_uuid'))
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(', ');
}

function qualityDetail(entry: QualityEntry): string {
  const { packets_in: got, packets_lost: lost, jitter_ms: jitter, round_trip_ms: roundTrip } = entry;
  if (!hasPackets(entry)) return 'nothing was heard of the far end';
  return `${lost} of ${got + lost} packets lost, jitter ${jitter} ms, round trip ${roundTrip} ms`;
}

/** Whether something went wrong here. */
export function isBad(entry: Entry): boolean {
  switch (entry.kind) {
    case 'command':
      return entry.status >= 400;
    case 'sip':
      return /^SIP\/2\.0 [4-6]/.test(entry.first_line);
    case 'media':
      return /failed|timeout|lost/.test(entry.what);
    case 'event':
      return /\.failed$/.test(entry.name);
    case 'webhook':
      return entry.status < 200 || entry.status >= 300;
    case 'quality':
      return entry.mos < 3.6;
  }
}

/** A path without the identifiers that the page is about anyway. */
const shortPath = (path: string): string => path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…').replace(/^\/(v1|api\/v1)/, '');

/** `INVITE`, or `200 OK`. */
const shortLine = (line: string): string => (line.startsWith('SIP/2.0 ') ? line.slice(8) : line.split(' ', 1)[0]) ?? line;
