"""Between the pages and a browser: nothing of other sites or to be written, and short hashes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# Nothing is loaded, and nothing runs, even if a name in the registry came through as a tag.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'"
_REFUSED = {
    400: b"This server answers as 127.0.0.1 or localhost only.\n",
    405: b"This server is only read.\n",
}
_OURS = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
# What a page shows; links keep the whole hash, and so does what somebody is writing.
_SHOWN = re.compile(rb"<textarea.*?</textarea>|(?<=>)[^<]+", re.DOTALL)
_HASH = re.compile(rb"\b([0-9a-f]{6})[0-9a-f]{58}\b")


def guarded(application: Application) -> Application:
    """The application, which other sites cannot ask under a name of theirs for this machine."""

    async def guard(scope: Message, receive: Receive, send: Send) -> None:
        host = dict(scope.get("headers", ())).get(b"host", b"")
        if scope["type"] == "http" and not _OURS.fullmatch(host):
            await _refuse(send, 400)
        elif scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            await _refuse(send, 405)
        else:
            await application(scope, receive, _shown(send))

    return guard


def shortened(page: bytes) -> bytes:
    """An HTML page that shows six digits of each hash."""
    return _SHOWN.sub(_short, page)


def _short(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text.startswith(b"<textarea") else _HASH.sub(rb"\1", text)


def _shown(send: Send) -> Send:
    """To send pages with short hashes and the policy; what is no page goes as it is."""
    page = False

    async def through(message: Message) -> None:
        nonlocal page
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            page = any(k.lower() == b"content-type" and v[:9] == b"text/html" for k, v in headers)
            headers.append((b"content-security-policy", _POLICY.encode()))
            message = {**message, "headers": headers}
        elif page and message["type"] == "http.response.body":
            message = {**message, "body": shortened(message.get("body", b""))}
        await send(message)

    return through


async def _refuse(send: Send, status: int) -> None:
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSED[status]})
