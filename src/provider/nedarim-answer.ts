/**
 * Reads an answer of Nedarim Plus. Its own words, numbers and names are never passed on: each field is checked, or left
 * out.
 */
import type { ChargeOrder, ChargeOutcome } from '../machine/payment/charge.ts';

const INVALID: ChargeOutcome = { status: 'indeterminate', reason: 'provider_response_invalid' };

/** Reads the body of a 200. An answer that does not say clearly what happened leaves the charge indeterminate. */
export function outcomeOf(text: string, order: Pick<ChargeOrder, 'last4' | 'installments'>, now: number): ChargeOutcome {
  const answer = parsed(text);
  if (answer === undefined) return INVALID;
  if (answer.Status === 'Error') return { status: 'declined', reason: 'card_declined' };
  if (answer.Status !== 'OK') return INVALID;
  // It speaks of another card than the one that was charged.
  const last = word(answer.LastNum);
  if (!/^0*$/.test(last) && !order.last4.endsWith(last.slice(-4))) return INVALID;
  const installments = Number(word(answer.Tashloumim) || order.installments);
  return {
    status: 'succeeded',
    transactionCreatedAt: israelTime(word(answer.TransactionTime)) ?? now,
    receiptCreated: /^(true|1|yes)$/i.test(word(answer.ReceiptCreated)),
    installments: Number.isInteger(installments) && installments >= 1 && installments <= 99 ? installments : order.installments,
    transactionType:
      TYPES.get(word(answer.TransactionType).toUpperCase()) ?? (order.installments > 1 ? 'installments' : 'regular'),
    classification: shown(answer.Tayar, CLASSES),
    issuer: shown(answer.CompagnyCard, COMPANIES),
    acquirer: shown(answer.Solek, COMPANIES),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const word = (value: unknown): string =>
  typeof value === 'string' ? value.trim() : typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

const TYPES: ReadonlyMap<string, string> = new Map([
  ['RAGIL', 'regular'],
  ['REGULAR', 'regular'],
  ['1', 'regular'],
  ['רגיל', 'regular'],
  ['TASHLUMIM', 'installments'],
  ['TASHLOUMIM', 'installments'],
  ['תשלומים', 'installments'],
  ['8', 'installments'],
]);
/** Card companies by the numbers Israeli acquirers give them. */
const COMPANIES: ReadonlyMap<string, string> = new Map([
  ['1', 'isracard'],
  ['2', 'cal'],
  ['3', 'diners'],
  ['4', 'amex'],
  ['5', 'jcb'],
  ['6', 'max'],
]);
const CLASSES: ReadonlyMap<string, string> = new Map([
  ['0', 'regular'],
  ['1', 'debit'],
  ['2', 'prepaid'],
]);

/** A known number as its word; a short name without digits as it is, in lower_snake; anything else is left out. */
function shown(value: unknown, known: ReadonlyMap<string, string>): string {
  const text = word(value);
  const found = known.get(text.replace(/^0+(?=[0-9])/, ''));
  if (found !== undefined) return found;
  return /^[\p{L}][\p{L} _-]{0,39}$/u.test(text) ? text.toLowerCase().replaceAll(/[\s-]+/g, '_') : '';
}

/**
 * Reads a time that a clock in Israel shows, such as `20/11/2026 13:45:10` or `2026-11-20 13:45:10`. Undefined when it
 * is neither, or no day and time of any calendar, such as all zeros.
 */
function israelTime(text: string): number | undefined {
  const local = /^(\d{1,2})\/(\d{1,2})\/(\d{4})[ T](\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(text);
  const iso = /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2})(?::(\d{2}))?$/.exec(text);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (
    local !== null ? [local[3], local[2], local[1], local[4], local[5], local[6]] : iso !== null ? iso.slice(1) : []
  ).map((part) => Number(part ?? 0));
  const asUtc = Date.UTC(year, month - 1, day, hour, minute, second);
  // Date.UTC carries what is too large over, and takes the year 0 for 1900.
  const two = (part: number) => String(part).padStart(2, '0');
  const written = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}T${two(hour)}:${two(minute)}:${two(second)}.000Z`;
  if (new Date(asUtc).toISOString() !== written) return undefined;
  // Twice, so that the hour around a change of the clocks is right as well.
  const guess = asUtc - offsetMs(asUtc);
  return asUtc - offsetMs(guess);
}

const ISRAEL = new Intl.DateTimeFormat('en-US', {
  timeZone: 'Asia/Jerusalem',
  hourCycle: 'h23',
  hour: 'numeric',
  day: 'numeric',
});

/** Milliseconds by which the clocks of Israel are ahead of UTC at that moment. */
function offsetMs(at: number): number {
  const parts = ISRAEL.formatToParts(at);
  const hour = Number(parts.find(({ type }) => type === 'hour')?.value);
  const ahead = (hour - new Date(at).getUTCHours() + 24) % 24;
  return ahead * 3_600_000;
}
