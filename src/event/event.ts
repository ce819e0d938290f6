/**
 * The webhook events of the interface as one closed union, and their wire form. A machine emits an `Event`; the actor
 * turns it into a
 * `PlatformEvent` (identified, timestamped, serialised once: the body is byte-identical over all attempts) inside the
 * commit that changes the state.
 */
import type { CallQuality, SipEnd, SipFacts } from './call-report.ts';
import type { HangupBy, HangupCause } from './hangup.ts';
import type { RecordingEvent } from './recording-event.ts';
import type { RoomEvent } from './room-event.ts';
import type { WebSocketEvent } from './websocket-event.ts';

export type Event =
  | RecordingEvent
  | RoomEvent
  | WebSocketEvent
  | {
      event: 'session.created';
      session_uuid: string;
      caller_id: string;
      did: string;
      type: 'phone_in' | 'sip' | 'webrtc';
      sip?: SipFacts;
    }
  | { event: 'session.ringing_started'; session_uuid: string }
  | { event: 'session.early_media_started'; session_uuid: string }
  | { event: 'session.answered'; session_uuid: string; operation_uuid?: string; sip?: SipFacts }
  | { event: 'session.held' | 'session.resumed'; session_uuid: string; by: 'far_end' | 'application' }
  | { event: 'dtmf.sent'; session_uuid: string; operation_uuid: string; digits: string; status: 'completed' | 'stopped' }
  | { event: 'session.transfer.completed'; session_uuid: string; operation_uuid: string }
  | {
      event: 'session.transfer.failed';
      session_uuid: string;
      operation_uuid: string;
      sip_status?: number;
      reason: 'refused' | 'failed' | 'timeout' | 'session_ended';
    }
  | { event: 'session.transfer.requested'; session_uuid: string; target: string; to_session_uuid?: string }
  | { event: 'session.machine_detection.completed'; session_uuid: string; result: Answerer; after_ms: number }
  | { event: 'session.machine_greeting.ended'; session_uuid: string; beep: boolean }
  | {
      event: 'session.ended';
      session_uuid: string;
      answered: boolean;
      hangup_cause: HangupCause;
      hangup_by: HangupBy;
      hangup_description: string;
      duration_seconds: number;
      operation_uuid?: string;
      sip?: SipEnd;
      quality?: CallQuality;
    }
  | { event: 'playback.started'; session_uuid: string; operation_uuid: string; urls: readonly string[] }
  | {
      event: 'playback.ended';
      session_uuid: string;
      operation_uuid: string;
      urls?: readonly string[];
      reason: 'completed' | 'stopped';
    }
  | {
      event: 'playback.failed';
      session_uuid: string;
      operation_uuid: string;
      urls?: readonly string[];
      reason: PlaybackFailure;
      source_index?: number;
    }
  | {
      event: 'dtmf.received';
      session_uuid: string;
      digit: string;
      duration_ms: number;
      method: 'rfc4733' | 'inband' | 'sip_info';
    }
  | {
      event: 'digits.collected';
      session_uuid: string;
      operation_uuid: string;
      status: 'success' | 'no_input' | 'partial_then_timeout' | 'cancelled' | 'failure';
      digits: string;
      terminator: string;
      reason?: string;
    }
  | {
      event: 'message.status_changed';
      message_uuid: string;
      operation_uuid: string;
      status: string;
      from: string;
      to: string;
      segments: number;
      error_code: string;
      error_message: string;
    }
  | {
      event: 'message.received';
      message_uuid: string;
      from: string;
      to: string;
      text: string;
      segments: number;
      missing_segments: number;
    }
  | {
      event: 'payment.card.collected';
      session_uuid: string;
      operation_uuid: string;
      status: 'collected';
      card_uuid: string;
      payment_method_details: { readonly card: { readonly brand: string; readonly last4: string } };
    }
  | { event: 'payment.cvv.collected'; session_uuid: string; operation_uuid: string; status: 'collected'; cvv_uuid: string }
  | {
      event: 'payment.card.collected' | 'payment.cvv.collected';
      session_uuid: string;
      operation_uuid: string;
      status: 'failed';
      reason: CollectionFailure;
    }
  | {
      event: 'payment.charge.completed';
      session_uuid: string;
      operation_uuid: string;
      status: 'succeeded' | 'declined' | 'failed' | 'indeterminate';
      retryable: boolean;
      amount: number;
      currency: string;
      provider: string;
      terminal_number: string;
      failure_reason?: string;
      transaction_created_at?: string;
      receipt_created?: boolean;
      installments?: number;
      transaction_type?: string;
      payment_method_details?: {
        readonly card: {
          readonly brand: string;
          readonly last4: string;
          readonly classification: string;
          readonly issuer: string;
          readonly acquirer: string;
        };
      };
    };

/** Contract §6: why a card or CVV was not collected. */
export type CollectionFailure =
  | 'luhn_check_failed'
  | 'no_input'
  | 'incomplete_input'
  | 'invalid_length'
  | 'unsupported_brand'
  | 'cancelled'
  | 'session_ended'
  | 'playback_source_error'
  | 'internal_error';

/** The one who answered a call, as far as it is known. */
export type Answerer = 'human' | 'machine' | 'unknown';

/** Contract §3. */
export type PlaybackFailure =
  | 'media_unavailable'
  | 'no_active_playback'
  | 'source_disconnected'
  | 'ingest_timeout'
  | 'decode_error'
  | 'internal_error';

/** One event as it is stored and sent. */
export interface PlatformEvent {
  /** `evt_<uuid-v4>`, the `Webhook-Id` of every attempt. */
  readonly webhookId: string;
  readonly appUuid: string;
  readonly name: string;
  /** The Session the event is about, if any: the `session_uuid` filter of the event log. */
  readonly sessionUuid: string | undefined;
  /**
   * Every lane the event must be the head of before it is sent (contract §9), as `session:<uuid>`, `room:<id>`,
   * `message:<uuid>`…
   */
  readonly lanes: readonly string[];
  /** The exact JSON text of the webhook's body. */
  readonly body: string;
  /** `traceparent` of the request that caused the event, or `""`. */
  readonly traceparent: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}
