"""What a search costs beside the measuring that it is for.

    python benchmarks/search_cost.py [--trials 64] [--only C2D-fused,...] [--seed N] [--json FILE]

Everything but building and running candidates counts as search: deriving sketches, proposing
(with the features and the cost model's predictions) and learning from what was measured.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.target import Target
from benchmarks import searching
from benchmarks.operators_te import OPERATORS

TASKS = ("C1D", "C2D-fused", "DEP", "TBS")
SEARCHES = ("ansor", "metaschedule")
HEADER = f"{'operator':12}{'search':>14}{'trials':>8}{'s/trial':>9}{'searching':>11}{'share':>7}"


@dataclass(frozen=True)
class Cost:
    """Seconds a trial: wall clock, and those spent searching. share: the latter's of the former."""

    name: str
    search: str
    trials: int
    seconds_per_trial: float
    searching_per_trial: float
    share: float

    def __str__(self) -> str:
        return (
            f"{self.name:12}{self.search:>14}{self.trials:8d}{self.seconds_per_trial:9.3f}"
            f"{self.searching_per_trial:11.3f}{self.share:7.0%}"
        )


def main() -> None:
    """Search each chosen task; print as they come."""
    parser = searching.options(__doc__, list(OPERATORS), TASKS, trials=64)
    known = searching.one_of(SEARCHES)
    parser.add_argument("--search", type=known, default=["ansor"], help=",".join(SEARCHES))
    args = parser.parse_args()
    target = searching.host(args.threads)
    print(HEADER, flush=True)
    costs: list[Cost] = []
    with Measurer(target) as measurer:
        for name in args.only:
            for search in args.search:
                costs.append(_cost(name, search, target, measurer, args.trials, args.seed))
                print(costs[-1], flush=True)
    if args.json:
        args.json.write_text(json.dumps({"costs": [asdict(c) for c in costs]}, indent=2) + "\n")


def _cost(
    name: str, search: str, target: Target, measurer: Measurer, trials: int, seed: int
) -> Cost:
    task, open_ = searching.operator_task(name, target), searching.opener(search)
    open_(task, target, [], seed)  # what is loaded once and for all is not counted
    run = searching.search(open_, task, target, measurer, trials, seed)
    count = len(run.outcomes)
    return Cost(
        name=name,
        search=search,
        trials=count,
        seconds_per_trial=run.seconds / count,
        searching_per_trial=run.searching / count,
        share=run.searching / run.seconds,
    )


if __name__ == "__main__":
    main()
