# Written by sdk/generate.ts from the OpenAPI document. Do not edit.
"""The answers and events of the platform, and the objects of requests."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union


class DialMachineDetection(TypedDict, total=False):
    # 1000 to 30000; 5000 when left out.
    timeout_ms: int


class ConnectWebsocketMediaFormatFromSession1(TypedDict):
    encoding: Literal["mulaw"]
    sample_rate: Literal[8000]


class ConnectWebsocketMediaFormatFromSession2(TypedDict):
    encoding: Literal["pcm_s16le"]
    sample_rate: Literal[16000, 24000, 48000, 8000]


class ConnectWebsocketMediaFormatToSession1(TypedDict):
    encoding: Literal["mulaw"]
    sample_rate: Literal[8000]


class ConnectWebsocketMediaFormatToSession2(TypedDict):
    encoding: Literal["pcm_s16le"]
    sample_rate: Literal[16000, 24000, 48000, 8000]


class ConnectWebsocketMediaFormat(TypedDict):
    from_session: Union[ConnectWebsocketMediaFormatFromSession1, ConnectWebsocketMediaFormatFromSession2]
    to_session: Union[ConnectWebsocketMediaFormatToSession1, ConnectWebsocketMediaFormatToSession2]


class _ConnectWebsocketWebsocket(TypedDict):
    # A ws or wss URL of at most 2048 characters.
    url: str


class ConnectWebsocketWebsocket(_ConnectWebsocketWebsocket, total=False):
    # 1 to 30; 10 when left out.
    connect_timeout_sec: int
    # At most 20 fields.
    headers: Dict[str, str]
    # A token of at most 64 characters; `sidetone.v1` and `twilio` (mulaw both ways) are understood.
    subprotocol: str


class PlayMediaFormat(TypedDict):
    encoding: Literal["mulaw"]
    sample_rate: Literal[8000]


class PlayMediaFormat2(TypedDict):
    encoding: Literal["pcm_s16le"]
    sample_rate: Literal[16000, 24000, 48000, 8000]


class CreateRecordingVoiceActivityConfig(TypedDict, total=False):
    # 0 to 1; 0.5 when left out.
    sensitivity: float
    # 20 to 3600000; 500 when left out.
    silence_duration_ms: int
    # 20 to 5000; 100 when left out.
    speech_duration_ms: int


class ApplicationSettingsWebhookStatus(TypedDict):
    state: Literal["enabled", "disabled", "unset"]
    since: str
    last_error: str


class ApplicationSettingsRoomLimits(TypedDict):
    max_rooms: int
    max_members_per_room: int


class ApplicationSettingsRecordingStore(TypedDict):
    kept_bytes: int
    max_bytes: int


class _ApplicationSettings(TypedDict):
    app_uuid: str
    inbound_phone_numbers: List[str]
    outbound_caller_ids: List[str]
    webhook_url: str
    webhook_status: ApplicationSettingsWebhookStatus
    blocked_webhook_events: List[str]
    room_limits: ApplicationSettingsRoomLimits


class ApplicationSettings(_ApplicationSettings, total=False):
    recording_store: ApplicationSettingsRecordingStore


class CallQuality(TypedDict):
    packets_in: int
    packets_out: int
    packets_lost: int
    packets_late: int
    jitter_ms: float
    round_trip_ms: float
    # The delay of the jitter buffer.
    buffer_ms: float
    # ITU-T G.107, 1 to 4.5; 0 when nothing was heard.
    mos: float
    codec: str


class _DigitsCollectedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["digits.collected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    status: Literal["success", "no_input", "partial_then_timeout", "cancelled", "failure"]
    digits: str
    # The key that ended it; `""` for none.
    terminator: str


class DigitsCollectedEvent(_DigitsCollectedEvent, total=False):
    # Why it failed, or was cancelled without a command for it. Known values: `too_few_digits`, `session_ended`, `media_unavailable`, `no_active_playback`, `source_disconnected`, `ingest_timeout`, `decode_error`, `internal_error`.
    reason: str
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _DtmfReceivedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["dtmf.received"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    digit: str
    duration_ms: int
    method: Literal["rfc4733", "inband", "sip_info"]


class DtmfReceivedEvent(_DtmfReceivedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _DtmfSentEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["dtmf.sent"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    digits: str
    status: Literal["completed", "stopped"]


class DtmfSentEvent(_DtmfSentEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class Member(TypedDict):
    uuid: str
    muted: bool


class MemberList(TypedDict):
    members: List[Member]


Message = TypedDict("Message", {
    "message_uuid": "str",
    "direction": "Literal[\"outbound\"]",
    "from": "str",
    "to": "str",
    "text": "str",
    "status": "Literal[\"queued\", \"sending\", \"sent\", \"delivered\", \"undelivered\", \"failed\"]",
    "segments": "int",
    "encoding": "Literal[\"gsm7\", \"ucs2\"]",
    "error_code": "str",
    "error_message": "str",
    "created_at": "str",
    "updated_at": "str",
    # RFC 3339; empty while there is none.
    "sent_at": "str",
    # RFC 3339; empty while there is none.
    "delivered_at": "str",
})


class MessageList(TypedDict):
    messages: List[Message]


class MessageOperation(TypedDict):
    message_uuid: str
    operation_uuid: str
    status: Literal["queued"]


_MessageReceivedEvent = TypedDict("_MessageReceivedEvent", {
    # The application.
    "aud": "str",
    "event": "Literal[\"message.received\"]",
    # When it happened. Never order events by it.
    "timestamp": "str",
    "message_uuid": "str",
    # E.164 where it is a number; else as the carrier gives it: a short code, a name.
    "from": "str",
    "to": "str",
    "text": "str",
    # 1 to 255.
    "segments": "int",
    # Segments that did not come within ten minutes, and are left out.
    "missing_segments": "int",
})


class MessageReceivedEvent(_MessageReceivedEvent, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


_MessageStatusChangedEvent = TypedDict("_MessageStatusChangedEvent", {
    # The application.
    "aud": "str",
    "event": "Literal[\"message.status_changed\"]",
    # When it happened. Never order events by it.
    "timestamp": "str",
    "message_uuid": "str",
    # The operation of the command that the event is an outcome of.
    "operation_uuid": "str",
    "status": "Literal[\"sending\", \"sent\", \"delivered\", \"undelivered\", \"failed\"]",
    "from": "str",
    "to": "str",
    "segments": "int",
    # `""` for none.
    "error_code": "str",
    # English, to be shown; `""` for none.
    "error_message": "str",
})


class MessageStatusChangedEvent(_MessageStatusChangedEvent, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _Operation(TypedDict):
    operation_uuid: str
    status: Literal["in_progress", "completed"]


class Operation(_Operation, total=False):
    # The Session had ended before.
    already_ended: Literal[True]


class PaymentCardCollectedEvent1PaymentMethodDetailsCard(TypedDict):
    brand: Literal["visa", "mastercard", "amex", "diners", "discover", "jcb", "maestro", "isracard", "unknown"]
    last4: str


class PaymentCardCollectedEvent1PaymentMethodDetails(TypedDict):
    card: PaymentCardCollectedEvent1PaymentMethodDetailsCard


class _PaymentCardCollectedEvent1(TypedDict):
    # The application.
    aud: str
    event: Literal["payment.card.collected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    status: Literal["collected"]
    card_uuid: str
    payment_method_details: PaymentCardCollectedEvent1PaymentMethodDetails


class PaymentCardCollectedEvent1(_PaymentCardCollectedEvent1, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _PaymentCardCollectedEvent2(TypedDict):
    # The application.
    aud: str
    event: Literal["payment.card.collected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    status: Literal["failed"]
    reason: Literal["luhn_check_failed", "no_input", "incomplete_input", "invalid_length", "unsupported_brand", "cancelled", "session_ended", "playback_source_error", "internal_error"]


class PaymentCardCollectedEvent2(_PaymentCardCollectedEvent2, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class PaymentChargeCompletedEvent1PaymentMethodDetailsCard(TypedDict):
    brand: Literal["visa", "mastercard", "amex", "diners", "discover", "jcb", "maestro", "isracard", "unknown"]
    last4: str
    classification: str
    issuer: str
    acquirer: str


class PaymentChargeCompletedEvent1PaymentMethodDetails(TypedDict):
    card: PaymentChargeCompletedEvent1PaymentMethodDetailsCard


class _PaymentChargeCompletedEvent1(TypedDict):
    # The application.
    aud: str
    event: Literal["payment.charge.completed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # `true` only where nothing has left the platform.
    retryable: bool
    # In the smallest unit of the currency.
    amount: int
    currency: str
    provider: str
    terminal_number: str
    status: Literal["succeeded"]
    transaction_created_at: str
    receipt_created: bool
    installments: int
    # How it was charged. Known values: `regular`, `installments`.
    transaction_type: str
    payment_method_details: PaymentChargeCompletedEvent1PaymentMethodDetails


class PaymentChargeCompletedEvent1(_PaymentChargeCompletedEvent1, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _PaymentChargeCompletedEvent2(TypedDict):
    # The application.
    aud: str
    event: Literal["payment.charge.completed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # `true` only where nothing has left the platform.
    retryable: bool
    # In the smallest unit of the currency.
    amount: int
    currency: str
    provider: str
    terminal_number: str
    # `indeterminate`: it is not known whether the card was charged.
    status: Literal["declined", "failed", "indeterminate"]
    # A word for programs; the set grows with the providers. Known values: `card_declined`, `provider_timeout`, `provider_unreachable`, `provider_response_invalid`, `interrupted`, `internal_error`.
    failure_reason: str


class PaymentChargeCompletedEvent2(_PaymentChargeCompletedEvent2, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _PaymentCvvCollectedEvent1(TypedDict):
    # The application.
    aud: str
    event: Literal["payment.cvv.collected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    status: Literal["collected"]
    cvv_uuid: str


class PaymentCvvCollectedEvent1(_PaymentCvvCollectedEvent1, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _PaymentCvvCollectedEvent2(TypedDict):
    # The application.
    aud: str
    event: Literal["payment.cvv.collected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    status: Literal["failed"]
    reason: Literal["luhn_check_failed", "no_input", "incomplete_input", "invalid_length", "unsupported_brand", "cancelled", "session_ended", "playback_source_error", "internal_error"]


class PaymentCvvCollectedEvent2(_PaymentCvvCollectedEvent2, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _PlaybackEndedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["playback.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    reason: Literal["completed", "stopped"]


class PlaybackEndedEvent(_PlaybackEndedEvent, total=False):
    # The whole playlist, in its order. Absent for a stream, a silence or a push.
    urls: List[str]
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _PlaybackFailedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["playback.failed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    reason: Literal["media_unavailable", "no_active_playback", "source_disconnected", "ingest_timeout", "decode_error", "internal_error"]


class PlaybackFailedEvent(_PlaybackFailedEvent, total=False):
    # The whole playlist, in its order. Absent for a stream, a silence or a push.
    urls: List[str]
    # The source that failed, where one is known.
    source_index: int
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class PlaybackOperationIngest(TypedDict):
    url: str
    method: Literal["POST"]
    headers: Dict[str, str]
    expires_at: str


class _PlaybackOperation(TypedDict):
    operation_uuid: str
    status: Literal["in_progress", "completed"]


class PlaybackOperation(_PlaybackOperation, total=False):
    ingest: PlaybackOperationIngest


class _PlaybackStartedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["playback.started"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # The whole playlist, in its order.
    urls: List[str]


class PlaybackStartedEvent(_PlaybackStartedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class Recording(TypedDict):
    recording_uuid: str
    session_uuid: str
    state: Literal["active", "stopping"]
    masked: bool
    direction: Literal["both"]
    channels: Literal["mono"]
    include_gaps: bool
    enable_voice_activity_events: bool
    available: bool
    created_at: str
    # Seconds so far, rounded down.
    duration: int
    media_url: str
    live_url: str
    # RFC 3339; empty while there is none.
    expires_at: str


class _RecordingBecameAvailableEvent1(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.became_available"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str
    # Signed; valid until `expires_at`.
    pull_url: str
    # Signed; valid until `expires_at`.
    live_url: str
    expires_at: str


class RecordingBecameAvailableEvent1(_RecordingBecameAvailableEvent1, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RecordingBecameAvailableEvent2(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.became_available"]
    # When it happened. Never order events by it.
    timestamp: str
    room_id: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str
    # Signed; valid until `expires_at`.
    pull_url: str
    # Signed; valid until `expires_at`.
    live_url: str
    expires_at: str


class RecordingBecameAvailableEvent2(_RecordingBecameAvailableEvent2, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RecordingEndedEvent1(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str
    # Signed; valid until `expires_at`.
    pull_url: str
    expires_at: str
    # Seconds, rounded down.
    duration: int


class RecordingEndedEvent1(_RecordingEndedEvent1, total=False):
    # The file was out of reach, so `duration` is 0 and says nothing. It is mended when it is back.
    duration_unknown: Literal[True]
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RecordingEndedEvent2(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    room_id: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str
    # Signed; valid until `expires_at`.
    pull_url: str
    expires_at: str
    # Seconds, rounded down.
    duration: int


class RecordingEndedEvent2(_RecordingEndedEvent2, total=False):
    # The file was out of reach, so `duration` is 0 and says nothing. It is mended when it is back.
    duration_unknown: Literal[True]
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RecordingFailedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.failed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str
    error: Literal["recording unavailable"]
    pull_url: Literal[""]


class RecordingFailedEvent(_RecordingFailedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class RecordingList(TypedDict):
    recordings: List[Recording]


class _RecordingOperation(TypedDict):
    recording_uuid: str
    operation_uuid: str
    status: Literal["in_progress", "completed"]


class RecordingOperation(_RecordingOperation, total=False):
    room_id: str


class _RecordingSpeechEndedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.speech.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str


class RecordingSpeechEndedEvent(_RecordingSpeechEndedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RecordingSpeechStartedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["recording.speech.started"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    recording_uuid: str
    # The operation that created the recording.
    operation_uuid: str


class RecordingSpeechStartedEvent(_RecordingSpeechStartedEvent, total=False):
    # Absent the first time.
    preceding_silence_duration_ms: int
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class Room(TypedDict):
    room_id: str
    created_at: str
    member_count: int
    playback_status: Literal["stopped", "playing", "paused"]
    voice_activity_events: bool
    playback_operation_uuid: str
    playback_urls: List[str]
    playback_volume: int


class _RoomCreatedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.created"]
    # When it happened. Never order events by it.
    timestamp: str
    app_uuid: str
    room_id: str


class RoomCreatedEvent(_RoomCreatedEvent, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomDeletedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.deleted"]
    # When it happened. Never order events by it.
    timestamp: str
    app_uuid: str
    room_id: str
    # `timeout`: its teardown was not confirmed in time.
    reason: Literal["closed", "timeout"]


class RoomDeletedEvent(_RoomDeletedEvent, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class RoomDeletion(TypedDict):
    room_id: str
    status: Literal["deleting"]


class RoomList(TypedDict):
    rooms: List[RoomSummary]


class _RoomMemberJoinedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.joined"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str


class RoomMemberJoinedEvent(_RoomMemberJoinedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomMemberLeftEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.left"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str
    # Take any string. Known values: `hangup`, `removed`, `moved`, `room_closed`, `orphan`.
    reason: str


class RoomMemberLeftEvent(_RoomMemberLeftEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomMemberMutedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.muted"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str


class RoomMemberMutedEvent(_RoomMemberMutedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomMemberUnmutedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.unmuted"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str


class RoomMemberUnmutedEvent(_RoomMemberUnmutedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomMemberVoiceActivityChangedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.voice_activity_changed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str
    talking: bool


class RoomMemberVoiceActivityChangedEvent(_RoomMemberVoiceActivityChangedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomMemberVolumeChangeFailedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.volume_change_failed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # Percent.
    volume: int
    direction: Literal["from_member", "to_member", "both"]
    applied_directions: List[Literal["from_member", "to_member"]]
    failed_directions: List[Literal["from_member", "to_member"]]


class RoomMemberVolumeChangeFailedEvent(_RoomMemberVolumeChangeFailedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomMemberVolumeChangedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.member.volume_changed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    room_id: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # Percent.
    volume: int
    direction: Literal["from_member", "to_member", "both"]


class RoomMemberVolumeChangedEvent(_RoomMemberVolumeChangedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class RoomMembership(TypedDict):
    room_id: str
    session_uuid: str
    status: Literal["joining", "leaving"]


class RoomOperation(TypedDict):
    room_id: str
    operation_uuid: str
    status: Literal["in_progress", "completed"]


class _RoomPlaybackEndedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.playback.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    room_id: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # The whole playlist, in its order.
    urls: List[str]
    reason: Literal["completed", "stopped"]


class RoomPlaybackEndedEvent(_RoomPlaybackEndedEvent, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _RoomPlaybackFailedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["room.playback.failed"]
    # When it happened. Never order events by it.
    timestamp: str
    room_id: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    # The whole playlist, in its order.
    urls: List[str]
    error: Literal["playback_error", "playback_timeout"]


class RoomPlaybackFailedEvent(_RoomPlaybackFailedEvent, total=False):
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class RoomSummary(TypedDict):
    room_id: str
    created_at: str
    member_count: int
    playback_status: Literal["stopped", "playing", "paused"]
    voice_activity_events: bool


class _Session(TypedDict):
    session_uuid: str
    type: Literal["phone_in", "phone_out", "sip", "webrtc", "websocket"]
    created_at: str
    caller_id: str
    did: str
    status: Literal["new", "connecting", "ringing", "early_media", "answered", "ended"]


class Session(_Session, total=False):
    client_state: str


class _SessionAnsweredEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.answered"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str


class SessionAnsweredEvent(_SessionAnsweredEvent, total=False):
    # The answer command, or the dial.
    operation_uuid: str
    sip: SipFacts
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionCreatedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.created"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The caller in E.164, or `""` where it is no number.
    caller_id: str
    # The number that was called, in E.164, or `""` where it is no number.
    did: str
    type: Literal["phone_in", "sip", "webrtc", "unknown"]


class SessionCreatedEvent(_SessionCreatedEvent, total=False):
    sip: SipFacts
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionEarlyMediaStartedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.early_media_started"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str


class SessionEarlyMediaStartedEvent(_SessionEarlyMediaStartedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionEndedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    answered: bool
    # Treat one that you do not know as `failed`. Known values: `completed`, `busy`, `rejected`, `timeout`, `not_answered`, `invalid_number`, `cancelled`, `carrier_congested`, `carrier_unreachable`, `failed`, `number_not_found`.
    hangup_cause: str
    hangup_by: Literal["caller", "callee", "system", "network", "unknown"]
    # English, to be shown. Never branch on it.
    hangup_description: str
    # 0 when it was not answered.
    duration_seconds: int


class SessionEndedEvent(_SessionEndedEvent, total=False):
    # The command that ended it.
    operation_uuid: str
    sip: SipEnd
    quality: CallQuality
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionHeldEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.held"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    by: Literal["far_end", "application"]


class SessionHeldEvent(_SessionHeldEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class SessionList(TypedDict):
    sessions: List[SessionSummary]


class _SessionMachineDetectionCompletedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.machine_detection.completed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    result: Literal["human", "machine", "unknown"]
    after_ms: int


class SessionMachineDetectionCompletedEvent(_SessionMachineDetectionCompletedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionMachineGreetingEndedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.machine_greeting.ended"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    beep: bool


class SessionMachineGreetingEndedEvent(_SessionMachineGreetingEndedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class SessionOperation(TypedDict):
    session_uuid: str
    operation_uuid: str
    status: Literal["in_progress", "completed"]


class _SessionResumedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.resumed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    by: Literal["far_end", "application"]


class SessionResumedEvent(_SessionResumedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionRingingStartedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.ringing_started"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str


class SessionRingingStartedEvent(_SessionRingingStartedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class SessionSummary(TypedDict):
    session_uuid: str
    type: Literal["phone_in", "phone_out", "sip", "webrtc", "websocket"]
    created_at: str
    caller_id: str
    did: str
    state: Literal["new", "connecting", "ringing", "early_media", "answered", "ended"]


class _SessionTransferCompletedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.transfer.completed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str


class SessionTransferCompletedEvent(_SessionTransferCompletedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionTransferFailedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.transfer.failed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    reason: Literal["refused", "failed", "timeout", "session_ended"]


class SessionTransferFailedEvent(_SessionTransferFailedEvent, total=False):
    # The status that the transfer failed with, where there is one.
    sip_status: int
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _SessionTransferRequestedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["session.transfer.requested"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # A URI, as it was sent.
    target: str


class SessionTransferRequestedEvent(_SessionTransferRequestedEvent, total=False):
    # The live Session of your application that the far end wants to be connected with, where it has two calls with the platform (Replaces in `target`). Absent otherwise.
    to_session_uuid: str
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class SipEnd(TypedDict, total=False):
    # The status that the far end refused the call with.
    status: int
    # The Q.850 cause of its Reason.
    q850: int
    # The text of its Reason, else the reason phrase of the response.
    reason: str


class _SipFacts(TypedDict):
    call_id: str


class SipFacts(_SipFacts, total=False):
    # Absent in calls of devices.
    trunk: str
    # The device user who calls.
    device: str
    # What the device has dialled, as it was sent.
    dialled: str
    # As SDP names it.
    codec: str
    # The `X-` header fields of the far end, names as they were sent.
    headers: Dict[str, str]
    p_asserted_identity: str
    diversion: str
    history_info: str
    # The verification of the caller’s number (ATIS-1000082).
    verstat: str


class _StoredRecording(TypedDict):
    recording_uuid: str
    state: Literal["active", "ended", "removed"]
    created_at: str
    # RFC 3339; empty while there is none.
    ended_at: str
    media_url: str
    # RFC 3339; empty while there is none.
    expires_at: str


class StoredRecording(_StoredRecording, total=False):
    session_uuid: str
    room_id: str
    # Seconds, rounded down; absent before the end.
    duration: int


class StoredRecordingList(TypedDict):
    recordings: List[StoredRecording]
    # Asks for the next page; empty on the last one.
    after: str


class WebrtcToken(TypedDict):
    token_id: str
    token: str
    url: str
    expires_at: str


class _WebsocketAudioPlaybackCompletedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["websocket.audio_playback_completed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    duration_ms: int


class WebsocketAudioPlaybackCompletedEvent(_WebsocketAudioPlaybackCompletedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _WebsocketConnectedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["websocket.connected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str


class WebsocketConnectedEvent(_WebsocketConnectedEvent, total=False):
    # What the server agreed to, and `twilio` where that was asked for. Left out where it agreed to none: its text messages are ignored.
    subprotocol: str
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _WebsocketDisconnectedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["websocket.disconnected"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    reason: Literal["remote_closed", "local_closed", "keepalive_timeout", "protocol_error", "network_error"]
    # RFC 6455 §7.4; 1006 when the connection was lost.
    close_code: int


class WebsocketDisconnectedEvent(_WebsocketDisconnectedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


class _WebsocketFailedEvent(TypedDict):
    # The application.
    aud: str
    event: Literal["websocket.failed"]
    # When it happened. Never order events by it.
    timestamp: str
    session_uuid: str
    # The operation of the command that the event is an outcome of.
    operation_uuid: str
    reason: Literal["connection_precondition_failed", "connect_timeout", "connection_refused", "dns_failed", "tls_failed", "handshake_rejected"]
    error: Literal["timeout", "network", "tls", "http_4xx", "http_5xx", "policy", "internal"]


class WebsocketFailedEvent(_WebsocketFailedEvent, total=False):
    # The `client_state` of the command or token that began the Session. Absent when it had none.
    client_state: str
    # Only in a sample that was asked for (`sidetone trigger`).
    test: Literal[True]


PaymentCardCollectedEvent = Union[PaymentCardCollectedEvent1, PaymentCardCollectedEvent2]
PaymentChargeCompletedEvent = Union[PaymentChargeCompletedEvent1, PaymentChargeCompletedEvent2]
PaymentCvvCollectedEvent = Union[PaymentCvvCollectedEvent1, PaymentCvvCollectedEvent2]
RecordingBecameAvailableEvent = Union[RecordingBecameAvailableEvent1, RecordingBecameAvailableEvent2]
RecordingEndedEvent = Union[RecordingEndedEvent1, RecordingEndedEvent2]
WebhookEvent = Union[SessionCreatedEvent, SessionRingingStartedEvent, SessionEarlyMediaStartedEvent, SessionAnsweredEvent, SessionHeldEvent, SessionResumedEvent, SessionTransferCompletedEvent, SessionTransferFailedEvent, SessionTransferRequestedEvent, SessionMachineDetectionCompletedEvent, SessionMachineGreetingEndedEvent, SessionEndedEvent, WebsocketConnectedEvent, WebsocketDisconnectedEvent, WebsocketFailedEvent, WebsocketAudioPlaybackCompletedEvent, RoomCreatedEvent, RoomDeletedEvent, RoomMemberJoinedEvent, RoomMemberLeftEvent, RoomMemberMutedEvent, RoomMemberUnmutedEvent, RoomMemberVoiceActivityChangedEvent, RoomMemberVolumeChangedEvent, RoomMemberVolumeChangeFailedEvent, RoomPlaybackEndedEvent, RoomPlaybackFailedEvent, RecordingSpeechStartedEvent, RecordingSpeechEndedEvent, RecordingBecameAvailableEvent, RecordingFailedEvent, RecordingEndedEvent, PlaybackStartedEvent, PlaybackEndedEvent, PlaybackFailedEvent, DtmfReceivedEvent, DtmfSentEvent, DigitsCollectedEvent, MessageStatusChangedEvent, MessageReceivedEvent, PaymentCardCollectedEvent, PaymentCvvCollectedEvent, PaymentChargeCompletedEvent]
