"""HTTP for fsspec with limits: a server may send without end, slowly, or compressed bombs."""

from typing import Any

import aiohttp

from .bundle import MOST_BYTES

MOST_LISTED = 1 << 24  # bytes of a page that lists bundles
SECONDS = 300.0  # the limit of one request
_STALLED = 30.0  # seconds without a byte after which a request fails
_AHEAD = 1 << 24  # bytes that fsspec may read ahead


class _Bounded(aiohttp.ClientResponse):
    async def read(self) -> bytes:
        """The whole body; ClientPayloadError where it is longer than allowed."""
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
    """A session that limits bytes and seconds. It decompresses nothing, so no bomb can expand."""
    return aiohttp.ClientSession(
        response_class=_Bounded,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=SECONDS, sock_read=_STALLED),
        **options,
    )
