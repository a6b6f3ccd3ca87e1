"""What an evaluation found, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import nan
from statistics import geometric_mean, median
from typing import Any

from benchmarks.search.ablation import MOMENTS
from benchmarks.search.cost_model import PAPER
from benchmarks.search.operators import OURS, THEIRS
from benchmarks.search.operators_te import BATCHES, CASES, OPERATORS, PAPER_CASES
from benchmarks.search.results import Found, Results

PAPER_ROW = ("the Ansor paper", asdict(PAPER))


def report(results: Results) -> str:
    """Every table that there is something for, under the machine's name."""
    tables = (_operators, _matches, _ablations, _cost_models)
    parts = [f"# On {results.here}", *(part for one in tables for part in one(results))]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Markdown; the first column is text, the others numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _operators(results: Results) -> list[str]:
    """A table of cases for each number of trials and seed, and what they come to."""
    costs = {_search(line): line["found"] for line in results.of("search")}
    parts = []
    for (trials, seed), lines in _settings(results.of("operators")).items():
        rows = [_Row(line, costs) for line in lines]
        parts += [
            f"## Operators beside MetaSchedule, {trials} trials, seed {seed}",
            table(_Row.HEAD, [row.cells for row in rows]),
            _means(rows),
            _summary(rows),
        ]
    return parts


class _Row:
    """A case, with what both searches took."""

    HEAD = (
        *("case", "ours ms", "MetaSchedule ms", "ratio", "quartiles", "limit ms", "of limit"),
        *("s a trial", "MetaSchedule's", "of it searching", "MetaSchedule's", "commit"),
    )

    def __init__(self, line: Found, costs: dict[Any, Found]) -> None:
        self.case, self.found, self.commit = line["about"]["case"], line["found"], line["commit"]
        self.ratio: float = self.found["ratio"]
        sides = [costs[_search({"about": {**line["about"], "engine": e}})] for e in (OURS, THEIRS)]
        self.seconds = [side["seconds"] / side["trials"] for side in sides]
        self.searching = [side["searching"] / side["trials"] for side in sides]

    @property
    def cells(self) -> list[str]:
        found = self.found
        share = found["limit_ms"] / found["ours_ms"]
        return [
            self.case,
            f"{found['ours_ms']:.4f}",
            f"{found['metaschedule_ms']:.4f}",
            f"{self.ratio:.2f}",
            f"{found['low']:.2f}-{found['high']:.2f}",
            f"{found['limit_ms']:.4f}",
            f"{share:.0%}",
            *(f"{one:.2f}" for one in (*self.seconds, *self.searching)),
            self.commit,
        ]


def _means(rows: Sequence[_Row]) -> str:
    """Geometric means of the ratios, by operator and batch."""
    cells = []
    for name in OPERATORS:
        mine = [row for row in rows if CASES[row.case].name == name]
        by_batch = [[r.ratio for r in mine if CASES[r.case].batch == batch] for batch in BATCHES]
        if mine:
            cells.append([name, *(f"{geometric_mean(one):.2f}" if one else "" for one in by_batch)])
    return table(["geometric mean of ratios", *(f"batch {batch}" for batch in BATCHES)], cells)


def _summary(rows: Sequence[_Row]) -> str:
    worst = max(rows, key=lambda row: row.ratio)
    ours, theirs = (sum(row.seconds[at] for row in rows) for at in (0, 1))
    done = sum(row.case in PAPER_CASES for row in rows)
    return (
        f"{done} of the paper's {len(PAPER_CASES)} cases. Ratio: geometric mean "
        f"{geometric_mean([row.ratio for row in rows]):.3f}, worst {worst.ratio:.2f} "
        f"({worst.case}). Seconds a trial: {ours / len(rows):.2f} and {theirs / len(rows):.2f}, "
        f"{ours / theirs:.2f} of MetaSchedule's."
    )


def _matches(results: Results) -> list[str]:
    parts = []
    for (trials, seed), lines in _settings(results.of("match")).items():
        head = ("case", "trials", "MetaSchedule's", "seconds", "MetaSchedule's", "commit")
        rows = [_match(line) for line in lines]
        parts += [
            f"## To where MetaSchedule arrives, {trials} trials, seed {seed}",
            table(head, rows),
        ]
    return parts


def _match(line: Found) -> list[Any]:
    found, commit = line["found"], line["commit"]
    ours = found["ours"] or {"trials": "never", "seconds": float("nan")}
    seconds = [f"{one:.1f}" for one in (ours["seconds"], found["seconds"])]
    return [line["about"]["case"], ours["trials"], found["trials"], *seconds, commit]


def _ablations(results: Results) -> list[str]:
    """Of each subject, trials and set of variants: medians over the seeds."""
    groups: dict[tuple[str, int], dict[str, list[list[float]]]] = {}
    for line in results.of("ablation"):
        group = groups.setdefault((line["about"]["subject"], line["about"]["trials"]), {})
        for variant, curve in line["found"].items():
            group.setdefault(variant, []).append(curve)
    parts = []
    for (subject, trials), curves in groups.items():
        head = [
            "ms after trials",
            *(str(round(trials * part)) for part in MOMENTS),
            "of full",
            "seeds",
        ]
        parts += [f"## {subject} under variants of the search", table(head, _curves(curves))]
    return parts


def _curves(curves: dict[str, list[list[float]]]) -> list[list[Any]]:
    """Rows of medians over seeds, and the last of them in terms of the full search's."""
    medians = {
        name: [median(one) for one in zip(*runs, strict=True)] for name, runs in curves.items()
    }
    full = medians.get("full", [nan])[-1]
    return [
        [name, *(f"{ms:.4f}" for ms in row), f"{row[-1] / full:.2f}", len(curves[name])]
        for name, row in medians.items()
    ]


def _cost_models(results: Results) -> list[str]:
    lines = [(f"seed {one['about']['seed']}", one["found"]) for one in results.of("cost-model")]
    if not lines:
        return []
    rows = [[name, *(f"{x:.4g}" for x in of.values())] for name, of in (*lines, PAPER_ROW)]
    return ["## Ranking programs unseen", table(["of", *PAPER_ROW[1]], rows)]


def _settings(lines: Iterable[Found]) -> dict[tuple[int, int], list[Found]]:
    """Lines by trials and seed, of which only equal ones compare, in the order of the cases."""
    found: dict[tuple[int, int], list[Found]] = {}
    order = list(CASES)
    for line in sorted(lines, key=lambda line: order.index(line["about"]["case"])):
        found.setdefault((line["about"]["trials"], line["about"]["seed"]), []).append(line)
    return found


def _search(line: Found) -> tuple[Any, ...]:
    about = line["about"]
    return about["case"], about["engine"], about["trials"], about["seed"]
