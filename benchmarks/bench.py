"""What all parts of an evaluation share."""

from __future__ import annotations

from dataclasses import dataclass

from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.target import Target
from benchmarks.results import Results


@dataclass(frozen=True)
class Bench:
    """Where programs are measured, and where what was found is kept. seed: of the searches."""

    target: Target
    measurer: Measurer
    results: Results
    seed: int
