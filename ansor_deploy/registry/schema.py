"""The tables of a registry, each once: its columns, how they are stored, and what others may send.

From here come the statements that add rows, rows of nouns and nouns of rows, the fields of bundles
with what the firewall demands of them, and the looks by which rows of a damaged file are known.
`registry/migrations.py` makes the tables; a test holds both equal.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any

from ..project import shipped
from ..system.digest import canonical_json, sha256
from . import forms
from .forms import Form, Forms
from .keys import TaskKey
from .record import Build, Contest, Measurement, Provenance, Record, SearchEnd, Workload

Value = int | float | str | bytes | None
Row = tuple[Value, ...]

UNREADABLE = (zlib.error, ValueError, KeyError, TypeError, RecursionError)  # of `Table.noun`

_DIGEST = re.compile("[0-9a-f]{64}")
_MOST = 1 << 26  # bytes of a text; a registry may come from someone else


def _same(value: Any) -> Any:
    return value


def _typed(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def packed(text: str) -> bytes:
    """A text in few bytes.

    Traces are most of a registry, and are alike: a preset dictionary makes them a fifth of what
    zlib makes of them alone. What was written without it is read all the same.
    """
    packer = zlib.compressobj(level=9, memLevel=9, zdict=dictionary())
    return packer.compress(text.encode()) + packer.flush()


def unpacked(blob: bytes, most: int = _MOST) -> str:
    """The text of a `packed`; zlib.error or ValueError if it is none, or of more bytes."""
    unpacker = zlib.decompressobj(zdict=dictionary())
    text = unpacker.decompress(blob, most)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("a packed text is cut off, too long, or followed by something")
    return text.decode()


@cache
def dictionary() -> bytes:
    """Two traces, never to be changed: every row was written with it."""
    return (shipped("registry") / "traces.zdict").read_bytes()


@dataclass(frozen=True)
class Kind:
    """How the values of a column are stored.

    sql: type and constraint. fits: whether a stored value can be one. store: gives it of a noun's
    value. parse: gives what JSON has of a stored value; make: what a noun has of that.
    """

    sql: str
    fits: Callable[[Any], object]
    store: Callable[[Any], Any] = _same
    parse: Callable[[Any], Any] = _same
    make: Callable[[Any], Any] = _same


NUMBER = Kind("INTEGER", _typed(type(None)))  # of the row, which SQLite keeps apart
DIGEST = Kind("TEXT NOT NULL", lambda value: isinstance(value, str) and _DIGEST.fullmatch(value))
TEXT = Kind("TEXT NOT NULL", _typed(str))
COUNT = Kind("INTEGER NOT NULL", _typed(int))
REAL = Kind("REAL NOT NULL", _typed(int, float), float)
REAL_OR_NONE = Kind("REAL", _typed(int, float, type(None)))
BYTES_OR_NONE = Kind("BLOB", _typed(bytes, type(None)))
PACKED = Kind("BLOB NOT NULL", _typed(bytes), packed, unpacked)
JSON = Kind("TEXT NOT NULL", _typed(str), canonical_json, json.loads)
LIST = replace(JSON, make=tuple)
LISTS = replace(JSON, make=lambda value: tuple(map(tuple, value)))
PROVENANCE = replace(
    JSON,
    store=lambda provenance: canonical_json(vars(provenance)),
    make=lambda value: Provenance(**value),
)


@dataclass(frozen=True)
class Column:
    """A column. form: what others must send there; without one it stays at home.

    since: the schema that added it. default: what older rows have there, and nouns of others.
    """

    name: str
    kind: Kind
    form: Form | Forms | None = None
    since: int = 1
    default: Value = None


@dataclass(frozen=True, eq=False)
class Table:
    """A table. noun: the dataclass of its rows, if there is one; of equal names are equal things.

    Columns `workload` and `target` may be the two parts of a noun's `key`. derived: columns that
    follow from the rest of the noun, by which a flipped bit is noticed that SQLite cannot notice.
    entry: what a bundle calls it. rowids: whether SQLite numbers its rows.
    """

    name: str
    columns: tuple[Column, ...]
    noun: Callable[..., Any] | None = None
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    entry: str = ""
    rowids: bool = True

    @cached_property
    def insert(self) -> str:
        """The statement that adds a row of `row`."""
        names = [column.name for column in self._stored]
        return (
            f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        )

    def row(self, noun: Any) -> Row:
        """The row of a noun, but for its number."""
        return tuple(column.kind.store(self._value(noun, column.name)) for column in self._stored)

    def read(self, row: Mapping[str, Any]) -> Any:
        """The noun of a row; one of UNREADABLE if it is none, or not as it was written."""
        noun = self._made({c.name: c.kind.make(c.kind.parse(row[c.name])) for c in self._parts})
        for name, follows in self.derived.items():
            if follows(noun) != row[name]:
                raise ValueError("it is not as it was written")
        return noun

    def parsed(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with the values of its JSON columns, whatever else it has."""
        return {**row, **{name: json.loads(row[name]) for name in self._json & row.keys()}}

    def sent(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What of a row travels, as a JSON object; one of UNREADABLE if it cannot be read."""
        values = {c.name: c.kind.parse(row[c.name]) for c in self._parts if c.form}
        if self._keyed:
            values["key"] = {name: values.pop(name) for name in _KEY}
        return values

    def sent_of(self, noun: Any) -> dict[str, Any]:
        """What of a noun travels, as a JSON object."""
        return {name: value for name, value in asdict(noun).items() if name in self.forms}

    def admitted(self, data: Any) -> Any:
        """The noun of what others sent; Refused if a field is not of its form."""
        forms.check(data, self.forms, self.entry)
        values = {**data, **data["key"]} if self._keyed else data
        return self._made(
            {c.name: c.kind.make(values[c.name]) if c.form else c.default for c in self._parts}
        )

    def whole(self, number: int | None, values: Row) -> Row:
        """A damaged file's row with all columns; () if it is none of this table, or not whole.

        number: of the row; None where SQLite has none. Of a row that is older than a column, the
        column is missing.
        """
        lacking = self.columns[len(values) :]
        fits = (number is not None) == self.rowids and all(c.since > 1 for c in lacking)
        if not fits or len(values) > len(self.columns) or not self._looks(values):
            return ()
        found = (*values, *(column.default for column in lacking))
        if self.columns[0].kind is NUMBER:
            found = (number, *found[1:])
        if self.noun is None:
            return found
        try:
            again = self.row(self.read(dict(zip(self._names, found, strict=True))))
        except UNREADABLE:
            return ()
        return (number, *again) if self.columns[0].kind is NUMBER else again

    @cached_property
    def forms(self) -> Forms:
        """What the fields of an entry in a bundle must be."""
        found: dict[str, Any] = {c.name: c.form for c in self._parts if c.form}
        if self._keyed:
            found["key"] = {name: found.pop(name) for name in _KEY}
        return found

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def _stored(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.kind is not NUMBER)

    @cached_property
    def _keyed(self) -> bool:
        """Whether `workload` and `target` are a noun's key."""
        return "key" in self._fields and "key" not in self._names

    @cached_property
    def _fields(self) -> frozenset[str]:
        return frozenset(one.name for one in fields(self.noun)) if self.noun else frozenset()  # type: ignore[arg-type]

    @cached_property
    def _parts(self) -> tuple[Column, ...]:
        """The columns that a noun is made of."""
        parts = {*self._fields, *(_KEY if self._keyed else ())}
        return tuple(column for column in self.columns if column.name in parts)

    @cached_property
    def _json(self) -> frozenset[str]:
        return frozenset(c.name for c in self.columns if c.kind.parse is json.loads)

    def _looks(self, values: Row) -> bool:
        return all(c.kind.fits(v) for c, v in zip(self.columns, values, strict=False))

    def _value(self, noun: Any, name: str) -> Any:
        if self._keyed and name in _KEY:
            return getattr(noun.key, name)
        follows = self.derived.get(name)
        return follows(noun) if follows and name not in self._fields else getattr(noun, name)

    def _made(self, values: dict[str, Any]) -> Any:
        if self._keyed:
            values["key"] = TaskKey(*(values.pop(name) for name in _KEY))
        assert self.noun is not None  # noqa: S101 - asked of tables of nouns only
        return self.noun(**values)


_KEY = ("workload", "target")
_ID = Column("id", NUMBER)
_WORKLOAD = Column("workload", DIGEST, forms.DIGEST)
_TARGET = Column("target", DIGEST, forms.DIGEST)
_CREATED = Column("created", TEXT, forms.TIME)

WORKLOADS = Table(
    "workloads",
    (
        Column("key", DIGEST, forms.DIGEST),
        Column("op", TEXT, forms.WORD),
        Column("name", TEXT, default=""),  # which is the model's
        Column("family", TEXT, forms.DIGEST),
        Column("shapes", LISTS, forms.SHAPES),
        Column("dtypes", LIST, forms.DTYPES),
        Column("flops", REAL, forms.WORK),
        Column("bytes", REAL, forms.WORK),
        Column("text", PACKED, forms.PROGRAM),
    ),
    Workload,
    {"key": lambda workload: sha256(workload.text)},
    "workload",
)
TARGETS = Table(
    "targets",
    (Column("fingerprint", DIGEST), Column("name", TEXT), Column("json", JSON)),
    derived={"json": lambda target: target.to_json()},
    entry="target",
)
MEASUREMENTS = Table(
    "measurements",
    (
        *(_ID, _WORKLOAD, _TARGET),
        Column("seconds", LIST),
        Column("error", TEXT),
        Column("message", TEXT),
        Column("provenance", PROVENANCE),
        Column("trace", PACKED),
        Column("features", BYTES_OR_NONE),
    ),
    Measurement,
)
RECORDS = Table(
    "records",
    (
        *(Column("id", DIGEST), _WORKLOAD, _TARGET),
        Column("tvm", TEXT),
        Column("latency", REAL),
        Column("created", TEXT),
        Column("seconds", LIST, forms.TIMES),
        Column("proof", JSON, forms.PROOF),
        Column("provenance", PROVENANCE, forms.PROVENANCE),
        Column("trace", PACKED, forms.TRACE),
    ),
    Record,
    {
        "id": lambda record: record.id,
        "tvm": lambda record: record.provenance.tvm,
        "latency": lambda record: record.latency,
        "created": lambda record: record.provenance.created,
    },
    "record",
)
MODELS = Table("models", (Column("digest", DIGEST), Column("name", TEXT)))
MODEL_TASKS = Table(
    "model_tasks",
    (Column("model", DIGEST), _WORKLOAD, _TARGET, Column("weight", COUNT)),
    rowids=False,
)
BUILDS = Table(
    "builds",
    (
        *(_ID, Column("artifact", TEXT), Column("model", DIGEST), _TARGET),
        Column("created", TEXT),
        Column("manifest", JSON),
        Column("name", TEXT, since=4, default=""),
        Column("asked", JSON, since=4, default="{}"),
        *(Column(name, COUNT, since=4, default=0) for name in ("hits", "near", "misses")),
        *(Column(name, COUNT, since=4, default=0) for name in ("skipped", "trials")),
        *(Column(name, REAL_OR_NONE, since=4) for name in ("tuned_ms", "untuned_ms")),
        Column("shipped", TEXT, since=4, default=""),
        *(Column(name, JSON, since=4, default="{}") for name in ("verification", "digests")),
        *(Column(name, TEXT, since=4, default="") for name in ("tool", "tvm")),
    ),
    Build,
)
TUNINGS = Table(
    "tunings",
    (
        *(_ID, _TARGET, Column("search", TEXT)),
        Column("trials", COUNT),
        Column("seconds", REAL),
        Column("created", TEXT),
    ),
)
SEARCHES = Table(
    "searches",
    (
        *(_ID, _WORKLOAD, _TARGET),
        Column("tvm", TEXT, forms.VERSION),
        Column("search", TEXT, forms.WORD),
        Column("trials", COUNT, forms.COUNT),
        Column("reason", TEXT, forms.REASON),
        Column("enough_for", COUNT, forms.COUNT),
        _CREATED,
        Column("rules", TEXT, since=4, default=""),  # which older tools do not know
    ),
    SearchEnd,
    entry="search",
)
BEATEN = Table(
    "beaten",
    (Column("loser", DIGEST, forms.DIGEST), Column("winner", DIGEST, forms.DIGEST), _CREATED),
    Contest,
    entry="contest",
    rowids=False,
)

# Leases are of processes that run now: nothing of them is kept or sent.
TABLES = (
    *(WORKLOADS, TARGETS, MEASUREMENTS, RECORDS, MODELS, MODEL_TASKS, BUILDS, TUNINGS, SEARCHES),
    BEATEN,
)
