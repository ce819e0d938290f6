/** The meaning of the `command_status` of a `submit_sm_resp` for its message (SMPP 3.4 table 5-2). */
import type { PartOutcome } from '../machine/message/gateway.ts';

/** The SMSC does not take this connection for bound. */
export const ESME_RINVBNDSTS = 0x04;
/** A destination that nobody here has. */
export const ESME_RINVDSTADR = 0x0b;
export const ESME_RX_T_APPN = 0x64;
/** The application will never take that message. */
export const ESME_RX_P_APPN = 0x65;
/** The queue of the SMSC is full. */
const ESME_RMSGQFUL = 0x14;
const ESME_RTHROTTLED = 0x58;

/** Statuses that mean "not now": bind state, system error, full queue, throttled, temporary application error. */
const LATER: ReadonlySet<number> = new Set([ESME_RINVBNDSTS, 0x08, ESME_RMSGQFUL, ESME_RTHROTTLED, ESME_RX_T_APPN]);

const REFUSED: ReadonlyMap<number, readonly [code: string, message: string]> = new Map([
  [0x01, ['message_too_long', 'The message is too long for the carrier']],
  [0x0a, ['invalid_sender', 'The carrier does not accept the sender']],
  [ESME_RINVDSTADR, ['invalid_recipient', 'The carrier does not accept the recipient']],
  [0x45, ['submit_failed', 'The carrier could not take the message']],
  [0x48, ['invalid_sender', 'The carrier does not accept the sender']],
  [0x50, ['invalid_recipient', 'The carrier does not accept the recipient']],
  [0x66, ['rejected', 'The carrier rejected the message']],
]);

/** Whether the SMSC asks for fewer messages a second. */
export const isThrottled = (status: number): boolean => status === ESME_RTHROTTLED || status === ESME_RMSGQFUL;

/** The outcome of a status other than 0. */
export function refusalOf(status: number): PartOutcome {
  if (LATER.has(status)) return { outcome: 'later' };
  const [code, message] = REFUSED.get(status) ?? ['rejected', 'The carrier rejected the message'];
  return { outcome: 'refused', code, message: `${message} (command_status 0x${status.toString(16).padStart(8, '0')})` };
}
