// Written by sdk/generate.ts from the OpenAPI document. Do not edit.
import { Listing, type RequestOptions, type Transport } from './transport.ts';

export type ApplicationSettings = {
  readonly app_uuid: string;
  readonly inbound_phone_numbers: readonly (string)[];
  readonly outbound_caller_ids: readonly (string)[];
  readonly webhook_url: string;
  readonly webhook_status: {
    readonly state: "enabled" | "disabled" | "unset";
    readonly since: string;
    readonly last_error: string;
  };
  readonly blocked_webhook_events: readonly (string)[];
  readonly room_limits: {
    readonly max_rooms: number;
    readonly max_members_per_room: number;
  };
  readonly recording_store?: {
    readonly kept_bytes: number;
    readonly max_bytes: number;
  };
};

export type CallQuality = {
  readonly packets_in: number;
  readonly packets_out: number;
  readonly packets_lost: number;
  readonly packets_late: number;
  readonly jitter_ms: number;
  readonly round_trip_ms: number;
  /** The delay of the jitter buffer. */
  readonly buffer_ms: number;
  /** ITU-T G.107, 1 to 4.5; 0 when nothing was heard. */
  readonly mos: number;
  readonly codec: string;
};

export type DigitsCollectedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "digits.collected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly status: "success" | "no_input" | "partial_then_timeout" | "cancelled" | "failure";
  readonly digits: string;
  /** The key that ended it; `""` for none. */
  readonly terminator: string;
  /** Why it failed, or was cancelled without a command for it. Known values: `too_few_digits`, `session_ended`, `media_unavailable`, `no_active_playback`, `source_disconnected`, `ingest_timeout`, `decode_error`, `internal_error`. */
  readonly reason?: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type DtmfReceivedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "dtmf.received";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly digit: string;
  readonly duration_ms: number;
  readonly method: "rfc4733" | "inband" | "sip_info";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type DtmfSentEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "dtmf.sent";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly digits: string;
  readonly status: "completed" | "stopped";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type Member = {
  readonly uuid: string;
  readonly muted: boolean;
};

export type MemberList = {
  readonly members: readonly (Member)[];
};

export type Message = {
  readonly message_uuid: string;
  readonly direction: "outbound";
  readonly from: string;
  readonly to: string;
  readonly text: string;
  readonly status: "queued" | "sending" | "sent" | "delivered" | "undelivered" | "failed";
  readonly segments: number;
  readonly encoding: "gsm7" | "ucs2";
  readonly error_code: string;
  readonly error_message: string;
  readonly created_at: string;
  readonly updated_at: string;
  /** RFC 3339; empty while there is none. */
  readonly sent_at: string;
  /** RFC 3339; empty while there is none. */
  readonly delivered_at: string;
};

export type MessageList = {
  readonly messages: readonly (Message)[];
};

export type MessageOperation = {
  readonly message_uuid: string;
  readonly operation_uuid: string;
  readonly status: "queued";
};

export type MessageReceivedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "message.received";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly message_uuid: string;
  /** E.164 where it is a number; else as the carrier gives it: a short code, a name. */
  readonly from: string;
  readonly to: string;
  readonly text: string;
  /** 1 to 255. */
  readonly segments: number;
  /** Segments that did not come within ten minutes, and are left out. */
  readonly missing_segments: number;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type MessageStatusChangedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "message.status_changed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly message_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly status: "sending" | "sent" | "delivered" | "undelivered" | "failed";
  readonly from: string;
  readonly to: string;
  readonly segments: number;
  /** `""` for none. */
  readonly error_code: string;
  /** English, to be shown; `""` for none. */
  readonly error_message: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type Operation = {
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed";
  /** The Session had ended before. */
  readonly already_ended?: true;
};

export type PaymentCardCollectedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "payment.card.collected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly status: "collected";
  readonly card_uuid: string;
  readonly payment_method_details: {
    readonly card: {
      readonly brand: "visa" | "mastercard" | "amex" | "diners" | "discover" | "jcb" | "maestro" | "isracard" | "unknown";
      readonly last4: string;
    };
  };
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
} | {
  /** The application. */
  readonly aud: string;
  readonly event: "payment.card.collected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly status: "failed";
  readonly reason: "luhn_check_failed" | "no_input" | "incomplete_input" | "invalid_length" | "unsupported_brand" | "cancelled" | "session_ended" | "playback_source_error" | "internal_error";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type PaymentChargeCompletedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "payment.charge.completed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** `true` only where nothing has left the platform. */
  readonly retryable: boolean;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly terminal_number: string;
  readonly status: "succeeded";
  readonly transaction_created_at: string;
  readonly receipt_created: boolean;
  readonly installments: number;
  /** How it was charged. Known values: `regular`, `installments`. */
  readonly transaction_type: string;
  readonly payment_method_details: {
    readonly card: {
      readonly brand: "visa" | "mastercard" | "amex" | "diners" | "discover" | "jcb" | "maestro" | "isracard" | "unknown";
      readonly last4: string;
      readonly classification: string;
      readonly issuer: string;
      readonly acquirer: string;
    };
  };
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
} | {
  /** The application. */
  readonly aud: string;
  readonly event: "payment.charge.completed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** `true` only where nothing has left the platform. */
  readonly retryable: boolean;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly terminal_number: string;
  /** `indeterminate`: it is not known whether the card was charged. */
  readonly status: "declined" | "failed" | "indeterminate";
  /** A word for programs; the set grows with the providers. Known values: `card_declined`, `provider_timeout`, `provider_unreachable`, `provider_response_invalid`, `interrupted`, `internal_error`. */
  readonly failure_reason: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type PaymentCvvCollectedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "payment.cvv.collected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly status: "collected";
  readonly cvv_uuid: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
} | {
  /** The application. */
  readonly aud: string;
  readonly event: "payment.cvv.collected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly status: "failed";
  readonly reason: "luhn_check_failed" | "no_input" | "incomplete_input" | "invalid_length" | "unsupported_brand" | "cancelled" | "session_ended" | "playback_source_error" | "internal_error";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type PlaybackEndedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "playback.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly reason: "completed" | "stopped";
  /** The whole playlist, in its order. Absent for a stream, a silence or a push. */
  readonly urls?: readonly (string)[];
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type PlaybackFailedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "playback.failed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly reason: "media_unavailable" | "no_active_playback" | "source_disconnected" | "ingest_timeout" | "decode_error" | "internal_error";
  /** The whole playlist, in its order. Absent for a stream, a silence or a push. */
  readonly urls?: readonly (string)[];
  /** The source that failed, where one is known. */
  readonly source_index?: number;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type PlaybackOperation = {
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed";
  readonly ingest?: {
    readonly url: string;
    readonly method: "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly expires_at: string;
  };
};

export type PlaybackStartedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "playback.started";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** The whole playlist, in its order. */
  readonly urls: readonly (string)[];
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type Recording = {
  readonly recording_uuid: string;
  readonly session_uuid: string;
  readonly state: "active" | "stopping";
  readonly masked: boolean;
  readonly direction: "both";
  readonly channels: "mono";
  readonly include_gaps: boolean;
  readonly enable_voice_activity_events: boolean;
  readonly available: boolean;
  readonly created_at: string;
  /** Seconds so far, rounded down. */
  readonly duration: number;
  readonly media_url: string;
  readonly live_url: string;
  /** RFC 3339; empty while there is none. */
  readonly expires_at: string;
};

export type RecordingBecameAvailableEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.became_available";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  /** Signed; valid until `expires_at`. */
  readonly pull_url: string;
  /** Signed; valid until `expires_at`. */
  readonly live_url: string;
  readonly expires_at: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
} | {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.became_available";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly room_id: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  /** Signed; valid until `expires_at`. */
  readonly pull_url: string;
  /** Signed; valid until `expires_at`. */
  readonly live_url: string;
  readonly expires_at: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RecordingEndedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  /** Signed; valid until `expires_at`. */
  readonly pull_url: string;
  readonly expires_at: string;
  /** Seconds, rounded down. */
  readonly duration: number;
  /** The file was out of reach, so `duration` is 0 and says nothing. It is mended when it is back. */
  readonly duration_unknown?: true;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
} | {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly room_id: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  /** Signed; valid until `expires_at`. */
  readonly pull_url: string;
  readonly expires_at: string;
  /** Seconds, rounded down. */
  readonly duration: number;
  /** The file was out of reach, so `duration` is 0 and says nothing. It is mended when it is back. */
  readonly duration_unknown?: true;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RecordingFailedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.failed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  readonly error: "recording unavailable";
  readonly pull_url: "";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RecordingList = {
  readonly recordings: readonly (Recording)[];
};

export type RecordingOperation = {
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed";
  readonly room_id?: string;
};

export type RecordingSpeechEndedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.speech.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RecordingSpeechStartedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "recording.speech.started";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  /** The operation that created the recording. */
  readonly operation_uuid: string;
  /** Absent the first time. */
  readonly preceding_silence_duration_ms?: number;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type Room = {
  readonly room_id: string;
  readonly created_at: string;
  readonly member_count: number;
  readonly playback_status: "stopped" | "playing" | "paused";
  readonly voice_activity_events: boolean;
  readonly playback_operation_uuid: string;
  readonly playback_urls: readonly (string)[];
  readonly playback_volume: number;
};

export type RoomCreatedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.created";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly app_uuid: string;
  readonly room_id: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomDeletedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.deleted";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly app_uuid: string;
  readonly room_id: string;
  /** `timeout`: its teardown was not confirmed in time. */
  readonly reason: "closed" | "timeout";
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomDeletion = {
  readonly room_id: string;
  readonly status: "deleting";
};

export type RoomList = {
  readonly rooms: readonly (RoomSummary)[];
};

export type RoomMemberJoinedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.joined";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMemberLeftEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.left";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  /** Take any string. Known values: `hangup`, `removed`, `moved`, `room_closed`, `orphan`. */
  readonly reason: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMemberMutedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.muted";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMemberUnmutedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.unmuted";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMemberVoiceActivityChangedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.voice_activity_changed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly talking: boolean;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMemberVolumeChangeFailedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.volume_change_failed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** Percent. */
  readonly volume: number;
  readonly direction: "from_member" | "to_member" | "both";
  readonly applied_directions: readonly ("from_member" | "to_member")[];
  readonly failed_directions: readonly ("from_member" | "to_member")[];
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMemberVolumeChangedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.member.volume_changed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** Percent. */
  readonly volume: number;
  readonly direction: "from_member" | "to_member" | "both";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomMembership = {
  readonly room_id: string;
  readonly session_uuid: string;
  readonly status: "joining" | "leaving";
};

export type RoomOperation = {
  readonly room_id: string;
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed";
};

export type RoomPlaybackEndedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.playback.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly room_id: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** The whole playlist, in its order. */
  readonly urls: readonly (string)[];
  readonly reason: "completed" | "stopped";
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomPlaybackFailedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "room.playback.failed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly room_id: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** The whole playlist, in its order. */
  readonly urls: readonly (string)[];
  readonly error: "playback_error" | "playback_timeout";
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type RoomSummary = {
  readonly room_id: string;
  readonly created_at: string;
  readonly member_count: number;
  readonly playback_status: "stopped" | "playing" | "paused";
  readonly voice_activity_events: boolean;
};

export type Session = {
  readonly session_uuid: string;
  readonly type: "phone_in" | "phone_out" | "sip" | "webrtc" | "websocket";
  readonly created_at: string;
  readonly caller_id: string;
  readonly did: string;
  readonly status: "new" | "connecting" | "ringing" | "early_media" | "answered" | "ended";
  readonly client_state?: string;
};

export type SessionAnsweredEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.answered";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The answer command, or the dial. */
  readonly operation_uuid?: string;
  readonly sip?: SipFacts;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionCreatedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.created";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The caller in E.164, or `""` where it is no number. */
  readonly caller_id: string;
  /** The number that was called, in E.164, or `""` where it is no number. */
  readonly did: string;
  readonly type: "phone_in" | "sip" | "webrtc" | "unknown";
  readonly sip?: SipFacts;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionEarlyMediaStartedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.early_media_started";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionEndedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly answered: boolean;
  /** Treat one that you do not know as `failed`. Known values: `completed`, `busy`, `rejected`, `timeout`, `not_answered`, `invalid_number`, `cancelled`, `carrier_congested`, `carrier_unreachable`, `failed`, `number_not_found`. */
  readonly hangup_cause: string;
  readonly hangup_by: "caller" | "callee" | "system" | "network" | "unknown";
  /** English, to be shown. Never branch on it. */
  readonly hangup_description: string;
  /** 0 when it was not answered. */
  readonly duration_seconds: number;
  /** The command that ended it. */
  readonly operation_uuid?: string;
  readonly sip?: SipEnd;
  readonly quality?: CallQuality;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionHeldEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.held";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly by: "far_end" | "application";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionList = {
  readonly sessions: readonly (SessionSummary)[];
};

export type SessionMachineDetectionCompletedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.machine_detection.completed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly result: "human" | "machine" | "unknown";
  readonly after_ms: number;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionMachineGreetingEndedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.machine_greeting.ended";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly beep: boolean;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionOperation = {
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed";
};

export type SessionResumedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.resumed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly by: "far_end" | "application";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionRingingStartedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.ringing_started";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionSummary = {
  readonly session_uuid: string;
  readonly type: "phone_in" | "phone_out" | "sip" | "webrtc" | "websocket";
  readonly created_at: string;
  readonly caller_id: string;
  readonly did: string;
  readonly state: "new" | "connecting" | "ringing" | "early_media" | "answered" | "ended";
};

export type SessionTransferCompletedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.transfer.completed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionTransferFailedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.transfer.failed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly reason: "refused" | "failed" | "timeout" | "session_ended";
  /** The status that the transfer failed with, where there is one. */
  readonly sip_status?: number;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SessionTransferRequestedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "session.transfer.requested";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** A URI, as it was sent. */
  readonly target: string;
  /** The live Session of your application that the far end wants to be connected with, where it has two calls with the platform (Replaces in `target`). Absent otherwise. */
  readonly to_session_uuid?: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type SipEnd = {
  /** The status that the far end refused the call with. */
  readonly status?: number;
  /** The Q.850 cause of its Reason. */
  readonly q850?: number;
  /** The text of its Reason, else the reason phrase of the response. */
  readonly reason?: string;
};

export type SipFacts = {
  readonly call_id: string;
  /** Absent in calls of devices. */
  readonly trunk?: string;
  /** The device user who calls. */
  readonly device?: string;
  /** What the device has dialled, as it was sent. */
  readonly dialled?: string;
  /** As SDP names it. */
  readonly codec?: string;
  /** The `X-` header fields of the far end, names as they were sent. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly p_asserted_identity?: string;
  readonly diversion?: string;
  readonly history_info?: string;
  /** The verification of the caller’s number (ATIS-1000082). */
  readonly verstat?: string;
};

export type StoredRecording = {
  readonly recording_uuid: string;
  readonly state: "active" | "ended" | "removed";
  readonly created_at: string;
  /** RFC 3339; empty while there is none. */
  readonly ended_at: string;
  readonly media_url: string;
  /** RFC 3339; empty while there is none. */
  readonly expires_at: string;
  readonly session_uuid?: string;
  readonly room_id?: string;
  /** Seconds, rounded down; absent before the end. */
  readonly duration?: number;
};

export type StoredRecordingList = {
  readonly recordings: readonly (StoredRecording)[];
  /** Asks for the next page; empty on the last one. */
  readonly after: string;
};

export type WebrtcToken = {
  readonly token_id: string;
  readonly token: string;
  readonly url: string;
  readonly expires_at: string;
};

export type WebsocketAudioPlaybackCompletedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "websocket.audio_playback_completed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly duration_ms: number;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type WebsocketConnectedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "websocket.connected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  /** What the server agreed to, and `twilio` where that was asked for. Left out where it agreed to none: its text messages are ignored. */
  readonly subprotocol?: string;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type WebsocketDisconnectedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "websocket.disconnected";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly reason: "remote_closed" | "local_closed" | "keepalive_timeout" | "protocol_error" | "network_error";
  /** RFC 6455 §7.4; 1006 when the connection was lost. */
  readonly close_code: number;
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type WebsocketFailedEvent = {
  /** The application. */
  readonly aud: string;
  readonly event: "websocket.failed";
  /** When it happened. Never order events by it. */
  readonly timestamp: string;
  readonly session_uuid: string;
  /** The operation of the command that the event is an outcome of. */
  readonly operation_uuid: string;
  readonly reason: "connection_precondition_failed" | "connect_timeout" | "connection_refused" | "dns_failed" | "tls_failed" | "handshake_rejected";
  readonly error: "timeout" | "network" | "tls" | "http_4xx" | "http_5xx" | "policy" | "internal";
  /** The `client_state` of the command or token that began the Session. Absent when it had none. */
  readonly client_state?: string;
  /** Only in a sample that was asked for (`sidetone trigger`). */
  readonly test?: true;
};

export type DialRequest = {
  /** An E.164 number with leading +. */
  readonly from: string;
  /** 1 to 600. */
  readonly ring_timeout_sec: number;
  /** An E.164 number with leading +, or sip: and the user name of a device. */
  readonly to: string;
  /** A string of at most 1024 characters. */
  readonly client_state?: string;
  /** A string of 1 to 128 printable characters. */
  readonly display_name?: string;
  readonly machine_detection?: {
    /** 1000 to 30000; 5000 when left out. */
    readonly timeout_ms?: number;
  };
  /** 60 to 86400; 14400 when left out. */
  readonly max_duration_sec?: number;
  /** A string of at most 64 characters. */
  readonly near?: string;
  /** A string of at most 64 characters. */
  readonly room_id?: string;
  /** False when left out. */
  readonly room_muted?: boolean;
  /** 1 to 64 of 0-9, A-D, *, #, w, W. */
  readonly send_digits?: string;
  /** At most 20 fields. */
  readonly sip_headers?: Readonly<Record<string, string>>;
  /** A string of 1 to 64 printable characters. */
  readonly trunk?: string;
};

export type RejectSessionRequest = {
  readonly reason: "busy" | "invalid_number" | "number_not_found" | "rejected" | "timeout";
};

/** Exactly one of `to` and `to_session_uuid` is given. */
export type TransferSessionRequest = {
  /** 5 to 120; 30 when left out. */
  readonly timeout_sec?: number;
  /** An E.164 number with leading +, or a sip: URI of at most 256 characters. */
  readonly to?: string;
  /** A lowercase UUID v4. */
  readonly to_session_uuid?: string;
};

export type ConnectWebsocketRequest = {
  readonly media_format: {
    readonly from_session: {
      readonly encoding: "mulaw";
      readonly sample_rate: 8000;
    } | {
      readonly encoding: "pcm_s16le";
      readonly sample_rate: 16000 | 24000 | 48000 | 8000;
    };
    readonly to_session: {
      readonly encoding: "mulaw";
      readonly sample_rate: 8000;
    } | {
      readonly encoding: "pcm_s16le";
      readonly sample_rate: 16000 | 24000 | 48000 | 8000;
    };
  };
  readonly websocket: {
    /** A ws or wss URL of at most 2048 characters. */
    readonly url: string;
    /** 1 to 30; 10 when left out. */
    readonly connect_timeout_sec?: number;
    /** At most 20 fields. */
    readonly headers?: Readonly<Record<string, string>>;
    /** A token of at most 64 characters; `sidetone.v1` and `twilio` (mulaw both ways) are understood. */
    readonly subprotocol?: string;
  };
  /** A string of at most 1024 characters. */
  readonly client_state?: string;
  /** A string of at most 64 characters. */
  readonly near?: string;
  /** At most 32 fields. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** A string of at most 64 characters. */
  readonly phone_session_uuid?: string;
  /** A string of at most 64 characters. */
  readonly room_id?: string;
};

export type PlayRequest = {
  readonly media_format: {
    readonly encoding: "mulaw";
    readonly sample_rate: 8000;
  } | {
    readonly encoding: "pcm_s16le";
    readonly sample_rate: 16000 | 24000 | 48000 | 8000;
  };
  readonly type: "push";
  /** 0 to 200; 100 when left out. */
  readonly volume?: number;
} | {
  readonly type: "files";
  /** 1 to 100; each an http or https URL of at most 2048 characters without user and password. */
  readonly urls: readonly (string)[];
  /** 0 to 1000000, where 0 goes on until it is stopped; 1 when left out. */
  readonly loop?: number;
  /** 0 to 200; 100 when left out. */
  readonly volume?: number;
} | {
  readonly type: "silence";
} | {
  readonly type: "stream";
  /** An http or https URL of at most 2048 characters without user and password. */
  readonly url: string;
  /** 0 to 200; 100 when left out. */
  readonly volume?: number;
};

/** Exactly one of `position_ms` and `offset_ms` is given. */
export type SeekPlaybackRequest = {
  readonly offset_ms?: number;
  readonly position_ms?: number;
};

export type SendDigitsRequest = {
  /** 1 to 64 of 0-9, A-D, *, #, w, W. */
  readonly digits: string;
  /** 40 to 1000; 100 when left out. */
  readonly duration_ms?: number;
  /** 40 to 1000; 100 when left out. */
  readonly gap_ms?: number;
};

export type CollectDigitsRequest = {
  /** True when left out. */
  readonly barge_in?: boolean;
  /** 1 to 600000; 5000 when left out. */
  readonly first_digit_timeout_ms?: number;
  /** 1 to 600000; 5000 when left out. */
  readonly inter_digit_timeout_ms?: number;
  /** 1 to 128; 128 when left out. */
  readonly max_digits?: number;
  /** 1 to 128; 1 when left out. */
  readonly min_digits?: number;
  /** At most 100; each an http or https URL of at most 2048 characters without user and password. */
  readonly prompt_files?: readonly (string)[];
  /** At most 16; one of 0-9, *, #, A-D; ["#"] when left out. */
  readonly terminators?: readonly (string)[];
  /** 1 to 600000; 60000 when left out. */
  readonly total_timeout_ms?: number;
  /** 1 to 16 of 0-9, *, #, A-D; "0123456789*#" when left out. */
  readonly valid_digits?: string;
};

export type CollectCardRequest = {
  /** 1 to 9. */
  readonly accepted_brands?: readonly ("amex" | "diners" | "discover" | "isracard" | "jcb" | "maestro" | "mastercard" | "unknown" | "visa")[];
  /** 1 to 600000; 10000 when left out. */
  readonly first_digit_timeout_ms?: number;
  /** 1 to 600000; 5000 when left out. */
  readonly inter_digit_timeout_ms?: number;
  /** 1 to 5; 3 when left out. */
  readonly max_attempts?: number;
  /** At most 10; each an http or https URL of at most 2048 characters without user and password. */
  readonly prompt_files?: readonly (string)[];
  /** At most 10; each an http or https URL of at most 2048 characters without user and password. */
  readonly retry_prompt_files?: readonly (string)[];
  /** At most 15; one of 0-9, #, A-D; ["#"] when left out. */
  readonly terminators?: readonly (string)[];
};

export type CollectCvvRequest = {
  /** Card_ and a lowercase UUID v4. */
  readonly card_uuid?: string;
  /** 1 to 600000; 10000 when left out. */
  readonly first_digit_timeout_ms?: number;
  /** 1 to 600000; 5000 when left out. */
  readonly inter_digit_timeout_ms?: number;
  /** 1 to 5; 3 when left out. */
  readonly max_attempts?: number;
  /** At most 10; each an http or https URL of at most 2048 characters without user and password. */
  readonly prompt_files?: readonly (string)[];
  /** At most 10; each an http or https URL of at most 2048 characters without user and password. */
  readonly retry_prompt_files?: readonly (string)[];
  /** At most 15; one of 0-9, #, A-D; ["#"] when left out. */
  readonly terminators?: readonly (string)[];
};

export type ChargeRequest = {
  /** Agorot, divisible by 100. */
  readonly amount: number;
  /** Card_ and a lowercase UUID v4. */
  readonly card_uuid: string;
  readonly currency: "ils";
  /** Cvv_ and a lowercase UUID v4. */
  readonly cvv_uuid: string;
  /** 1 to 12. */
  readonly exp_month: number;
  /** 2000 to 2099. */
  readonly exp_year: number;
  /** A string of 1 to 64 characters. */
  readonly provider: string;
  /** Seven digits. */
  readonly terminal_number: string;
  /** 1 to 36; 1 when left out. */
  readonly installments?: number;
};

export type SendMessageRequest = {
  /** An E.164 number with leading +. */
  readonly from: string;
  /** A string of 1 to 1600 characters. */
  readonly text: string;
  /** An E.164 number with leading +. */
  readonly to: string;
};

export type CreateRoomRequest = {
  /** An http or https URL of at most 2048 characters without user and password. */
  readonly hold_music_url?: string;
  /** False when left out. */
  readonly voice_activity_events?: boolean;
};

export type AddMemberRequest = {
  readonly session_uuid: string;
  readonly coach?: string;
  /** False when left out. */
  readonly muted?: boolean;
};

export type PlayToRoomRequest = {
  readonly type: "files";
  /** 1 to 100; each an http or https URL of at most 2048 characters without user and password. */
  readonly urls: readonly (string)[];
  /** 0 to 1000000, where 0 goes on until it is stopped; 1 when left out. */
  readonly loop?: number;
  /** 0 to 200. */
  readonly volume?: number;
} | {
  readonly type: "stream";
  /** An http or https URL of at most 2048 characters without user and password. */
  readonly url: string;
};

/** Exactly one of `position_ms` and `offset_ms` is given. */
export type SeekRoomPlaybackRequest = {
  readonly offset_ms?: number;
  readonly position_ms?: number;
};

export type SetRoomPlaybackVolumeRequest = {
  /** 0 to 200. */
  readonly volume: number;
};

export type SetMemberVolumeRequest = {
  readonly direction: "both" | "from_member" | "to_member";
  /** 0 to 200. */
  readonly volume: number;
};

export type CreateRecordingRequest = {
  /** `mono`; `stereo` is unsupported yet (400). */
  readonly channels: "mono" | "stereo";
  /** `both`; the other directions are unsupported yet (400). */
  readonly direction: "both" | "session_in" | "session_out";
  /** False when left out. */
  readonly enable_voice_activity_events?: boolean;
  /** False when left out. */
  readonly include_gaps?: boolean;
  readonly voice_activity_config?: {
    /** 0 to 1; 0.5 when left out. */
    readonly sensitivity?: number;
    /** 20 to 3600000; 500 when left out. */
    readonly silence_duration_ms?: number;
    /** 20 to 5000; 100 when left out. */
    readonly speech_duration_ms?: number;
  };
};

export type RecordRoomRequest = {
  /** False when left out. */
  readonly include_gaps?: boolean;
};

export type UpdateApplicationSettingsRequest = {
  /** At most 100; each the name of an event, or a prefix of one with a trailing .*. */
  readonly blocked_webhook_events?: readonly (string)[];
  /** "" or an http or https URL of at most 2048 characters without user and password. */
  readonly webhook_url?: string;
};

export type CreateWebrtcTokenRequest = {
  /** An E.164 number. */
  readonly caller_id?: string;
  /** A string of at most 1024 characters. */
  readonly client_state?: string;
  /** An E.164 number. */
  readonly to?: string;
  /** 60 to 86400; 3600 when left out. */
  readonly ttl_sec?: number;
};

export type WebhookEvent =
  | SessionCreatedEvent
  | SessionRingingStartedEvent
  | SessionEarlyMediaStartedEvent
  | SessionAnsweredEvent
  | SessionHeldEvent
  | SessionResumedEvent
  | SessionTransferCompletedEvent
  | SessionTransferFailedEvent
  | SessionTransferRequestedEvent
  | SessionMachineDetectionCompletedEvent
  | SessionMachineGreetingEndedEvent
  | SessionEndedEvent
  | WebsocketConnectedEvent
  | WebsocketDisconnectedEvent
  | WebsocketFailedEvent
  | WebsocketAudioPlaybackCompletedEvent
  | RoomCreatedEvent
  | RoomDeletedEvent
  | RoomMemberJoinedEvent
  | RoomMemberLeftEvent
  | RoomMemberMutedEvent
  | RoomMemberUnmutedEvent
  | RoomMemberVoiceActivityChangedEvent
  | RoomMemberVolumeChangedEvent
  | RoomMemberVolumeChangeFailedEvent
  | RoomPlaybackEndedEvent
  | RoomPlaybackFailedEvent
  | RecordingSpeechStartedEvent
  | RecordingSpeechEndedEvent
  | RecordingBecameAvailableEvent
  | RecordingFailedEvent
  | RecordingEndedEvent
  | PlaybackStartedEvent
  | PlaybackEndedEvent
  | PlaybackFailedEvent
  | DtmfReceivedEvent
  | DtmfSentEvent
  | DigitsCollectedEvent
  | MessageStatusChangedEvent
  | MessageReceivedEvent
  | PaymentCardCollectedEvent
  | PaymentCvvCollectedEvent
  | PaymentChargeCompletedEvent;

export class Sessions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Place an outbound call. */
  dial(body: DialRequest, options: RequestOptions = {}): Promise<SessionOperation> {
    return this.#transport.request('POST', `/v1/sessions:dial`, { body, ...options });
  }

  /** List live Sessions, newest first. */
  list(query: { readonly state?: readonly ("new" | "connecting" | "ringing" | "early_media" | "answered" | "ended")[]; readonly created_after?: string; readonly created_before?: string; readonly limit?: number } = {}, options: RequestOptions = {}): Listing<SessionList['sessions'][number]> {
    return new Listing(() => this.#transport.list<SessionList>('sessions', 'GET', `/v1/sessions`, { query, ...options }).then((answer) => ({ items: answer.sessions })));
  }

  /** Inspect one live Session. */
  get(uuid: string, options: RequestOptions = {}): Promise<Session> {
    return this.#transport.request('GET', `/v1/sessions/${encodeURIComponent(uuid)}`, { ...options });
  }

  /** Disconnect, answered or not. */
  disconnect(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('DELETE', `/v1/sessions/${encodeURIComponent(uuid)}`, { ...options });
  }

  /** Answer an incoming call. */
  answer(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/answer`, { ...options });
  }

  /** Refuse an unanswered incoming call. */
  reject(uuid: string, body: RejectSessionRequest, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/reject`, { body, ...options });
  }

  /** Cancel an unanswered outbound call. */
  cancel(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/cancel`, { ...options });
  }

  /** Hold the far end of a call. */
  hold(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/hold`, { ...options });
  }

  /** Go on with a call on hold. */
  unhold(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/unhold`, { ...options });
  }

  /** Transfer a call. */
  transfer(uuid: string, body: TransferSessionRequest, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/transfer`, { body, ...options });
  }

  /** Connect a Session to a WebSocket server. */
  connectWebsocket(body: ConnectWebsocketRequest, options: RequestOptions = {}): Promise<SessionOperation> {
    return this.#transport.request('POST', `/v1/sessions:connectWebsocket`, { body, ...options });
  }

  /** Play audio to the Session. */
  play(uuid: string, body: PlayRequest, options: RequestOptions = {}): Promise<PlaybackOperation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/playback/play`, { body, ...options });
  }

  /** Stop what plays. */
  stopPlayback(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/playback/stop`, { ...options });
  }

  /** Hold what plays where it is. */
  pausePlayback(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/playback/pause`, { ...options });
  }

  /** Go on with what is held. */
  resumePlayback(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/playback/resume`, { ...options });
  }

  /** Play from the beginning again. */
  restartPlayback(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/playback/restart`, { ...options });
  }

  /** Move within what plays. */
  seekPlayback(uuid: string, body: SeekPlaybackRequest, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/playback/seek`, { body, ...options });
  }

  /** Send digits to the far end. */
  sendDigits(uuid: string, body: SendDigitsRequest, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/dtmf/send`, { body, ...options });
  }

  /** Prompt and collect digits. */
  collectDigits(uuid: string, body: CollectDigitsRequest = {}, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/dtmf/collect`, { body, ...options });
  }

  /** Cancel the collection. */
  cancelDigitCollection(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('DELETE', `/v1/sessions/${encodeURIComponent(uuid)}/dtmf/collect`, { ...options });
  }

  /** Collect a card number by keypad. */
  collectCard(uuid: string, body: CollectCardRequest = {}, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/payment/card/collect`, { body, ...options });
  }

  /** Cancel the collection of a card. */
  cancelCardCollection(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('DELETE', `/v1/sessions/${encodeURIComponent(uuid)}/payment/card/collect`, { ...options });
  }

  /** Collect a CVV by keypad. */
  collectCvv(uuid: string, body: CollectCvvRequest = {}, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/payment/cvv/collect`, { body, ...options });
  }

  /** Cancel the collection of a CVV. */
  cancelCvvCollection(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('DELETE', `/v1/sessions/${encodeURIComponent(uuid)}/payment/cvv/collect`, { ...options });
  }

  /** Charge a collected card; Idempotency-Key is required. */
  charge(uuid: string, body: ChargeRequest, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/payment/charges`, { body, ...options });
  }
}

export class Messages {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Send a short message. */
  send(body: SendMessageRequest, options: RequestOptions = {}): Promise<MessageOperation> {
    return this.#transport.request('POST', `/v1/messages`, { body, ...options });
  }

  /** List messages, newest first. */
  list(query: { readonly status?: "queued" | "sending" | "sent" | "delivered" | "undelivered" | "failed"; readonly to?: string; readonly from?: string; readonly created_after?: string; readonly created_before?: string; readonly limit?: number } = {}, options: RequestOptions = {}): Listing<MessageList['messages'][number]> {
    return new Listing(() => this.#transport.list<MessageList>('messages', 'GET', `/v1/messages`, { query, ...options }).then((answer) => ({ items: answer.messages })));
  }

  /** Read one message and its latest status. */
  get(messageUuid: string, options: RequestOptions = {}): Promise<Message> {
    return this.#transport.request('GET', `/v1/messages/${encodeURIComponent(messageUuid)}`, { ...options });
  }
}

export class Rooms {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Create a Room. */
  create(body: CreateRoomRequest = {}, options: RequestOptions = {}): Promise<Room> {
    return this.#transport.request('POST', `/api/v1/rooms`, { body, ...options });
  }

  /** List Rooms. */
  list(options: RequestOptions = {}): Listing<RoomList['rooms'][number]> {
    return new Listing(() => this.#transport.list<RoomList>('rooms', 'GET', `/api/v1/rooms`, { ...options }).then((answer) => ({ items: answer.rooms })));
  }

  /** Inspect a Room. */
  get(roomId: string, options: RequestOptions = {}): Promise<Room> {
    return this.#transport.request('GET', `/api/v1/rooms/${encodeURIComponent(roomId)}`, { ...options });
  }

  /** Delete a Room. */
  delete(roomId: string, options: RequestOptions = {}): Promise<RoomDeletion> {
    return this.#transport.request('DELETE', `/api/v1/rooms/${encodeURIComponent(roomId)}`, { ...options });
  }

  /** Add a Session. */
  addMember(roomId: string, body: AddMemberRequest, options: RequestOptions = {}): Promise<RoomMembership> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/members`, { body, ...options });
  }

  /** List members. */
  listMembers(roomId: string, options: RequestOptions = {}): Listing<MemberList['members'][number]> {
    return new Listing(() => this.#transport.list<MemberList>('members', 'GET', `/api/v1/rooms/${encodeURIComponent(roomId)}/members`, { ...options }).then((answer) => ({ items: answer.members })));
  }

  /** Inspect a member. */
  getMember(roomId: string, uuid: string, options: RequestOptions = {}): Promise<Member> {
    return this.#transport.request('GET', `/api/v1/rooms/${encodeURIComponent(roomId)}/members/${encodeURIComponent(uuid)}`, { ...options });
  }

  /** Remove a member. */
  removeMember(roomId: string, uuid: string, options: RequestOptions = {}): Promise<RoomMembership> {
    return this.#transport.request('DELETE', `/api/v1/rooms/${encodeURIComponent(roomId)}/members/${encodeURIComponent(uuid)}`, { ...options });
  }

  /** Play to every member. */
  play(roomId: string, body: PlayToRoomRequest, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/play`, { body, ...options });
  }

  /** Pause the playback. */
  pausePlayback(roomId: string, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/pause`, { ...options });
  }

  /** Resume the playback. */
  resumePlayback(roomId: string, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/resume`, { ...options });
  }

  /** Stop the playback. */
  stopPlayback(roomId: string, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/stop`, { ...options });
  }

  /** Move within the playback. */
  seekPlayback(roomId: string, body: SeekRoomPlaybackRequest, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/seek`, { body, ...options });
  }

  /** Set the volume of this playback and the next. */
  setPlaybackVolume(roomId: string, body: SetRoomPlaybackVolumeRequest, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/volume`, { body, ...options });
  }

  /** Mute a member. */
  muteMember(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/room/mute`, { ...options });
  }

  /** Unmute a member. */
  unmuteMember(uuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/room/unmute`, { ...options });
  }

  /** Set what others hear of a member, what it hears of them, or both. */
  setMemberVolume(uuid: string, body: SetMemberVolumeRequest, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/room/volume`, { body, ...options });
  }
}

export class Recordings {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Record a Session. */
  create(uuid: string, body: CreateRecordingRequest, options: RequestOptions = {}): Promise<RecordingOperation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/recordings`, { body, ...options });
  }

  /** List the live recordings of a Session. */
  list(uuid: string, options: RequestOptions = {}): Listing<RecordingList['recordings'][number]> {
    return new Listing(() => this.#transport.list<RecordingList>('recordings', 'GET', `/v1/sessions/${encodeURIComponent(uuid)}/recordings`, { ...options }).then((answer) => ({ items: answer.recordings })));
  }

  /** Inspect a live recording. */
  get(uuid: string, recordingUuid: string, options: RequestOptions = {}): Promise<Recording> {
    return this.#transport.request('GET', `/v1/sessions/${encodeURIComponent(uuid)}/recordings/${encodeURIComponent(recordingUuid)}`, { ...options });
  }

  /** Stop a recording. */
  stop(uuid: string, recordingUuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/recordings/${encodeURIComponent(recordingUuid)}/stop`, { ...options });
  }

  /** Keep what follows out of a recording. */
  mask(uuid: string, recordingUuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/recordings/${encodeURIComponent(recordingUuid)}/mask`, { ...options });
  }

  /** Let what follows into a recording. */
  unmask(uuid: string, recordingUuid: string, options: RequestOptions = {}): Promise<Operation> {
    return this.#transport.request('POST', `/v1/sessions/${encodeURIComponent(uuid)}/recordings/${encodeURIComponent(recordingUuid)}/unmask`, { ...options });
  }

  /** Record a Room. */
  recordRoom(roomId: string, body: RecordRoomRequest = {}, options: RequestOptions = {}): Promise<RecordingOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/record`, { body, ...options });
  }

  /** Stop the recording of a Room. */
  stopRoom(roomId: string, options: RequestOptions = {}): Promise<RoomOperation> {
    return this.#transport.request('POST', `/api/v1/rooms/${encodeURIComponent(roomId)}/playback/record/stop`, { ...options });
  }

  /** List recordings under way and ended ones, newest first, each with a fresh URL. */
  search(query: { readonly session_uuid?: string; readonly room_id?: string; readonly created_after?: string; readonly created_before?: string; readonly after?: string; readonly limit?: number } = {}, options: RequestOptions = {}): Listing<StoredRecordingList['recordings'][number]> {
    return new Listing((after = query.after) => this.#transport.list<StoredRecordingList>('recordings', 'GET', `/v1/recordings`, { query: { ...query, after }, ...options }).then((answer) => ({ items: answer.recordings, after: answer.after })));
  }

  /** Find a recording, also after its call, with a fresh URL. */
  find(recordingUuid: string, options: RequestOptions = {}): Promise<StoredRecording> {
    return this.#transport.request('GET', `/v1/recordings/${encodeURIComponent(recordingUuid)}`, { ...options });
  }

  /** Remove a recording that is over, before its retention is; its URLs are 410 from then on. */
  remove(recordingUuid: string, options: RequestOptions = {}): Promise<void> {
    return this.#transport.request('DELETE', `/v1/recordings/${encodeURIComponent(recordingUuid)}`, { ...options });
  }
}

export class App {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Read the application’s settings. */
  get(options: RequestOptions = {}): Promise<ApplicationSettings> {
    return this.#transport.request('GET', `/api/v1/app`, { ...options });
  }

  /** Change the webhook settings. */
  update(body: UpdateApplicationSettingsRequest, options: RequestOptions = {}): Promise<void> {
    return this.#transport.request('PATCH', `/api/v1/app`, { body, ...options });
  }
}

export class WebrtcTokens {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Make a token with which a browser calls in. */
  create(body: CreateWebrtcTokenRequest = {}, options: RequestOptions = {}): Promise<WebrtcToken> {
    return this.#transport.request('POST', `/v1/webrtc-tokens`, { body, ...options });
  }

  /** Revoke a token, at once; calls that it began go on. */
  revoke(tokenId: string, options: RequestOptions = {}): Promise<void> {
    return this.#transport.request('DELETE', `/v1/webrtc-tokens/${encodeURIComponent(tokenId)}`, { ...options });
  }
}
