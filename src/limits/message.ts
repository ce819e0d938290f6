/** The limits of short messages, of the link to an SMSC, and of payments. Import them from limits.ts. */

// Messages (contract §7).
export const MESSAGE_TEXT_MAX_CHARS = 1_600;
/** Messages of one application that wait to be submitted; past it a POST is 503 with `Retry-After`. */
export const MESSAGES_WAITING_MAX = 10_000;
export const MESSAGE_RETENTION_DAYS = 30;
/** What is due is looked for this often without a wake-up. A process with a database for itself does it less often. */
export const MESSAGE_POLL_MS = 5_000;
export const MESSAGE_LONE_POLL_MS = 30_000;
/** A claim takes no more messages after so many milliseconds. It is one transaction, which has QUERY_MAX_MS. */
export const MESSAGE_CLAIM_MS = 2_000;
/**
 * A receipt may overtake the response that names its message: how often, and how long apart, it is looked up before it
 * counts as nobody's.
 */
export const RECEIPT_LOOKUPS_MAX = 5;
export const RECEIPT_LOOKUP_WAIT_MS = 200;
/** Receipts being looked up; past it the SMSC is asked to send them again. */
export const RECEIPTS_PENDING_MAX = 1_000;
/** Receipts that came before the responses to their submissions, and for how long each waits for them. */
export const EARLY_RECEIPTS_MAX = 1_000;
export const EARLY_RECEIPT_WAIT_MS = 300_000;

/** Messages from telephones that are being stored; the SMSC is asked for further ones again. */
export const RECEIVED_PENDING_MAX = 200;
/** So many are remembered of those of which the database did not tell whether it took them. */
export const RECEIVED_DOUBTED_MAX = 1_000;
/** What there is of a message is told when a segment has not come for so long. */
export const RECEIVED_WAIT_MS = 600_000;
/** Messages of which a segment is missing that are told in one look. */
export const RECEIVED_GIVEN_UP_MAX = 100;
/** What came within this time before a link was lost may come again on the next, its acknowledgement being lost. */
export const RECEIVED_AGAIN_MS = 60_000;
/** What came is kept for so long, so that it is known when it comes again. */
export const RECEIVED_KEPT_SEC = 86_400;

// SMPP 3.4.
export const SMPP_PDU_MAX_BYTES = 16 * 1024;
export const SMPP_CONNECT_TIMEOUT_MS = 10_000;
/** SMPP 3.4 §7.2, response_timer. */
export const SMPP_RESPONSE_TIMEOUT_MS = 20_000;
/** SMPP 3.4 §7.2, enquire_link_timer. */
export const SMPP_ENQUIRE_LINK_MS = 30_000;
/** Submissions that are under way when the link is let go are waited for, no longer than this. */
export const SMPP_LAST_RESPONSES_MS = 5_000;
export const SMPP_WINDOW_DEFAULT = 10;
export const SMPP_WINDOW_MAX = 100;
export const SMPP_RATE_MAX_PER_SEC = 10_000;
export const SMPP_RECONNECT_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000] as const;
/** PDUs of an SMSC that are taken in one turn of the event loop; the rest waits, and its socket is not read. */
export const SMPP_TURN_MAX_PDUS = 32;
/** Bytes waiting to be written to an SMSC; past it the connection is given up. */
export const SMPP_WRITE_BUFFER_MAX_BYTES = 1024 * 1024;
/** What an SMSC brings to nobody is told once in this time. */
export const MESSAGES_SAID_EVERY_MS = 60_000;

// Payments (contract §6).
export const PAYMENT_ATTEMPTS_MAX = 5;
/** A collection with all its attempts; `*` could start over for ever. */
export const PAYMENT_COLLECT_MAX_MS = 600_000;
/**
 * Keys that are told within this after a collection belong to it still: a tone is told 300 ms late, in case an event is
 * its own.
 */
export const PAYMENT_QUIET_MS = 500;
/** The same after one that failed without a terminator: keys go on for as long as the caller has not noticed. */
export const PAYMENT_CUT_OFF_QUIET_MS = 3_000;
export const PAYMENT_PROMPTS_MAX = 10;
export const CHARGE_INSTALLMENTS_MAX = 36;
/** 2^31 - 1, what the row holds. */
export const CHARGE_AMOUNT_MAX = 2_147_483_647;
export const CHARGE_PROVIDER_TIMEOUT_MS = 30_000;
export const CHARGE_ANSWER_MAX_BYTES = 64 * 1024;
/** Charges with the provider; a further one is 503 with `Retry-After`. */
export const CHARGES_IN_FLIGHT_MAX = 500;
/** A charge that is not settled for this long was left by a process that is gone; longer than any provider may take. */
export const CHARGE_LEFT_AFTER_MS = 120_000;
export const CHARGE_RETENTION_DAYS = 30;
/** Expired references are destroyed no later than this after their time. */
export const VAULT_SWEEP_MAX_MS = 30_000;
