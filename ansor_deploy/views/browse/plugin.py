"""A Datasette plugin: our pages, and tables that link to them."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from datasette import hookimpl
from datasette.utils.asgi import Base400, Response
from datasette.views.base import DatasetteError
from markupsafe import Markup

from ...errors import AnsorError, UsageError
from ...registry.faults import explained
from ...registry.store import Registry
from ...registry.title import title
from ..page.style import STYLE
from ..text import KEY, called, unique_names
from . import pages
from .guard import guarded

NAME = "registry"  # of the database, in URLs and in the metadata
PATIENCE = 5  # seconds that a user's own query may take
_HASH = re.compile("[0-9a-f]{64}")
# Columns with the key of a task or a record of one, and columns with that of a model.
_PLACES = {
    **dict.fromkeys(("key", "workload", "id", "loser", "winner"), "tasks"),
    **dict.fromkeys(("model", "digest"), "models"),
}


def _page(name: str, find: pages.Page) -> Callable[..., Awaitable[Response]]:
    """The view of a page: the result of `find`, rendered by the template of that name."""

    async def view(datasette: Any, request: Any) -> Response:
        path = _path(datasette)
        asked = {**{name: request.args[name] for name in request.args}, **request.url_vars}
        found = await asyncio.to_thread(_look, path, find, asked)
        html = await datasette.render_template(f"{name}.html", found, request=request)
        return Response.html(html)

    return view


def _look(path: Path, find: pages.Page, asked: Mapping[str, str]) -> dict[str, Any]:
    """The data of a page. The registry is opened anew each time, as its file may be replaced."""
    with Registry.open(path, write=False) as store:
        return {**find(store, asked), "names": unique_names(store.target_names())}


def _path(datasette: Any) -> Path:
    return Path(datasette.databases[NAME].path)


# Beginnings of tags in Datasette's pages, and the labels that they lack for screen readers. In
# names and values `<` is escaped, so only tags match.
_LABELS = (
    ("select", 'name="_filter_column', 'aria-label="Column to filter by"'),
    ("select", 'name="_filter_op', 'aria-label="How to compare it"'),
    ("input", 'type="text" name="_filter_value', 'aria-label="Value to compare it with"'),
    ("textarea", 'id="sql-editor"', 'aria-label="SQL"'),
    ("div", 'class="table-wrapper"', 'aria-label="Rows" role="region" tabindex="0"'),
)


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    """Our pages."""
    return [
        (r"^/$", _page("overview", pages.overview)),
        (r"^/operators$", _page("operators", pages.operators)),
        (r"^/best$", _page("best", pages.best)),
        (r"^/curves$", _page("curves", pages.curves)),
        (r"^/trends$", _page("trends", pages.trends)),
        (r"^/models/(?P<key>[0-9a-f]+)$", _page("model", pages.model)),
        (r"^/tasks/(?P<key>[0-9a-f]+)$", _page("task", pages.task)),
    ]


@hookimpl
def render_cell(value: Any, column: str) -> Markup | None:
    """A cell with a key becomes a link to the page of its task or model."""
    key, label = value, ""
    if isinstance(value, dict):  # a foreign key, with the label that Datasette found
        key, label = value["value"], str(value["label"])
    if not (isinstance(key, str) and column in _PLACES and _HASH.fullmatch(key)):
        return None
    said = f" {label}" if label not in ("", key) else ""
    place = f"/{_PLACES[column]}/{key[: pages.LINK]}"
    return Markup('<a href="{}"><code>{}</code>{}</a>').format(place, key[:KEY], said)


_MOST_BYTES = 1 << 24  # of a value or a row, so that a page of it is quick to make


@hookimpl
def prepare_connection(conn: sqlite3.Connection) -> None:
    """Define functions for queries: `task_title(op, name, shapes)` and `called(name, digest)`.

    The latter names models and targets. Also limit how long a value in a query can become.
    """
    conn.create_function("task_title", 3, _title, deterministic=True)
    conn.create_function("called", 2, called, deterministic=True)
    if sys.version_info >= (3, 11):  # Python 3.10 cannot set SQLite's limits
        conn.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)


def _title(op: str, name: str, shapes: str) -> str:
    return title(op, name, json.loads(shapes))


@hookimpl
def prepare_jinja2_environment(env: Any) -> None:
    """Filters that format figures as the commands do."""
    env.filters.update(pages.FILTERS, labelled=_labelled)


def _labelled(made: Markup) -> Markup:
    """A page of Datasette's, with labels on its controls."""
    for tag, rest, more in _LABELS:
        plain, full = Markup(f"<{tag} {rest}"), Markup(f"<{tag} {more} {rest}")  # noqa: S704 - ours
        made = made.replace(plain, full)
    return made


@hookimpl
def extra_template_vars(datasette: Any) -> dict[str, Any]:
    """Variables of every page: its style, and the registry's path."""
    return {"style": Markup(STYLE), "registry": str(_path(datasette))}  # noqa: S704 - ours


@hookimpl
def asgi_wrapper() -> Callable[..., Any]:
    """Every response passes the guard."""
    return guarded


@hookimpl
def handle_exception(datasette: Any, request: Any, exception: Exception) -> Any:
    """Show an error as a page or as JSON, in place of Datasette's tracebacks."""

    async def answer() -> Response:
        text, hint, status = _problem(_path(datasette), exception)
        found = {"ok": False, "error": text, "hint": hint, "status": status}
        if request.path.endswith(".json"):
            return Response.json(found, status=status)
        return Response.html(
            await datasette.render_template("error.html", found, request=request), status=status
        )

    return answer


def _problem(path: Path, exception: Exception) -> tuple[str, str, int]:
    """What went wrong, what to do next, and the HTTP status."""
    if isinstance(exception, sqlite3.ProgrammingError):  # the file is not at fault
        return str(exception), "Correct the question, which is a part of the address.", 400
    try:
        with explained(path):
            raise exception  # noqa: TRY301 - so that the handlers below sort it
    except AnsorError as error:
        return error.message, error.hint, 404 if isinstance(error, UsageError) else 500
    except DatasetteError as error:
        if error.message_is_html:  # only the message on a query that takes too long is HTML
            return f"the query took longer than {PATIENCE} s", "Ask for less of it.", error.status
        return str(error.message), "", error.status
    except Base400 as error:
        return str((error.args or ("there is no such page",))[0]), "", error.status
    except Exception as error:
        logging.getLogger(__name__).exception("a page could not be made")
        return f"unexpected {type(error).__name__}: {error}", "This is a bug.", 500
