"""The evaluation of the Ansor paper, beside TVM's MetaSchedule.

    python -m benchmarks.paper [--only operators,...] [--cases C2D,TBS-1-b16,...] [--trials 64]
                               [--threads N] [--seed N] [--results FILE]

    operators   our search's programs beside MetaSchedule's after as many trials
    match       trials and seconds until ours is where MetaSchedule is after four times as many

What is found is a line of the results file at once, so that the same command goes on where it was
stopped; the tables are printed at the end, and written beside that file after every case. A
case is an operator, one of its shapes and a batch ("C2D-3-b16"); its first parts name all that
begin with them. The cores are those that this process may use, unless there are --threads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ansor_deploy.measure.measurer import Measurer
from benchmarks import operators, results, searching, tables
from benchmarks.bench import Bench
from benchmarks.operators_te import CASES, PAPER_CASES
from benchmarks.results import Found

PARTS: dict[str, Callable[[Bench, str, int], Found]] = {
    "operators": operators.compare,
    "match": operators.match,
}


def main() -> None:
    """Find what is not known yet, case by case; print the tables."""
    args = _arguments()
    target = searching.host(args.threads)
    found = results.Results(args.results, results.machine(target))
    with Measurer(target, warn=searching.progress) as measurer:
        bench = Bench(target, measurer, found, args.seed)
        for part in args.only:
            for case in args.cases:
                _attempt(bench, part, case, args.trials)
                _report(found)
    print(_report(found))


def _attempt(bench: Bench, part: str, case: str, trials: int) -> None:
    try:
        PARTS[part](bench, case, trials)
    except RuntimeError as error:  # of one case: the others are worth having all the same
        searching.progress(f"{part} {case}: {error}")


def _report(found: results.Results) -> str:
    text = tables.report(found)
    found.path.with_suffix(".md").write_text(text)
    return text


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts = searching.one_of(list(PARTS))
    parser.add_argument("--only", type=parts, default=["operators"], help=",".join(PARTS))
    parser.add_argument(
        "--cases", type=cases, default=PAPER_CASES, help="default: all of the paper's"
    )
    parser.add_argument("--trials", type=int, default=64, help="of each search; default 64")
    parser.add_argument("--threads", type=int, default=1 << 10, help="at most; default: all cores")
    parser.add_argument("--seed", type=int, default=0)
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


if __name__ == "__main__":
    main()
