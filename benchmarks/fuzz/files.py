"""Hostile files: the tool's other inputs than models, made by the tool and then damaged."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ansor_deploy.registry.record import Record
from ansor_deploy.registry.schema import RECORDS
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.digest import canonical_json, sha256
from benchmarks.fuzz.messages import spoilt_bytes
from benchmarks.fuzz.models import network

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e-30, 1e308, float("nan"), float("inf"), 1 << 70,
    "", "\x1b[2J", "\ud800", [], {}, [[[[]]]], "x" * 100_000,
)  # fmt: skip
_SQL = (
    "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
    "CREATE VIEW v AS SELECT * FROM records",
    "UPDATE records SET trace = randomblob(1000000)",
    "UPDATE records SET trace = 5",
    "UPDATE workloads SET text = 'x'",
    "UPDATE targets SET json = '[[[['",
    "DELETE FROM targets",
    "DELETE FROM workloads",
    "DROP TABLE searches",
    "ALTER TABLE records ADD COLUMN more TEXT",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 7",
    "CREATE TABLE more (x GENERATED ALWAYS AS (hex(randomblob(1 << 20))) VIRTUAL)",
)
_MADE_BY = (
    "build net.onnx --target ./own.toml --trials 8 --min-impact 0% --registry records.db",
    "build net.onnx --target ./own.toml --trials 0 --registry records.db --lock records.lock",
    "registry export bundle.ansor --registry records.db",
)


@dataclass(frozen=True)
class Kind:
    """A kind of file. sample: an intact one. commands: those that read it, as {}."""

    sample: str
    suffix: str
    spoil: Callable[[bytes, random.Random], bytes]
    commands: tuple[str, ...]


def make(folder: Path) -> None:
    """Make intact files to damage later: a model, a target, and outputs of the tool."""
    folder.mkdir()
    (folder / "net.onnx").write_bytes(network("convolutional").SerializeToString())
    (folder / "own.toml").write_text('extends = "host"\ncores = 1\n', encoding="utf-8")
    np.save(folder / "x.npy", np.zeros((1, 3, 10, 10), "float32"))
    for words in _MADE_BY:
        program = [sys.executable, "-m", "ansor_deploy", *words.split()]
        subprocess.run(program, cwd=folder, check=True, capture_output=True)


def spoil(seed: int, samples: Path, folder: Path) -> tuple[str, list[str]]:
    """Put intact files and the damaged file of a seed into a folder; returns (what, a command)."""
    chance = random.Random(seed)
    name = chance.choice(sorted(KINDS))
    kind = KINDS[name]
    for good in filter(Path.is_file, samples.iterdir()):
        shutil.copy(good, folder / good.name)
    path = folder / f"hostile{kind.suffix}"
    shutil.copy(folder / "net.so", folder / "hostile.so")
    if chance.random() < 0.1:
        what = _special(path, chance)
    else:
        path.write_bytes(kind.spoil((samples / kind.sample).read_bytes(), chance))
        path.chmod(0o666 if name.startswith("shared") else 0o644)  # writable for others
        what = "spoilt"
    words = chance.choice(kind.commands).replace("{}", path.name).split()
    return f"{name}, {what}: {' '.join(words)}", words


def _special(path: Path, chance: random.Random) -> str:
    """Make something at the path that is not an ordinary file; returns what."""
    makes: dict[str, Callable[[], object]] = {
        "zeros without end": lambda: path.symlink_to("/dev/zero"),
        "a pipe": lambda: os.mkfifo(path),
        "a folder": path.mkdir,
        "nothing": path.touch,
        "a link to itself": lambda: path.symlink_to(path.name),
    }
    what = chance.choice(list(makes))
    makes[what]()
    return what


def _text(content: bytes, chance: random.Random) -> bytes:
    """Damage lines of JSON; the ids of most damaged records are made to match again."""
    if chance.random() < 0.2:
        return spoilt_bytes(content, chance)
    lines = content.decode().splitlines()
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(lines))
        with suppress(ValueError):
            tree = _replaced(json.loads(lines[at]), chance)
            if isinstance(tree, dict) and "id" in tree and chance.random() < 0.8:
                tree["id"] = sha256(canonical_json(tree.get("record")))
            lines[at] = json.dumps(tree, separators=(",", ":"), sort_keys=True)
    if chance.random() < 0.2:
        lines.append(chance.choice(lines))
    return "\n".join([*lines, ""]).encode(errors="surrogatepass")


def _replaced(tree: Any, chance: random.Random) -> Any:
    """The tree with one part, anywhere in it, replaced or removed."""
    if not isinstance(tree, (dict, list)) or not tree or chance.random() < 0.2:
        return chance.choice(_VALUES)
    key = chance.choice(list(tree if isinstance(tree, dict) else range(len(tree))))
    if isinstance(tree, dict) and chance.random() < 0.1:
        del tree[key]
        return tree
    tree[key] = _replaced(tree[key], chance)
    return tree


def _registry(content: bytes, chance: random.Random) -> bytes:
    """A registry with another schema, other rows, or other bytes."""
    if chance.random() < 0.4:
        return spoilt_bytes(content, chance)
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        with closing(sqlite3.connect(file.name)) as connection, suppress(sqlite3.Error):
            connection.executescript(chance.choice(_SQL))
        return Path(file.name).read_bytes()


def _traces(content: bytes, chance: random.Random) -> bytes:
    """A registry with a record whose trace is changed, under the id of its new content."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        with Registry.open(Path(file.name)) as registry:
            records = registry.nouns(RECORDS, "SELECT * FROM records ORDER BY id", ())
            one: Record = chance.choice(records)
            tree = _replaced(json.loads(one.trace), chance)
            changed = replace(one, trace=json.dumps(tree, separators=(",", ":")), seconds=(2e-8,))
            registry.add_batch([], [changed])
        return Path(file.name).read_bytes()


def _toml(content: bytes, chance: random.Random) -> bytes:
    """A TOML file with another value, or a repeated assignment."""
    lines = content.decode().splitlines()
    at = chance.randrange(len(lines))
    name = lines[at].partition("=")[0]
    values = "-1", "nan", "1e400", '"x"', "[]", "{}", "true", '"\\u001b[2J"'
    lines[at] = f"{name}= {chance.choice((*values, '9' * 5000, '[' * 5000))}"
    return "\n".join([*lines, *([chance.choice(lines)] if chance.random() < 0.2 else [])]).encode()


def _array(content: bytes, chance: random.Random) -> bytes:
    """A NumPy file with another header, or with objects."""
    if chance.random() < 0.5:
        return spoilt_bytes(content[:128], chance) + content[128:]
    dtype, shape = chance.choice((("<f4", "(1000000000000,)"), ("|O", "(1,)"), ("<f4", "(-1, 3)")))
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}".encode()
    header = chance.choice((header, header, header, b"[" * 100))
    return np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little") + header + b"\0" * 64


def _manifest(content: bytes, chance: random.Random) -> bytes:
    return json.dumps(_replaced(json.loads(content), chance)).encode()


KINDS = {
    "bundle": Kind("bundle.ansor", ".ansor", _text, ("registry import {} --registry other.db",)),
    "lock": Kind("records.lock", ".lock", _text, (
        "build net.onnx --target ./own.toml --lock {} --frozen",
        "build net.onnx --target ./own.toml --lock {} --trials 0 --registry other.db",
    )),
    "registry": Kind("records.db", ".db", _registry, (
        "registry merge {} --registry other.db",
        "registry verify --registry {}",
        "registry verify --repair --registry {}",
        "registry query --registry {}",
        "registry stats --registry {}",
        "plan net.onnx --target ./own.toml --registry {}",
    )),
    "shared registry": Kind("records.db", ".shared.db", _traces, (
        "build net.onnx --target ./own.toml --trials 0 --registry {}",
        "plan net.onnx --target ./own.toml --registry {}",
    )),
    "target": Kind("own.toml", ".toml", _toml, (
        "plan net.onnx --target ./{} --registry other.db",
    )),
    "manifest": Kind("net.json", ".json", _manifest, (
        "run hostile.so --input x=x.npy", "verify hostile.so", "verify hostile.so net.onnx",
        "bench hostile.so --time 1s",
    )),
    "array": Kind("x.npy", ".npy", _array, ("run net.so --input x={}",)),
}  # fmt: skip
