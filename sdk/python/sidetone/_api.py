# Written by sdk/generate.ts from the OpenAPI document. Do not edit.
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Union
from urllib.parse import quote

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

    def dial(self, *, from_: str, ring_timeout_sec: int, to: str, client_state: Optional[str] = None, display_name: Optional[str] = None, machine_detection: Optional[Mapping[str, Any]] = None, max_duration_sec: Optional[int] = None, near: Optional[str] = None, room_id: Optional[str] = None, room_muted: Optional[bool] = None, send_digits: Optional[str] = None, sip_headers: Optional[Mapping[str, Any]] = None, trunk: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Place an outbound call."""
        return self._transport.request("POST", "/v1/sessions:dial", body={"from": from_, "ring_timeout_sec": ring_timeout_sec, "to": to, "client_state": client_state, "display_name": display_name, "machine_detection": machine_detection, "max_duration_sec": max_duration_sec, "near": near, "room_id": room_id, "room_muted": room_muted, "send_digits": send_digits, "sip_headers": sip_headers, "trunk": trunk}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def list(self, *, state: Optional[Sequence[Literal["new", "connecting", "ringing", "early_media", "answered", "ended"]]] = None, created_after: Optional[str] = None, created_before: Optional[str] = None, limit: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """List live Sessions, newest first."""
        return self._transport.list("sessions", "GET", "/v1/sessions", query={"state": state, "created_after": created_after, "created_before": created_before, "limit": limit}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def get(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Inspect one live Session."""
        return self._transport.request("GET", f"/v1/sessions/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def disconnect(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Disconnect, answered or not."""
        return self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def answer(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Answer an incoming call."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/answer", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def reject(self, uuid: str, *, reason: Literal["busy", "invalid_number", "number_not_found", "rejected", "timeout"], idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Refuse an unanswered incoming call."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/reject", body={"reason": reason}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def cancel(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Cancel an unanswered outbound call."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/cancel", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def hold(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Hold the far end of a call."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/hold", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def unhold(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Go on with a call on hold."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/unhold", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def transfer(self, uuid: str, *, timeout_sec: Optional[int] = None, to: Optional[str] = None, to_session_uuid: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Transfer a call."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/transfer", body={"timeout_sec": timeout_sec, "to": to, "to_session_uuid": to_session_uuid}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def connect_websocket(self, *, media_format: Mapping[str, Any], websocket: Mapping[str, Any], client_state: Optional[str] = None, near: Optional[str] = None, parameters: Optional[Mapping[str, Any]] = None, phone_session_uuid: Optional[str] = None, room_id: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Connect a Session to a WebSocket server."""
        return self._transport.request("POST", "/v1/sessions:connectWebsocket", body={"media_format": media_format, "websocket": websocket, "client_state": client_state, "near": near, "parameters": parameters, "phone_session_uuid": phone_session_uuid, "room_id": room_id}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def play(self, uuid: str, *, type: Literal["push", "files", "silence", "stream"], media_format: Optional[Mapping[str, Any]] = None, volume: Optional[int] = None, urls: Optional[Sequence[str]] = None, loop: Optional[int] = None, url: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Play audio to the Session."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/play", body={"type": type, "media_format": media_format, "volume": volume, "urls": urls, "loop": loop, "url": url}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def stop_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Stop what plays."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def pause_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Hold what plays where it is."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/pause", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def resume_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Go on with what is held."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/resume", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def restart_playback(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Play from the beginning again."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/restart", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def seek_playback(self, uuid: str, *, offset_ms: Optional[int] = None, position_ms: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Move within what plays."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/playback/seek", body={"offset_ms": offset_ms, "position_ms": position_ms}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def send_digits(self, uuid: str, *, digits: str, duration_ms: Optional[int] = None, gap_ms: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Send digits to the far end."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/dtmf/send", body={"digits": digits, "duration_ms": duration_ms, "gap_ms": gap_ms}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def collect_digits(self, uuid: str, *, barge_in: Optional[bool] = None, first_digit_timeout_ms: Optional[int] = None, inter_digit_timeout_ms: Optional[int] = None, max_digits: Optional[int] = None, min_digits: Optional[int] = None, prompt_files: Optional[Sequence[str]] = None, terminators: Optional[Sequence[str]] = None, total_timeout_ms: Optional[int] = None, valid_digits: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Prompt and collect digits."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/dtmf/collect", body={"barge_in": barge_in, "first_digit_timeout_ms": first_digit_timeout_ms, "inter_digit_timeout_ms": inter_digit_timeout_ms, "max_digits": max_digits, "min_digits": min_digits, "prompt_files": prompt_files, "terminators": terminators, "total_timeout_ms": total_timeout_ms, "valid_digits": valid_digits}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def cancel_digit_collection(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Cancel the collection."""
        return self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}/dtmf/collect", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def collect_card(self, uuid: str, *, accepted_brands: Optional[Sequence[Literal["amex", "diners", "discover", "isracard", "jcb", "maestro", "mastercard", "unknown", "visa"]]] = None, first_digit_timeout_ms: Optional[int] = None, inter_digit_timeout_ms: Optional[int] = None, max_attempts: Optional[int] = None, prompt_files: Optional[Sequence[str]] = None, retry_prompt_files: Optional[Sequence[str]] = None, terminators: Optional[Sequence[str]] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Collect a card number by keypad."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/payment/card/collect", body={"accepted_brands": accepted_brands, "first_digit_timeout_ms": first_digit_timeout_ms, "inter_digit_timeout_ms": inter_digit_timeout_ms, "max_attempts": max_attempts, "prompt_files": prompt_files, "retry_prompt_files": retry_prompt_files, "terminators": terminators}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def cancel_card_collection(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Cancel the collection of a card."""
        return self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}/payment/card/collect", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def collect_cvv(self, uuid: str, *, card_uuid: Optional[str] = None, first_digit_timeout_ms: Optional[int] = None, inter_digit_timeout_ms: Optional[int] = None, max_attempts: Optional[int] = None, prompt_files: Optional[Sequence[str]] = None, retry_prompt_files: Optional[Sequence[str]] = None, terminators: Optional[Sequence[str]] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Collect a CVV by keypad."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/payment/cvv/collect", body={"card_uuid": card_uuid, "first_digit_timeout_ms": first_digit_timeout_ms, "inter_digit_timeout_ms": inter_digit_timeout_ms, "max_attempts": max_attempts, "prompt_files": prompt_files, "retry_prompt_files": retry_prompt_files, "terminators": terminators}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def cancel_cvv_collection(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Cancel the collection of a CVV."""
        return self._transport.request("DELETE", f"/v1/sessions/{quote(uuid, safe='')}/payment/cvv/collect", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def charge(self, uuid: str, *, amount: int, card_uuid: str, currency: Literal["ils"], cvv_uuid: str, exp_month: int, exp_year: int, provider: str, terminal_number: str, installments: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Charge a collected card; Idempotency-Key is required."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/payment/charges", body={"amount": amount, "card_uuid": card_uuid, "currency": currency, "cvv_uuid": cvv_uuid, "exp_month": exp_month, "exp_year": exp_year, "provider": provider, "terminal_number": terminal_number, "installments": installments}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class Messages:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(self, *, from_: str, text: str, to: str, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Send a short message."""
        return self._transport.request("POST", "/v1/messages", body={"from": from_, "text": text, "to": to}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def list(self, *, status: Optional[Literal["queued", "sending", "sent", "delivered", "undelivered", "failed"]] = None, to: Optional[str] = None, from_: Optional[str] = None, created_after: Optional[str] = None, created_before: Optional[str] = None, limit: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """List messages, newest first."""
        return self._transport.list("messages", "GET", "/v1/messages", query={"status": status, "to": to, "from": from_, "created_after": created_after, "created_before": created_before, "limit": limit}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def get(self, message_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Read one message and its latest status."""
        return self._transport.request("GET", f"/v1/messages/{quote(message_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class Rooms:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, hold_music_url: Optional[str] = None, voice_activity_events: Optional[bool] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Create a Room."""
        return self._transport.request("POST", "/api/v1/rooms", body={"hold_music_url": hold_music_url, "voice_activity_events": voice_activity_events}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def list(self, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """List Rooms."""
        return self._transport.list("rooms", "GET", "/api/v1/rooms", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def get(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Inspect a Room."""
        return self._transport.request("GET", f"/api/v1/rooms/{quote(room_id, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def delete(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Delete a Room."""
        return self._transport.request("DELETE", f"/api/v1/rooms/{quote(room_id, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def add_member(self, room_id: str, *, session_uuid: str, coach: Optional[str] = None, muted: Optional[bool] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Add a Session."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/members", body={"session_uuid": session_uuid, "coach": coach, "muted": muted}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def list_members(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """List members."""
        return self._transport.list("members", "GET", f"/api/v1/rooms/{quote(room_id, safe='')}/members", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def get_member(self, room_id: str, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Inspect a member."""
        return self._transport.request("GET", f"/api/v1/rooms/{quote(room_id, safe='')}/members/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def remove_member(self, room_id: str, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Remove a member."""
        return self._transport.request("DELETE", f"/api/v1/rooms/{quote(room_id, safe='')}/members/{quote(uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def play(self, room_id: str, *, type: Literal["files", "stream"], urls: Optional[Sequence[str]] = None, loop: Optional[int] = None, volume: Optional[int] = None, url: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Play to every member."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/play", body={"type": type, "urls": urls, "loop": loop, "volume": volume, "url": url}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def pause_playback(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Pause the playback."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/pause", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def resume_playback(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Resume the playback."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/resume", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def stop_playback(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Stop the playback."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def seek_playback(self, room_id: str, *, offset_ms: Optional[int] = None, position_ms: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Move within the playback."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/seek", body={"offset_ms": offset_ms, "position_ms": position_ms}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def set_playback_volume(self, room_id: str, *, volume: int, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Set the volume of this playback and the next."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/volume", body={"volume": volume}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def mute_member(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Mute a member."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/room/mute", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def unmute_member(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Unmute a member."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/room/unmute", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def set_member_volume(self, uuid: str, *, direction: Literal["both", "from_member", "to_member"], volume: int, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Set what others hear of a member, what it hears of them, or both."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/room/volume", body={"direction": direction, "volume": volume}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class Recordings:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, uuid: str, *, channels: Literal["mono", "stereo"], direction: Literal["both", "session_in", "session_out"], enable_voice_activity_events: Optional[bool] = None, include_gaps: Optional[bool] = None, voice_activity_config: Optional[Mapping[str, Any]] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Record a Session."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings", body={"channels": channels, "direction": direction, "enable_voice_activity_events": enable_voice_activity_events, "include_gaps": include_gaps, "voice_activity_config": voice_activity_config}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def list(self, uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """List the live recordings of a Session."""
        return self._transport.list("recordings", "GET", f"/v1/sessions/{quote(uuid, safe='')}/recordings", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def get(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Inspect a live recording."""
        return self._transport.request("GET", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def stop(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Stop a recording."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def mask(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Keep what follows out of a recording."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}/mask", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def unmask(self, uuid: str, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Let what follows into a recording."""
        return self._transport.request("POST", f"/v1/sessions/{quote(uuid, safe='')}/recordings/{quote(recording_uuid, safe='')}/unmask", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def record_room(self, room_id: str, *, include_gaps: Optional[bool] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Record a Room."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/record", body={"include_gaps": include_gaps}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def stop_room(self, room_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Stop the recording of a Room."""
        return self._transport.request("POST", f"/api/v1/rooms/{quote(room_id, safe='')}/playback/record/stop", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def search(self, *, session_uuid: Optional[str] = None, room_id: Optional[str] = None, created_after: Optional[str] = None, created_before: Optional[str] = None, after: Optional[str] = None, limit: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Iterator[Dict[str, Any]]:
        """List recordings under way and ended ones, newest first, each with a fresh URL."""
        return self._transport.pages("recordings", "GET", "/v1/recordings", query={"session_uuid": session_uuid, "room_id": room_id, "created_after": created_after, "created_before": created_before, "after": after, "limit": limit}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def find(self, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Find a recording, also after its call, with a fresh URL."""
        return self._transport.request("GET", f"/v1/recordings/{quote(recording_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def remove(self, recording_uuid: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Remove a recording that is over, before its retention is; its URLs are 410 from then on."""
        self._transport.request("DELETE", f"/v1/recordings/{quote(recording_uuid, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class App:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Read the application’s settings."""
        return self._transport.request("GET", "/api/v1/app", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def update(self, *, blocked_webhook_events: Optional[Sequence[str]] = None, webhook_url: Optional[str] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Change the webhook settings."""
        self._transport.request("PATCH", "/api/v1/app", body={"blocked_webhook_events": blocked_webhook_events, "webhook_url": webhook_url}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)


class WebrtcTokens:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, *, caller_id: Optional[str] = None, client_state: Optional[str] = None, to: Optional[str] = None, ttl_sec: Optional[int] = None, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Make a token with which a browser calls in."""
        return self._transport.request("POST", "/v1/webrtc-tokens", body={"caller_id": caller_id, "client_state": client_state, "to": to, "ttl_sec": ttl_sec}, idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)

    def revoke(self, token_id: str, *, idempotency_key: Optional[str] = None, operation_id: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Revoke a token, at once; calls that it began go on."""
        self._transport.request("DELETE", f"/v1/webrtc-tokens/{quote(token_id, safe='')}", idempotency_key=idempotency_key, operation_id=operation_id, timeout=timeout)
