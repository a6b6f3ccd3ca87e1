"""What the searches of one run share: rules, features and the cost model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .._tvm import VERSION
from ..space.trace import replay
from .cost_model import CostModel
from .experience import Choice, Experience, experiences
from .features import Extractor, decode, encode
from .neighbours import Neighbour, nearest
from .surrogate import worth_asking

if TYPE_CHECKING:
    import numpy as np

    from ..model.tasks import Task
    from ..registry.record import Workload
    from ..registry.store import Registry
    from ..space.rule import Rule
    from ..target import Target


class SearchContext:
    """Shared by the searches of all tasks of a run, on one target.

    seed: of every random choice. model: by default a new one, that nothing keeps. warn: is told of
    rules that had to be left out. neighbours: of a task, nearest first; by default it has none.
    relatives: what was measured of others of a workload's operator; by default nothing.
    """

    def __init__(
        self,
        target: Target,
        rules: Sequence[Rule],
        seed: int = 0,
        model: CostModel | None = None,
        warn: Callable[[str], None] = lambda message: None,
        neighbours: Callable[[Task], Sequence[Neighbour]] = lambda task: (),
        relatives: Callable[[Workload], Sequence[Experience]] = lambda workload: (),
    ) -> None:
        self.warn, self.neighbours, self.relatives = warn, neighbours, relatives
        self.target, self.rules, self.seed = target, tuple(rules), seed
        self.model = model or CostModel()
        self.extract = Extractor(target)
        self._features: dict[tuple[str, str], bytes] = {}

    def known(self, task: Task) -> Sequence[Experience]:
        """What its relatives teach, so that a search need not begin with the default schedule."""
        relatives = self.relatives(task.workload)
        return relatives if worth_asking(relatives) else ()

    def remember(
        self, task: Task, trace: str, features: np.ndarray | None, made: Sequence[Choice]
    ) -> None:
        """Keep a proposal's features and choices until `features` asks for them."""
        if features is not None:
            self._features[task.key.workload, trace] = encode(features, made)

    def features(self, task: Task, trace: str) -> bytes | None:
        """Encoded features of a program, for the registry; None where it cannot be lowered."""
        known = self._features.pop((task.key.workload, trace), None)
        if known is not None:
            return known
        try:
            (found,) = self.extract([replay(task.mod, trace)])
        except (RuntimeError, ValueError):
            return None
        return None if found is None else encode(found)


def open_context(
    registry: Registry,
    target: Target,
    rules: Sequence[Rule],
    seed: int,
    warn: Callable[[str], None] = lambda message: None,
) -> SearchContext:
    """A context whose cost model knows all that the registry has measured for the target.

    Neighbours are looked up when they are asked for, in the registry as it then is.
    """
    model = CostModel(model_path(registry.path, target), warn)
    for measurement in registry.measurements(target.fingerprint):
        rows = decode(measurement.features) if measurement.features else None
        if rows is not None:
            workload = measurement.key.workload
            model.add(workload, measurement.trace, measurement.latency, rows)
    model.update()

    def neighbours(task: Task) -> Sequence[Neighbour]:
        return nearest({task.key: task.workload}, registry, VERSION).get(task.key, ())

    relatives = experiences(registry, target.fingerprint)
    return SearchContext(target, rules, seed, model, warn, neighbours, relatives)


def model_path(registry: Path, target: Target) -> Path:
    """Where a target's cost model is kept: in a folder beside the registry, named after it."""
    return registry.with_name(registry.name + ".models") / f"{target.fingerprint}.ubj"
