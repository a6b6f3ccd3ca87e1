"""Figures and tables as text: shared by every rendering of a report."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..codegen.memory import size_text
from ..system.printable import printable

if TYPE_CHECKING:
    from ..build.beside import Beside
    from ..build.changes import TaskChange
    from ..build.compare import Comparison
    from ..build.result import TuneResult
    from ..build.verify import Verification
    from ..farm.table import Row
    from ..model.tasks import Task
    from ..target import Target
    from ..tune.plan import Plan, PlanRow
    from ..tune.scheduler import Progress

WIDTH = 80
KEY = 6  # digits of a task's key that tables show, enough to find it by
TITLE = 36  # characters of its title
TASK_HEADER = ("key", "task", "runs", "share", "latency")
JOB_HEADER = ("model", "target", "worker", "state", "trials", "latency")
HEADER = (*TASK_HEADER, "status", "trials")
ROW = f"{{:{KEY}}} {{:{TITLE}}} {{:>4}} {{:>6}} {{:>8}} {{:6}} {{:>6}}"  # 78 wide, and an indent


def duration(seconds: float) -> str:
    """A stretch of time, such as "4.2 s", "3m 05s" or "1h 02m"."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def latency(seconds: float) -> str:
    """The time of one run, such as "12.3 us" or "2.05 s"; "none" where nothing ran."""
    if not math.isfinite(seconds):
        return "none"
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 999.5:
            return f"{_three_digits(seconds * scale)} {unit}"
    return f"{_three_digits(seconds)} s"


def _three_digits(value: float) -> str:
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"


def memory_text(figures: Mapping[str, int]) -> str:
    """What a library takes, in one line. figures: of its manifest, in bytes."""
    library, weights, workspace, peak = (
        size_text(figures[name]) for name in ("library", "weights", "workspace", "peak")
    )
    return f"library {library} (weights {weights}), workspace {workspace}, in a run up to {peak}"


def plan_memory(plan: Plan) -> list[str]:
    """What each model takes, as far as it is known without its kernels."""
    figures = (memory.figures() for memory in plan.memory)
    return [
        f"{model}: weights {size_text(one['weights'])}, tensors {size_text(one['workspace'])}, "
        f"in a run at least {size_text(one['peak'])}"
        for model, one in zip(plan.models, figures, strict=False)
    ]


def share(fraction: float) -> str:
    """A part of a whole, such as "12.3%". fraction: 0 to 1."""
    return f"{fraction * 100:.1f}%"


def count(number: int, noun: str) -> str:
    """A number of things, such as "1 task" or "3 tasks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortened(text: str, width: int) -> str:
    """At most `width` printable characters; the end stays, since two tasks differ there."""
    text = printable(text)
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"


def cut(text: str, width: int) -> str:
    """At most `width` printable characters, the first ones."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 2]}.."


def wrapped(text: str, first: str, rest: str) -> list[str]:
    """The text on lines of the width of a terminal, with an indent for the first and the rest."""
    wrap = partial(textwrap.wrap, width=WIDTH, break_long_words=False, break_on_hyphens=False)
    return wrap(text, initial_indent=first, subsequent_indent=rest)


def task_cells(
    key: str, title: str, weight: int, part: float, seconds: float, record: object
) -> tuple[str, ...]:
    """A task as text, below `TASK_HEADER`; "~" marks an estimate, where it has no record."""
    time = latency(seconds) if record else f"~{latency(seconds)}"
    return (key[:KEY], cut(title, TITLE), f"x{weight}", share(part), time)


def plan_cells(row: PlanRow) -> tuple[str, ...]:
    """A plan's row as text."""
    key, title, weight = row.task.key.workload, row.task.title, row.task.weight
    task = task_cells(key, title, weight, row.impact, row.latency, row.record)
    return (*task, row.status, str(row.trials))


def named(task: Task) -> str:
    """A task by its title and its key."""
    return f"{task.title} ({task.key.workload[:KEY]})"


def plan_rows(plan: Plan) -> list[PlanRow]:
    """The rows of a plan, those that matter most first."""
    return sorted(plan.rows, key=lambda row: (-row.impact, row.task.name))


def plan_summary(plan: Plan) -> str:
    """The plan in one sentence; of tasks that were tuned before, why they are tuned again."""
    again = Counter(row.reason for row in tuned_again(plan))
    why = ", ".join(f"{number}: {reason}" for reason, number in again.most_common())
    parts = [f"{plan.count('hit')} reused"]
    parts += [f"{near} near"] if (near := plan.count("near")) else []
    parts += [f"{plan.count('miss')} to tune" + (f" ({why})" if why else "")]
    parts += [f"{plan.count('skip')} skipped"]
    on = f"{plan.target}{f' ({shown})' if (shown := ', '.join(plan.devices)) else ''}"
    tasks = f"{count(len(plan.rows), 'task')} on {on}: {', '.join(parts)}"
    effort = f"at most {count(plan.trials, 'trial')}, about {duration(plan.seconds)}"
    if not plan.trials:
        effort = "nothing to measure"
    measured = any(row.record for row in plan.rows)
    now = "now about" if measured else "the roofline is"
    return f"{tasks}; {effort}; {now} {latency(plan.forecast())} a run"


def stale_lines(plan: Plan) -> list[str]:
    """How many tasks might be served by records of another TVM, and the command that tries."""
    if not plan.stale:
        return []
    have = "task to tune has" if plan.stale == 1 else "tasks to tune have"
    return [
        f"{plan.stale} {have} records of another TVM; to try them before tuning:",
        f"  ansor-deploy registry revalidate {' '.join(plan.models)}",
    ]


def steps(what: str, done: int, total: int) -> str:
    """How far a stage is: "tasks 12/57"."""
    return f"{what} {done}/{total}"


def trials(progress: Progress) -> str:
    """How far tuning is: "128/640 trials, 3 failed"; limited by time alone, it has no total."""
    total = f"/{progress.total_trials}" if progress.total_trials else ""
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.trials}{total} trials{failed}"


def clock(progress: Progress, since: float = 0.0) -> str:
    """The clocks, `since` seconds after the batch: "1m 05s gone, 4m 00s left"."""
    left = duration(max(0.0, progress.left - since))
    return f"{duration(progress.elapsed + since)} gone, {left} left"


def best(progress: Progress) -> str:
    """What the task has reached, and why it had its turn: "best 810 us (largest gradient)"."""
    found = progress.round
    return f"best {latency(found.best_ms / 1e3)}" + (f" ({found.why})" if found.why else "")


def tune_summary(result: TuneResult) -> str:
    """What a tuning run did, in one sentence."""
    tasks = f"{count(result.tasks, 'task')}: {result.hits} reused, {result.misses} tuned"
    spent = f"{count(result.trials, 'trial')} in {duration(result.tune_seconds)}"
    now = f"now about {latency(result.latency_ms / 1e3)} a run"
    return f"{tasks}, {result.skipped} skipped; {spent}; {now}"


def job_cells(row: Row) -> tuple[str, ...]:
    """A farm's job as text, below `JOB_HEADER`; its worker by its board where it has one."""
    where = shortened(row.device or row.worker or "-", 20)
    trials = f"{row.trials}/{row.total}" if row.total else str(row.trials)
    names = shortened(row.model, 20), shortened(row.target, 12)
    return (*names, where, row.state, trials, latency(row.latency_ms / 1e3))


def jobs_lines(rows: Sequence[Row]) -> list[str]:
    """The table of a farm's jobs, and why some failed, each with the remedy."""
    cells = [JOB_HEADER, *map(job_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    faults = [(f"{row.name}: {row.error}", row.hint) for row in rows if row.error]
    return table + [line for what, hint in faults for line in (what, f"  hint: {hint}")]


def plan_lines(plan: Plan, limit: int | None = None) -> list[str]:
    """The plan as a table of at most 80 columns."""
    rows = plan_rows(plan)
    shown = [HEADER, *map(plan_cells, rows[:limit])] if rows else []
    more = len(rows) - len(rows[:limit])
    return [ROW.format(*row).rstrip() for row in shown] + ([f"and {more} more"] if more else [])


def tuned_again(plan: Plan) -> list[PlanRow]:
    """The rows that will be tuned though they have a record, those that matter most first."""
    return [row for row in plan_rows(plan) if row.status == "miss" and row.record]


def again_lines(plan: Plan) -> list[str]:
    """For each task that is tuned again, why its record does not suffice."""
    rows = tuned_again(plan)
    return [f"{named(row.task)} is tuned again: {row.reason}" for row in rows]


def near_lines(plan: Plan) -> list[str]:
    """For each task that is near, its nearest neighbour and how many doublings lie between."""
    near = [(row.task, row.neighbours[0]) for row in plan_rows(plan) if row.neighbours]
    return [
        line
        for task, neighbour in near
        for line in (
            named(task),
            f"  is near {neighbour.workload.title}, at {neighbour.distance:.1f}",
            *([f"  of a machine with {_cores(neighbour.machine)}"] if neighbour.machine else []),
        )
    ]


def _cores(machine: Target) -> str:
    """What a machine has that another of its instructions may not have."""
    sizes = (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes)
    caches = ", ".join(f"{size >> 10}" for size in sizes)
    return f"{machine.cores} cores and caches of {caches} KiB"


def verification_text(verification: Verification) -> str:
    """Whether the numbers are right, in one sentence."""
    verdict = "outputs agree with" if verification.ok else "OUTPUTS DIFFER from"
    return (
        f"{verdict} {verification.oracle}: largest error {verification.max_abs_err:.2g} absolute, "
        f"{verification.max_rel_err:.2g} relative (seed {verification.seed})"
    )


def beside_text(beside: Beside) -> str:
    """How fast a library is beside another engine, in one sentence."""
    ratio, (low, high) = beside.ratio, beside.interval or (beside.ratio, beside.ratio)
    if low <= 1 <= high:
        gain = "as fast as"
    else:
        gain = f"{1 / ratio:.2f}x faster than" if ratio < 1 else f"{ratio:.2f}x slower than"
    sure = f"{low:.2f} to {high:.2f} of its time, 99%" if beside.interval else "of few runs"
    ours, theirs = latency(beside.ours_ms / 1e3), latency(beside.theirs_ms / 1e3)
    return f"{gain} {beside.peer}: {ours} a run beside {theirs} ({sure})"


def change_cells(task: TaskChange) -> tuple[str, str, str]:
    """A task's times in one library and in the next, and the change; "" where it was not timed."""
    times = (task.before_ms, task.after_ms)
    old, new = (latency(ms / 1e3) if ms is not None else "" for ms in times)
    change = f"{task.delta_ms / (task.before_ms or 1.0):+.0%}" if all(times) else ""
    return old, new, change


def comparison_text(comparison: Comparison) -> str:
    """Whether tuning was worth it, and so what is shipped, in one sentence."""
    tuned, untuned = comparison.tuned_ms, comparison.untuned_ms
    if comparison.interval is None:  # one library is both
        return f"untuned: {latency(untuned / 1e3)} a run"
    low, high = comparison.interval
    if comparison.slower:
        gain, shipped = f"{comparison.ratio:.2f}x slower than", "untuned"
    else:
        faster = f"{1 / comparison.ratio:.2f}x faster than"
        gain, shipped = faster if comparison.faster else "as fast as", "tuned"
    return (
        f"{gain} untuned: {latency(tuned / 1e3)} a run beside {latency(untuned / 1e3)} "
        f"({low:.2f} to {high:.2f} of it); {shipped} is shipped"
    )
