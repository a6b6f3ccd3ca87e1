"""Changed traces: they are refused, or still compute their task.

A batch is for one task. Each trace takes the way of a record of others: the firewall, TVM's replay
and the limit on code size run in this process, which must survive; then a compiler process makes a
library, and another process runs it between guards. The outputs are compared with those of the
task's program without a schedule, within a candidate's tolerance.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ansor_deploy.codegen.kernels.signature import signature
from ansor_deploy.errors import AnsorError
from ansor_deploy.measure.builder import BUILDS
from ansor_deploy.model.prepare import prepare
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.instructions import check_trace
from ansor_deploy.space.code_size import check_size
from ansor_deploy.space.cover import check_cover
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess, Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.system import fence
from ansor_deploy.system.untrusted import Refused
from ansor_deploy.system.worker import Worker, WorkerFailure
from ansor_deploy.target import Target
from benchmarks.fuzz.conformance_cases import shipped_target
from benchmarks.fuzz.trace_edits import mutate
from benchmarks.options import crowd

BATCH = 40  # traces of a try: making a task takes as long as ten of them
_TESTS = Path(__file__).resolve().parents[2] / "tests"  # which has programs of every kind
_BUILD_SECONDS = 5.0  # for the library of a tiny task
_RUN_SECONDS = 10.0  # for its runs
_NAMES = itertools.count()
_JUDGE = "benchmarks.fuzz.judge"


@dataclass(frozen=True)
class Court:
    """A task, and its reference.

    builds: the module whose `build` makes a library from a trace.
    """

    task: Task
    target: Target
    payload: dict[str, Any]
    builds: str = BUILDS


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """Try a batch of {"seed"} for a {"target"} in a {"folder"}.

    Returns {"traces": of each {"what", "end", "said", "seconds"}, "seconds"}; or as
    `layouts.attempt` where the task cannot be made.
    """
    began = time.perf_counter()
    chance, folder = random.Random(payload["seed"]), Path(payload["folder"])
    try:
        task, target = _task(payload["seed"], payload["target"], folder)
        begins = _begins(task, target, chance)
        court = court_of(task, target, folder)
    except (AnsorError, WorkerFailure) as error:
        return {"end": "refused", "said": str(error), "seconds": time.perf_counter() - began}
    tried = [_changed(court, begins, chance, folder) for _ in range(BATCH)]
    return {"end": "done", "said": "", "traces": tried, "seconds": time.perf_counter() - began}


def _task(seed: int, target: str, folder: Path) -> tuple[Task, Target]:
    """A task of a random quantised graph for odd seeds, else of one of the tests' programs."""
    machine = replace(shipped_target(target), cores=2)
    if seed % 2:
        return _quantised(seed, machine, folder), machine
    programs = programs_of_tests("PROGRAMS")
    name = list(programs)[seed // 2 % len(programs)]
    return task_of(programs[name]()["main"], name.replace(" ", "_"), machine), machine


@cache
def programs_of_tests(name: str) -> dict[str, Any]:
    """Functions that make programs, by name: "PROGRAMS" of every kind, "DRAWN" for rules."""
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    from helpers import programs  # type: ignore[import-not-found]

    return dict(getattr(programs, name))


def _quantised(seed: int, target: Target, folder: Path) -> Task:
    from benchmarks.fuzz.quantised import graph

    made = graph(seed)
    nodes = [node for part in made.segments for node in part.nodes]
    names = [one.name for part in made.segments for one in part.made]
    proto = made.model(nodes, names, [one.name for one in made.inputs])
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    tasks = prepare(folder / "net.onnx", target).tasks
    if not tasks:
        raise AnsorError("it has no task")
    return max(tasks, key=lambda one: one.flops)


def _begins(task: Task, target: Target, chance: random.Random) -> list[tuple[str, str]]:
    """Traces to begin with, each with the rules that led to it."""
    begins = []
    for sketch in derive(task.mod, target, shipped_rules(target.kind)).sketches:
        for chooser in (Guess(), Random(chance)):
            with suppress(ValueError, RuntimeError):  # decisions that do not fit
                begins.append((str(sketch), dump(sketch.program(chooser).sch.trace)))
    return begins


def court_of(task: Task, target: Target, folder: Path, builds: str = BUILDS) -> Court:
    """The court of a task, with the outputs of its unscheduled program."""
    payload = {"signature": signature(task.mod).to_json(), "seed": 0, "machine": "cpu"}
    payload["expected"] = str(folder / "expected.npz")
    court = Court(task, target, payload, builds)
    built = _built(replace(court, builds=BUILDS), folder / "plain.so", "plain")
    reference = "ansor_deploy.measure.runner:reference"
    _judge().call(reference, payload | built, _RUN_SECONDS * crowd())
    return court


def _changed(
    court: Court, begins: list[tuple[str, str]], chance: random.Random, folder: Path
) -> dict[str, Any]:
    rules, begin = chance.choice(begins)
    trace, done = mutate(begin, chance.choice((0, 1, 1, 1, 2, 2, 3)), chance)
    return tried(court, f"{rules}: {done or 'as it was'}", trace, folder)


def tried(court: Court, what: str, trace: str, folder: Path) -> dict[str, Any]:
    """How a trace ends: {"what", "end", "said", "seconds"}."""
    began = time.perf_counter()
    # A new name each time: for a known one, the loader would return the previous library.
    end, said = _judged(court, trace, library := folder / f"candidate-{next(_NAMES)}.so")
    library.unlink(missing_ok=True)
    if end in {"wrong", "differs"}:
        said += f"\n{trace}"
    what = f"{court.task.name} for {court.target.name}, {what}"
    return {"what": what, "end": end, "said": said, "seconds": time.perf_counter() - began}


def _judged(court: Court, trace: str, library: Path) -> tuple[str, str]:
    """How a trace ends: "refused", with what refused it, "wrong", "differs", or "done"."""
    try:
        check_trace(trace, court.target.kind)
    except Refused as refused:
        return "refused", f"firewall: {refused}"
    try:
        sch = replay(court.task.mod, trace)
        check_size(sch, court.target)
        check_cover(sch)
    except (RuntimeError, ValueError, TypeError) as error:
        return "refused", f"TVM: {str(error).strip().splitlines()[-1:]}"
    try:
        built = _built(court, library, "trace", trace)
    except WorkerFailure as failure:
        slow = failure.kind == "timeout" or str(failure).startswith("SIGXCPU")
        end = "refused" if slow or failure.kind == "raised" else "differs"
        return end, f"compiler: {failure}"
    return _run(court, built)


def _run(court: Court, built: dict[str, Any]) -> tuple[str, str]:
    try:
        found = _judge().call(f"{_JUDGE}:run", court.payload | built, _RUN_SECONDS * crowd())
    except WorkerFailure as failure:
        return "refused" if failure.kind == "timeout" else "wrong", f"run: {failure}"
    if found["error"]:
        _judge().kill()
    return ("wrong", f"{found['error']}: {found['message']}") if found["error"] else ("done", "")


def _built(court: Court, path: Path, how: str, trace: str = "") -> dict[str, Any]:
    words: dict[str, Any] = {
        "text": court.task.workload.text,
        "how": how,
        "trace": trace,
        "path": str(path),
    }
    words |= {"target": court.target.to_json(), "seconds": _BUILD_SECONDS}
    compiler = _compiler(court.builds)
    built: dict[str, Any] = compiler.call(
        f"{court.builds}:build", words, 4 * _BUILD_SECONDS * crowd()
    )
    return built


@lru_cache(maxsize=2)
def _compiler(builds: str) -> Worker:
    return Worker(builds, {"TVM_NUM_THREADS": "1"})


@lru_cache(maxsize=1)
def _judge() -> Worker:
    """The process that runs programs; it may write to temporary folders only, if fences work."""
    env = {"TVM_NUM_THREADS": "2", fence.VARIABLE: tempfile.gettempdir()}
    # Its waiting threads sleep: spinning ones take more of a busy machine than their work.
    return Worker(_JUDGE, env | {"TVM_THREAD_POOL_SPIN_COUNT": "0"})
