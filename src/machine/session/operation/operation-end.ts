/** The events that end an operation of a call: digits that were sent, a transfer, and the detection of a machine. */
import type { Answerer, Event } from '../../../event/event.ts';

export type TransferFailure = 'refused' | 'failed' | 'timeout' | 'session_ended';

interface Digits {
  readonly operationUuid: string;
  readonly digits: string;
}

export const dtmfSent = (sessionUuid: string, { operationUuid, digits }: Digits, status: 'completed' | 'stopped'): Event => ({
  event: 'dtmf.sent',
  session_uuid: sessionUuid,
  operation_uuid: operationUuid,
  digits,
  status,
});

/** `status` is that of the SIP answer, or 0 where there was none. */
export const transferFailed = (sessionUuid: string, operationUuid: string, reason: TransferFailure, status = 0): Event => ({
  event: 'session.transfer.failed',
  session_uuid: sessionUuid,
  operation_uuid: operationUuid,
  ...(status === 0 ? {} : { sip_status: status }),
  reason,
});

/** `afterMs`: from the answer to the verdict. */
export const detectionCompleted = (sessionUuid: string, result: Answerer, afterMs: number): Event => ({
  event: 'session.machine_detection.completed',
  session_uuid: sessionUuid,
  result,
  after_ms: Math.max(0, Math.round(afterMs)),
});

export const greetingEnded = (sessionUuid: string, beep: boolean): Event => ({
  event: 'session.machine_greeting.ended',
  session_uuid: sessionUuid,
  beep,
});
