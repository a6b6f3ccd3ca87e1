"""What a command is asked to do with a model, and what it then did."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .artifact.files import manifest_path, output_paths
from .objectives import Latency, Objective

if TYPE_CHECKING:
    from .registry.layers import Layer
    from .target import Target
    from .tune.scheduler import Round


@dataclass(frozen=True)
class Budget:
    """What a run may spend.

    trials: measured candidates in all (None: no limit but `per_task`; 0: no tuning).
    seconds: of tuning, wall clock (None: no limit). per_task: trials on one unique task.
    min_impact: share of the end-to-end time below which a task is left untuned.
    """

    trials: int | None = None
    seconds: float | None = None
    per_task: int = 64
    min_impact: float = 0.005


# What `--effort` means: how far one task is searched, and which tasks are worth it at all.
EFFORTS = {
    "quick": Budget(per_task=16, min_impact=0.02),
    "normal": Budget(),
    "thorough": Budget(per_task=512, min_impact=0.0),
}


@dataclass(frozen=True)
class Request:
    """What every command that touches a model needs to know.

    registry: path of the SQLite file. input_shapes: static shapes for dynamic inputs.
    search: name of the search ("ansor" or "metaschedule"). seed: of the search and of the
    inputs that are verified.
    rules: files of derivation rules that are asked before the shipped ones.
    objective: what tuning makes small, of all models together.
    farm: address of a Dask scheduler whose workers build the candidates; "" for this machine.
    devices: names of those that run the code; none for this machine.
    lock: file of the records that a build uses; written, or, if frozen, all that it may use.
    reuse: "exact", or "near" where a neighbour's schedule, made to fit, serves instead of tuning.
    retune: tasks that are searched again though their searches have ended: names or beginnings of
    keys, or "all" for every task.
    layers: whose records a build may use beyond the registry's own, the lowest first. indexes:
    registries with what is in them now.
    sources: files that the target and the settings were read from.
    header: whether a build writes a C header. depfile: where it writes what the library depends on.
    """

    target: Target
    registry: Path
    budget: Budget = field(default_factory=Budget)
    input_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    search: str = "ansor"
    seed: int = 0
    rules: tuple[Path, ...] = ()
    objective: Objective = field(default_factory=Latency)
    farm: str = ""
    devices: tuple[str, ...] = ()
    lock: Path | None = None
    frozen: bool = False
    reuse: str = "exact"
    retune: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    indexes: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()
    header: bool = False
    depfile: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that were named or found, but the registry: of changes to it a build asks."""
        return (*([self.lock] if self.lock else []), *self.sources, *self.rules)


@dataclass(frozen=True)
class TuneResult:
    """What a tuning run did. latency_ms: the models' estimated latency under their records.

    latencies_ms: of each model, in their order. rounds: the scheduler's decisions, in order.
    """

    tasks: int
    hits: int
    misses: int
    skipped: int
    trials: int
    tune_seconds: float
    latency_ms: float
    latencies_ms: tuple[float, ...] = ()
    rounds: tuple[Round, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The figures, as they stand in a manifest and in `build --json`."""
        details = ("latencies_ms", "rounds")
        return {name: value for name, value in self.__dict__.items() if name not in details}

    def with_rounds(self) -> dict[str, Any]:
        """As printed by `tune --json`."""
        return {**self.to_json(), "rounds": [decision.to_json() for decision in self.rounds]}


@dataclass(frozen=True)
class BuildResult:
    """What a build made. manifest: as in the file beside the library.

    up_to_date: it had nothing to do, and the figures are those of the build before.
    """

    artifact: Path
    manifest: dict[str, Any]
    tuned: TuneResult
    up_to_date: bool = False

    def to_json(self) -> dict[str, Any]:
        """As printed by `build --json`; where nothing was run, what a run would show is null."""
        speed = self.manifest["speed"] or {"latency_ms": None, "untuned_ms": None}
        return {
            "artifact": str(self.artifact),
            "manifest": str(manifest_path(self.artifact)),
            "outputs": [str(path) for path in output_paths(self.artifact, self.manifest)],
            "up_to_date": self.up_to_date,
            **self.tuned.to_json(),
            "latency_ms": speed["latency_ms"],
            "untuned_ms": speed["untuned_ms"],
            "verify": self.manifest["verify"],
            "ran_on": self.manifest["ran_on"],
        }
