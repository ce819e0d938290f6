const E164 = /^\+[1-9][0-9]{1,14}$/;

/** The pattern of an E.164 number with leading `+`, for JSON Schema. */
export const E164_PATTERN = E164.source;

/** Tells whether `text` is E.164 with a leading `+` (ITU-T E.164: at most 15 digits). */
export const isE164 = (text: string): boolean => E164.test(text);

/**
 * The E.164 form of the user part of a SIP URI as carriers write it: `+15551234567`, `15551234567`, `0015551234567`,
 * with visual separators (RFC 3966 §5.1.1). Undefined when it is no international number.
 */
export function toE164(user: string): string | undefined {
  const bare = user.split(';', 1)[0]?.replace(/[-.()\s]/g, '') ?? '';
  const digits = bare.startsWith('+') ? bare.slice(1) : bare.startsWith('00') ? bare.slice(2) : bare;
  const number = `+${digits}`;
  return isE164(number) ? number : undefined;
}
