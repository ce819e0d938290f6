/**
 * A call in plain sentences: how it went, what was refused, whether it was heard, and whether its webhooks arrived. The
 * sentences are made of numbers and of words of the platform, never of a text from outside.
 */
import type { CallRow } from '../../database/call/calls.ts';
import type { LoggedEvent } from '../../database/event/events.ts';
import type { TimedEntry } from '../../history/entry.ts';
import { RECORDING_LAST_MS } from '../../limits.ts';
import { counted } from './counted.ts';

const KINDS: Readonly<Record<string, string>> = {
  phone_in: 'An inbound phone call',
  phone_out: 'An outbound phone call',
  sip: 'A call with a SIP device',
  webrtc: 'A call from a browser',
  websocket: 'A connection to a bot',
};

/** The sentences about a call. */
export const explanation = (call: CallRow, entries: readonly TimedEntry[], events: readonly LoggedEvent[]): readonly string[] => [
  ...course(call),
  ...refusals(entries),
  ...sound(call),
  ...deliveries(events),
];

const seconds = (fromMs: number, toMs: number): string => `${(Math.max(0, toMs - fromMs) / 1000).toFixed(1)} s`;

/** A word of a closed set, as the summary has it; nothing else is quoted. */
const word = (value: unknown): string => (typeof value === 'string' && /^[a-z_]{1,32}$/.test(value) ? value : 'unknown');

function course({ type, state, createdAt, answeredAt, endedAt, summary }: CallRow): readonly string[] {
  const kind = KINDS[type] ?? 'A Session';
  const end = `${word(summary?.hangup_cause)}, by ${word(summary?.hangup_by)}`;
  if (endedAt === undefined)
    return [
      answeredAt === undefined
        ? `${kind} that has not been answered yet: it is ${word(state)}.`
        : `${kind} that is going on: it was answered after ${seconds(createdAt, answeredAt)}.`,
    ];
  if (answeredAt === undefined)
    return [`${kind} that was never answered: it ended after ${seconds(createdAt, endedAt)} as ${end}.`];
  const answered = `${kind} that was answered after ${seconds(createdAt, answeredAt)}`;
  const later = `${seconds(answeredAt, endedAt)} later`;
  // After a crash `session.ended` has no length. That of a call under a second waits for its recordings at most.
  const isLost = summary?.duration_seconds === 0 && endedAt - answeredAt >= 1000 + RECORDING_LAST_MS;
  return [
    isLost
      ? `${answered}. How long it lasted is not known; that it is over was told ${later}, as ${end}.`
      : `${answered} and ended ${later} as ${end}.`,
  ];
}

function refusals(entries: readonly TimedEntry[]): readonly string[] {
  const said: string[] = [];
  const refused = entries.flatMap((entry) => (entry.kind === 'command' && entry.status >= 400 ? [entry.status] : []));
  if (refused.length > 0)
    said.push(
      `${counted(refused.length, 'HTTP command was', 'HTTP commands were')} refused, with ${[...new Set(refused)].join(', ')}.`,
    );
  const failures = entries.flatMap((entry) => {
    const status = entry.kind === 'sip' ? Number(/^SIP\/2\.0 ([4-6][0-9]{2}) /.exec(entry.first_line)?.[1] ?? 0) : 0;
    return status === 0 || status === 401 || status === 407 ? [] : [status];
  });
  if (failures.length > 0) said.push(`SIP responses that say no: ${[...new Set(failures)].join(', ')}.`);
  return said;
}

function sound({ answeredAt, summary }: CallRow): readonly string[] {
  const quality = summary?.quality;
  if (answeredAt === undefined || typeof quality !== 'object' || quality === null) return [];
  const facts = new Map(Object.entries(quality));
  const number = (name: string): number => {
    const value: unknown = facts.get(name);
    return typeof value === 'number' ? value : 0;
  };
  if (number('packets_in') === 0)
    return [
      'No audio came from the far end. The usual reasons: SIP_ADVERTISE is not the address at which the carrier reaches the platform, or a firewall drops the UDP ports of RTP_PORTS.',
    ];
  const lost = (100 * number('packets_lost')) / (number('packets_in') + number('packets_lost'));
  return [
    `Estimated quality (MOS) ${number('mos').toFixed(1)} of 4.5; ${lost.toFixed(1)} % of the packets were lost, ${number('packets_late')} came too late; jitter ${number('jitter_ms').toFixed(0)} ms.`,
  ];
}

function deliveries(events: readonly LoggedEvent[]): readonly string[] {
  if (events.length === 0) return ['It has no events.'];
  const counts = new Map<string, number>();
  for (const { status } of events) counts.set(status, (counts.get(status) ?? 0) + 1);
  const said = [`Events: ${[...counts].map(([status, count]) => `${count} ${status}`).join(', ')}.`];
  const failed = events
    .flatMap(({ attempts }) => attempts)
    .filter(({ status }) => status === null || status < 200 || status > 299);
  const last = failed.at(-1);
  if (last !== undefined)
    said.push(
      `${counted(failed.length, 'delivery of a webhook', 'deliveries of webhooks')} failed, the last one ${last.status === null ? 'without an answer' : `with ${last.status}`}.`,
    );
  return said;
}
