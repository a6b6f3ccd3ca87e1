"""What the commands on models and libraries print with `--json`."""

from typing import Literal

from msgspec import Struct

from ..model.graph.places import Node
from ..ship.manifest import (
    Bytes,
    Count,
    Digest,
    Errors,
    Interval,
    Manifest,
    Memory,
    Ms,
    Race,
    Ratio,
    RecordId,
    Seconds,
    Shape,
    Share,
    Tuned,
    Verdict,
    Verified,
)
from ..ship.race import changes
from ..ship.race.node_groups import Group
from ..system.other_work import OtherWork
from .registry import ModelTotals


class NodeErrors(Struct):
    """The largest errors of a tensor that shows what a node computes."""

    name: str
    op: str
    tensor: str
    ok: bool
    max_abs_err: float | None
    max_rel_err: float | None


class Compared(Errors, frozen=True):
    """`verify --json`. wrong: by output, what is wrong of it. nodes: with --by-node."""

    wrong: dict[str, str]
    nodes: list[NodeErrors] | None


class Build(Tuned, frozen=True):
    """`build --json`. up_to_date: there was nothing to do."""

    artifact: str
    manifest: str
    outputs: list[str]
    up_to_date: bool
    shipped: Literal["tuned", "untuned"]
    tuned_ms: Ms | None
    untuned_ms: Ms | None
    ratio: Ratio | None
    interval: Interval | None
    pairs: Count | None
    verdict: Verdict | Literal["same"] | None
    seen: OtherWork | None
    verify: Errors | None
    verification: Verified
    ran_on: str | None
    memory: Memory


class Round(Struct):
    """One decision of the tuning's scheduler, and what came of it."""

    task: str
    title: str
    key: Digest
    trials: Count
    why: str
    best_ms: Ms | None
    end_to_end_ms: Ms | None


class Tune(Tuned, frozen=True):
    """`tune --json`."""

    rounds: list[Round]


class Neighbour(Struct):
    """A task that was tuned and differs in its sizes alone. distance: in doublings."""

    key: Digest
    name: str
    shapes: list[Shape]
    distance: float
    target: Digest


class PlannedTask(Struct):
    """A task of a plan. trials: at most, of it. reason: why its search is not over."""

    name: str
    title: str
    key: Digest
    op: str
    weight: Count
    status: Literal["hit", "near", "miss", "skip"]
    reason: str
    latency_ms: Ms
    impact: Share
    trials: Count
    record: Digest | None
    neighbours: list[Neighbour]


class Plan(Struct):
    """`plan --json`. memory: of each model. seconds: that its trials take, about.

    others: operators of nodes whose kernels are no task, and are in no other figure.
    """

    models: list[str]
    target: str
    devices: list[str]
    tasks: list[PlannedTask]
    hits: Count
    near: Count
    misses: Count
    skipped: Count
    stale: Count
    trials: Count | None
    seconds: Seconds | None
    latency_ms: Ms
    memory: list[Memory]
    others: list[str]


class Bench(Struct):
    """`bench --json` of a library for one shape. per_second: runs of all streams."""

    median_ms: Ms
    p10_ms: Ms
    p90_ms: Ms
    p99_ms: Ms
    per_second: float
    runs: Count
    beside: list[Race] = []


class BenchVariant(Bench, kw_only=True):
    """The same for one of several shapes. inputs: their shapes, by name."""

    inputs: dict[str, Shape]


class BenchVariants(Struct):
    """`bench --json` of a library for several shapes."""

    variants: list[BenchVariant]


class KernelTime(Struct):
    """A kernel in its place in a run; the task's fields are null for a kernel that is no task's."""

    symbol: str
    name: str
    shapes: list[Shape]
    ms: Ms
    share: Share
    title: str | None
    op: str
    key: Digest | None
    record: RecordId | None
    flops: float | None
    bytes: float | None
    nodes: list[Node]


class NodeGroup(Group, frozen=True):
    """Nodes of the model by name, that kernels, by their places, and an engine's parts compute."""

    ratio: float | None


class ProfileBeside(Struct):
    """Another engine's profile of the same model, its profiler on."""

    peer: str
    groups: list[NodeGroup]


class Profile(Struct, kw_only=True):
    """`profile --json` of a library for one shape. rest_ms: outside the kernels."""

    latency_ms: Ms
    rest_ms: float
    kernels: list[KernelTime]
    beside: ProfileBeside | None = None


class ProfileVariant(Profile, kw_only=True):
    """The same for one of several shapes."""

    inputs: dict[str, Shape]


class ProfileVariants(Struct):
    """`profile --json` of a library for several shapes."""

    variants: list[ProfileVariant]


class TaskChange(changes.TaskChange, frozen=True):
    """A task of two libraries. before, after: its records, null where a library lacks it."""

    what: Literal["new", "gone", "same", "tuned", "untuned", "other schedule"]


class Compare(Struct):
    """`compare --json`. same: every byte. bytes: before and after. failed: of --fail-if-slower.

    explanation: why the tasks' times and the race do not agree; empty where they do.
    """

    same: bool
    beside: Race | None
    bytes: dict[str, tuple[int, int]]
    made_by: list[changes.MadeBy]
    tasks: list[TaskChange]
    explanation: str
    failed: bool


class Check(Struct):
    """One thing that was looked at. remedy: empty where all is well."""

    name: str
    level: Literal["ok", "warn", "FAIL"]
    found: str
    remedy: str


class Checks(Struct):
    """`verify --json` of a library alone, and `doctor --json`."""

    ok: bool
    checks: list[Check]


class Rebuilt(Struct):
    """`verify --rebuild --json`. same: whether a file has the same bytes, by its name."""

    ok: bool
    same: dict[str, bool]


class Curve(Struct):
    """A best latency over the trials. points: trials and milliseconds."""

    key: str
    title: str
    points: list[tuple[float, float]]


class Tuning(Struct):
    """A model's tuning curve, and those of its tasks. seconds: when each trial had been made."""

    model: Curve
    seconds: list[float]
    tasks: list[Curve]


class Report(Struct):
    """`report --json`. reused: tasks that other models have, too, by their names."""

    report: str
    artifact: str
    manifest: Manifest
    profile: Profile | None
    tuning: Tuning | None
    reused: dict[str, Count]
    saved: ModelTotals | None


class Written(Struct):
    """A file of a package."""

    file: str
    bytes: Bytes


class Package(Written, rename={"for_": "for"}):
    """`package --json`. glibc: the oldest that it runs with."""

    sha256: Digest
    for_: Literal["c", "python"]
    arch: str
    glibc: str
    files: list[Written]


class OutputSummary(Struct):
    """An output of a run: its numbers in short."""

    name: str
    shape: Shape
    dtype: str
    min: float | None
    max: float | None
    mean: float | None


class Run(Struct):
    """`run --json`. files: that were written."""

    outputs: list[OutputSummary]
    files: list[str]


class Named(Struct):
    """A target by its name."""

    name: str
    path: str
    description: str


class Targets(Struct):
    """`targets list --json`."""

    targets: list[Named]


class Message(Struct):
    """A line on stderr with `--message-format json`. code: the exit code, of an error."""

    level: Literal["warning", "error"]
    message: str
    hint: str
    file: str | None
    line: int | None
    code: int | None
