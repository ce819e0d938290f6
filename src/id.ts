/** The form of a lowercase RFC 4122 version 4 UUID. */
export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The hexadecimal digits of 48 bits. */
const STAMP_DIGITS = 12;

/** A lowercase RFC 4122 version 4 UUID. */
export const newUuid = (): string => crypto.randomUUID();

export const newAppUuid = (): string => `app_${newUuid()}`;

let stampedAt = Number.NaN;
let stamp = '';

/**
 * A UUID of the form of version 4 that begins with the time in milliseconds, as one of version 7 does (RFC 9562 §5.7);
 * 74 random bits are left. What is inserted with each call goes to the end of its index then, not to any page of it
 * (docs/decisions/ids-by-time.md).
 */
function timedUuid(): string {
  const now = Date.now();
  if (now !== stampedAt) {
    const hex = now.toString(16).padStart(STAMP_DIGITS, '0');
    stamp = `${hex.slice(0, 8)}-${hex.slice(8)}`;
    stampedAt = now;
  }
  return stamp + newUuid().slice(stamp.length);
}

export const newSessionUuid = timedUuid;
export const newWebhookId = (): string => `evt_${timedUuid()}`;

/** Tells whether `text` is a lowercase RFC 4122 version 4 UUID (interface, Identifier shapes). */
export const isUuid = (text: string): boolean => UUID_V4.test(text);

/** The form of `app_<uuid-v4>`. */
export const APP_UUID = new RegExp(`^app_${UUID_V4.source.slice(1)}`);

/** Tells whether `text` is `app_<uuid-v4>`. */
export const isAppUuid = (text: string): boolean => text.startsWith('app_') && isUuid(text.slice(4));

/** Tells whether `text` is `rec_<uuid-v4>`. */
export const isRecordingUuid = (text: string): boolean => text.startsWith('rec_') && isUuid(text.slice(4));
