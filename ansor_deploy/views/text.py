"""Figures and tables as text, for all renderings of a report."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..system.printable import printable
from ..system.words import count, size_text

if TYPE_CHECKING:
    from ..farm.table import Row
    from ..model.tasks import Task
    from ..ship.manifest import Memory, Race, Speed
    from ..ship.preset import Preset, Split
    from ..ship.race.changes import TaskChange
    from ..ship.verify.by_node import NodeVerdict
    from ..ship.verify.verify import Verification
    from ..system.other_work import OtherWork
    from ..tune.hits import Origins
    from ..tune.result import TuneResult
    from ..tune.scheduler import Progress

WIDTH = 80
KEY = 6  # digits of a task's key in tables, enough to find it by
TITLE = 36  # characters of a task's title
_LEAST = 24  # characters, at least, of a column that is cut
_MOST_NAMED = 3  # tensors or branches that a sentence names, at most
TASK_HEADER = ("key", "task", "runs", "share", "latency")
JOB_HEADER = ("model", "target", "worker", "state", "trials", "latency")


def duration(seconds: float) -> str:
    """A duration, such as "4.2 s", "3m 05s" or "1h 02m"."""
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


def memory_text(figures: Memory) -> str:
    """A library's memory in one line. figures: those of its manifest, in bytes."""
    library, weights, workspace, peak = (
        size_text(size)
        for size in (figures.library, figures.weights, figures.workspace, figures.peak)
    )
    return f"library {library} (weights {weights}), workspace {workspace}, in a run up to {peak}"


def share(fraction: float) -> str:
    """A part of a whole, such as "12.3%". fraction: 0 to 1."""
    return f"{fraction * 100:.1f}%"


def shortened(text: str, width: int) -> str:
    """At most `width` printable characters; the middle is cut, as ends tell tasks apart."""
    text = printable(text)
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"


def cut(text: str, width: int) -> str:
    """The first `width` printable characters, at most."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 2]}.."


def called(name: str, digest: str) -> str:
    """A name that is not unique, with the beginning of its digest, such as "host 20fbb9"."""
    return f"{name} {digest[:KEY]}"


def unique_names(names: Mapping[str, str]) -> dict[str, str]:
    """Names by digest; names that several digests share are made unique by `called`."""
    times = Counter(names.values())
    return {one: name if times[name] == 1 else called(name, one) for one, name in names.items()}


def fitted(rows: Sequence[tuple[str, ...]], at: int) -> list[tuple[str, ...]]:
    """A table's rows, with column `at` cut so that a line fits the terminal."""
    from shutil import get_terminal_size  # slow: it imports all of Python's compression modules

    widths = [max(map(len, map(printable, column))) for column in zip(*rows, strict=True)]
    others = sum(widths) - widths[at] + 2 * (len(widths) - 1)
    room = max(_LEAST, get_terminal_size((WIDTH, 24)).columns - others)
    return [(*row[:at], cut(row[at], room), *row[at + 1 :]) for row in rows]


def wrapped(text: str, first: str, rest: str) -> list[str]:
    """The text wrapped to lines of 80 columns. first, rest: indents of the lines."""
    wrap = partial(textwrap.wrap, width=WIDTH, break_long_words=False, break_on_hyphens=False)
    return wrap(text, initial_indent=first, subsequent_indent=rest)


def task_cells(
    key: str, title: str, weight: int, part: float, seconds: float, record: object
) -> tuple[str, ...]:
    """A task's cells below `TASK_HEADER`; "~" marks an estimate, for a task without a record."""
    time = latency(seconds) if record else f"~{latency(seconds)}"
    return (key[:KEY], title, f"x{weight}", share(part), time)


def node_lines(nodes: Iterable[tuple[str, str]], indent: int) -> list[str]:
    """Nodes of a model, as pairs of operator and name, on lines of 80 columns."""
    text = ", ".join(f"{op} {name}" for op, name in nodes)
    return wrapped(printable(text), " " * indent, " " * (indent + 2))


def named(task: Task) -> str:
    """A task by its title and its key."""
    return f"{task.title} ({task.key.workload[:KEY]})"


def steps(what: str, done: int, total: int) -> str:
    """The progress of a stage, such as "tasks 12/57"."""
    return f"{what} {done}/{total}"


def trials(progress: Progress) -> str:
    """The progress of tuning: "128/640 trials, 3 failed"; no total if time alone limits it."""
    total = f"/{progress.total_trials}" if progress.total_trials else ""
    failed = f", {progress.failed} failed" if progress.failed else ""
    of = progress.total_trials or progress.trials
    return f"{progress.trials}{total} {count(of, 'trial').partition(' ')[2]}{failed}"


def clock(progress: Progress, since: float = 0.0) -> str:
    """The time spent and left, `since` seconds after the batch: "1m 05s gone, 4m 00s left"."""
    left = duration(max(0.0, progress.left - since))
    return f"{duration(progress.elapsed + since)} gone, {left} left"


def best(progress: Progress) -> str:
    """A task's best time, and why it had its turn: "best 810 us (largest gradient)"."""
    found = progress.round
    reached = f"best {latency(found.best_ms / 1e3)}" if math.isfinite(found.best_ms) else "none ran"
    return reached + (f" ({found.why})" if found.why else "")


def origins_text(found: Origins, tasks: int) -> str:
    """How many of a model's tasks have a record, and from where, in one line."""
    layers = [(found.team, "of the team"), (found.base, "shipped"), (found.near, "near")]
    parts = [f"{found.exact} exact", *(f"{number} {what}" for number, what in layers if number)]
    known = found.exact + found.team + found.base
    return (
        f"{known} of {count(tasks, 'task')}, {share(found.share)} of the time: {', '.join(parts)}"
    )


def tune_summary(result: TuneResult) -> str:
    """What a tuning run did, in one sentence."""
    tasks = f"{count(result.tasks, 'task')}: {result.hits} reused, {_tuned(result)}"
    spent = f"{count(result.trials, 'trial')} in {duration(result.tune_seconds)}"
    sums = f"tasks alone add up to about {latency(result.latency_ms / 1e3)}"
    gain = "no candidate beat the default schedules; " if result.gained_nothing else ""
    return f"{gain}{tasks}, {result.skipped} skipped; {spent}; {sums}"


def _tuned(result: TuneResult) -> str:
    """How many of the tasks to tune were tuned, and how many got no trial."""
    if not result.trials:
        return f"{result.misses} untuned"
    # A result that came from a pack has no rounds.
    tuned = len({one.key for one in result.rounds}) or result.misses
    left = result.misses - tuned
    return f"{tuned} tuned" + (f", {left} not reached" if left > 0 else "")


def job_cells(row: Row) -> tuple[str, ...]:
    """A farm's job as cells below `JOB_HEADER`; its worker is named by its board if it has one."""
    where = shortened(row.device or row.worker or "-", 20)
    trials = f"{row.trials}/{row.total}" if row.total else str(row.trials)
    names = shortened(row.model, 20), shortened(row.target, 12)
    return (*names, where, row.state, trials, latency(row.latency_ms / 1e3))


def jobs_lines(rows: Sequence[Row]) -> list[str]:
    """The table of a farm's jobs, then the errors of those that failed, with remedies."""
    cells = [JOB_HEADER, *map(job_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    faults = [(f"{row.name}: {row.error}", row.hint) for row in rows if row.error]
    return table + [line for what, hint in faults for line in (what, f"  hint: {hint}")]


def verification_text(verification: Verification, *, seeded: bool = True) -> str:
    """Whether the outputs are right, in a sentence. seeded: whether the inputs were seeded."""
    verdict = "outputs agree with" if verification.ok else "OUTPUTS DIFFER from"
    exact = _exact_text(verification)
    of = f"seed {verification.seed}" if seeded else "the inputs that were given"
    return (
        f"{verdict} {verification.oracle}: largest error {verification.max_abs_err:.2g} absolute, "
        f"{verification.max_rel_err:.2g} relative ({of}){exact}{_unreached_text(verification)}"
    )


def _unreached_text(verification: Verification) -> str:
    """Which branches of the model were not verified; "" where all were."""
    if not (names := verification.unreached):
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"; not verified, since no inputs chose it: {', '.join(names[:_MOST_NAMED])}{more}"


def _exact_text(verification: Verification) -> str:
    """Which tensors proved to be exact, or "" if none was checked."""
    if not (verification.ok and verification.exact):
        return ""
    names, count = verification.exact, len(verification.exact)
    said = ", ".join(names) if count <= _MOST_NAMED else f"{count} tensors"
    return f"; exact, bit for bit: {said}"


def nodes_text(nodes: Sequence[NodeVerdict]) -> Iterator[str]:
    """A line for each node with its error, the largest first."""
    for node in sorted(nodes, key=lambda node: -node.verdict.rel_err):
        verdict = node.verdict
        fault = "" if verdict.ok else f"  OFF: rounding explains {verdict.allowed:.2g}"
        yield f"{verdict.rel_err:9.2g}  {node.op:22} {node.name}{fault}"


def race_text(race: Race, again: str = "") -> str:
    """A race's result in a sentence. again: how to get a sure result, where this one is not."""
    gain, spread = gain_texts(race)
    link = {"cannot say": " whether it is faster than", "as fast": " as"}.get(race.verdict, " than")
    ours, theirs = latency(race.ours_ms / 1e3), latency(race.theirs_ms / 1e3)
    said = f"{gain}{link} {race.peer}: {ours} a run beside {theirs} ({spread})"
    if race.verdict != "cannot say":
        return said
    return "; ".join(filter(None, [said, _why_unsure(race), again]))


def again(seconds: float) -> str:
    """The option for a longer race. seconds: how long the race took."""
    return f"again with --time {max(30, 4 * math.ceil(seconds))}s"


def run_text(shapes_ms: Sequence[float]) -> str:
    """The time of a run in each shape: "1.20 ms a run", or "1.20 ms, 4.80 ms a run by shape"."""
    times = ", ".join(latency(ms / 1e3) for ms in shapes_ms)
    return f"{times} a run{' by shape' if len(shapes_ms) > 1 else ''}"


def rate_text(per_second: float) -> str:
    """A rate with at least four digits: "9.5", "412.3", "28,960"."""
    return f"{per_second:.4g}" if per_second < 1e4 else f"{per_second:,.0f}"


def preset_text(preset: Preset) -> str:
    """The best split of the cores for a library's use, and the results of the others."""
    best = ", ".join(preset_texts(preset))
    others = "; ".join(", ".join(split_texts(one, preset.name)) for one in preset.tried[1:])
    return f"for {preset.name}: {best}" + (f" (beside {others})" if others else "")


def split_texts(split: Split, preset: str) -> tuple[str, str]:
    """A split and its figure, such as "2 streams of 1 thread" and "412 runs a second"."""
    name = _split_name(split, preset)
    if preset == "latency":
        return name, f"{latency(split.median_ms / 1e3)} a run"
    return name, f"{rate_text(split.per_second)} runs a second"


def preset_texts(preset: Preset) -> tuple[str, str]:
    """A preset's split, and its figure where that was measured for this very library."""
    if preset.tried:
        return split_texts(preset.tried[0], preset.name)
    return _split_name(preset, preset.name), "as the lock says"


def _split_name(split: Split | Preset, preset: str) -> str:
    threads = count(split.threads, "thread")
    return threads if preset == "latency" else f"{count(split.streams, 'stream')} of {threads}"


def gain_texts(race: Race) -> tuple[str, str]:
    """A race's result, such as "1.52x faster", and its interval: "1.41x to 1.61x, 99%"."""
    ratio, interval, verdict = race.ratio, race.interval, race.verdict
    if interval is None:
        return verdict, f"{count(race.turns, 'turn')}: too few to be sure"
    low, high = interval
    if verdict == "faster":
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    if verdict in ("faster", "slower"):
        return f"{ratio:.2f}x {verdict}", f"{low:.2f}x to {high:.2f}x, 99%"
    return verdict, f"{low:.2f} to {high:.2f} of its time, 99%"


def _why_unsure(race: Race) -> str:
    """What the machine did meanwhile that may explain an unsure result."""
    if race.seen is None:
        return ""
    seen = seen_text(race.seen)
    return f"this machine is busy ({seen})" if race.seen.is_busy else f"meanwhile: {seen}"


def seen_text(seen: OtherWork) -> str:
    """A machine's other work, such as "load 3.1 on 2 cores, 12% of its time stolen"."""
    return (
        f"load {seen.load:.1f} on {count(seen.cores, 'core')}, {seen.stolen:.0%} of its time "
        f"stolen, a reference loop up to {seen.spread:.1f}x its time"
    )


def change_cells(task: TaskChange) -> tuple[str, str, str]:
    """A task's time in both libraries, and the change; "" where it was not timed."""
    times = (task.before_ms, task.after_ms)
    old, new = (latency(ms / 1e3) if ms is not None else "" for ms in times)
    change = f"{task.share:+.0%}" if all(times) else ""
    return old, new, change


def speed_text(speed: Speed) -> str:
    """Whether tuning made the library faster, and so which is shipped, in a sentence."""
    run = run_text(speed.shapes_ms)
    if speed.verdict == "same":
        return f"the same as untuned, byte by byte: {run}"
    if speed.race is None:
        return f"untuned: {run}"
    shipped = "untuned" if speed.verdict == "slower" else "tuned"
    each = f", {run}" if len(speed.shapes_ms) > 1 else ""
    return f"{race_text(speed.race)}; {shipped} is shipped{each}"
