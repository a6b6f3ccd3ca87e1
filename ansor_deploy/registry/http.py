"""HTTP for fsspec, from servers that may send without end, slowly, or more than it looks like."""

from typing import Any

import aiohttp

from .bundle import MOST_BYTES

MOST_LISTED = 1 << 24  # bytes of a page that lists bundles
SECONDS = 300.0  # of one request
_STALLED = 30.0  # seconds without a byte
_AHEAD = 1 << 24  # bytes that fsspec may ask for beyond what is read


class _Bounded(aiohttp.ClientResponse):
    async def read(self) -> bytes:
        """All of the body, which is held to what it may be."""
        is_part = "Range" in self.request_info.headers
        self._body: bytes = await self._read(MOST_BYTES + _AHEAD if is_part else MOST_LISTED)
        return self._body

    async def _read(self, most: int) -> bytes:
        found = bytearray()
        async for piece in self.content.iter_any():
            found += piece
            if len(found) > most:
                self.close()
                raise aiohttp.ClientPayloadError(f"it sends more than {most >> 20} MiB")
        return bytes(found)


async def session(**options: Any) -> aiohttp.ClientSession:
    """A session that bounds bytes and seconds; nothing is unpacked, so that no bomb goes off."""
    return aiohttp.ClientSession(
        response_class=_Bounded,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=SECONDS, sock_read=_STALLED),
        **options,
    )
