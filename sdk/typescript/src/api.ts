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
};

export type CallQuality = {
  readonly packets_in: number;
  readonly packets_out: number;
  readonly packets_lost: number;
  readonly packets_late: number;
  readonly jitter_ms: number;
  readonly round_trip_ms: number;
  readonly buffer_ms: number;
  readonly mos: number;
  readonly codec: string;
};

export type DigitsCollectedEvent = {
  readonly aud: string;
  readonly event: "digits.collected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "success" | "no_input" | "partial_then_timeout" | "cancelled" | "failure";
  readonly digits: string;
  readonly terminator: string;
  readonly reason?: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type DtmfReceivedEvent = {
  readonly aud: string;
  readonly event: "dtmf.received";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly digit: string;
  readonly duration_ms: number;
  readonly method: "rfc4733" | "inband" | "sip_info";
  readonly client_state?: string;
  readonly test?: true;
};

export type DtmfSentEvent = {
  readonly aud: string;
  readonly event: "dtmf.sent";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly digits: string;
  readonly status: "completed" | "stopped";
  readonly client_state?: string;
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
  readonly sent_at: string;
  readonly delivered_at: string;
};

export type MessageList = {
  readonly messages: readonly (Message)[];
};

export type MessageOperation = {
  readonly message_uuid: string;
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed" | "queued";
};

export type MessageStatusChangedEvent = {
  readonly aud: string;
  readonly event: "message.status_changed";
  readonly timestamp: string;
  readonly message_uuid: string;
  readonly operation_uuid: string;
  readonly status: "sending" | "sent" | "delivered" | "undelivered" | "failed";
  readonly from: string;
  readonly to: string;
  readonly segments: number;
  readonly error_code: string;
  readonly error_message: string;
  readonly test?: true;
};

export type Operation = {
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed" | "queued";
  readonly already_ended?: true;
};

export type PaymentCardCollectedEvent = {
  readonly aud: string;
  readonly event: "payment.card.collected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "collected";
  readonly card_uuid: string;
  readonly payment_method_details: {
    readonly card: {
      readonly brand: "visa" | "mastercard" | "amex" | "diners" | "discover" | "jcb" | "maestro" | "isracard" | "unknown";
      readonly last4: string;
    };
  };
  readonly client_state?: string;
  readonly test?: true;
} | {
  readonly aud: string;
  readonly event: "payment.card.collected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "failed";
  readonly reason: "luhn_check_failed" | "no_input" | "incomplete_input" | "invalid_length" | "unsupported_brand" | "cancelled" | "session_ended" | "playback_source_error" | "internal_error";
  readonly client_state?: string;
  readonly test?: true;
};

export type PaymentChargeCompletedEvent = {
  readonly aud: string;
  readonly event: "payment.charge.completed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly retryable: boolean;
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly terminal_number: string;
  readonly status: "succeeded";
  readonly transaction_created_at: string;
  readonly receipt_created: boolean;
  readonly installments: number;
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
  readonly client_state?: string;
  readonly test?: true;
} | {
  readonly aud: string;
  readonly event: "payment.charge.completed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly retryable: boolean;
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly terminal_number: string;
  readonly status: "declined" | "failed" | "indeterminate";
  readonly failure_reason: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type PaymentCvvCollectedEvent = {
  readonly aud: string;
  readonly event: "payment.cvv.collected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "collected";
  readonly cvv_uuid: string;
  readonly client_state?: string;
  readonly test?: true;
} | {
  readonly aud: string;
  readonly event: "payment.cvv.collected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "failed";
  readonly reason: "luhn_check_failed" | "no_input" | "incomplete_input" | "invalid_length" | "unsupported_brand" | "cancelled" | "session_ended" | "playback_source_error" | "internal_error";
  readonly client_state?: string;
  readonly test?: true;
};

export type PlaybackEndedEvent = {
  readonly aud: string;
  readonly event: "playback.ended";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly reason: "completed" | "stopped";
  readonly urls?: readonly (string)[];
  readonly client_state?: string;
  readonly test?: true;
};

export type PlaybackFailedEvent = {
  readonly aud: string;
  readonly event: "playback.failed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly reason: "media_unavailable" | "no_active_playback" | "source_disconnected" | "ingest_timeout" | "decode_error" | "internal_error";
  readonly urls?: readonly (string)[];
  readonly source_index?: number;
  readonly client_state?: string;
  readonly test?: true;
};

export type PlaybackOperation = {
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed" | "queued";
  readonly ingest?: {
    readonly url: string;
    readonly method: "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly expires_at: string;
  };
};

export type PlaybackStartedEvent = {
  readonly aud: string;
  readonly event: "playback.started";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly urls: readonly (string)[];
  readonly client_state?: string;
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
  readonly duration: number;
  readonly media_url: string;
  readonly live_url: string;
  readonly expires_at: string;
};

export type RecordingBecameAvailableEvent = {
  readonly aud: string;
  readonly event: "recording.became_available";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly pull_url: string;
  readonly live_url: string;
  readonly expires_at: string;
  readonly client_state?: string;
  readonly test?: true;
} | {
  readonly aud: string;
  readonly event: "recording.became_available";
  readonly timestamp: string;
  readonly room_id: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly pull_url: string;
  readonly live_url: string;
  readonly expires_at: string;
  readonly test?: true;
};

export type RecordingEndedEvent = {
  readonly aud: string;
  readonly event: "recording.ended";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly pull_url: string;
  readonly expires_at: string;
  readonly duration: number;
  readonly duration_unknown?: true;
  readonly client_state?: string;
  readonly test?: true;
} | {
  readonly aud: string;
  readonly event: "recording.ended";
  readonly timestamp: string;
  readonly room_id: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly pull_url: string;
  readonly expires_at: string;
  readonly duration: number;
  readonly duration_unknown?: true;
  readonly test?: true;
};

export type RecordingFailedEvent = {
  readonly aud: string;
  readonly event: "recording.failed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly error: "recording unavailable";
  readonly pull_url: "";
  readonly client_state?: string;
  readonly test?: true;
};

export type RecordingList = {
  readonly recordings: readonly (Recording)[];
};

export type RecordingOperation = {
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed" | "queued";
  readonly room_id?: string;
};

export type RecordingSpeechEndedEvent = {
  readonly aud: string;
  readonly event: "recording.speech.ended";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type RecordingSpeechStartedEvent = {
  readonly aud: string;
  readonly event: "recording.speech.started";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly recording_uuid: string;
  readonly operation_uuid: string;
  readonly preceding_silence_duration_ms?: number;
  readonly client_state?: string;
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
  readonly aud: string;
  readonly event: "room.created";
  readonly timestamp: string;
  readonly app_uuid: string;
  readonly room_id: string;
  readonly test?: true;
};

export type RoomDeletedEvent = {
  readonly aud: string;
  readonly event: "room.deleted";
  readonly timestamp: string;
  readonly app_uuid: string;
  readonly room_id: string;
  readonly reason: "closed" | "timeout";
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
  readonly aud: string;
  readonly event: "room.member.joined";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type RoomMemberLeftEvent = {
  readonly aud: string;
  readonly event: "room.member.left";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly reason: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type RoomMemberMutedEvent = {
  readonly aud: string;
  readonly event: "room.member.muted";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type RoomMemberUnmutedEvent = {
  readonly aud: string;
  readonly event: "room.member.unmuted";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type RoomMemberVoiceActivityChangedEvent = {
  readonly aud: string;
  readonly event: "room.member.voice_activity_changed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly talking: boolean;
  readonly client_state?: string;
  readonly test?: true;
};

export type RoomMemberVolumeChangeFailedEvent = {
  readonly aud: string;
  readonly event: "room.member.volume_change_failed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly operation_uuid: string;
  readonly volume: number;
  readonly direction: "from_member" | "to_member" | "both";
  readonly applied_directions: readonly ("from_member" | "to_member")[];
  readonly failed_directions: readonly ("from_member" | "to_member")[];
  readonly client_state?: string;
  readonly test?: true;
};

export type RoomMemberVolumeChangedEvent = {
  readonly aud: string;
  readonly event: "room.member.volume_changed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly room_id: string;
  readonly operation_uuid: string;
  readonly volume: number;
  readonly direction: "from_member" | "to_member" | "both";
  readonly client_state?: string;
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
  readonly status: "in_progress" | "completed" | "queued";
};

export type RoomPlaybackEndedEvent = {
  readonly aud: string;
  readonly event: "room.playback.ended";
  readonly timestamp: string;
  readonly room_id: string;
  readonly operation_uuid: string;
  readonly urls: readonly (string)[];
  readonly reason: "completed" | "stopped";
  readonly test?: true;
};

export type RoomPlaybackFailedEvent = {
  readonly aud: string;
  readonly event: "room.playback.failed";
  readonly timestamp: string;
  readonly room_id: string;
  readonly operation_uuid: string;
  readonly urls: readonly (string)[];
  readonly error: "playback_error" | "playback_timeout";
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
};

export type SessionAnsweredEvent = {
  readonly aud: string;
  readonly event: "session.answered";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid?: string;
  readonly sip?: SipFacts;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionCreatedEvent = {
  readonly aud: string;
  readonly event: "session.created";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly caller_id: string;
  readonly did: string;
  readonly type: "phone_in" | "sip" | "webrtc" | "unknown";
  readonly sip?: SipFacts;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionEarlyMediaStartedEvent = {
  readonly aud: string;
  readonly event: "session.early_media_started";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionEndedEvent = {
  readonly aud: string;
  readonly event: "session.ended";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly answered: boolean;
  readonly hangup_cause: string;
  readonly hangup_by: "caller" | "callee" | "system" | "network" | "unknown";
  readonly hangup_description: string;
  readonly duration_seconds: number;
  readonly operation_uuid?: string;
  readonly sip?: SipEnd;
  readonly quality?: CallQuality;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionHeldEvent = {
  readonly aud: string;
  readonly event: "session.held";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly by: "far_end" | "application";
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionList = {
  readonly sessions: readonly (SessionSummary)[];
};

export type SessionMachineDetectionCompletedEvent = {
  readonly aud: string;
  readonly event: "session.machine_detection.completed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly result: "human" | "machine" | "unknown";
  readonly after_ms: number;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionMachineGreetingEndedEvent = {
  readonly aud: string;
  readonly event: "session.machine_greeting.ended";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly beep: boolean;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionOperation = {
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly status: "in_progress" | "completed" | "queued";
};

export type SessionResumedEvent = {
  readonly aud: string;
  readonly event: "session.resumed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly by: "far_end" | "application";
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionRingingStartedEvent = {
  readonly aud: string;
  readonly event: "session.ringing_started";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly client_state?: string;
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
  readonly aud: string;
  readonly event: "session.transfer.completed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionTransferFailedEvent = {
  readonly aud: string;
  readonly event: "session.transfer.failed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly reason: "refused" | "failed" | "timeout" | "session_ended";
  readonly sip_status?: number;
  readonly client_state?: string;
  readonly test?: true;
};

export type SessionTransferRequestedEvent = {
  readonly aud: string;
  readonly event: "session.transfer.requested";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly target: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type SipEnd = {
  readonly status?: number;
  readonly q850?: number;
  readonly reason?: string;
};

export type SipFacts = {
  readonly call_id: string;
  readonly trunk?: string;
  readonly device?: string;
  readonly dialled?: string;
  readonly codec?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly p_asserted_identity?: string;
  readonly diversion?: string;
  readonly history_info?: string;
  readonly verstat?: string;
};

export type WebrtcToken = {
  readonly token_id: string;
  readonly token: string;
  readonly url: string;
  readonly expires_at: string;
};

export type WebsocketAudioPlaybackCompletedEvent = {
  readonly aud: string;
  readonly event: "websocket.audio_playback_completed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly duration_ms: number;
  readonly client_state?: string;
  readonly test?: true;
};

export type WebsocketConnectedEvent = {
  readonly aud: string;
  readonly event: "websocket.connected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly client_state?: string;
  readonly test?: true;
};

export type WebsocketDisconnectedEvent = {
  readonly aud: string;
  readonly event: "websocket.disconnected";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly reason: "remote_closed" | "local_closed" | "keepalive_timeout" | "protocol_error" | "network_error";
  readonly close_code: number;
  readonly client_state?: string;
  readonly test?: true;
};

export type WebsocketFailedEvent = {
  readonly aud: string;
  readonly event: "websocket.failed";
  readonly timestamp: string;
  readonly session_uuid: string;
  readonly operation_uuid: string;
  readonly reason: "connection_precondition_failed" | "connect_timeout" | "connection_refused" | "dns_failed" | "tls_failed" | "handshake_rejected";
  readonly error: "timeout" | "network" | "tls" | "http_4xx" | "http_5xx" | "policy" | "internal";
  readonly client_state?: string;
  readonly test?: true;
};

export type DialRequest = {
  readonly from: string;
  readonly ring_timeout_sec: number;
  readonly to: string;
  readonly client_state?: string;
  readonly display_name?: string;
  readonly machine_detection?: {
    readonly timeout_ms?: number;
  };
  readonly max_duration_sec?: number;
  readonly near?: string;
  readonly room_id?: string;
  readonly room_muted?: boolean;
  readonly send_digits?: string;
  readonly sip_headers?: Readonly<Record<string, unknown>>;
  readonly trunk?: string;
};

export type RejectSessionRequest = {
  readonly reason: "busy" | "invalid_number" | "number_not_found" | "rejected" | "timeout";
};

export type TransferSessionRequest = {
  readonly timeout_sec?: number;
  readonly to?: string;
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
    readonly url: string;
    readonly connect_timeout_sec?: number;
    readonly headers?: Readonly<Record<string, unknown>>;
    readonly subprotocol?: string;
  };
  readonly client_state?: string;
  readonly near?: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly phone_session_uuid?: string;
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
  readonly volume?: number;
} | {
  readonly type: "files";
  readonly urls: readonly (string)[];
  readonly loop?: number;
  readonly volume?: number;
} | {
  readonly type: "silence";
} | {
  readonly type: "stream";
  readonly url: string;
  readonly volume?: number;
};

export type SeekPlaybackRequest = {
  readonly offset_ms?: number;
  readonly position_ms?: number;
};

export type SendDigitsRequest = {
  readonly digits: string;
  readonly duration_ms?: number;
  readonly gap_ms?: number;
};

export type CollectDigitsRequest = {
  readonly barge_in?: boolean;
  readonly first_digit_timeout_ms?: number;
  readonly inter_digit_timeout_ms?: number;
  readonly max_digits?: number;
  readonly min_digits?: number;
  readonly prompt_files?: readonly (string)[];
  readonly terminators?: readonly (string)[];
  readonly total_timeout_ms?: number;
  readonly valid_digits?: string;
};

export type CollectCardRequest = {
  readonly accepted_brands?: readonly ("amex" | "diners" | "discover" | "isracard" | "jcb" | "maestro" | "mastercard" | "unknown" | "visa")[];
  readonly first_digit_timeout_ms?: number;
  readonly inter_digit_timeout_ms?: number;
  readonly max_attempts?: number;
  readonly prompt_files?: readonly (string)[];
  readonly retry_prompt_files?: readonly (string)[];
  readonly terminators?: readonly (string)[];
};

export type CollectCvvRequest = {
  readonly card_uuid?: string;
  readonly first_digit_timeout_ms?: number;
  readonly inter_digit_timeout_ms?: number;
  readonly max_attempts?: number;
  readonly prompt_files?: readonly (string)[];
  readonly retry_prompt_files?: readonly (string)[];
  readonly terminators?: readonly (string)[];
};

export type ChargeRequest = {
  readonly amount: number;
  readonly card_uuid: string;
  readonly currency: "ils";
  readonly cvv_uuid: string;
  readonly exp_month: number;
  readonly exp_year: number;
  readonly provider: string;
  readonly terminal_number: string;
  readonly installments?: number;
};

export type SendMessageRequest = {
  readonly from: string;
  readonly text: string;
  readonly to: string;
};

export type CreateRoomRequest = {
  readonly hold_music_url?: string;
  readonly voice_activity_events?: boolean;
};

export type AddMemberRequest = {
  readonly session_uuid: string;
  readonly coach?: string;
  readonly muted?: boolean;
};

export type PlayToRoomRequest = {
  readonly type: "files";
  readonly urls: readonly (string)[];
  readonly loop?: number;
  readonly volume?: number;
} | {
  readonly type: "stream";
  readonly url: string;
};

export type SeekRoomPlaybackRequest = {
  readonly offset_ms?: number;
  readonly position_ms?: number;
};

export type SetRoomPlaybackVolumeRequest = {
  readonly volume: number;
};

export type SetMemberVolumeRequest = {
  readonly direction: "both" | "from_member" | "to_member";
  readonly volume: number;
};

export type CreateRecordingRequest = {
  readonly channels: "mono" | "stereo";
  readonly direction: "both" | "session_in" | "session_out";
  readonly enable_voice_activity_events?: boolean;
  readonly include_gaps?: boolean;
  readonly voice_activity_config?: {
    readonly sensitivity?: number;
    readonly silence_duration_ms?: number;
    readonly speech_duration_ms?: number;
  };
};

export type RecordRoomRequest = {
  readonly include_gaps?: boolean;
};

export type UpdateApplicationSettingsRequest = {
  readonly blocked_webhook_events?: readonly (string)[];
  readonly webhook_url?: string;
};

export type CreateWebrtcTokenRequest = {
  readonly caller_id?: string;
  readonly client_state?: string;
  readonly to?: string;
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
    return new Listing(() => this.#transport.request<SessionList>('GET', `/v1/sessions`, { query, ...options }).then((answer) => answer.sessions));
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
    return new Listing(() => this.#transport.request<MessageList>('GET', `/v1/messages`, { query, ...options }).then((answer) => answer.messages));
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
    return new Listing(() => this.#transport.request<RoomList>('GET', `/api/v1/rooms`, { ...options }).then((answer) => answer.rooms));
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
    return new Listing(() => this.#transport.request<MemberList>('GET', `/api/v1/rooms/${encodeURIComponent(roomId)}/members`, { ...options }).then((answer) => answer.members));
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
    return new Listing(() => this.#transport.request<RecordingList>('GET', `/v1/sessions/${encodeURIComponent(uuid)}/recordings`, { ...options }).then((answer) => answer.recordings));
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
