const E164 = /^\+[1-9][0-9]{1,14}$/;

/** The pattern of an E.164 number with leading `+`, for JSON Schema. */
export const E164_PATTERN = E164.source;

/** Tells whether `text` is E.164 with a leading `+` (ITU-T E.164: at most 15 digits). */
export const isE164 = (text: string): boolean => E164.test(text);
