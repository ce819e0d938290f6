/** The schemas of the events of Sessions: calls, and connections to bots. */
import type { Answerer } from '../../../event/event.ts';
import type { HangupBy, HangupCause } from '../../../event/hangup.ts';
import type { WebSocketClosed, WebSocketError, WebSocketFailure } from '../../../event/websocket-event.ts';
import { flag, oneOfWords, openObject, openWord, ref, type Schema, text, whole } from '../schema.ts';
import { count, milliseconds, operationUuid, toldOfSession } from './event-schema.ts';

/** The causes that are known today. A receiver treats any other as `failed`. */
const CAUSES: Readonly<Record<HangupCause, true>> = {
  completed: true,
  busy: true,
  rejected: true,
  timeout: true,
  not_answered: true,
  invalid_number: true,
  cancelled: true,
  carrier_congested: true,
  carrier_unreachable: true,
  failed: true,
  number_not_found: true,
};
const by = oneOfWords<'far_end' | 'application'>({ far_end: true, application: true });
const number = (value: string): Schema => ({
  type: 'string',
  description: `${value} in E.164, or \`""\` where it is no number.`,
});

/** The objects that events of calls carry. */
export const CALL_REPORTS = {
  SipFacts: {
    ...openObject(
      { call_id: text },
      {
        trunk: { type: 'string', description: 'Absent in calls of devices.' },
        device: { type: 'string', description: 'The device user who calls.' },
        dialled: { type: 'string', description: 'What the device has dialled, as it was sent.' },
        codec: { type: 'string', description: 'As SDP names it.' },
        headers: {
          type: 'object',
          additionalProperties: text,
          description: 'The `X-` header fields of the far end, names as they were sent.',
        },
        p_asserted_identity: text,
        diversion: text,
        history_info: text,
        verstat: { type: 'string', description: 'The verification of the caller’s number (ATIS-1000082).' },
      },
    ),
    description: 'What SIP says of a call as it begins. A field without a value is left out.',
  },
  SipEnd: {
    ...openObject(
      {},
      {
        status: { type: 'integer', description: 'The status that the far end refused the call with.' },
        q850: { type: 'integer', description: 'The Q.850 cause of its Reason.' },
        reason: { type: 'string', description: 'The text of its Reason, else the reason phrase of the response.' },
      },
    ),
    description: 'What the far end said at the end of a call. A field without a value is left out.',
  },
  CallQuality: {
    ...openObject({
      packets_in: count,
      packets_out: count,
      packets_lost: count,
      packets_late: count,
      jitter_ms: { type: 'number' },
      round_trip_ms: { type: 'number' },
      buffer_ms: { type: 'number', description: 'The delay of the jitter buffer.' },
      mos: { type: 'number', description: 'ITU-T G.107, 1 to 4.5; 0 when nothing was heard.' },
      codec: text,
    }),
    description: 'How a call sounded.',
  },
} as const;

const PROGRESS = {
  SessionCreatedEvent: toldOfSession(
    'session.created',
    'A call comes in.',
    {
      caller_id: number('The caller'),
      did: number('The number that was called,'),
      type: oneOfWords<'phone_in' | 'sip' | 'webrtc' | 'unknown'>({ phone_in: true, sip: true, webrtc: true, unknown: true }),
    },
    { sip: ref('SipFacts') },
  ),
  SessionRingingStartedEvent: toldOfSession('session.ringing_started', 'The far end of a dial rings.'),
  SessionEarlyMediaStartedEvent: toldOfSession(
    'session.early_media_started',
    'The far end of a dial sends audio before it answers.',
  ),
  SessionAnsweredEvent: toldOfSession(
    'session.answered',
    'The call was answered.',
    {},
    {
      operation_uuid: { ...operationUuid, description: 'The answer command, or the dial.' },
      sip: ref('SipFacts'),
    },
  ),
  SessionHeldEvent: toldOfSession('session.held', 'The far end, or the application, holds the call.', { by }),
  SessionResumedEvent: toldOfSession('session.resumed', 'The far end, or the application, resumes the call.', { by }),
  SessionEndedEvent: toldOfSession(
    'session.ended',
    'The Session is over. It comes once for each Session, whatever ended it.',
    {
      answered: flag,
      hangup_cause: openWord(Object.keys(CAUSES), 'Treat one that you do not know as `failed`.'),
      hangup_by: oneOfWords<HangupBy>({ caller: true, callee: true, system: true, network: true, unknown: true }),
      hangup_description: { type: 'string', description: 'English, to be shown. Never branch on it.' },
      duration_seconds: { ...count, description: '0 when it was not answered.' },
    },
    {
      operation_uuid: { ...operationUuid, description: 'The command that ended it.' },
      sip: ref('SipEnd'),
      quality: ref('CallQuality'),
    },
  ),
} as const;

const TRANSFERS_AND_MACHINES = {
  SessionTransferCompletedEvent: toldOfSession('session.transfer.completed', 'The far end was transferred.', {
    operation_uuid: operationUuid,
  }),
  SessionTransferFailedEvent: toldOfSession(
    'session.transfer.failed',
    'The far end was not transferred; the call goes on, unless it ended.',
    {
      operation_uuid: operationUuid,
      reason: oneOfWords<'refused' | 'failed' | 'timeout' | 'session_ended'>({
        refused: true,
        failed: true,
        timeout: true,
        session_ended: true,
      }),
    },
    { sip_status: { type: 'integer', description: 'The status that the transfer failed with, where there is one.' } },
  ),
  SessionTransferRequestedEvent: toldOfSession(
    'session.transfer.requested',
    'The far end asks to be transferred.',
    { target: { type: 'string', description: 'A URI, as it was sent.' } },
    {
      to_session_uuid: {
        type: 'string',
        description:
          'The live Session of your application that the far end wants to be connected with, where it has two calls with the platform (Replaces in `target`). Absent otherwise.',
      },
    },
  ),
  SessionMachineDetectionCompletedEvent: toldOfSession(
    'session.machine_detection.completed',
    'Who answered a dial with `machine_detection`.',
    { result: oneOfWords<Answerer>({ human: true, machine: true, unknown: true }), after_ms: milliseconds },
  ),
  SessionMachineGreetingEndedEvent: toldOfSession(
    'session.machine_greeting.ended',
    'The greeting of a machine is over, or the call is.',
    { beep: flag },
  ),
} as const;

const WEBSOCKETS = {
  WebsocketConnectedEvent: toldOfSession(
    'websocket.connected',
    'The connection to the WebSocket server was made.',
    { operation_uuid: operationUuid },
    {
      subprotocol: {
        type: 'string',
        description:
          'What the server agreed to, and `twilio` where that was asked for. Left out where it agreed to none: its text messages are ignored.',
      },
    },
  ),
  WebsocketDisconnectedEvent: toldOfSession('websocket.disconnected', 'The connection is over.', {
    reason: oneOfWords<WebSocketClosed>({
      remote_closed: true,
      local_closed: true,
      keepalive_timeout: true,
      protocol_error: true,
      network_error: true,
    }),
    close_code: { ...whole, description: 'RFC 6455 §7.4; 1006 when the connection was lost.' },
  }),
  WebsocketFailedEvent: toldOfSession('websocket.failed', 'The connection to the WebSocket server was not made.', {
    operation_uuid: operationUuid,
    reason: oneOfWords<WebSocketFailure>({
      connection_precondition_failed: true,
      connect_timeout: true,
      connection_refused: true,
      dns_failed: true,
      tls_failed: true,
      handshake_rejected: true,
    }),
    error: oneOfWords<WebSocketError>({
      timeout: true,
      network: true,
      tls: true,
      http_4xx: true,
      http_5xx: true,
      policy: true,
      internal: true,
    }),
  }),
  WebsocketAudioPlaybackCompletedEvent: toldOfSession(
    'websocket.audio_playback_completed',
    'What the WebSocket server had sent has been heard.',
    { duration_ms: milliseconds },
  ),
} as const;

export const SESSION_EVENTS = { ...PROGRESS, ...TRANSFERS_AND_MACHINES, ...WEBSOCKETS } as const;
