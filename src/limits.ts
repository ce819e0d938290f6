/** Every bound of the platform that is not an environment variable, with its unit at the end of the name. */

// Interface, Limits.
export const BODY_MAX_BYTES = 1024 * 1024;
export const COMMAND_BODY_MAX_BYTES = 64 * 1024;
export const LIST_MATCHED_MAX_ITEMS = 50_000;
export const LIST_DEFAULT_ITEMS = 1_000;

// Contract §2, dial.
export const RING_TIMEOUT_MAX_SEC = 600;
export const CALL_DURATION_DEFAULT_SEC = 14_400;
export const CLIENT_STATE_MAX_CHARS = 1_024;

// An ended Session still answers terminal commands for this long (contract §2).
export const ENDED_SESSION_KEPT_SEC = 24 * 3600;

/** Inputs waiting for one actor; past this the Session is ended as `failed`, which no caller can provoke at 20 commands/s. */
export const MAILBOX_MAX_INPUTS = 1_000;
/** Live Sessions of one node; a dial past it is 529, an INVITE 503. */
export const LIVE_SESSIONS_MAX = 50_000;
