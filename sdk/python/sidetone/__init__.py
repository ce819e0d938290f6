"""The client of a Sidetone voice platform. It needs nothing but the standard library of Python 3.9 or later.

    client = Sidetone(base_url="http://127.0.0.1:8080", app_uuid="app_…", api_key="…")
    call = client.sessions.dial(from_="+15550100", to="+15550199", ring_timeout_sec=30)
"""
from __future__ import annotations

from ._api import EVENTS, App, Messages, Recordings, Rooms, Sessions, WebrtcTokens
from ._transport import SidetoneError, Transport
from .webhook import Event, WebhookVerificationError, asgi_webhook, flask_webhook, verify_webhook

__all__ = [
    "EVENTS",
    "Event",
    "Sidetone",
    "SidetoneError",
    "WebhookVerificationError",
    "asgi_webhook",
    "flask_webhook",
    "verify_webhook",
]


class Sidetone:
    """The resources of one application. Seconds for ``timeout``; ``max_retries`` follow ``Retry-After``."""

    def __init__(self, *, base_url: str, app_uuid: str, api_key: str, timeout: float = 30.0, max_retries: int = 3) -> None:
        transport = Transport(base_url, app_uuid, api_key, timeout, max_retries)
        self.sessions = Sessions(transport)
        self.rooms = Rooms(transport)
        self.recordings = Recordings(transport)
        self.messages = Messages(transport)
        self.webrtc_tokens = WebrtcTokens(transport)
        self.app = App(transport)
