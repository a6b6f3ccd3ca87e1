"""A task: one of a model's unique fused subgraphs, with its key, weight and roofline."""

from dataclasses import dataclass, field
from typing import Any

from ..registry.record import TaskKey, Workload, roofline
from ..target import Target
from .graph.places import Place


@dataclass(frozen=True)
class Task:
    """One fused subgraph on one target. weight: how often it runs in the model, or in all models.

    mod: the canonical program, one function `main`; schedules are made for it and replay on it.
    weights: how often it runs in each of several models; empty for one model. reuse_distance: bytes
    of weights that its model reads from one run of the task to the next; 0 for a task outside any
    model. apart: why the consumers of its results are not fused with it, where fusion decided so by
    cost. places: where the model computes it, in the order of a run.
    """

    name: str
    key: TaskKey
    workload: Workload
    weight: int
    mod: Any = field(repr=False, compare=False)
    weights: tuple[int, ...] = ()
    reuse_distance: int = field(default=0, compare=False)
    apart: tuple[str, ...] = field(default=(), compare=False)
    places: tuple[Place, ...] = field(default=(), compare=False, repr=False)

    @property
    def per_model(self) -> tuple[int, ...]:
        """How often it runs in each model, in their order; one entry for one model."""
        return self.weights or (self.weight,)

    @property
    def title(self) -> str:
        """One line that says what it computes."""
        return self.workload.title

    @property
    def flops(self) -> float:
        """Floating point operations of one run."""
        return self.workload.flops

    def roofline(self, target: Target) -> float:
        """Seconds that one run takes at the target's peak or bandwidth, whichever is longer."""
        return roofline(self.workload.flops, self.workload.bytes, target)
