"""`ansor-deploy registry browse`: the registry in a browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from ..errors import AnsorError
from ..system.interrupt import forget
from .helptext import Command, with_examples
from .options import check_there, registry_path
from .output import say, tell

PORT = 8001


@with_examples("registry browse", "registry browse --registry team.db --port 0 --no-open")
@click.command("browse", cls=Command)
@registry_path
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    metavar="N",
    help=f"The port of 127.0.0.1; 0 for any free one.  [default: {PORT}]",
)
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
def browse_command(registry: Path, port: int, no_open: bool) -> None:
    """Show the registry in a browser, until Ctrl-C.

    Its pages show what reuse has saved, where the time goes by operator, what is best on each
    target, and how tasks and models became faster. You can also filter all tables and query them in
    SQL. The registry is only read, and the server only answers this machine. It needs Datasette:
    pip install 'ansor-deploy[browse]'.
    """
    if any(find_spec(name) is None for name in ("datasette", "uvicorn")):
        hint = "run: pip install 'ansor-deploy[browse]'"
        raise AnsorError("Datasette, which shows the registry, is not installed", hint)
    check_there(registry)
    from ..views.browse.server import serve

    def started(url: str) -> None:
        say(url)
        tell(f"showing {registry}, read only; Ctrl-C ends it")

    try:
        serve(registry, port, started, opens=not no_open)
    except KeyboardInterrupt as error:
        if type(error) is not KeyboardInterrupt:  # a subclass: SIGTERM or SIGHUP
            raise
        forget()
