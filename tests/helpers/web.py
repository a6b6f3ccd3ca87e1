"""Web servers on this machine, for the duration of a test."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of a folder, without logging."""

    def log_message(self, *words: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server with this handler; its address, without a slash at the end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True  # endless replies are not waited for
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
