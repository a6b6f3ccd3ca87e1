"""Inputs of the scenarios: small models, their weights, descriptors, and tuned locks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import onnx

from ansor_deploy.registry.lock_text import write_lock
from ansor_deploy.registry.record import Record, TaskKey
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import Target, load_target
from helpers.cli_inside import answer
from helpers.graphs import model, node, randn

TVM = metadata.version("apache-tvm")
TRIALS = 16

# This machine under another name, so that tests may change the descriptor.
DESCRIPTOR = 'extends = "host"\n'

RULE = Path(__file__).parents[2] / "examples" / "rules" / "serial_small.py"


def net(seed: int = 0, output: str = "y") -> onnx.ModelProto:
    """A small convolutional network; all have the same tasks, of which the first dominates."""
    layers = [
        node("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f m b", output),
    ]
    weights = {"w": randn(seed, 32, 16, 3, 3), "m": randn(seed + 1, 32, 4), "b": randn(seed + 2, 4)}
    return model(layers, {"x": (1, 16, 32, 32)}, [output], weights)


def other() -> onnx.ModelProto:
    """A network that shares no task with `net`."""
    layers = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    return model(layers, {"x": (8, 24)}, constants={"w": randn(0, 24, 24)})


def save(proto: onnx.ModelProto, path: Path) -> None:
    """Write a model, with its weights in a file of their own: NAME.weights."""
    weights = path.with_suffix(".weights")
    weights.unlink(missing_ok=True)  # onnx would append to it
    onnx.save(proto, path, save_as_external_data=True, location=weights.name, size_threshold=0)


@dataclass(frozen=True)
class Lab:
    """The records of `net` and `other`, and the locks that can be made of them.

    best, another: of one task of `net`; each leads to another library. rest: of its other tasks.
    unused: of `other`.
    """

    target: Target
    best: Record
    another: Record
    rest: tuple[Record, ...]
    unused: tuple[Record, ...]

    def furnish(self, source: Path, *models: str) -> None:
        """Write a project's sources: models with different weights, and the files that all use."""
        for seed, name in enumerate(models):
            save(net(seed), source / name)
        self.lock(source / "models.lock")
        (source / "board.toml").write_text(DESCRIPTOR)
        shutil.copy(RULE, source / "rule.py")

    def lock(self, path: Path) -> None:
        """Write a lock with the best record of every task of both models."""
        self._write(path, [self.best, *self.rest, *self.unused])

    def lock_with_another_used(self, path: Path) -> None:
        """As `lock`, with another schedule for one task of `net`."""
        self._write(path, [self.another, *self.rest, *self.unused])

    def lock_with_another_unused(self, path: Path) -> None:
        """As `lock`, without the records that `net` does not use."""
        self._write(path, [self.best, *self.rest])

    def lock_that_lacks_one(self, path: Path) -> str:
        """As `lock`, without one task of `net`; returns the beginning of the task's key."""
        self._write(path, [*self.rest, *self.unused])
        return self.best.key.workload[:12]

    def lock_for(self, path: Path, target: Target) -> None:
        """Write a lock for another target, with default schedules instead of records."""
        records = [self.best, *self.rest, *self.unused]
        write_lock(path, target, TVM, [], [record.key.workload for record in records])

    def _write(self, path: Path, records: Iterable[Record]) -> None:
        write_lock(path, self.target, TVM, records)


def descriptor(path: Path) -> Target:
    """The target of a descriptor's file."""
    return load_target(str(path), [shipped("targets")])


def make_lab(folder: Path) -> Lab:
    """Tune both models."""
    (folder / "board.toml").write_text(DESCRIPTOR)
    for name, proto in (("net", net()), ("other", other())):
        onnx.save(proto, folder / f"{name}.onnx")
    place = ("--registry", "r.db", "--target", "board.toml")
    words = (*place, "--trials", TRIALS, "--min-impact", "0%")
    answer(folder, "tune", "net.onnx", "other.onnx", *words)
    target = descriptor(folder / "board.toml")
    with Registry.open(folder / "r.db", write=False) as registry:
        records = registry.best(_keys(folder, "net", target, place), TVM)
        unused = registry.best(_keys(folder, "other", target, place), TVM)
        tried = {key: list(registry.measurements(target.fingerprint, key)) for key in records}
    key = max(tried, key=lambda key: len(tried[key]))
    best = records.pop(key)
    rest = tuple(records.values())
    others = [
        replace(best, trace=one.trace, seconds=one.seconds) for one in tried[key] if not one.error
    ]
    labs = [Lab(target, best, another, rest, tuple(unused.values())) for another in others]
    built = _library(folder, labs[0].lock)
    for lab in labs:
        if _library(folder, lab.lock_with_another_used) != built:
            return lab
    raise AssertionError("all schedules that were tried come to the same code")


def _library(folder: Path, write_lock: Callable[[Path], None]) -> bytes:
    """The library of `net` with a lock: two schedules may give the same code."""
    write_lock(folder / "models.lock")
    words = ("--lock", "models.lock", "--frozen", "--target", "board.toml")
    answer(folder, "build", "net.onnx", "-o", "net.so", *words)
    return (folder / "net.so").read_bytes()


def _keys(folder: Path, name: str, target: Target, place: tuple[str, ...]) -> list[TaskKey]:
    """The keys of a model's tasks."""
    tasks = answer(folder, "plan", f"{name}.onnx", *place)["tasks"]
    return [TaskKey(task["key"], target.fingerprint) for task in tasks]
