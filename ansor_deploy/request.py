"""The request: what a command should do with a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .model.batches import Span, Value, asked, shapes_of, span_of, with_rows

if TYPE_CHECKING:
    from .registry.layer import Layer
    from .target import Target


Shapes = dict[str, tuple[int | Span | Value, ...]]  # shapes, or values, of inputs by their names


@dataclass(frozen=True)
class Budget:
    """What a run may spend.

    trials: most measured candidates in all (None: no limit but `per_task`; 0: no tuning). seconds:
    of tuning, wall clock (None: no limit). per_task: most trials of one unique task. min_impact:
    tasks with a smaller share of the end-to-end time are not tuned.
    """

    trials: int | None = None
    seconds: float | None = None
    per_task: int = 64
    min_impact: float = 0.005


# The budgets of `--effort`: how long one task is searched, and which tasks are worth it.
EFFORTS = {
    "quick": Budget(per_task=16, min_impact=0.02),
    "normal": Budget(),
    "thorough": Budget(per_task=512, min_impact=0.0),
}

ENGINES = ("onnxruntime", "openvino")  # engines that a library can be timed beside


PATIENCE = 2  # batches without improvement after which a task is left
LITTLE_PATIENCE = 1  # the same for the objective "early-stop"


@dataclass(frozen=True)
class Objective:
    """What a tuning run of one or several models minimises (Ansor, table 2); this class is f1.

    With D_j the latency of model j, in seconds (the sum over its tasks of weight x best latency),

        f1 "latency"      sum D_j
        f2 "goal"         sum max(D_j, L_j)                with a goal L_j, in seconds, a model
        f3 "speedup"      -(product B_j / D_j) ^ (1 / m)   with a reference B_j, over m models
        f4 "early-stop"   sum of weight x max(g_i, ES_i)   over the tasks: f1, but ES_i, once task i
                          stops improving, is the latency that it has reached, and no gain counts

    The task scheduler follows their derivatives in each task's latency g_i. By the chain rule that
    is the sum over models of weight x df/dD_j, which `slopes` gives in closed form.

    name: its name for `--objective`. patience: batches without improvement after which a task is
    left.
    """

    name: str = "latency"
    patience: int = PATIENCE

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """The derivative in each model's latency, zero where a gain would not count.

        latencies: the models' latencies, in seconds, in the order of the plan.
        """
        return (1.0,) * len(latencies)

    def of_model(self, number: int) -> Objective:
        """The same objective for only one of the models."""
        return self


@dataclass(frozen=True)
class Goal(Objective):
    """f2: a gain below a model's goal does not count. goals: each model's, seconds; 0 for none."""

    name: str = "goal"
    goals: tuple[float, ...] = ()

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """One until the goal is reached, then zero."""
        return tuple(float(d > g) for d, g in zip(latencies, self.goals, strict=True))

    def of_model(self, number: int) -> Objective:
        """The objective with only that model's goal."""
        return replace(self, goals=(self.goals[number],))


@dataclass(frozen=True)
class Speedup(Objective):
    """f3: the negative geometric mean of the speed-ups, relative to one second for each model.

    Other references would scale all slopes alike and not change which task is next.
    """

    name: str = "speedup"

    def slopes(self, latencies: Sequence[float]) -> tuple[float, ...]:
        """-f / (m D_j): halving a fast model is worth as much as halving a slow one."""
        mean = math.prod(latencies) ** (-1 / len(latencies)) / len(latencies)
        return tuple(mean / latency for latency in latencies)


def make_objective(name: str, goals: Sequence[float] = ()) -> Objective:
    """The objective with this name, one of OBJECTIVES. goals: each model's seconds, for "goal"."""
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
    """The most that a library may take, in bytes; None: no limit.

    size: of its file. memory: of a process that loads and runs it, without the runtime.
    """

    size: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Tolerance:
    """The error that a user allows for an output, instead of the bound that rounding explains.

    An element is right if |a - e| <= atol + rtol x |e|.
    """

    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Calibration:
    """How to quantise a float model.

    samples: an archive or a folder with samples of its inputs. keep_float: names of layers that
    stay float.
    """

    samples: Path
    keep_float: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outputs:
    """The files that a build should write.

    library: its path; the manifest and the provenance lie beside it. header: whether to write a C
    header beside it. depfile: the file in which make and Ninja read the library's dependencies;
    None for none. report: the path of the report; None for none.
    """

    library: Path
    header: bool = False
    depfile: Path | None = None
    report: Path | None = None

    @property
    def elsewhere(self) -> tuple[Path, ...]:
        """The outputs with paths of their own."""
        return tuple(path for path in (self.depfile, self.report) if path)


@dataclass(frozen=True)
class Request:
    """What every command that works on a model needs to know.

    registry: path of the SQLite file. input_shapes: static shapes of inputs, by name; several
    dictionaries if one library should take several.
    search: name of the search ("ansor" or "metaschedule"). seed: of the search, and of the inputs
    for verification.
    rules: files of derivation rules that are asked before the shipped ones.
    objective: what tuning minimises, for all models together.
    farm: address of a Dask scheduler whose workers build candidates, or tune on machines that they
    can reach; "" for this machine.
    devices: names of the devices that run the code; () for this machine. finds_devices: whether the
    devices registered for the target run it where none is named.
    lock: file of the records that a build uses. It is written, or, if frozen, it is all that the
    build may use.
    reuse: "exact", or "near" where a neighbour's schedule, made to fit, serves instead of tuning.
    retune: tasks to tune again, by names or by beginnings of their keys; "all" for every one.
    layers: records of others that a build may use besides the registry's own, the lowest first.
    sources: files that the target and the settings were read from.
    limits: the most that the library may take; a build that exceeds them writes nothing.
    remake: the command that writes the lock, for messages.
    precision: "default", or "strict" to ask no rule that rewrites a computation.
    verify: whether the library, or its stand-in, is compared with ONNX Runtime.
    tolerances: the errors that the user allows for outputs, by their names; "" for all others.
    beside: the engine that a library which runs here is timed beside, of `ENGINES`; "" for none.
    calibration: how to quantise the model first; None to build it as it is.
    codes: all targets of a library with code for several, the most demanding first; the request's
    own target is the one of these that this machine would run.
    context: rows that the library's caches have room for; 0 where the model decides.
    require_hits: whether every task that matters must have a record already; nothing is tuned then.
    read_only: whether the registry stays unchanged; what is learnt is dropped at the end.
    preset: what the library is used for, which decides threads and streams; "" for neither.
    reduce: where to write a part of the model that is wrong by itself, if the numbers differ; None
    for nowhere.
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
    reduce: Path | None = None

    @property
    def others(self) -> tuple[Request, ...]:
        """A request for each of the other codes, which finds records and tunes nothing."""
        untuned = replace(self.budget, trials=0)
        others = [one for one in self.codes if one.fingerprint != self.target.fingerprint]
        return tuple(replace(self, target=one, codes=(), budget=untuned) for one in others)

    @property
    def shapes_json(self) -> Any:
        """The shapes as JSON: each input's shape by its name, or a list of such objects."""
        listed = [{name: asked(one) for name, one in each.items()} for each in self.input_shapes]
        return listed if len(listed) > 1 else listed[0]

    @property
    def first_shapes(self) -> dict[str, tuple[int, ...]]:
        """The first of the shapes; for a range of batches, with the smallest batch."""
        first = shapes_of(self.input_shapes[0])
        span = span_of(first)
        return with_rows(first, span.least if span else 0)

    @property
    def allowed(self) -> dict[str, dict[str, float]]:
        """The tolerances as JSON."""
        return {name: asdict(one) for name, one in self.tolerances}

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that were named or found, but the registry: a build looks up its changes."""
        return (*([self.lock] if self.lock else []), *self.sources, *self.rules)
