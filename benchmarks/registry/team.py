"""The cost of a team's records: read for the first time, read again, and without their server.

A web server on this machine has so many records of so many tasks, in some bundles. A new process
takes in those that a model needs, into a registry that knows only its tasks. Times are CPU times of
that process and its children, beside those with all records in the registry.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import click

from ansor_deploy.registry.exchange import push
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
from benchmarks.options import cpu_seconds, json_option, number, python, save
from benchmarks.registry.large import (
    convolution,
    cpu_targets,
    measured_like,
    real_measurements,
    recorded,
)

# The part of a build that asks layers for records.
ASK = """
import json, sys
from pathlib import Path
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.layers import bring_in, indexes
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.store import Registry
layers, path, keys = json.loads(sys.argv[1])
found = indexes([Layer(one) for one in layers], lambda warning: None)
with Registry.open(Path(path)) as registry:
    bring_in(found, [TaskKey(*key) for key in keys], registry, print)
    print(registry.stats()["records"])
"""


@click.command
@number("--records", 10_000)
@number("--tasks", 1000, "That they are of.")
@number("--bundles", 1)
@number("--asked", 60, "Tasks of the model.")
@number("--rounds", 3)
@json_option
def command(
    records: int, tasks: int, bundles: int, asked: int, rounds: int, file: Path | None
) -> None:
    """Fill, serve, ask; print the median of each case."""
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        keys = fill(folder, records, tasks, bundles, chance)
        found = [ask(folder, chance.sample(keys, asked)) for _ in range(rounds)]
    seconds = {name: statistics.median(one[name] for one in found) for name in found[0]}
    print("\n".join(f"{name:12}{value:8.3f} s" for name, value in seconds.items()))
    save(seconds, file)


def fill(
    folder: Path, records: int, tasks: int, bundles: int, chance: random.Random
) -> list[TaskKey]:
    """Push so many records of so many tasks, in so many bundles; return the tasks' keys."""
    models, target = real_measurements(), cpu_targets()[-1]
    workloads = [convolution(number) for number in range(tasks)]
    keys = [TaskKey(one.key, target.fingerprint) for one in workloads]
    with Registry.open(folder / "theirs.db") as registry:
        registry.add_target(target)
        registry.add_workloads(workloads)
        for bundle in range(bundles):
            several = [keys[at % tasks] for at in range(bundle, records, bundles)]
            made = [recorded(measured_like(key, models, chance)) for key in several]
            registry.add_batch([], made)
            push(registry.path, str(folder / "team"))
    return keys


def ask(folder: Path, keys: Sequence[TaskKey]) -> dict[str, float]:
    """CPU seconds to take in keys: with a cold cache, again, offline, and with all known."""
    shutil.rmtree(folder / "ansor-deploy", ignore_errors=True)
    (folder / "mine.db").unlink(missing_ok=True)
    with Registry.open(folder / "theirs.db", write=False) as theirs:
        known = list(theirs.workloads(keys).values())
    with Registry.open(folder / "mine.db") as mine:
        mine.add_target(cpu_targets()[-1])
        mine.add_workloads(known)
    with serving(folder / "team") as url:
        found = {name: asked(folder, [url], keys) for name in ("cold", "again")}
    for mark in (folder / "ansor-deploy").glob("layers/*.asked"):
        os.utime(mark, (1, 1))
    return {**found, "offline": asked(folder, [url], keys), "local": asked(folder, [], keys)}


def asked(folder: Path, layers: Sequence[str], keys: Sequence[TaskKey]) -> float:
    """CPU seconds of a process and its children."""
    words = json.dumps(
        [layers, str(folder / "mine.db"), [list(vars(key).values()) for key in keys]]
    )
    before = cpu_seconds()
    python("-c", ASK, words, XDG_CACHE_HOME=str(folder))
    return cpu_seconds() - before


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, *words: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder within the block; the server's URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
