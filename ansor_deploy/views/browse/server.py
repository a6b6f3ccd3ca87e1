"""Start Datasette on a registry: read-only, and for this machine alone."""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
import webbrowser
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from datasette.app import Datasette
from datasette.database import Database
from datasette.plugins import pm
from datasette.utils import parse_metadata

from ...errors import AnsorError
from ...registry.store import Registry
from ...system.environment import shipped
from . import plugin

HOST = "127.0.0.1"
_TEMPLATES = Path(__file__).with_name("templates")
_SETTINGS = {
    "allow_download": False,
    "default_cache_ttl": 0,
    "sql_time_limit_ms": 1000 * plugin.PATIENCE,
    "truncate_cells_html": 200,
}
_TO_END = 1  # seconds that responses in progress get when the server ends
# If none of these variables is set, a browser would take over the terminal.
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


class ReadOnly(Database):
    """A registry's file that no query can change, whatever its path."""

    def connect(self, write: bool = False) -> sqlite3.Connection:
        """A connection for one thread. Datasette's own would end the path at a `?` in it."""
        uri = f"{Path(self.path).resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        for setting in ("query_only = ON", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection


def serve(registry: Path, port: int, started: Callable[[str], None], *, opens: bool) -> None:
    """Show a registry until a signal arrives, which is raised again once the server has ended.

    port: 0 for any free one. started: called with the URL. opens: whether to open a browser, too.
    """
    with Registry.open(registry, write=False):
        pass  # only to report a file that is damaged, of a newer tool, or no registry
    with _listening(port) as door:
        url = f"http://{HOST}:{door.getsockname()[1]}/"
        config = uvicorn.Config(
            application(registry),
            log_level="critical",  # otherwise it prints tracebacks when it cuts connections off
            lifespan="on",
            timeout_graceful_shutdown=_TO_END,
        )
        started(url)
        if opens and any(map(os.environ.get, _DESKTOP)):
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()  # it may block
        uvicorn.Server(config).run(sockets=[door])


def application(registry: Path) -> Any:
    """Datasette on a registry, as an ASGI application."""
    if not pm.is_registered(plugin):
        pm.unregister(name="datasette.handle_exception")  # prints tracebacks
        pm.register(plugin)
    metadata = parse_metadata((shipped("registry") / "datasette.yml").read_text(encoding="utf-8"))
    made = Datasette(metadata=metadata, template_dir=str(_TEMPLATES), settings=_SETTINGS)
    made.remove_database("_memory")
    made.add_database(ReadOnly(made, str(registry)), name=plugin.NAME)
    return made.app()


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use" if error.errno == errno.EADDRINUSE else "is reserved for the system"
        hint = "name another one: --port N, or --port 0 for any that is free"
        raise AnsorError(f"port {port} of {HOST} {why}", hint) from error
