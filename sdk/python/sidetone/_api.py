# Written by sdk/generate.ts from the OpenAPI document. Do not edit.
from __future__ import annotations

from typing import Any, Iterator, List, Literal, Mapping, Optional, Sequence, Union
from urllib.parse import quote

from . import types
from ._transport import Transport

EVENTS = (
    "session.created",
    "session.ringing_started",
    "session.early_media_started",
    "session.answered",
    "session.held",
    "session.resumed",
    "session.transfer.completed",
    "session.transfer.failed",
    "session.transfer.requested",
    "session.machine_detection.completed",
    "session.machine_greeting.ended",
    "session.ended",
    "websocket.connected",
    "websocket.disconnected",
    "websocket.failed",
    "websocket.audio_playback_completed",
    "room.created",
    "room.deleted",
    "room.member.joined",
    "room.member.left",
    "room.member.muted",
    "room.member.unmuted",
    "room.member.voice_activity_changed",
    "room.member.volume_changed",
    "room.member.volume_change_failed",
    "room.playback.ended",
    "room.playback.failed",
    "recording.speech.started",
    "recording.speech.ended",
    "recording.became_available",
    "recording.failed",
    "recording.ended",
    "playback.started",
    "playback.ended",
    "playback.failed",
    "dtmf.received",
    "dtmf.sent",
    "digits.collected",
    "message.status_changed",
    "message.received",
    "payment.card.collected",
    "payment.cvv.collected",
    "payment.charge.completed",
)


class Sessions:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def dial(self, *, from_: str, ring_timeout_sec: int, to: str, client_state: Optional[str] = None, display_name: Optional[str] = None, machine_detection: Optional[types.DialMachineDetection] = None, max_duration_sec: Optional[int] = None, near: Optional[str] = None, room_id: Optional[str] = None, room_muted: Optional[bool] = None, send_digits: Optional[str] = None, sip_headers: Optional[Mapping[str, str]] = None, trunk: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.SessionOperation:
        """Place an outbound call."""
        answer: types.SessionOperation = self._transport.request("POST", "/v1/sessions:dial", body={"from": from_, "ring_timeout_sec": ring_timeout_sec, "to": to, "client_state": client_state, "display_name": display_name, "machine_detection": machine_detection, "max_duration_sec": max_duration_sec, "near": near, "room_id": room_id, "room_muted": room_muted, "send_digits": send_digits, "sip_headers": sip_headers, "trunk": trunk}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def list(self, *, state: Optional[Sequence[Literal["new", "connecting", "ringing", "early_media", "answered", "ended"]]] = None, created_after: Optional[str] = None, created_before: Optional[str] = None, limit: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[types.SessionSummary]:
        """List live Sessions, newest first."""
        answer: List[types.SessionSummary] = self._transport.list("sessions", "GET", "/v1/sessions", query={"state": state, "created_after": created_after, "created_before": created_before, "limit": limit}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def get(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Session:
        """Inspect one live Session."""
        answer: types.Session = self._transport.request("GET", f"/v1/sessions/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def disconnect(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Disconnect, answered or not."""
        answer: types.Operation = self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def answer(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Answer an incoming call."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/answer", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def reject(self, uuid: str, *, reason: Literal["busy", "invalid_number", "number_not_found", "rejected", "timeout"], idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Refuse an unanswered incoming call."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/reject", body={"reason": reason}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def cancel(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Cancel an unanswered outbound call."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/cancel", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def hold(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Hold the far end of a call."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/hold", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def unhold(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Go on with a call on hold."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/unhold", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def transfer(self, uuid: str, *, timeout_sec: Optional[int] = None, to: Optional[str] = None, to_session_uuid: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Transfer a call."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/transfer", body={"timeout_sec": timeout_sec, "to": to, "to_session_uuid": to_session_uuid}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def connect_websocket(self, *, media_format: types.ConnectWebsocketMediaFormat, websocket: types.ConnectWebsocketWebsocket, client_state: Optional[str] = None, near: Optional[str] = None, parameters: Optional[Mapping[str, str]] = None, phone_session_uuid: Optional[str] = None, room_id: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.SessionOperation:
        """Connect a Session to a WebSocket server."""
        answer: types.SessionOperation = self._transport.request("POST", "/v1/sessions:connectWebsocket", body={"media_format": media_format, "websocket": websocket, "client_state": client_state, "near": near, "parameters": parameters, "phone_session_uuid": phone_session_uuid, "room_id": room_id}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def play(self, uuid: str, *, type: Literal["push", "files", "silence", "stream"], media_format: Optional[Union[types.PlayMediaFormat, types.PlayMediaFormat2]] = None, volume: Optional[int] = None, urls: Optional[Sequence[str]] = None, loop: Optional[int] = None, url: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.PlaybackOperation:
        """Play audio to the Session."""
        answer: types.PlaybackOperation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/play", body={"type": type, "media_format": media_format, "volume": volume, "urls": urls, "loop": loop, "url": url}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def stop_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Stop what plays."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def pause_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Hold what plays where it is."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/pause", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def resume_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Go on with what is held."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/resume", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def restart_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Play from the beginning again."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/restart", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def seek_playback(self, uuid: str, *, offset_ms: Optional[int] = None, position_ms: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Move within what plays."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/seek", body={"offset_ms": offset_ms, "position_ms": position_ms}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def send_digits(self, uuid: str, *, digits: str, duration_ms: Optional[int] = None, gap_ms: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Send digits to the far end."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/dtmf/send", body={"digits": digits, "duration_ms": duration_ms, "gap_ms": gap_ms}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def collect_digits(self, uuid: str, *, barge_in: Optional[bool] = None, first_digit_timeout_ms: Optional[int] = None, inter_digit_timeout_ms: Optional[int] = None, max_digits: Optional[int] = None, min_digits: Optional[int] = None, prompt_files: Optional[Sequence[str]] = None, terminators: Optional[Sequence[str]] = None, total_timeout_ms: Optional[int] = None, valid_digits: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Prompt and collect digits."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/dtmf/collect", body={"barge_in": barge_in, "first_digit_timeout_ms": first_digit_timeout_ms, "inter_digit_timeout_ms": inter_digit_timeout_ms, "max_digits": max_digits, "min_digits": min_digits, "prompt_files": prompt_files, "terminators": terminators, "total_timeout_ms": total_timeout_ms, "valid_digits": valid_digits}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def cancel_digit_collection(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Cancel the collection."""
        answer: types.Operation = self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}/dtmf/collect", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def collect_card(self, uuid: str, *, accepted_brands: Optional[Sequence[Literal["amex", "diners", "discover", "isracard", "jcb", "maestro", "mastercard", "unknown", "visa"]]] = None, first_digit_timeout_ms: Optional[int] = None, inter_digit_timeout_ms: Optional[int] = None, max_attempts: Optional[int] = None, prompt_files: Optional[Sequence[str]] = None, retry_prompt_files: Optional[Sequence[str]] = None, terminators: Optional[Sequence[str]] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Collect a card number by keypad."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/payment/card/collect", body={"accepted_brands": accepted_brands, "first_digit_timeout_ms": first_digit_timeout_ms, "inter_digit_timeout_ms": inter_digit_timeout_ms, "max_attempts": max_attempts, "prompt_files": prompt_files, "retry_prompt_files": retry_prompt_files, "terminators": terminators}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def cancel_card_collection(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Cancel the collection of a card."""
        answer: types.Operation = self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}/payment/card/collect", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def collect_cvv(self, uuid: str, *, card_uuid: Optional[str] = None, first_digit_timeout_ms: Optional[int] = None, inter_digit_timeout_ms: Optional[int] = None, max_attempts: Optional[int] = None, prompt_files: Optional[Sequence[str]] = None, retry_prompt_files: Optional[Sequence[str]] = None, terminators: Optional[Sequence[str]] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Collect a CVV by keypad."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/payment/cvv/collect", body={"card_uuid": card_uuid, "first_digit_timeout_ms": first_digit_timeout_ms, "inter_digit_timeout_ms": inter_digit_timeout_ms, "max_attempts": max_attempts, "prompt_files": prompt_files, "retry_prompt_files": retry_prompt_files, "terminators": terminators}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def cancel_cvv_collection(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Cancel the collection of a CVV."""
        answer: types.Operation = self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}/payment/cvv/collect", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def charge(self, uuid: str, *, amount: int, card_uuid: str, currency: Literal["ils"], cvv_uuid: str, exp_month: int, exp_year: int, provider: str, terminal_number: str, installments: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Charge a collected card; Idempotency-Key is required."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/payment/charges", body={"amount": amount, "card_uuid": card_uuid, "currency": currency, "cvv_uuid": cvv_uuid, "exp_month": exp_month, "exp_year": exp_year, "provider": provider, "terminal_number": terminal_number, "installments": installments}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer


class Messages:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(self, *, from_: str, text: str, to: str, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.MessageOperation:
        """Send a short message."""
        answer: types.MessageOperation = self._transport.request("POST", "/v1/messages", body={"from": from_, "text": text, "to": to}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def list(self, *, status: Optional[Literal["queued", "sending", "sent", "delivered", "undelivered", "failed"]] = None, to: Optional[str] = None, from_: Optional[str] = None, created_after: Optional[str] = None, created_before: Optional[str] = None, limit: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[types.Message]:
        """List messages, newest first."""
        answer: List[types.Message] = self._transport.list("messages", "GET", "/v1/messages", query={"status": status, "to": to, "from": from_, "created_after": created_after, "created_before": created_before, "limit": limit}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def get(self, message_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Message:
        """Read one message and its latest status."""
        answer: types.Message = self._transport.request("GET", f"/v1/messages/{quote(message_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer


class Rooms:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, hold_music_url: Optional[str] = None, voice_activity_events: Optional[bool] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Room:
        """Create a Room."""
        answer: types.Room = self._transport.request("POST", "/api/v1/rooms", body={"hold_music_url": hold_music_url, "voice_activity_events": voice_activity_events}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def list(self, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[types.RoomSummary]:
        """List Rooms."""
        answer: List[types.RoomSummary] = self._transport.list("rooms", "GET", "/api/v1/rooms", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def get(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Room:
        """Inspect a Room."""
        answer: types.Room = self._transport.request("GET", f"/api/v1/rooms/{quote(room_id, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def delete(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomDeletion:
        """Delete a Room."""
        answer: types.RoomDeletion = self._transport.request("DELETE", f"/api/v1/rooms/{quote(room_id, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def add_member(self, room_id: str, *, session_uuid: str, coach: Optional[str] = None, muted: Optional[bool] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomMembership:
        """Add a Session."""
        answer: types.RoomMembership = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/members", body={"session_uuid": session_uuid, "coach": coach, "muted": muted}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def list_members(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[types.Member]:
        """List members."""
        answer: List[types.Member] = self._transport.list("members", "GET", f"/api/v1/rooms/{quote(room_id, safe='')}/members", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def get_member(self, room_id: str, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Member:
        """Inspect a member."""
        answer: types.Member = self._transport.request("GET", f"/api/v1/rooms/{quote(room_id, safe='')}/members/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def remove_member(self, room_id: str, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomMembership:
        """Remove a member."""
        answer: types.RoomMembership = self._transport.request("DELETE", f"/api/v1/rooms/{quote(room_id, safe='')}/members/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def play(self, room_id: str, *, type: Literal["files", "stream"], urls: Optional[Sequence[str]] = None, loop: Optional[int] = None, volume: Optional[int] = None, url: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Play to every member."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/play", body={"type": type, "urls": urls, "loop": loop, "volume": volume, "url": url}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def pause_playback(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Pause the playback."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/pause", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def resume_playback(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Resume the playback."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/resume", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def stop_playback(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Stop the playback."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def seek_playback(self, room_id: str, *, offset_ms: Optional[int] = None, position_ms: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Move within the playback."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/seek", body={"offset_ms": offset_ms, "position_ms": position_ms}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def set_playback_volume(self, room_id: str, *, volume: int, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Set the volume of this playback and the next."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/volume", body={"volume": volume}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def mute_member(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Mute a member."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/room/mute", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def unmute_member(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Unmute a member."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/room/unmute", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def set_member_volume(self, uuid: str, *, direction: Literal["both", "from_member", "to_member"], volume: int, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Set what others hear of a member, what it hears of them, or both."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/room/volume", body={"direction": direction, "volume": volume}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer


class Recordings:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, uuid: str, *, channels: Literal["mono", "stereo"], direction: Literal["both", "session_in", "session_out"], enable_voice_activity_events: Optional[bool] = None, include_gaps: Optional[bool] = None, voice_activity_config: Optional[types.CreateRecordingVoiceActivityConfig] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RecordingOperation:
        """Record a Session."""
        answer: types.RecordingOperation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings", body={"channels": channels, "direction": direction, "enable_voice_activity_events": enable_voice_activity_events, "include_gaps": include_gaps, "voice_activity_config": voice_activity_config}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def list(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[types.Recording]:
        """List the live recordings of a Session."""
        answer: List[types.Recording] = self._transport.list("recordings", "GET", f"/v1/sessions/{quote(uuid, safe='')}/recordings", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def get(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Recording:
        """Inspect a live recording."""
        answer: types.Recording = self._transport.request("GET", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def stop(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Stop a recording."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def mask(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Keep what follows out of a recording."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}/mask", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def unmask(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.Operation:
        """Let what follows into a recording."""
        answer: types.Operation = self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}/unmask", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def record_room(self, room_id: str, *, include_gaps: Optional[bool] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RecordingOperation:
        """Record a Room."""
        answer: types.RecordingOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/record", body={"include_gaps": include_gaps}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def stop_room(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.RoomOperation:
        """Stop the recording of a Room."""
        answer: types.RoomOperation = self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/record/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def search(self, *, session_uuid: Optional[str] = None, room_id: Optional[str] = None, created_after: Optional[str] = None, created_before: Optional[str] = None, after: Optional[str] = None, limit: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Iterator[types.StoredRecording]:
        """List recordings under way and ended ones, newest first, each with a fresh URL."""
        return self._transport.pages("recordings", "GET", "/v1/recordings", query={"session_uuid": session_uuid, "room_id": room_id, "created_after": created_after, "created_before": created_before, "after": after, "limit": limit}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def find(self, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.StoredRecording:
        """Find a recording, also after its call, with a fresh URL."""
        answer: types.StoredRecording = self._transport.request("GET", f"/v1/recordings/{quote(recording_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def remove(self, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Remove a recording that is over, before its retention is; its URLs are 410 from then on."""
        self._transport.request("DELETE", f"/v1/recordings/{quote(recording_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class App:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.ApplicationSettings:
        """Read the application’s settings."""
        answer: types.ApplicationSettings = self._transport.request("GET", "/api/v1/app", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def update(self, *, blocked_webhook_events: Optional[Sequence[str]] = None, webhook_url: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Change the webhook settings."""
        self._transport.request("PATCH", "/api/v1/app", body={"blocked_webhook_events": blocked_webhook_events, "webhook_url": webhook_url}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class WebrtcTokens:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, caller_id: Optional[str] = None, client_state: Optional[str] = None, to: Optional[str] = None, ttl_sec: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> types.WebrtcToken:
        """Make a token with which a browser calls in."""
        answer: types.WebrtcToken = self._transport.request("POST", "/v1/webrtc-tokens", body={"caller_id": caller_id, "client_state": client_state, "to": to, "ttl_sec": ttl_sec}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
        return answer

    def revoke(self, token_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Revoke a token, at once; calls that it began go on."""
        self._transport.request("DELETE", f"/v1/webrtc-tokens/{quote(token_id, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
