"""Short timings, for tests that are not about times.

Races take a tenth of a second, and those beside untuned libraries end at their first look. The
profile for a build's report, and each split of a preset, take a moment. Candidates are checked as
usual, but timed for moments (`short_runs`). None is timed again because of other work, or waits for
another's turn, and nothing is said about the machine's clock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ansor_deploy.cli import build
from ansor_deploy.devices import site
from ansor_deploy.devices.strain import Strain
from ansor_deploy.measure import measurer
from ansor_deploy.ship.race import beside, presets, raced, streams, turn, untuned
from ansor_deploy.system import machine_lock


@contextmanager
def short_times() -> Iterator[None]:
    """Time things for moments only, also while others are timed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raced, "RACE_SECONDS", 0.1)
        patch.setattr(beside, "GAIN_SECONDS", 0.1)
        patch.setattr(untuned, "MOST_SECONDS", 0.1)
        patch.setattr(turn, "PAUSE_SECONDS", 0.0)
        patch.setattr(build, "PROFILE_SECONDS", 0.1)
        for name, module in [("BEGIN", presets), ("BEGIN", streams), ("SLICE", presets)]:
            patch.setattr(module, f"{name}_SECONDS", 0.02)
        patch.setattr(site, "RUNS", "helpers.short_runs")
        patch.setattr(site.LocalSite, "strain", lambda self: Strain())
        patch.setattr(measurer, "DRIFT", math.inf)
        patch.setattr(machine_lock, "_NAME", f"{machine_lock._NAME}-{os.getpid()}")
        yield
