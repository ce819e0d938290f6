"""Requests to the platform: credentials, idempotency keys, time limits, retries, and problems as errors."""
from __future__ import annotations

import json
import math
import re
import time
import uuid
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

#: 409: what came of the attempt before, whose answer was lost, is not known yet.
_RETRY_STATUS = (409, 429, 503, 529)
_RETRY_LONGEST_SEC = 60.0


class SidetoneError(Exception):
    """A problem that the platform answered with, or an answer that is none of a platform's (``code`` is ``"unknown"``). Branch on ``code``; the message is for people and may change."""

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: Optional[float]) -> None:
        super().__init__(body.get("message") or f"the platform answered with {status}")
        self.status = status
        self.code: str = body.get("code") or "unknown"
        #: Why an audio source could not be opened (502).
        self.detail: Optional[Dict[str, Any]] = body.get("detail")
        #: Names a bug of the platform in its log (500).
        self.support_id: Optional[str] = body.get("support_id")
        #: Seconds after which it may be tried again.
        self.retry_after = retry_after


class _NoRedirects(HTTPRedirectHandler):
    """Follows nothing: a POST would become a GET, which answers something else, and the key would go to another host."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


_OPENER = build_opener(_NoRedirects)


class Transport:
    """Sends requests. One may be used by several threads."""

    def __init__(self, base_url: str, app_uuid: str, api_key: str, timeout: float, max_retries: int) -> None:
        # An environment variable that is not set would otherwise be told as a wrong key, or not at all.
        if not isinstance(base_url, str) or not base_url.lower().startswith(("http://", "https://")):
            raise ValueError(f"base_url must be an http or https URL, not {base_url!r}")
        for name, value in (("app_uuid", app_uuid), ("api_key", api_key)):
            if not isinstance(value, str) or value == "":
                raise ValueError(f"{name} is missing")
            # The end of a line, as a file with a key has, is what no header may carry.
            if re.fullmatch(r"[\x21-\x7e]+", value) is None:
                raise ValueError(f"{name} has a space, an end of a line or a character beyond ASCII")
        self._base_url = base_url.rstrip("/")
        self._authorization = f"Bearer {app_uuid}:{api_key}"
        self._timeout = timeout
        self._max_retries = max_retries

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
        operation_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Sends a request and returns the body of its answer. Raises SidetoneError for a problem.

        A command without a key of its own gets a new one, so that a retry is never carried out twice. Raises OSError
        (URLError, a timeout) when the platform cannot be reached, or its answer breaks off, at the last attempt too.
        """
        url = self._base_url + path
        pairs = _pairs(query or {})
        if pairs:
            url += "?" + urlencode(pairs)
        headers = {"Authorization": self._authorization, "User-Agent": "sidetone-python/0.1"}
        data: Optional[bytes] = None
        if body is not None:
            data = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
            headers["Content-Type"] = "application/json"
        if method != "GET":
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if operation_id is not None:
            headers["Operation-Id"] = operation_id
        attempt = 0
        while True:
            try:
                request = Request(url, data=data, headers=headers, method=method)
                with _OPENER.open(request, timeout=timeout or self._timeout) as response:
                    return _answer(response.status, response.read())
            except HTTPError as error:
                problem = _problem(error)
                if problem.status not in _RETRY_STATUS or problem.retry_after is None or attempt >= self._max_retries:
                    raise problem from None
                wait = problem.retry_after * (2**attempt if problem.status == 409 else 1)
            except (OSError, HTTPException) as error:
                # URLError is an OSError. An answer that breaks off is none (IncompleteRead), and is raised as a URLError in the end.
                if attempt >= self._max_retries:
                    if isinstance(error, OSError):
                        raise
                    raise URLError(error) from error
                wait = 0.2 * 2**attempt
            attempt += 1
            time.sleep(min(wait, _RETRY_LONGEST_SEC))

    def pages(self, field: str, method: str, path: str, *, query: Mapping[str, Any], **options: Any) -> Iterator[Any]:
        """Goes through a list that comes in pages, one item after the other. A page is asked for when it is needed."""
        after: Optional[str] = query.get("after")
        while True:
            answer = self.request(method, path, query={**query, "after": after}, **options)
            yield from _items(answer, field)
            after = answer.get("after")
            if not after:
                return

    def list(self, field: str, method: str, path: str, **options: Any) -> List[Any]:
        """Sends a request and returns the list that its answer has in that field."""
        return _items(self.request(method, path, **options), field)


def _items(answer: Any, field: str) -> List[Any]:
    items = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise _stranger(200, field)
    return items


def _answer(status: int, text: bytes) -> Any:
    if text == b"":
        return None
    try:
        answer = json.loads(text)
    except ValueError:
        raise _stranger(status, "JSON") from None
    if not isinstance(answer, dict):
        raise _stranger(status, "JSON")
    return answer


def _stranger(status: int, missing: str) -> SidetoneError:
    return SidetoneError(status, {"message": f"{status} without {missing}: base_url leads to something else"}, None)


def _pairs(query: Mapping[str, Any]) -> List[Tuple[str, str]]:
    pairs: List[Tuple[str, str]] = []
    for name, value in query.items():
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is not None:
                pairs.append((name, str(each)))
    return pairs


def _problem(error: HTTPError) -> SidetoneError:
    try:
        body = json.loads(error.read() or b"{}")
    except (ValueError, OSError, HTTPException):
        body = {}
    location = error.headers.get("Location")
    if 300 <= error.code < 400 and location:
        body = {"message": f"redirected to {location}: set base_url to where the platform is"}
    return SidetoneError(error.code, body if isinstance(body, dict) else {}, _seconds(error.headers.get("Retry-After")))


def _seconds(text: Optional[str]) -> Optional[float]:
    """``Retry-After`` in seconds: a number of them, or a date, as a proxy may say it (RFC 9110 §10.2.3)."""
    if text is None:
        return None
    if re.fullmatch("[0-9]{1,9}", text) is not None:
        return float(text)
    try:
        return float(max(0, math.ceil(parsedate_to_datetime(text).timestamp() - time.time())))
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
