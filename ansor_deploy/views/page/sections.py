"""The sections of a report, each as lines of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from ...measure.roof import flops, products
from ...registry.title import shape_text
from ...runtime.profile import KernelTime
from ...system.words import count, size_text
from ..profile import by_operator, title
from ..text import KEY, duration, latency, origins_text, preset_text, race_text, share, speed_text
from .charts import Mark, roofline, steps
from .content import Facts, untuned

Row = Sequence[str]
MOST_KERNELS = 40  # rows of the table of kernels, the slowest
MOST_CURVES = 12  # tasks that get a curve each, at most


def verdict(facts: Facts) -> Iterator[str]:
    """What tuning gained, the race with another engine, and what is shipped."""
    if (speed := facts.manifest.speed) is None:
        yield "<p>Nothing was timed: the manifest has no times.</p>"
        return
    yield _sentence(speed_text(speed))
    if speed.beside:
        yield _sentence(race_text(speed.beside))
    if facts.manifest.preset:
        yield _sentence(preset_text(facts.manifest.preset))


def where_time_goes(facts: Facts) -> Iterator[str]:
    """The operators, and the slowest kernels."""
    profile = facts.profile
    if profile is None:
        yield "<p>This machine cannot run the library, and so it has no profile.</p>"
        return
    kernels = sorted(profile.kernels, key=lambda one: -one.seconds)
    yield (
        f"<p>A run of {latency(profile.seconds)}, of which {latency(max(0.0, profile.rest))} are "
        "outside the kernels. The limit is what the machine's arithmetic, or the caches that can "
        f"hold its tensors, would need at least, over the time that it took.{_room(facts)}</p>"
    )
    groups = [(name, sum(one.seconds for one in some)) for name, some in by_operator(profile)]
    rows: list[Row] = [
        (escape(name), *_time(seconds, profile.seconds), _bar(seconds / groups[0][1], ""))
        for name, seconds in groups
    ]
    yield from table("By operator", ("operator", "#time", "#share", ""), rows)
    longest = kernels[0].seconds
    rows = [_kernel(one, profile.seconds, longest, facts) for one in kernels[:MOST_KERNELS]]
    more = len(kernels) - len(rows)
    said = "By kernel, the longest first" + (f"; {more} more are shorter" if more else "")
    heads = ("key", "kernel", "schedule", "#time", "#share", "#GFLOP/s", "#limit", "")
    yield from table(said, heads, rows)


def roofline_plot(facts: Facts) -> Iterator[str]:
    """The roofline plot: each kernel by its FLOP for each byte."""
    marks = [mark for one in _kernels(facts) if (mark := _mark(one, facts))]
    if not (marks and facts.roof):
        yield "<p>There is nothing to plot without a profile.</p>"
        return
    yield (
        "<p>A point is a kernel, as large as its share of a run; the names are in the table above, "
        'and shown on it. <span class="dot tuned"></span> tuned, <span class="dot default"></span> '
        "default schedule. The lines are what the machine computes, and what it reads from each "
        "cache and from memory, as measured here.</p>"
    )
    yield roofline(marks, facts.roof.gflops, [rate / 1e9 for _, rate in facts.roof.levels])


def tuning_curves(facts: Facts) -> Iterator[str]:
    """The latency of the model over the trials, and that of each task."""
    tuning = facts.tuning
    if tuning is None or not tuning.model.points:
        yield "<p>Nothing of this model was measured into this registry.</p>"
        return
    trials = count(int(tuning.model.points[-1][0]), "trial")
    speed = facts.manifest.speed
    if speed and speed.verdict in ("same", "slower", "as fast"):
        yield "<p>In the whole library no candidate beat the default schedules.</p>"
    first, last = tuning.model.points[0][1], tuning.model.points[-1][1]
    yield (
        f"<p>The best of each task, measured alone and added up, from {latency(first / 1e3)} when "
        f"each had been tried once to {latency(last / 1e3)}, in {trials} and "
        f"{duration(tuning.seconds[-1])}. What that is worth in the library, the race says.</p>"
    )
    yield '<div class="pair">'
    yield steps(tuning.model.points, tuning.model.title)
    yield steps(tuning.over_time, tuning.model.title, unit="seconds")
    yield '</div><div class="multiples">'
    for one in tuning.tasks[:MOST_CURVES]:
        drawn = steps(one.points, one.title, small=True)
        yield f"<figure>{drawn}<figcaption>{escape(one.title)}</figcaption></figure>"
    yield "</div>"


def what_was_reused(facts: Facts) -> Iterator[str]:
    """How many tasks have a record, how many other models share, and what that saved."""
    tasks, tuning = facts.manifest.tasks, facts.manifest.tuning
    tuned = len(tasks) - len(untuned(facts.manifest))
    yield f"<p>{tuned} of {count(len(tasks), 'task')} have a record.</p>"
    if tuning:  # a frozen build has none
        known = tuning.origins and origins_text(tuning.origins, tuning.tasks)
        yield (
            f"<p>The build found {known or count(tuning.hits, 'record')}. It tuned "
            f"{count(tuning.misses, 'task')}, with {count(tuning.trials, 'trial')} in "
            f"{duration(tuning.tune_seconds)}.</p>"
        )
    if (saved := facts.saved) and saved["shared"]:
        trials = count(round(saved["trials_saved"]), "trial")
        yield (
            f"<p>The registry has {count(saved['shared'], 'task')} of it that other models have, "
            f"too; that saved {trials}, about {duration(saved['seconds_saved'] or 0.0)}.</p>"
        )
    rows = [(escape(name), str(number)) for name, number in facts.reused.items()]
    if rows:
        yield from table("Shared with other models", ("model", "#tasks"), rows)


def memory(facts: Facts) -> Iterator[str]:
    """The library's sizes, on disk and in a run."""
    taken = facts.manifest.memory
    yield from plain(
        [
            ("the library's file", size_text(taken.library)),
            ("of it weights", size_text(taken.weights)),
            ("tensors between kernels", size_text(taken.workspace)),
            ("a run at most", size_text(taken.peak)),
        ]
    )


def verification(facts: Facts) -> Iterator[str]:
    """What its outputs were compared with, and how much they differ."""
    found, known = facts.manifest.verify, facts.manifest.verification
    if not found:
        yield f"<p>{escape(known.reason or 'The errors are not in the manifest.')}</p>"
        return
    yield from plain(
        [
            ("compared with", found.oracle),
            ("where it ran", known.where or "not said"),
            ("largest error", f"{found.max_abs_err:.2g}"),
            ("relative to the output's scale", f"{found.max_rel_err:.2g}"),
            ("seed of the inputs", str(found.seed)),
        ]
    )


def provenance(facts: Facts) -> Iterator[str]:
    """What the library was made from, and by which tools."""
    known, target = facts.manifest, facts.target
    shapes = [f"{one.name}: {one.dtype} {shape_text(one.shape)}" for one in known.inputs]
    yield from plain(
        [
            ("model", f"{known.model.name} (SHA-256 {known.model.sha256[:16]})"),
            ("inputs", "; ".join(shapes)),
            ("target", f"{target.name}: {target.description} ({target.fingerprint[:8]})"),
            ("cores, peak, memory", _machine(facts)),
            ("tool, TVM", f"ansor-deploy {known.tool}, TVM {known.tvm}"),
            ("linker", known.linker),
            ("rules of the user", ", ".join(one.file for one in known.rules) or "none"),
            ("library", f"SHA-256 {known.artifact.sha256[:16]}"),
        ]
    )


def table(caption: str, heads: Row, rows: Iterable[Row]) -> Iterator[str]:
    """A table; heads that begin with # are for numbers, empty ones for bars."""
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
    yield f"<caption>{escape(caption)}</caption><thead><tr>"
    kinds = ["number" if head[:1] == "#" else "" if head else "bars" for head in heads]
    for kind, head in zip(kinds, heads, strict=True):
        text = escape(head.lstrip("#")) or '<span aria-hidden="true">relative</span>'
        yield f'<th scope="col" class="{kind}">{text}</th>'
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = zip(kinds, row, strict=True)
        yield "<tr>" + "".join(f'<td class="{k}">{c}</td>' for k, c in cells) + "</tr>"
    yield "</tbody></table></div>"


def plain(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A list of names and values."""
    yield '<dl class="plain">'
    for name, value in pairs:
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"


def _sentence(text: str) -> str:
    return f"<p>{escape(text[0].upper() + text[1:])}.</p>"


def _room(facts: Facts) -> str:
    """The most that better kernels could save, or "" if that is not known."""
    room = facts.roof.room(facts.profile) if facts.roof and facts.profile else 0.0
    return f" Better kernels could save {latency(room)} of a run at most." if room else ""


def _kernels(facts: Facts) -> Sequence[KernelTime]:
    return facts.profile.kernels if facts.profile else ()


def _kernel(one: KernelTime, whole: float, longest: float, facts: Facts) -> Row:
    task: Any = one.task or {}
    limit = facts.roof and facts.roof.share(one)
    kind = _kind(one)
    by = ", ".join(facts.derived.get(task.get("key", ""), ()))
    return (
        f"<code>{task.get('key', '')[:KEY]}</code>",
        escape(title(one)),
        "" if one.task is None else escape(f"{kind}: {by}" if by else kind),
        *_time(one.seconds, whole),
        f"{task['flops'] / one.seconds / 1e9:.0f}" if task.get("flops") else "",
        f"{limit:.0%}" if limit else "",
        _bar(one.seconds / longest, kind),
    )


def _kind(one: KernelTime) -> str:
    return "default" if (one.task or {}).get("record", "default") == "default" else "tuned"


def _mark(one: KernelTime, facts: Facts) -> Mark | None:
    task: Any = one.task or {}
    if not (task.get("flops") and task.get("bytes") and facts.profile) or products(one):
        return None  # int8 dot products have another roof
    size = 3.0 + 22.0 * (one.seconds / facts.profile.seconds) ** 0.5
    computed = flops(task)
    speed = computed / one.seconds / 1e9
    text = f"{title(one)}: {latency(one.seconds)}, {speed:.0f} GFLOP/s, {_kind(one)}"
    return Mark(computed / task["bytes"], speed, text, size, _kind(one))


def _time(seconds: float, whole: float) -> tuple[str, str]:
    return latency(seconds), share(seconds / whole)


def _bar(part: float, kind: str) -> str:
    return f'<span class="bar {kind}" style="width:{100 * part:.1f}%"></span>'


def _machine(facts: Facts) -> str:
    target, roof = facts.target, facts.roof
    peak, memory = target.peak_gflops, target.memory_gbs
    if roof and roof.levels:
        peak, memory = roof.gflops, roof.levels[-1][1] / 1e9
    if peak is None:  # a frozen build's library that this machine does not run
        return f"{target.cores}, not known"
    return f"{target.cores}, {peak:.0f} GFLOP/s, {memory:.0f} GB/s"
