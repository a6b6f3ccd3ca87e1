"""What a command is asked to do with a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .model.batches import Span, Value, asked, shapes_of, span_of, with_rows

if TYPE_CHECKING:
    from .registry.layers import Layer
    from .target import Target


Shapes = dict[str, tuple[int | Span | Value, ...]]  # of inputs by their names, or numbers


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

ENGINES = ("onnxruntime", "openvino")  # that a library may be timed beside


PATIENCE = 2
LITTLE_PATIENCE = 1


@dataclass(frozen=True)
class Objective:
    """What a tuning run of one or several models makes small (Ansor, table 2); this one is f1.

    With D_j the latency of model j, in seconds (the sum over its tasks of weight x best latency),

        f1 "latency"      sum D_j
        f2 "goal"         sum max(D_j, L_j)                with a goal L_j, in seconds, a model
        f3 "speedup"      -(product B_j / D_j) ^ (1 / m)   with a reference B_j, over m models
        f4 "early-stop"   sum of weight x max(g_i, ES_i)   over the tasks: f1, but ES_i, once task i
                          stops improving, is the latency that it has reached, and no gain counts

    The task scheduler follows their derivatives in each task's latency g_i. By the chain rule that
    is the sum over models of weight x df/dD_j, which `slopes` gives in closed form.

    name: for `--objective`. patience: batches without improvement after which a task is left.
    """

    name: str = "latency"
    patience: int = PATIENCE

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """The derivative in each model's latency, zero where a gain would count for nothing.

        latencies: of the models, in seconds, in the order of the plan.
        """
        return (1.0,) * len(latencies)

    def of_model(self, number: int) -> Objective:
        """The same for one of the models alone."""
        return self


@dataclass(frozen=True)
class Goal(Objective):
    """f2: no gain below a model's goal. goals: seconds a model; 0 where it has none."""

    name: str = "goal"
    goals: tuple[float, ...] = ()

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """One until the goal is reached, then zero."""
        return tuple(float(d > g) for d, g in zip(latencies, self.goals, strict=True))

    def of_model(self, number: int) -> Objective:
        """Its goal."""
        return replace(self, goals=(self.goals[number],))


@dataclass(frozen=True)
class Speedup(Objective):
    """f3: the negative geometric mean of the speed-ups, relative to one second a model.

    Other references would scale all slopes alike, and never decide which task is next.
    """

    name: str = "speedup"

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """-f / (m D_j): halving a quick model is worth as much as halving a slow one."""
        mean = math.prod(latencies) ** (-1 / len(latencies)) / len(latencies)
        return tuple(mean / latency for latency in latencies)


def make_objective(name: str, goals: Sequence[float] = ()) -> Objective:
    """The objective called so, one of OBJECTIVES. goals: seconds a model, for "goal"."""
    return Goal(goals=tuple(goals)) if name == "goal" else _BY_NAME[name]


_BY_NAME = {
    "latency": Objective(),
    "goal": Goal(),
    "speedup": Speedup(),
    "early-stop": Objective("early-stop", LITTLE_PATIENCE),
}
OBJECTIVES = tuple(_BY_NAME)


@dataclass(frozen=True)
class Limits:
    """What a library may take, in bytes; None: no limit.

    size: of its file. memory: of a process that loads and runs it, beside the runtime.
    """

    size: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Tolerance:
    """What a user allows of an output instead of what rounding explains.

    An element is right if |a - e| <= atol + rtol x |e|.
    """

    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Calibration:
    """That a float model is to be quantised, and by what.

    samples: of its inputs, an archive or a folder. keep_float: names of layers that stay as they
    are.
    """

    samples: Path
    keep_float: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outputs:
    """What a build is asked to write.

    library: its path; the manifest and the provenance lie beside it. header: whether a C header
    does, too. depfile: where make and Ninja read what the library depends on; None for nowhere.
    report: where what there is to say of it is to be.
    """

    library: Path
    header: bool = False
    depfile: Path | None = None
    report: Path | None = None

    @property
    def elsewhere(self) -> tuple[Path, ...]:
        """What has a name of its own."""
        return tuple(path for path in (self.depfile, self.report) if path)


@dataclass(frozen=True)
class Request:
    """What every command that touches a model needs to know.

    registry: path of the SQLite file. input_shapes: static shapes of inputs, by name; several
    of these where one library is to take several.
    search: name of the search ("ansor" or "metaschedule"). seed: of the search and of the
    inputs that are verified.
    rules: files of derivation rules that are asked before the shipped ones.
    objective: what tuning makes small, of all models together.
    farm: address of a Dask scheduler whose workers build the candidates, or tune on machines that
    they reach; "" for this machine.
    devices: names of those that run the code; none for this machine. finds_devices: where none is
    named, those that are registered for the target run it.
    lock: file of the records that a build uses; written, or, if frozen, all that it may use.
    reuse: "exact", or "near" where a neighbour's schedule, made to fit, serves instead of tuning.
    retune: names of tasks, or beginnings of their keys, that are tuned again; "all" for every one.
    layers: records of others that a build may use beyond the registry's own, the lowest first.
    sources: files that the target and the settings were read from.
    limits: what the library may take; a build that exceeds them writes nothing.
    remake: the command that writes the lock, for messages.
    precision: "default", or "strict" where no computation may be replaced by one of other products.
    verify: whether the library, or what stands in for it, is compared with ONNX Runtime.
    tolerances: what the user allows of outputs, by their names; "" for all others.
    beside: the engine that a library which runs here is timed beside, of `ENGINES`; "" for none.
    calibration: by what the model is quantised before all else; None where it is built as it is.
    codes: of a library with code for several targets all of them, the most demanding first, the
    request's own among them: the one that this machine would run.
    context: rows that the library's caches have room for; 0 where the model decides that.
    require_hits: whether a task that matters has to have a record already; nothing is tuned then.
    read_only: whether the registry stays as it is; what is learnt is forgotten at the end.
    preset: what the library is used for, by which threads and streams are chosen; "" for neither.
    """

    target: Target
    registry: Path
    budget: Budget = field(default_factory=Budget)
    input_shapes: tuple[Shapes, ...] = ({},)
    search: str = "ansor"
    seed: int = 0
    rules: tuple[Path, ...] = ()
    objective: Objective = field(default_factory=Objective)
    farm: str = ""
    devices: tuple[str, ...] = ()
    finds_devices: bool = False
    lock: Path | None = None
    frozen: bool = False
    reuse: str = "exact"
    retune: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    sources: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    remake: str = "ansor-deploy tune MODEL --lock FILE"
    precision: Literal["default", "strict"] = "default"
    verify: bool = True
    tolerances: tuple[tuple[str, Tolerance], ...] = ()
    beside: str = ""
    calibration: Calibration | None = None
    codes: tuple[Target, ...] = ()
    context: int = 0
    require_hits: bool = False
    read_only: bool = False
    preset: Literal["", "latency", "throughput"] = ""

    @property
    def others(self) -> tuple[Request, ...]:
        """A request for each of the other codes, which finds records and tunes nothing."""
        untuned = replace(self.budget, trials=0)
        others = [one for one in self.codes if one.fingerprint != self.target.fingerprint]
        return tuple(replace(self, target=one, codes=(), budget=untuned) for one in others)

    @property
    def shapes_json(self) -> Any:
        """The shapes as JSON: of each input its own, or a list of these where there are several."""
        listed = [{name: asked(one) for name, one in each.items()} for each in self.input_shapes]
        return listed if len(listed) > 1 else listed[0]

    @property
    def first_shapes(self) -> dict[str, tuple[int, ...]]:
        """The first of the shapes: of a range of batches, with the least."""
        first = shapes_of(self.input_shapes[0])
        span = span_of(first)
        return with_rows(first, span.least if span else 0)

    @property
    def allowed(self) -> dict[str, dict[str, float]]:
        """The tolerances as JSON."""
        return {name: asdict(one) for name, one in self.tolerances}

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that were named or found, but the registry: of changes to it a build asks."""
        return (*([self.lock] if self.lock else []), *self.sources, *self.rules)
