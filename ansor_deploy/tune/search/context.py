"""The context that all searches of a run share: rules, features and the cost model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..._tvm import VERSION
from ...model.tasks import Task
from ...registry.record import Workload
from ...registry.store import Registry
from ...space.rule import Rule
from ...space.trace import replay
from ...system.machine_fault import raise_if_fault
from ...target import Target
from .cost_model import CostModel
from .evolution_options import EvolutionOptions
from .experience import Experience, experiences, rules
from .features import LENGTH, Choice, Extractor, decode, decode_choices, encode
from .neighbours import Neighbour, nearest
from .surrogate import can_rank


@dataclass
class SearchContext:
    """Shared by the searches of all tasks of a run, on one target.

    seed: the seed of all random choices. model: by default a new one that is not saved. warn:
    called with a sentence for each rule that had to be left out. neighbours: gives a task's
    neighbours, nearest first; by default none. relatives: gives the measurements of other workloads
    with a workload's operator; by default none. options: how programs are evolved.
    """

    target: Target
    rules: Sequence[Rule]
    seed: int = 0
    model: CostModel = field(default_factory=CostModel)
    warn: Callable[[str], None] = lambda message: None
    neighbours: Callable[[Task], Sequence[Neighbour]] = lambda task: ()
    relatives: Callable[[Workload], Sequence[Experience]] = lambda workload: ()
    options: EvolutionOptions = field(default_factory=EvolutionOptions)

    def __post_init__(self) -> None:
        self.extract = Extractor(self.target)
        self._features: dict[tuple[str, str], bytes] = {}
        self._experiences: dict[str, Sequence[Experience]] = {}

    def experiences(self, task: Task) -> Sequence[Experience]:
        """Measurements of other tasks with the task's operator; () where there are too few.

        They are looked up again until there are enough, since a run adds to them.
        """
        key = task.key.workload
        others = self._experiences.get(key) or self.relatives(task.workload)
        if not can_rank(others, self.options.enough):
            return ()
        self._experiences[key] = others
        return others

    def remember(
        self, task: Task, trace: str, features: np.ndarray | None, made: Sequence[Choice]
    ) -> None:
        """Keep a proposal's features and choices until `features` asks for them.

        features: float32 [stores, 164]; None for a program that has none: then only the choices are
        kept.
        """
        rows = np.empty((0, LENGTH)) if features is None else features
        self._features[task.key.workload, trace] = encode(rows, made)

    def rules_of(self, task: Task, trace: str) -> tuple[str, ...]:
        """The names of the rules that made a proposal; () where it was not remembered."""
        return rules(decode_choices(self._features.get((task.key.workload, trace), b"")))

    def features(self, task: Task, trace: str) -> bytes | None:
        """Encoded features of a program, for the registry; None where it cannot be lowered."""
        known = self._features.pop((task.key.workload, trace), None)
        if known is not None:
            return known
        try:
            (found,) = self.extract([replay(task.mod, trace)])
        except (RuntimeError, ValueError) as error:
            raise_if_fault(error)
            return None
        return None if found is None else encode(found)


def open_context(
    registry: Registry,
    target: Target,
    rules: Sequence[Rule],
    seed: int,
    warn: Callable[[str], None] = lambda message: None,
) -> SearchContext:
    """A context whose cost model has learned from all of the registry's measurements of the target.

    Neighbours are looked up on demand, in the registry's state at that time.
    """
    model = CostModel(model_path(registry.path, target), warn)
    for one in registry.measurements(target.fingerprint):
        rows = decode(one.features or b"")
        if rows is not None:
            model.add(one.key.workload, one.trace, one.latency, rows)
    model.update()

    def neighbours(task: Task) -> Sequence[Neighbour]:
        return nearest({task.key: task.workload}, registry, VERSION, target).get(task.key, ())

    relatives = experiences(registry, target.fingerprint)
    return SearchContext(target, rules, seed, model, warn, neighbours, relatives)


def model_path(registry: Path, target: Target) -> Path:
    """The file of a target's cost model, in a folder beside the registry that is named after it."""
    return registry.with_name(registry.name + ".models") / f"{target.fingerprint}.ubj"
