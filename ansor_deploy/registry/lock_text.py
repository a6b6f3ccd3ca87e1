"""Lock files: the records that a build used, to be kept in version control.

    {"ansor-deploy-lock":2,"machine":{...},"target":"<fingerprint>","tool":"0.2.0","tvm":"..."}
    # conv2d_add (conv2d) 1x56x56x64 3x3x64x64: 0.123 ms
    {"id":"<SHA-256 of the record>","record":{...}}
    # softmax (softmax) 1x1000: the default schedule
    {"default":"<key of a workload>"}
    # net.onnx: 2 streams of 1 thread for throughput
    {"for":"throughput","streams":2,"tasks":"<SHA-256 of a model's keys>","threads":1}

A task is listed with its record, or as one that gets the default schedule on purpose. Each record
is one line of canonical JSON, in the order of keys. A changed schedule changes two lines; the first
of these is for people and is not read. Others may edit the file, so it is checked like anything
from outside.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import MissingRecordError, RegistryError
from ..system.atomic_file import write_whole
from ..system.digest import canonical_json, sha256
from ..system.host import lacks
from ..system.regular_file import read_regular
from ..system.untrusted import Refused, exactly, quoted, refuse, strict_json
from ..system.words import count
from ..target import HOST, IDENTITY, Target, differences
from .bundle import MOST_LINE, record_line
from .firewall import check_record, check_target, target_fields
from .forms import DIGEST
from .limits import BUNDLE_BYTES
from .record import Record, TaskKey, Workload

VERSION = 2
PRESETS = ("latency", "throughput")
REMAKE = "ansor-deploy tune MODEL --lock FILE"
_FORMAT = "ansor-deploy-lock"
_DEFAULT, _FOR = "default", "for"
_MOST_SPLIT = 1 << 16  # the most threads, and the most streams
_NAMES = ("name", "description")  # fields of a machine that its fingerprint does not cover
_MOST_CHARS = 160  # of a name, and of a label
_MOST_NAMED = 4  # the most differences of two targets that a message names


@dataclass(frozen=True, order=True)
class LockedSplit:
    """How cores are split for a model. tasks: its `tasks_digest`. preset: one of `PRESETS`.

    threads: how many threads a run takes. streams: how many processes load the library.
    """

    tasks: str
    preset: str
    threads: int
    streams: int

    def to_json(self) -> dict[str, Any]:
        """The object of its line."""
        sizes = {"threads": self.threads, "streams": self.streams}
        return {"tasks": self.tasks, _FOR: self.preset, **sizes}

    def text(self) -> str:
        """The split in words, for people."""
        sizes = count(self.streams, "stream"), count(self.threads, "thread")
        return f"{sizes[0]} of {sizes[1]} for {self.preset}"


@dataclass(frozen=True)
class Lock:
    """What a build may use. defaults: keys of workloads that get the default schedule.

    splits: those that builds for a preset have found, in order. machine: the one it was made for;
    None where none was read. labels: the names of workloads for people, by their keys; unchecked.
    """

    records: dict[TaskKey, Record]
    defaults: frozenset[str] = frozenset()
    machine: Target | None = field(default=None, compare=False)
    labels: dict[str, str] = field(default_factory=dict, compare=False)
    splits: tuple[LockedSplit, ...] = ()

    def split(self, tasks: str, preset: str) -> LockedSplit | None:
        """The split for a model and a preset, if the lock has one."""
        asked = (tasks, preset)
        return next((one for one in self.splits if (one.tasks, one.preset) == asked), None)

    def names(self, key: TaskKey) -> bool:
        """Whether the lock has a record, or the default schedule, for a task."""
        return key in self.records or key.workload in self.defaults


@dataclass(frozen=True)
class _Header:
    tvm: str
    machine: Target


def tasks_digest(keys: Iterable[TaskKey]) -> str:
    """The digest that identifies a model in a lock: that of its tasks, not of its weights."""
    return sha256(canonical_json(sorted(key.workload for key in keys)))


def label(workload: Workload) -> str:
    """The label of a workload for people: its name, operator and shapes."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in workload.shapes]
    return _readable(f"{workload.name} ({workload.op}) {' '.join(shapes)}")


def write_lock(
    path: Path,
    target: Target,
    tvm: str,
    records: Iterable[Record],
    defaults: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    splits: Iterable[LockedSplit] = (),
) -> bool:
    """Write the lock of a build; return whether it differs from the one before.

    records: one for each key, all for this target and TVM. defaults: keys of the other workloads.
    labels: those of workloads by their keys, and of models by the digests of their tasks. An equal
    file is not touched, so that it keeps its time of change.
    """
    named = labels or {}
    machine = target_fields(target.to_json()) | {name: getattr(target, name) for name in _NAMES}
    header = {_FORMAT: VERSION, "machine": machine, "target": target.fingerprint}
    lines = [canonical_json({**header, "tool": __version__, "tvm": tvm})]
    for record in sorted(records, key=lambda record: record.key):
        lines.append(_for_people(record.key.workload, named, _time(record.latency)))
        lines.append(record_line(record.id, record.to_json()))
    for key in sorted(set(defaults)):
        lines.append(_for_people(key, named, "the default schedule"))
        lines.append(canonical_json({_DEFAULT: key}))
    for split in sorted(splits):
        lines.append(_for_people(split.tasks, named, split.text()))
        lines.append(canonical_json(split.to_json()))
    content = "".join(f"{line}\n" for line in lines).encode()
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def read_lock(
    path: Path, target: Target, tvm: str, remake: str = REMAKE, passed: Collection[str] = ()
) -> Lock:
    """Read a lock. remake: the command that makes one, for messages.

    passed: ids of records that have passed the firewall already; most of the time goes into that.
    RegistryError, with line and reason, if a line is not what `write_lock` writes, or the lock is
    for another TVM; MissingRecordError if it is for another target.
    """
    number, last = 1, None
    found: dict[TaskKey, Record] = {}
    defaults: list[str] = []
    splits: list[LockedSplit] = []
    labels: dict[str, str] = {}
    said = ""
    try:
        first, *lines = _lines(path)
        header = _header(first)
        refuse(header.tvm != tvm, f"it is for TVM {quoted(header.tvm)}, and this is {tvm}")
        _check_target(header, target, path, remake)
        for number, line in enumerate(lines, 2):  # noqa: B007 - the error names it
            if line.startswith("#"):
                said = line.lstrip("# ").rpartition(": ")[0]
                continue
            if line.startswith(f'{{"{_FOR}":'):
                splits.append(_split(line, splits))
                labels[splits[-1].tasks], said = said, ""
                continue
            refuse(bool(splits), "it stands behind the splits")
            if line.startswith(f'{{"{_DEFAULT}":'):
                defaults.append(_default(line, defaults))
                labels[defaults[-1]], said = said, ""
                continue
            record = _record(line, target, tvm, passed)
            refuse(bool(defaults), "a record stands behind the defaults")
            refuse(last and record.key <= last, "its key is not behind that before it")
            last, found[record.key] = record.key, record
            labels[last.workload], said = said, ""
    except Refused as refused:
        raise RegistryError(str(refused), _remedy(path, remake), path, number) from refused
    return Lock(found, frozenset(defaults), header.machine, labels, tuple(splits))


def machine_of(path: Path, remake: str = REMAKE) -> Target:
    """The machine that a lock was made for. RegistryError where the file is no lock."""
    try:
        return _header(_lines(path)[0]).machine
    except Refused as refused:
        raise RegistryError(str(refused), _remedy(path, remake), path, 1) from refused


def _remedy(path: Path, remake: str) -> str:
    return f"Restore it from version control, or remove {path} and make it again: {remake}"


def _for_people(key: str, labels: Mapping[str, str], what: str) -> str:
    return f"# {_readable(labels.get(key, '')) or f'task {key[:12]}'}: {what}"


def _time(seconds: float) -> str:
    units = (("ms", 1e3), ("us", 1e6), ("ns", 1e9))
    unit, scale = next((one for one in units if seconds * one[1] >= 0.1), units[-1])
    return f"{seconds * scale:.3g} {unit}"


def _readable(text: str) -> str:
    """The text as one line of ASCII."""
    kept = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return kept[:_MOST_CHARS].strip()


def _lines(path: Path) -> list[str]:
    """The lines of a lock, at least one; RegistryError where it cannot be read."""
    try:
        content = read_regular(path, BUNDLE_BYTES)
    except OSError as error:
        hint = "Name the lock that a build has written."
        raise RegistryError(f"the lock cannot be read: {error.strerror}", hint, path) from error
    lines = content.decode("ascii", errors="replace").split("\n")
    refuse(lines.pop() or not lines, "its end is missing")
    return lines


def _header(line: str) -> _Header:
    refuse(not line.startswith(f'{{"{_FORMAT}":'), "it is not a lock of ansor-deploy")
    said = strict_json(line, MOST_LINE)
    refuse(said[_FORMAT] != VERSION, f"this ansor-deploy reads version {VERSION} of locks")
    exactly(said, _FORMAT, "machine", "target", "tool", "tvm")
    machine = _machine(said["machine"])
    refuse(machine.fingerprint != said["target"], "its machine is not its target")
    return _Header(str(said["tvm"]), machine)


def _machine(data: Any) -> Target:
    said = exactly(data, *IDENTITY, *_NAMES)
    names = {name: said.pop(name) for name in _NAMES}
    wrong = [name for name, text in names.items() if not _is_readable(text)]
    refuse(wrong, f"machine: {', '.join(wrong)} must be a line of text")
    return replace(check_target(said), **names)


def _is_readable(text: Any) -> bool:
    return isinstance(text, str) and text.isprintable() and len(text) <= _MOST_CHARS


def _check_target(header: _Header, target: Target, path: Path, remake: str) -> None:
    """MissingRecordError, with the differences, where the lock is for another target."""
    if header.machine.fingerprint == target.fingerprint:
        return
    hint = f"keep a lock for each target; or remove {path} and make it again: {remake}"
    if header.machine.name == target.name:
        text = f"it was made for another {target.name}"
        if target.name == HOST:
            hint = f"{_elsewhere(header.machine)}; {hint}"
    else:
        text = f"it is for {quoted(header.machine.name)}, and not for {target.name}"
    different = differences(header.machine, target)
    if different == differences(header.machine, replace(header.machine, cores=target.cores)):
        same = f"{target.name.partition(':')[0]}:{header.machine.cores}"
        hint = f"for as many cores as the lock: --target {same}; {hint}"
    different = different[:_MOST_NAMED]
    raise MissingRecordError("; ".join([text, *different]), hint, path)


def _elsewhere(made_on: Target) -> str:
    """The hint for a lock that was made on another host."""
    if lacking := lacks(made_on.triple, made_on.cpu, made_on.features):
        return (
            f"this machine lacks {', '.join(lacking)}, which its code may use: build on such a "
            "machine, or make it for one that all of them are, such as --target x86-64-v3:4"
        )
    return "with --frozen it is used as it is"


def _default(line: str, before: Sequence[str]) -> str:
    key = exactly(strict_json(line, MOST_LINE), _DEFAULT)[_DEFAULT]
    refuse(not DIGEST.fits(key), "it names no workload's key")
    refuse(before and key <= before[-1], "its key is not behind that before it")
    return str(key)


def _split(line: str, before: Sequence[LockedSplit]) -> LockedSplit:
    said = exactly(strict_json(line, MOST_LINE), _FOR, "streams", "tasks", "threads")
    tasks, preset, *sizes = (said[name] for name in ("tasks", _FOR, "threads", "streams"))
    refuse(not DIGEST.fits(tasks) or preset not in PRESETS, "it is no split of a model")
    fit = all(type(size) is int and 1 <= size <= _MOST_SPLIT for size in sizes)
    refuse(not fit, "its threads or streams are no number of them")
    split = LockedSplit(tasks, preset, *sizes)
    late = before and (tasks, preset) <= (before[-1].tasks, before[-1].preset)
    refuse(late, "its tasks are not behind those before it")
    return split


def _record(line: str, target: Target, tvm: str, passed: Collection[str]) -> Record:
    entry = exactly(strict_json(line, MOST_LINE), "id", "record")
    record = check_record(entry["id"], entry["record"], target, passed=passed)
    refuse(record.key.target != target.fingerprint, "the record is for another target")
    refuse(record.provenance.tvm != tvm, "the record was made with another TVM")
    return record
