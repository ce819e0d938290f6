"""Webhooks as your application receives them, verified (Standard Webhooks 1.0)."""
from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import itertools
import json
import re
import time
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Sequence, Tuple, Union, cast

from .types import WebhookEvent

_TOLERANCE_SEC = 5 * 60
_VIEWS = itertools.count(1)

Secrets = Union[str, Sequence[str]]


class Event(Dict[str, Any]):
    """An event. ``webhook_id`` is the same over all attempts to deliver it: what has been handled under it is not handled again."""

    webhook_id: str = ""

    @property
    def fields(self) -> WebhookEvent:
        """The event as a type checker knows it: ``fields["event"]`` tells which fields it has (``sidetone.types``)."""
        return cast(WebhookEvent, self)


class WebhookVerificationError(Exception):
    """The request is not one of the platform's, or it is too old."""


def verify_webhook(raw: Union[bytes, str], headers: Mapping[str, str], secrets: Secrets, *, now: Callable[[], float] = time.time) -> Event:
    """Verifies a webhook and returns its event.

    ``raw`` is the body exactly as it came; ``secrets`` is the secret of the application (``whsec_…``), or several while
    one is rotated. Raises WebhookVerificationError, and ValueError for a secret that is none.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    values: List[str] = []
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        value = lower.get(name)
        if not value:
            raise WebhookVerificationError(f"{name}: is missing")
        values.append(value)
    identifier, timestamp, signatures = values
    if re.fullmatch("[0-9]{1,12}", timestamp) is None or abs(now() - int(timestamp)) > _TOLERANCE_SEC:
        raise WebhookVerificationError("webhook-timestamp: is too far from the time of now")
    body = raw.encode() if isinstance(raw, str) else raw
    signed = f"{identifier}.{timestamp}.".encode() + body
    given = [each[3:].encode("latin-1", "replace") for each in signatures.split(" ") if each.startswith("v1,")]
    # An environment variable that is not set is None, whatever the types say.
    known = list(secrets) if isinstance(secrets, (list, tuple, set, frozenset)) else [secrets]
    if not known:
        raise ValueError("no secret is given")
    for secret in known:
        expected = base64.b64encode(hmac.new(_key_of(secret), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(each, expected) for each in given):
            fields = json.loads(body)
            if not isinstance(fields, dict):
                raise WebhookVerificationError("the body is no event")
            event = Event(fields)
            event.webhook_id = identifier
            return event
    raise WebhookVerificationError("webhook-signature: is not one of this application")


def _key_of(secret: Any) -> bytes:
    """The key in a secret. Raises ValueError where there is none: an empty one would let anybody sign."""
    if not isinstance(secret, str):
        secret = ""
    try:
        key = base64.b64decode(secret[len("whsec_"):] if secret.startswith("whsec_") else secret, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if key == b"":
        raise ValueError("a secret is whsec_ and base64, as the platform gave it")
    return key


def flask_webhook(secrets: Secrets, on_event: Callable[[Event], None]) -> Callable[[], Tuple[str, int]]:
    """A view of Flask: ``app.post("/hook")(flask_webhook(secret, on_event))``."""

    def view() -> Tuple[str, int]:
        from flask import request  # Flask is asked for only by those who use it.

        try:
            event = verify_webhook(request.get_data(), dict(request.headers), secrets)
        except WebhookVerificationError as error:
            return str(error), 401
        on_event(event)
        return "", 204

    # Flask names a view after its function, and takes each name once.
    view.__name__ = f"sidetone_webhook_{next(_VIEWS)}"
    return view


def asgi_webhook(secrets: Secrets, on_event: Callable[[Event], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """An ASGI application that takes the webhooks: mount it in Starlette or FastAPI, or serve it as it is."""

    async def app(scope: Mapping[str, Any], receive: Callable[[], Awaitable[Mapping[str, Any]]], send: Callable[[Mapping[str, Any]], Awaitable[None]]) -> None:
        async def answer(status: int, text: str = "") -> None:
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": text.encode()})

        if scope["type"] != "http":
            return
        if scope["method"] != "POST":
            await answer(405)
            return
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if len(raw) > 1024 * 1024:
                await answer(413)
                return
            if not message.get("more_body"):
                break
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            event = verify_webhook(raw, headers, secrets)
        except WebhookVerificationError as error:
            await answer(401, str(error))
            return
        await on_event(event)
        await answer(204)

    return app
