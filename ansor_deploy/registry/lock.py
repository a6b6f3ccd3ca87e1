"""Lock files: the very records that a build used, to be kept in version control.

    {"ansor-deploy-lock":1,"target":"<fingerprint>","tool":"0.1.0","tvm":"0.27.0.post1"}
    {"id":"<SHA-256 of the record>","record":{...}}
    {"default":"<key of a workload>"}

A task is named with its record, or as one that gets the default schedule on purpose. Canonical
JSON, one whole record a line, in the order of their keys: a changed schedule is one changed line.
Others may edit the file, so it is read like anything from outside.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from ..errors import RegistryError
from ..system.atomic_file import write_whole
from ..system.digest import canonical_json
from ..target import Target
from .bundle import MOST_BYTES, MOST_LINE, record_line
from .firewall import check_record
from .forms import DIGEST
from .record import Record, TaskKey
from .untrusted import Refused, exactly, quoted, refuse, strict_json

VERSION = 1
_FORMAT = "ansor-deploy-lock"
_DEFAULT = "default"
REMEDY = (
    "Restore it from version control, or remove it and make it anew: "
    "ansor-deploy tune MODEL --lock FILE"
)


@dataclass(frozen=True)
class Lock:
    """What a build may use. defaults: keys of workloads that get the default schedule."""

    records: dict[TaskKey, Record]
    defaults: frozenset[str] = frozenset()

    def names(self, key: TaskKey) -> bool:
        """Whether it says what becomes of a task."""
        return key in self.records or key.workload in self.defaults


def write_lock(
    path: Path, target: Target, tvm: str, records: Iterable[Record], defaults: Iterable[str] = ()
) -> bool:
    """Write the lock of a build; whether it differs from what was there.

    One record of each key, all for this target and TVM. defaults: keys of the other workloads. An
    equal file is left alone, its time of change too.
    """
    ordered = sorted(records, key=lambda record: record.key)
    header = {_FORMAT: VERSION, "target": target.fingerprint, "tool": __version__, "tvm": tvm}
    lines = [canonical_json(header), *(record_line(r.id, r.to_json()) for r in ordered)]
    lines += [canonical_json({_DEFAULT: key}) for key in sorted(set(defaults))]
    content = "".join(f"{line}\n" for line in lines).encode()
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def read_lock(path: Path, target: Target, tvm: str) -> Lock:
    """What a lock says.

    RegistryError, with line and reason, if a line is not what `write_lock` writes, or the lock is
    for another target or TVM.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        hint = "Name the lock that a build has written."
        raise RegistryError(f"the lock cannot be read: {error.strerror}", hint, path) from error
    number, last = 1, None
    found: dict[TaskKey, Record] = {}
    defaults: list[str] = []
    try:
        refuse(len(content) > MOST_BYTES, "it is too large")
        header, *lines = _lines(content)
        _check_header(header, target, tvm)
        for number, line in enumerate(lines, 2):  # noqa: B007 - the error names it
            if line.startswith(f'{{"{_DEFAULT}":'):
                defaults.append(_default(line, defaults))
                continue
            record = _record(line, target, tvm)
            refuse(bool(defaults), "a record stands behind the defaults")
            refuse(last and record.key <= last, "its key is not behind that before it")
            last, found[record.key] = record.key, record
    except Refused as refused:
        raise RegistryError(str(refused), REMEDY, path, number) from refused
    return Lock(found, frozenset(defaults))


def _lines(content: bytes) -> list[str]:
    lines = content.decode("ascii", errors="replace").split("\n")
    refuse(lines.pop() or not lines, "its end is missing")
    return lines


def _check_header(line: str, target: Target, tvm: str) -> None:
    refuse(not line.startswith(f'{{"{_FORMAT}":'), "it is not a lock of ansor-deploy")
    header = exactly(strict_json(line, MOST_LINE), _FORMAT, "target", "tool", "tvm")
    refuse(header[_FORMAT] != VERSION, f"this ansor-deploy reads version {VERSION} of locks")
    refuse(
        header["target"] != target.fingerprint,
        f"it is for the target {quoted(header['target'])}, and not for {target.name} "
        f"({target.fingerprint[:8]})",
    )
    refuse(header["tvm"] != tvm, f"it is for TVM {quoted(header['tvm'])}, and this is {tvm}")


def _default(line: str, before: Sequence[str]) -> str:
    key = exactly(strict_json(line, MOST_LINE), _DEFAULT)[_DEFAULT]
    refuse(not DIGEST.fits(key), "it names no workload's key")
    refuse(before and key <= before[-1], "its key is not behind that before it")
    return str(key)


def _record(line: str, target: Target, tvm: str) -> Record:
    entry = exactly(strict_json(line, MOST_LINE), "id", "record")
    record = check_record(entry["id"], entry["record"], target)
    refuse(record.key.target != target.fingerprint, "the record is for another target")
    refuse(record.provenance.tvm != tvm, "the record was made with another TVM")
    return record
