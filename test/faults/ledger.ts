/**
 * What is owed for each command that was admitted: the event that tells its outcome, once. An event can come before the
 * answer of its command has been read.
 */
import type { Heard } from './witness.ts';

/** The last status of a message: nothing follows it. */
const LAST_STATUSES = ['delivered', 'undelivered', 'failed'];

export class Ledger {
  readonly #owed = new Set<string>();
  readonly #told = new Map<string, number>();
  /** Outcomes that were told twice. */
  readonly doubled: string[] = [];
  /** Commands that were admitted, by kind. */
  readonly admitted = new Map<string, number>();

  owe(debt: string): void {
    const [kind = ''] = debt.split(' ');
    this.admitted.set(kind, (this.admitted.get(kind) ?? 0) + 1);
    this.#owed.add(debt);
  }

  take(heard: Heard): void {
    const debt = debtOf(heard);
    if (debt === undefined) return;
    const told = (this.#told.get(debt) ?? 0) + 1;
    this.#told.set(debt, told);
    if (told > 1) this.doubled.push(`${debt} was told ${told} times`);
  }

  /** What was admitted and not told yet. */
  open(): readonly string[] {
    return [...this.#owed].filter((debt) => !this.#told.has(debt));
  }

  get count(): number {
    return this.#owed.size;
  }
}

/** The debt that an event pays, or undefined where it pays none. */
function debtOf({ event, body }: Heard): string | undefined {
  const operation = String(body.operation_uuid);
  switch (event) {
    case 'session.ended':
      return `session ${body.session_uuid}`;
    case 'playback.ended':
    case 'playback.failed':
      return body.reason === 'no_active_playback' ? undefined : `playback ${operation}`;
    case 'room.playback.ended':
    case 'room.playback.failed':
      return `room_playback ${operation}`;
    case 'digits.collected':
      return `collection ${operation}`;
    case 'dtmf.sent':
      return `digits ${operation}`;
    case 'recording.ended':
      return `recording ${body.recording_uuid}`;
    case 'room.created':
      return `room ${body.room_id}`;
    case 'room.deleted':
      return `room_end ${body.room_id}`;
    case 'room.member.volume_changed':
    case 'room.member.volume_change_failed':
      return `volume ${operation}`;
    case 'payment.card.collected':
    case 'payment.cvv.collected':
      return `card ${operation}`;
    case 'payment.charge.completed':
      return `charge ${operation}`;
    case 'message.status_changed':
      return LAST_STATUSES.includes(String(body.status)) ? `message ${body.message_uuid}` : undefined;
    default:
      return undefined;
  }
}
