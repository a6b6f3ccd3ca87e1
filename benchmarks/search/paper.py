"""The evaluation of the Ansor paper: our search beside TVM's MetaSchedule, and without its parts.

    operators    our search's programs beside MetaSchedule's after as many trials (figures 6, 8)
    ablation     every subject under every variant of the search (figures 7, 10; see `ablation`)
    cost-model   how well programs are ranked unseen (section 7.4; see `cost_model`)

Each result is written to the results file at once, as a line, so the same command continues where
it was stopped; the tables are printed at the end, and written beside that file after every piece. A
case is an operator, one of its shapes and a batch ("C2D-3-b16"); a shorter name stands for all
cases that begin with it. The cores are those that this process may use, unless --threads limits
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from ansor_deploy.measure.measurer import Measurer
from benchmarks.networks import zoo
from benchmarks.options import Listed, number, progress, target
from benchmarks.search import ablation, cost_model, operators, results, tables
from benchmarks.search.operators_te import CASES, PAPER_CASES
from benchmarks.search.results import Bench

Piece = Callable[[], object]
SUBJECTS = ["C2D-4-b16", "Fused-4-b16"]  # of figure 7: an operator, and the same as in a network
PARTS = ("operators", "ablation", "cost-model")


@click.command
@click.option("--only", type=Listed(click.Choice(PARTS)), default=list(PARTS))
@click.option("--cases", "chosen", type=Listed(), help="By default the paper's 96.")
@number("--trials", 64, "Of each search.")
@click.option("--subjects", type=Listed(), default=SUBJECTS, help="By default figure 7's.")
@click.option(
    "--variants", type=Listed(click.Choice(list(ablation.VARIANTS))), default=ablation.FIGURE_7
)
@number("--programs", 5000, "For the cost model's table.")
@number("--seeds", 1, "So many times.")
@number("--threads", 1 << 10, "At most; by default all cores.")
@click.option("--results", "file", type=Path, default=Path("out/paper.jsonl"))
def command(
    only: list[str],
    chosen: list[str] | None,
    trials: int,
    subjects: list[str],
    variants: list[str],
    programs: int,
    seeds: int,
    threads: int,
    file: Path,
) -> None:
    """Do the pieces that have no results yet; print the tables."""
    some = cases(chosen) if chosen else PAPER_CASES
    known(subjects)
    on = target("host", threads)
    found = results.Results(file, results.machine(on))

    def pieces(bench: Bench) -> dict[str, list[Piece]]:
        return {
            "operators": [partial(operators.compare, bench, case, trials) for case in some],
            "ablation": [
                partial(ablation.ablate, bench, one, trials, variants) for one in subjects
            ],
            "cost-model": [partial(cost_model.rank, bench, programs)],
        }

    with Measurer(on, warn=progress) as measurer:
        for part, seed in itertools.product(only, range(seeds)):
            for piece in pieces(Bench(on, measurer, found, seed))[part]:
                _attempt(piece)
                _report(found)
    print(_report(found))


def _attempt(piece: Piece) -> None:
    try:
        piece()
    except RuntimeError as error:  # of one piece: the others are still useful
        progress(str(error))


def _report(found: results.Results) -> str:
    text = tables.report(found)
    found.path.with_suffix(".md").write_text(text)
    return text


def cases(names: Sequence[str]) -> list[str]:
    """The cases that begin with the names, in their order."""
    found: dict[str, None] = {}
    for name in names:
        begun = [case for case in CASES if f"{case}-".startswith(f"{name}-")]
        if not begun:
            raise click.BadParameter(f"no case begins with {name}: see operators_te.CASES")
        found.update(dict.fromkeys(begun))
    return list(found)


def known(subjects: Sequence[str]) -> None:
    """BadParameter unless all are cases and networks, or several of these joined by "+"."""
    names = {name for one in subjects for name in one.split("+")}
    if unknown := names - {*CASES, *zoo.NETWORKS}:
        raise click.BadParameter(f"no case or network {', '.join(sorted(unknown))}")
