"""A filter between pages and browser: refuses other sites and writes, and shortens hashes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# Pages load and run nothing, even if a name in the registry should get through as a tag.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'"
_REFUSED = {
    400: b"This server answers as 127.0.0.1 or localhost only.\n",
    405: b"This server is only read.\n",
}
_OURS = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
# The text that a page shows; links and text being edited keep whole hashes.
_SHOWN = re.compile(rb"<textarea.*?</textarea>|(?<=>)[^<]+", re.DOTALL)
_HASH = re.compile(rb"\b([0-9a-f]{6})[0-9a-f]{58}\b")


def guarded(application: Application) -> Application:
    """The application, which refuses writes, and requests under another name than localhost's."""

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
    """An HTML page, with six digits of each hash that it shows."""
    return _SHOWN.sub(_short, page)


def _short(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text.startswith(b"<textarea") else _HASH.sub(rb"\1", text)


def _shown(send: Send) -> Send:
    """A `send` that shortens the hashes of HTML pages, and adds the policy to every response."""
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
