"""Small real objects to put into a registry."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from ansor_deploy.errors import MachineError
from ansor_deploy.registry.leases import Holder
from ansor_deploy.registry.record import Build, Measurement, Provenance, Record, TaskKey, Workload
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.digest import sha256
from ansor_deploy.target import Target

TVM = "0.27.0"
TARGET = Target(
    name="board",
    kind="llvm",
    triple="aarch64-linux-gnu",
    cpu="cortex-a53",
    cores=4,
    vector_bytes=16,
    vector_registers=32,
    l1_bytes=32768,
    l2_bytes=524288,
    cache_line_bytes=64,
    peak_gflops=38.4,
    memory_gbs=3.6,
)


def workload(number: int = 0, op: str = "conv2d") -> Workload:
    text = f"{op} program {number} " + "x" * 200
    shapes, dtypes = ((1, 3, 224, 224), (64, 3, 7, 7)), ("float32", "float32")
    return Workload(sha256(text), text, op, f"{op}_{number}", "family", shapes, dtypes, 2e9, 1e6)


def key(number: int = 0, op: str = "conv2d") -> TaskKey:
    return TaskKey(workload(number, op).key, TARGET.fingerprint)


def provenance(tvm: str = TVM, created: str = "2026-01-31T12:00:00Z", seed: int = 0) -> Provenance:
    return Provenance("0.2.0", tvm, "metaschedule", "board-1", seed, created)


def record(task: TaskKey, seconds: float, trace: str = "[]", **where: str) -> Record:
    proof = {"oracle": "untuned", "seed": 0, "max_abs_err": 0.0, "max_rel_err": 0.0}
    return Record(task, trace, (seconds, seconds, seconds * 2), proof, provenance(**where))


def measurement(task: TaskKey, seconds: float = 1e-3, error: str = "") -> Measurement:
    times = () if error else (seconds,)
    message = f"it was a {error}" if error else ""
    return Measurement(task, "[]", times, error, message, provenance())


# The result of a race between a build's tuned and untuned libraries.
SPEED = {
    "latency_ms": 12.5,
    "shapes_ms": [12.5],
    "tuned_ms": 12.5,
    "untuned_ms": 30.0,
    "ratio": 12.5 / 30,
    "interval": [0.4, 0.45],
    "pairs": 11,
    "verdict": "faster",
    "seen": None,
    "beside": None,
    "records": "f" * 64,
}


def build(artifact: Path, model: str, created: str, **more: Any) -> Build:
    """A build of resnet.onnx that found three of its five tasks and tuned one."""
    values = {
        "artifact": str(artifact),
        "model": model,
        "target": TARGET.fingerprint,
        "created": created,
        "manifest": {"files": ["model.so"], "speed": SPEED},
        "name": "resnet.onnx",
        "asked": {"effort": "quick", "trials": 64, "flags": {"fma": True}},
        "hits": 3,
        "near": 0,
        "misses": 1,
        "skipped": 1,
        "trials": 64,
        "tuned_ms": 12.5,
        "untuned_ms": 30.0,
        "shipped": "tuned",
        "verification": {"max_abs_err": 1e-6, "ok": True},
        "digests": {"library": "ef" * 32, "manifest": "01" * 32},
        "tool": "0.2.0",
        "tvm": TVM,
    }
    return Build(**{**values, **more})


def fill(registry: Registry, count: int = 100) -> None:
    """Add twenty workloads, and `count` measurements and records of them."""
    registry.add_target(TARGET)
    registry.add_workloads([workload(n) for n in range(20)])
    records = [record(key(n % 20), 1e-3 + n * 1e-5, f"trace {n}") for n in range(count)]
    registry.add_batch([measurement(key(n % 20)) for n in range(count)], records)


def write_batches(path: Path, count: int, size: int, seed: int) -> None:
    """Add `count` batches of `size`, and print a line when each is in the file."""
    with Registry.open(path) as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload()])
        for batch in range(count):
            numbers = range(batch * size, (batch + 1) * size)
            records = [
                Record(key(), f"{seed}-{n}", (1e-3,), {}, provenance(seed=seed)) for n in numbers
            ]
            registry.add_batch([measurement(key()) for _ in numbers], records)
            click.echo(batch)


def hold_lock(path: Path) -> None:
    """Stay inside a write transaction."""
    with Registry.open(path) as registry:
        registry._connection.execute("BEGIN IMMEDIATE")
        click.echo("locked")
        time.sleep(60)


def fill_disk(path: Path) -> None:
    """Add rows until the disk is full, verify the registry, free space, and go on."""
    ballast = path.with_name("ballast")
    ballast.write_bytes(bytes(100_000))
    with Registry.open(path) as registry:
        fill(registry)
        batch = [measurement(key())] * 100
        try:
            while True:
                registry.add_batch(batch, [])
        except MachineError as error:
            click.echo(error.text)
        click.echo(registry.verify())
        ballast.unlink()
        registry.add_batch(batch[:1], [])
        click.echo("one more")


def hold_leases(path: Path) -> None:
    """Take three leases and keep them."""
    with Registry.open(path) as registry:
        click.echo(len(registry.lease([key(n) for n in range(3)], Holder.here())))
        time.sleep(60)


def lease_some(path: Path) -> None:
    """Take the leases that are free of ten tasks, and keep them until stdin ends."""
    with Registry.open(path) as registry:
        holder = Holder.here()
        for number in range(10):
            if registry.lease([key(number)], holder):
                click.echo(number)
        click.echo("done")
        sys.stdin.read()


if __name__ == "__main__":
    action, where, *numbers = sys.argv[1:]
    actions = {
        "hold": hold_lock,
        "write": write_batches,
        "fill": fill_disk,
        "lease": hold_leases,
        "lease-some": lease_some,
    }
    actions[action](Path(where), *map(int, numbers))
