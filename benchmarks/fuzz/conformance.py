"""The node tests of the `onnx` package with our libraries: right, refused, wrong, or a crash.

Each test is one operator, or its expansion, with inputs and expected outputs. It is built with
default schedules and run in a worker process; if that dies or hangs, the test counts as a crash.
Inputs that a compiler of static shapes needs at compile time (`PARAMETERS` in
`conformance_cases.py`: axes, shapes, repeats and the like) become initializers. "Refused" means a
`ModelError`, exit code 3 of the command. The goal's share is over the cases that
`conformance_cases.counts` includes. Floats are compared as a build compares them with ONNX Runtime
(`ship/verify/verify.py`); integers and booleans must be equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

import click

from ansor_deploy.system.worker import Worker, WorkerFailure
from benchmarks.fuzz import conformance_cases
from benchmarks.options import Listed, json_option, number, save

CHILD = "benchmarks.fuzz.conformance_cases"
SECONDS = 120.0  # for one case, on a machine that also does other work
MESSAGE = 300  # characters of a crash message: TVM's messages continue with programs
OUTCOMES = ("right", "refused", "wrong", "crash")


@dataclass(frozen=True)
class Row:
    """One case. outcome: one of `OUTCOMES`. meant: whether the goal includes the case."""

    case: str
    operator: str
    meant: bool
    outcome: str
    detail: str


def run(names: Sequence[str], jobs: int) -> Iterator[Row]:
    """The row of each case, in the order of the names, computed by `jobs` workers."""
    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:
        idle: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(jobs):
            worker = Worker(CHILD, {"TVM_NUM_THREADS": "1"})
            stack.callback(worker.close)
            idle.put(worker)
        yield from pool.map(lambda name: _row(name, idle), names)


def _row(name: str, idle: SimpleQueue[Worker]) -> Row:
    case = conformance_cases.cases()[name]
    operator, meant = conformance_cases.operator(case), conformance_cases.counts(case)
    worker = idle.get()
    try:
        found = worker.call(f"{CHILD}:attempt", {"case": name}, SECONDS)
        return Row(name, operator, meant, **found)
    except WorkerFailure as failure:
        return Row(name, operator, meant, "crash", f"{failure.kind}: {failure.message[:MESSAGE]}")
    finally:
        idle.put(worker)


def chosen(every: int = 1, only: Iterable[str] = ()) -> list[str]:
    """Names of every N-th case, of all or of the operators or cases that `only` names."""
    wanted = set(only)
    names = [
        name
        for name, case in conformance_cases.cases().items()
        if not wanted or not wanted.isdisjoint((name, conformance_cases.operator(case)))
    ]
    return names[::every]


def table(rows: Sequence[Row]) -> str:
    """Outcomes by operator, and totals: of all cases, and of those that the goal includes."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counted[row.operator][row.outcome] += 1
    lines = [f"{'operator':28}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES)]
    lines += [_line(name, counted[name]) for name in sorted(counted)]
    meant = Counter(row.outcome for row in rows if row.meant)
    lines += [_line("all", Counter(row.outcome for row in rows)), _line("meant", meant)]
    return "\n".join([*lines, f"{share(rows):.1%} of those meant are right"])


def share(rows: Sequence[Row]) -> float:
    """The share of right results among the cases that the goal includes, from 0 to 1."""
    meant = [row.outcome == "right" for row in rows if row.meant]
    return sum(meant) / max(1, len(meant))


def _line(name: str, outcomes: Counter[str]) -> str:
    return f"{name:28}" + "".join(f"{outcomes[outcome] or '':>9}" for outcome in OUTCOMES)


@click.command
@number("--every", 1, "Take each N-th case.")
@click.option("--only", type=Listed(), default=[], help="Operators, or cases.")
@number("--jobs", 2, "Worker processes.")
@json_option
def command(every: int, only: list[str], jobs: int, file: Path | None) -> None:
    """Run the cases asked for, say what is not right as it comes, and print the table."""
    rows = []
    for row in run(chosen(every, only), jobs):
        rows.append(row)
        if row.outcome != "right":
            print(f"{row.outcome:8} {row.case}: {row.detail}", flush=True)
    print(table(rows))
    save([asdict(row) for row in rows], file)
