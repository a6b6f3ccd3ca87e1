"""The evaluation of the Ansor paper: our search beside TVM's MetaSchedule, and without its parts.

    python -m benchmarks.paper [--only operators,...] [--cases C2D,TBS-1-b16,...] [--trials 64]
                               [--subjects C2D-4-b16,mobilenet_v2+resnet50,...] [--variants ...]
                               [--programs 5000] [--seeds 1] [--threads N] [--results FILE]

    operators    our search's programs beside MetaSchedule's after as many trials (figures 6, 8)
    match        trials and seconds until ours is where MetaSchedule is after four times as many
    ablation     every subject under every variant of the search (figures 7, 10; see `ablation`)
    cost-model   how well programs are ranked unseen (section 7.4; see `cost_model`)

What is found is a line of the results file at once, so that the same command goes on where it was
stopped; the tables are printed at the end, and written beside that file after every piece. A
case is an operator, one of its shapes and a batch ("C2D-3-b16"); its first parts name all that
begin with them. The cores are those that this process may use, unless there are --threads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ansor_deploy.measure.measurer import Measurer
from benchmarks import ablation, cost_model, operators, results, searching, tables, zoo
from benchmarks.bench import Bench
from benchmarks.operators_te import CASES, PAPER_CASES

Piece = Callable[[], object]
SUBJECTS = ["C2D-4-b16", "Fused-4-b16"]  # of figure 7: an operator, and it as a network has it


def main() -> None:
    """Find what is not known yet, piece by piece; print the tables."""
    args = _arguments()
    target = searching.host(args.threads)
    found = results.Results(args.results, results.machine(target))
    with Measurer(target, warn=searching.progress) as measurer:
        for part in args.only:
            for seed in range(args.seeds):
                for piece in PARTS[part](Bench(target, measurer, found, seed), args):
                    _attempt(piece)
                    _report(found)
    print(_report(found))


def _operators(bench: Bench, args: argparse.Namespace) -> Iterator[Piece]:
    return (partial(operators.compare, bench, case, args.trials) for case in args.cases)


def _matches(bench: Bench, args: argparse.Namespace) -> Iterator[Piece]:
    return (partial(operators.match, bench, case, args.trials) for case in args.cases)


def _ablations(bench: Bench, args: argparse.Namespace) -> Iterator[Piece]:
    for subject in args.subjects:
        yield partial(ablation.ablate, bench, subject, args.trials, args.variants)


def _cost_model(bench: Bench, args: argparse.Namespace) -> Iterator[Piece]:
    yield partial(cost_model.rank, bench, args.programs)


PARTS: dict[str, Callable[[Bench, argparse.Namespace], Iterator[Piece]]] = {
    "operators": _operators,
    "match": _matches,
    "ablation": _ablations,
    "cost-model": _cost_model,
}


def _attempt(piece: Piece) -> None:
    try:
        piece()
    except RuntimeError as error:  # of one piece: the others are worth having all the same
        searching.progress(str(error))


def _report(found: results.Results) -> str:
    text = tables.report(found)
    found.path.with_suffix(".md").write_text(text)
    return text


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts, variants = searching.one_of(list(PARTS)), searching.one_of(list(ablation.VARIANTS))
    parser.add_argument("--only", type=parts, default=list(PARTS), help=",".join(PARTS))
    parser.add_argument("--cases", type=cases, default=PAPER_CASES, help="default: the paper's 96")
    parser.add_argument("--trials", type=int, default=64, help="of each search; default 64")
    parser.add_argument("--subjects", type=subjects, default=SUBJECTS, help="default: figure 7's")
    parser.add_argument("--variants", type=variants, default=list(ablation.FIGURE_7))
    parser.add_argument("--programs", type=int, default=5000, help="for the cost model's table")
    parser.add_argument("--seeds", type=int, default=1, help="so many times; default once")
    parser.add_argument("--threads", type=int, default=1 << 10, help="at most; default: all cores")
    parser.add_argument("--results", type=Path, default=Path("out/paper.jsonl"), metavar="FILE")
    return parser.parse_args()


def cases(text: str) -> list[str]:
    """The cases that begin with the names in a list with commas, in its order."""
    found: dict[str, None] = {}
    for name in text.split(","):
        begun = [case for case in CASES if f"{case}-".startswith(f"{name}-")]
        if not begun:
            raise argparse.ArgumentTypeError(f"no case begins with {name}: see operators_te.CASES")
        found.update(dict.fromkeys(begun))
    return list(found)


def subjects(text: str) -> list[str]:
    """Of an ablation: cases and networks, several of either with "+" between them."""
    found = text.split(",")
    if unknown := {name for one in found for name in one.split("+")} - {*CASES, *zoo.NETWORKS}:
        raise argparse.ArgumentTypeError(f"no case or network {', '.join(sorted(unknown))}")
    return found


if __name__ == "__main__":
    main()
