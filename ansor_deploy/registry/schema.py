"""The tables of a registry: their columns, how values are stored, and what others may send.

From these definitions follow the statements that add rows, the conversion between rows and nouns,
the fields of bundles with the firewall's checks of them, and the recognition of rows in a damaged
file. `registry/schema.sql` makes the tables; a test checks that both agree.
"""

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any

from ..system.digest import canonical_json, sha256
from ..system.environment import shipped
from . import forms
from .forms import Form, Forms
from .record import Build, Contest, Measurement, Provenance, Record, SearchEnd, TaskKey, Workload

Value = int | float | str | bytes | None
Row = tuple[Value, ...]

# The exceptions by which `Table.read` and others report a row that cannot be read.
UNREADABLE = (zlib.error, ValueError, KeyError, TypeError, RecursionError)

_DIGEST = re.compile("[0-9a-f]{64}")
_MOST = 1 << 26  # bytes of an unpacked text; a registry may come from someone else
_MOST_SENT = 1 << 20  # bytes of an unpacked text that is sent: no line of a bundle is longer


def _same(value: Any) -> Any:
    return value


def _typed(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def packed(text: str) -> bytes:
    """A compressed text.

    A registry consists mostly of traces, and these are similar: with a preset dictionary they take
    a fifth of what zlib alone needs.
    """
    packer = zlib.compressobj(level=9, memLevel=9, zdict=dictionary())
    return packer.compress(text.encode()) + packer.flush()


def unpacked(blob: bytes, most: int = _MOST) -> str:
    """The text of a `packed` value; zlib.error or ValueError if it is invalid or too long."""
    unpacker = zlib.decompressobj(zdict=dictionary())
    text = unpacker.decompress(blob, most)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("a packed text is cut off, too long, or followed by something")
    return text.decode()


@cache
def dictionary() -> bytes:
    """The preset dictionary: two traces. It must never change, since every row depends on it."""
    return (shipped("registry") / "traces.zdict").read_bytes()


@dataclass(frozen=True)
class Kind:
    """How the values of a column are stored.

    sql: type and constraint. fits: whether a value may be stored in such a column. store: converts
    a noun's value to the stored one. parse: converts a stored value to JSON's; make: converts
    JSON's value to the noun's.
    """

    sql: str
    fits: Callable[[Any], object]
    store: Callable[[Any], Any] = _same
    parse: Callable[[Any], Any] = _same
    make: Callable[[Any], Any] = _same

    def sent(self, value: Any) -> Any:
        """The value that is sent for a stored value."""
        return unpacked(value, _MOST_SENT) if self.parse is unpacked else self.parse(value)


NUMBER = Kind("INTEGER", _typed(type(None)))  # the row's number; SQLite stores it as the rowid
DIGEST = Kind("TEXT NOT NULL", lambda value: isinstance(value, str) and _DIGEST.fullmatch(value))
TEXT = Kind("TEXT NOT NULL", _typed(str))
COUNT = Kind("INTEGER NOT NULL", _typed(int))
FLAG = Kind("INTEGER NOT NULL", _typed(int), int, make=bool)
REAL = Kind("REAL NOT NULL", _typed(int, float), float)
REAL_OR_NONE = Kind("REAL", _typed(int, float, type(None)))
BYTES_OR_NONE = Kind("BLOB", _typed(bytes, type(None)))
PACKED = Kind("BLOB NOT NULL", _typed(bytes), packed, unpacked)
JSON = Kind("TEXT NOT NULL", _typed(str), canonical_json, json.loads)
LIST = replace(JSON, make=tuple)
LISTS = replace(JSON, make=lambda value: tuple(map(tuple, value)))
PROVENANCE = replace(
    JSON, store=lambda provenance: canonical_json(provenance.to_json()), make=Provenance.of
)


@dataclass(frozen=True)
class Column:
    """A column. form: that of values from others; a column without one is never sent.

    default: the value in nouns of others.
    """

    name: str
    kind: Kind
    form: Form | Forms | None = None
    default: Value = None


def _columns(names: str, kind: Kind, **more: Any) -> tuple[Column, ...]:
    return tuple(Column(name, kind, **more) for name in names.split())


class Table:
    """A table. noun: the dataclass of its rows, if there is one; equal names mean equal things.

    Columns `workload` and `target` may be the two parts of a noun's `key`. derived: columns that
    follow from the rest of the noun; they reveal a flipped bit that SQLite cannot notice. entry:
    the kind of its entries in a bundle. rowids: whether SQLite numbers its rows. forms: those of
    the fields of such an entry. insert: the statement that adds a row made by `row`.
    """

    def __init__(
        self,
        name: str,
        noun: Any,
        *columns: Column,
        derived: Mapping[str, Callable[[Any], Any]] | None = None,
        entry: str = "",
        rowids: bool = True,
    ) -> None:
        self.name, self.columns, self.entry, self._rowids = name, columns, entry, rowids
        self._noun, self._derived = noun, derived or {}
        own = {one.name for one in fields(noun)} if noun else set()
        self._keyed = "key" in own and all(column.name != "key" for column in columns)
        # The columns that a noun is made from, and how the others follow from it.
        self._parts = [c for c in columns if c.name in own or (self._keyed and c.name in _KEY)]
        of_key = {name: attrgetter(f"key.{name}") for name in _KEY if self._keyed}
        ways: dict[str, Any] = {**self._derived, **{n: attrgetter(n) for n in own}, **of_key}
        stored = [column for column in columns if column.kind is not NUMBER]
        self._ways = [(ways.get(c.name, attrgetter(c.name)), c.kind.store) for c in stored]
        names, places = ", ".join(c.name for c in stored), ", ".join("?" * len(stored))
        self.insert = f"INSERT INTO {name} ({names}) VALUES ({places})"
        self.forms: Forms = self._nested({c.name: c.form for c in self._parts if c.form})

    def row(self, noun: Any) -> Row:
        """The row of a noun, without its number."""
        return tuple(store(value(noun)) for value, store in self._ways)

    def read(self, row: Mapping[str, Any]) -> Any:
        """The noun of a row; one of UNREADABLE if the row is invalid or not as it was written."""
        noun = self._made({c.name: c.kind.make(c.kind.parse(row[c.name])) for c in self._parts})
        if any(follows(noun) != row[name] for name, follows in self._derived.items()):
            raise ValueError("it is not as it was written")
        return noun

    def parsed(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with its JSON columns parsed and all others unchanged."""
        texts = {c.name for c in self.columns if c.kind.parse is json.loads} & row.keys()
        return {**row, **{name: json.loads(row[name]) for name in texts}}

    def sent(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that is sent for a row; one of UNREADABLE if it cannot be read."""
        return self._nested({c.name: c.kind.sent(row[c.name]) for c in self._parts if c.form})

    def sent_of(self, noun: Any) -> dict[str, Any]:
        """The JSON object that is sent for a noun."""
        return {name: value for name, value in asdict(noun).items() if name in self.forms}

    def admitted(self, data: Any) -> Any:
        """The noun of an object that others sent; Refused if a field does not have its form."""
        forms.check(data, self.forms)
        values = {**data, **data["key"]} if self._keyed else data
        return self._made(
            {c.name: c.kind.make(values[c.name]) if c.form else c.default for c in self._parts}
        )

    def whole(self, number: int | None, values: Row) -> Row:
        """A damaged file's row with its number; () if it is not of this table, or not intact.

        number: the rowid; None in a table without rowids.
        """
        fits = (number is not None) == self._rowids and len(values) == len(self.columns)
        if not fits or not all(c.kind.fits(v) for c, v in zip(self.columns, values, strict=True)):
            return ()
        before = (number,) if self.columns[0].kind is NUMBER else ()
        found = (*before, *values[len(before) :])
        if self._noun is None:
            return found
        try:
            row = dict(zip((column.name for column in self.columns), found, strict=True))
            return (*before, *self.row(self.read(row)))
        except UNREADABLE:
            return ()

    def _nested(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values by a noun's fields, with those of its key in an object of their own."""
        key = {name: values.pop(name) for name in _KEY if self._keyed and name in values}
        return {"key": key, **values} if key else values

    def _made(self, values: dict[str, Any]) -> Any:
        if self._keyed:
            values["key"] = TaskKey(*(values.pop(name) for name in _KEY))
        return self._noun(**values)


_KEY = ("workload", "target")
_ID = Column("id", NUMBER)
_OF_TASK = _columns("workload target", DIGEST, form=forms.DIGEST)
_TRACE = Column("trace", PACKED, forms.TRACE)
_TIMES = Column("seconds", LIST, forms.TIMES)
_PROVENANCE = Column("provenance", PROVENANCE, forms.PROVENANCE)
_CREATED = Column("created", TEXT, forms.TIME)
_CLAIMED = Column("claimed", FLAG, default=0)  # set for everything that others send

WORKLOADS = Table(
    "workloads",
    Workload,
    Column("key", DIGEST, forms.DIGEST),
    Column("op", TEXT, forms.WORD),
    Column("name", TEXT, default=""),  # not sent: it comes from the user's model
    Column("family", TEXT, forms.DIGEST),
    Column("shapes", LISTS, forms.SHAPES),
    Column("dtypes", LIST, forms.DTYPES),
    *_columns("flops bytes", REAL, form=forms.WORK),
    Column("text", PACKED, forms.PROGRAM),
    derived={"key": lambda workload: sha256(workload.text)},
    entry="workload",
)
TARGETS = Table(
    "targets",
    None,
    *(Column("fingerprint", DIGEST), Column("name", TEXT), Column("json", JSON)),
    derived={"json": lambda target: target.to_json()},
    entry="target",
)
MEASUREMENTS = Table(
    "measurements",
    Measurement,
    *(_ID, *_OF_TASK, _TIMES, *_columns("error message", TEXT), _PROVENANCE, _TRACE),
    Column("features", BYTES_OR_NONE),
)
RECORDS = Table(
    "records",
    Record,
    *(Column("id", DIGEST), *_OF_TASK, Column("tvm", TEXT), Column("latency", REAL), _CREATED),
    *(_TIMES, Column("proof", JSON, forms.PROOF), _PROVENANCE, _TRACE, _CLAIMED),
    derived={
        "id": lambda record: record.id,
        "tvm": lambda record: record.provenance.tvm,
        "latency": lambda record: record.latency,
        "created": lambda record: record.provenance.created,
    },
    entry="record",
)
MODELS = Table("models", None, Column("digest", DIGEST), Column("name", TEXT))
MODEL_TASKS = Table(
    "model_tasks",
    None,
    *(Column("model", DIGEST), *_OF_TASK, Column("weight", COUNT)),
    rowids=False,
)
BUILDS = Table(
    "builds",
    Build,
    *(_ID, Column("artifact", TEXT), *_columns("model target", DIGEST), _CREATED),
    Column("manifest", JSON),
    *_columns("name shipped tool tvm", TEXT),
    *_columns("asked verification digests", JSON),
    *_columns("hits near misses skipped trials", COUNT),
    *_columns("tuned_ms untuned_ms", REAL_OR_NONE),
)
TUNINGS = Table(
    "tunings",
    None,
    *(_ID, Column("target", DIGEST), Column("search", TEXT), Column("trials", COUNT)),
    *(Column("seconds", REAL), _CREATED),
)
SEARCHES = Table(
    "searches",
    SearchEnd,
    *(_ID, *_OF_TASK, Column("tvm", TEXT, forms.VERSION), Column("search", TEXT, forms.WORD)),
    *(Column("trials", COUNT, forms.COUNT), Column("reason", TEXT, forms.REASON)),
    *(Column("enough_for", COUNT, forms.COUNT), _CREATED),
    *(Column("rules", TEXT, default=""), _CLAIMED),
    entry="search",
)
BEATEN = Table(
    "beaten",
    Contest,
    *_columns("loser winner", DIGEST, form=forms.DIGEST),
    _CREATED,
    entry="contest",
    rowids=False,
)

# Without leases: they belong to running processes, and are neither kept nor sent.
TABLES = (
    *(WORKLOADS, TARGETS, MEASUREMENTS, RECORDS, MODELS, MODEL_TASKS, BUILDS, TUNINGS, SEARCHES),
    BEATEN,
)
