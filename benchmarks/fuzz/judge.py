"""The process that runs changed programs: twice between guards, and without timing.

The second run detects effects that the first has left behind. `measure.runner` would repeat runs
for a millisecond; on a busy machine, where threads wait for each other's turn, that takes most of a
try.
"""

from __future__ import annotations

from typing import Any

from ansor_deploy.measure import runner


def run(payload: dict[str, Any]) -> dict[str, Any]:
    """As `runner.run`, without times."""
    bound, found = runner.checked(payload)
    if bound is None:
        return found
    bound.clock()
    return runner.recheck(bound, found)
