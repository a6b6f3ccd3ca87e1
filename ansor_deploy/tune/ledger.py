"""What was measured here and now, as the registry keeps it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from .. import __version__
from .._tvm import VERSION
from ..registry.record import Measurement, Provenance

if TYPE_CHECKING:
    from ..measure.outcome import Outcome
    from ..registry.keys import TaskKey


def provenance(search: str, device: str, seed: int, rules: str = "") -> Provenance:
    """Of what this tool measures now. rules: digest of the set that was asked."""
    return Provenance(__version__, VERSION, search, device, seed, now(), rules)


def measurement(
    key: TaskKey, outcome: Outcome, where: Provenance, features: bytes | None
) -> Measurement:
    """An outcome, for good."""
    return Measurement(
        key, outcome.trace, outcome.seconds, outcome.error, outcome.message, where, features
    )


def now() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
