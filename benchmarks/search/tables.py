"""The results of an evaluation as tables in Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean, median
from typing import Any

from benchmarks.search.ablation import MOMENTS
from benchmarks.search.cost_model import PAPER
from benchmarks.search.operators import OURS, THEIRS
from benchmarks.search.operators_te import BATCHES, CASES, OPERATORS, PAPER_CASES
from benchmarks.search.results import Found, Results

PAPER_ROW = ("the Ansor paper", PAPER)
HEAD = (
    *("case", "ours ms", "MetaSchedule ms", "ratio", "quartiles", "limit ms", "of limit"),
    *("s a trial", "MetaSchedule's", "of it searching", "MetaSchedule's", "commit"),
)


def report(results: Results) -> str:
    """All tables with results, under the machine's name."""
    tables = (_operators, _ablations, _cost_models)
    parts = [f"# On {results.here}", *(part for one in tables for part in one(results))]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown, whose first column is text and whose others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _operators(results: Results) -> Iterator[str]:
    """A table of cases for each number of trials and seed, with a summary."""
    searched = {_key(line["about"]): line["found"] for line in results.of("search")}
    settings: dict[tuple[int, int], list[Found]] = defaultdict(list)
    order = list(CASES)
    for line in sorted(results.of("operators"), key=lambda one: order.index(one["about"]["case"])):
        about = line["about"]
        sides = [searched[_key({**about, "engine": one})] for one in (OURS, THEIRS)]
        found = {of: [one[of] / one["trials"] for one in sides] for of in ("seconds", "searching")}
        row = {"case": about["case"], "commit": line["commit"], **line["found"], **found}
        settings[about["trials"], about["seed"]].append(row)
    for (trials, seed), rows in settings.items():
        yield f"## Operators beside MetaSchedule, {trials} trials, seed {seed}"
        yield table(HEAD, map(_cells, rows))
        yield _means(rows)
        yield _summary(rows)


def _key(about: Found) -> tuple[Any, ...]:
    return about["case"], about["engine"], about["trials"], about["seed"]


def _cells(row: Found) -> list[str]:
    times = [f"{row[name]:.4f}" for name in ("ours_ms", "metaschedule_ms")]
    limit = [f"{row['limit_ms']:.4f}", f"{row['limit_ms'] / row['ours_ms']:.0%}"]
    costs = [f"{one:.2f}" for one in (*row["seconds"], *row["searching"])]
    quartiles = f"{row['low']:.2f}-{row['high']:.2f}"
    return [row["case"], *times, f"{row['ratio']:.2f}", quartiles, *limit, *costs, row["commit"]]


def _means(rows: Sequence[Found]) -> str:
    """Geometric means of the ratios, by operator and batch."""
    ratios: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        case = CASES[row["case"]]
        ratios[case.name, case.batch].append(row["ratio"])
    means = {key: f"{geometric_mean(of):.2f}" for key, of in ratios.items()}
    names = [name for name in OPERATORS if any(one == name for one, _ in means)]
    cells = [[name, *(means.get((name, batch), "") for batch in BATCHES)] for name in names]
    return table(["geometric mean of ratios", *(f"batch {batch}" for batch in BATCHES)], cells)


def _summary(rows: Sequence[Found]) -> str:
    worst = max(rows, key=lambda row: row["ratio"])
    ours, theirs = (sum(row["seconds"][at] for row in rows) for at in (0, 1))
    done = sum(row["case"] in PAPER_CASES for row in rows)
    return (
        f"{done} of the paper's {len(PAPER_CASES)} cases. Ratio: geometric mean "
        f"{geometric_mean([row['ratio'] for row in rows]):.3f}, worst {worst['ratio']:.2f} "
        f"({worst['case']}). Seconds a trial: {ours / len(rows):.2f} and {theirs / len(rows):.2f}, "
        f"{ours / theirs:.2f} of MetaSchedule's."
    )


def _ablations(results: Results) -> Iterator[str]:
    """A table for each subject and number of trials: medians over the seeds."""
    groups: dict[tuple[str, int], dict[str, list[list[float]]]] = {}
    for line in results.of("ablation"):
        group = groups.setdefault((line["about"]["subject"], line["about"]["trials"]), {})
        for variant, curve in line["found"].items():
            group.setdefault(variant, []).append(curve)
    for (subject, trials), curves in groups.items():
        moments = [str(round(trials * part)) for part in MOMENTS]
        yield f"## {subject} under variants of the search"
        yield table(["ms after trials", *moments, "of the first", "seeds"], _curves(curves))


def _curves(curves: dict[str, list[list[float]]]) -> Iterator[list[Any]]:
    """Rows of medians over seeds, with the last one relative to the first variant's."""
    rows = {name: list(map(median, zip(*runs, strict=True))) for name, runs in curves.items()}
    *_, first = next(iter(rows.values()))
    for name, row in rows.items():
        yield [name, *(f"{ms:.4f}" for ms in row), f"{row[-1] / first:.2f}", len(curves[name])]


def _cost_models(results: Results) -> list[str]:
    lines = [(f"seed {one['about']['seed']}", one["found"]) for one in results.of("cost-model")]
    if not lines:
        return []
    rows = [[name, *(f"{x:.4g}" for x in of.values())] for name, of in (*lines, PAPER_ROW)]
    return ["## Ranking programs unseen", table(["of", *PAPER_ROW[1]], rows)]
