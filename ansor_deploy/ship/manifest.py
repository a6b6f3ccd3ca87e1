"""The manifest of a library, NAME.json beside NAME.so, which builds write and commands read.

Each class is a JSON object as it is written, read and published. A field with a default may be
missing; `X | None` may be null. Anyone may have changed the file, so types and bounds are checked
when it is read. The runtime has no msgspec: it reads plain JSON (`runtime/manifest_json.py`), and
`to_json` gives it the same.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, structs, to_builtins

from ..model.batches import AskedShape, Batch, Span, Value, read_shape
from ..model.graph.places import Place
from ..model.ranges import Range
from ..registry.record import TaskKey
from ..runtime.manifest_json import manifest_path, no_manifest, read_json
from ..system.json_types import Bytes, Cores, Count, Digest, Ms, Name, Ratio, Shape, Share
from ..system.other_work import OtherWork
from ..target import Target as Machine
from ..target import built_for
from ..tune.result import Tuned
from .context import Context
from .preset import Preset

RecordId = Annotated[
    str, Meta(max_length=4096, description="a record's id, or default for the default schedule")
]
Interval = Annotated[
    tuple[float, float], Meta(description="where the ratio is, with 99% confidence")
]
Verdict = Literal["faster", "slower", "as fast", "cannot say"]
UNTUNED = "untuned"  # the peer in the race that decides what is shipped


class Tensor(Struct, frozen=True, omit_defaults=True):
    """An input or an output.

    lengths: where a run decides how much of an output counts, pairs of an axis and the output that
    holds the length along it; the shape is the room then.
    """

    name: Name
    shape: Shape
    dtype: Name
    lengths: tuple[tuple[Annotated[int, Meta(ge=0)], Name], ...] = ()


class Interface(Struct, frozen=True, kw_only=True):
    """The inputs and outputs of a library in one of its shapes."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def input_shapes(self) -> dict[str, Shape]:
        """The inputs' shapes by their names."""
        return {one.name: one.shape for one in self.inputs}


class File(Struct, frozen=True):
    """A file that went into a build."""

    file: Name
    sha256: Digest


class Output(File, frozen=True):
    """A file that a build wrote."""

    bytes: Bytes


class Model(Struct, frozen=True):
    """The model of a library. digest: of its contents, external data included."""

    name: Name
    digest: Digest
    sha256: Digest
    external: tuple[File, ...]
    input_shapes: dict[str, AskedShape] | tuple[dict[str, AskedShape], ...]

    @property
    def shapes(self) -> tuple[dict[str, tuple[int | Span | Value, ...]], ...]:
        """The shapes that were asked for, and the values of inputs that are fixed for all runs."""
        known = self.input_shapes
        listed = (known,) if isinstance(known, dict) else known
        return tuple({name: read_shape(one) for name, one in each.items()} for each in listed)


class Lender(Struct, frozen=True):
    """The task, and the target's fingerprint, from which a schedule was borrowed."""

    key: Digest
    target: Digest


class Task(Struct, frozen=True, kw_only=True):
    """A task of a library. weight: how often it occurs. impact: its share of the time.

    byte_products: how many int8 multiply-adds it does.
    """

    key: Digest
    name: Name
    title: str
    op: Name
    record: RecordId
    weight: Count
    flops: float
    bytes: float
    impact: Share | None
    latency_ms: Ms | None
    fallback: str | None
    rewriting: str | None
    lender: Lender | None
    places: tuple[Place, ...]
    byte_products: float = 0.0


class Kernel(Struct, frozen=True):
    """A symbol of a library, and the task that it computes."""

    symbol: Name
    name: Name
    task: Digest | None


class OtherPlace(Place, frozen=True):
    """A place where a model computes something that is no task. kernels: their symbols."""

    kernels: tuple[str, ...]


class Gpu(Struct, frozen=True):
    """What a CUDA device allows."""

    arch: Name
    max_threads_per_block: Count
    warp_size: Count
    shared_bytes_per_block: Bytes
    registers_per_block: Count
    sms: Count


class Target(Struct, frozen=True, kw_only=True):
    """A machine. A frozen build's manifest leaves out its peak and bandwidth."""

    name: Name
    kind: Literal["llvm", "cuda"]
    triple: Name
    cpu: Name
    features: tuple[Name, ...]
    cores: Cores
    vector_bytes: Bytes
    vector_registers: Count
    l1_bytes: Bytes
    l2_bytes: Bytes
    l3_bytes: Bytes
    cache_line_bytes: Bytes
    peak_gflops: float | None
    memory_gbs: float | None
    description: str
    gpu: Gpu | None
    fingerprint: Digest

    @classmethod
    def of(cls, machine: Machine) -> Target:
        """The manifest's entry of a machine."""
        gpu = Gpu(**asdict(machine.gpu)) if machine.gpu else None
        return cls(**{**vars(machine), "gpu": gpu, "fingerprint": machine.fingerprint})

    @property
    def machine(self) -> Machine:
        """The machine; without the figures for estimates if the build was frozen."""
        return built_for({"target": to_builtins(self)})


class Memory(Struct, frozen=True):
    """The memory that a library takes."""

    library: Bytes
    weights: Bytes
    workspace: Bytes
    peak: Bytes


class Allowed(Struct, frozen=True):
    """The allowed difference of an element: rtol times its size, plus atol."""

    rtol: float
    atol: float


class Verified(Struct, frozen=True):
    """Whether and where outputs were compared with ONNX Runtime's, or else why not.

    allowed: by output, the difference that the user allowed; "" stands for all others.
    """

    verified: bool
    where: str | None
    reason: str | None
    allowed: dict[str, Allowed]


# The entry where --no-verify was given.
UNVERIFIED = Verified(verified=False, where=None, reason="asked for by --no-verify", allowed={})
# The entry of code that this machine's processor cannot run, in a library with code that it can.
UNTRIED = structs.replace(UNVERIFIED, reason="its instructions are not here")


class Errors(Struct, frozen=True):
    """The largest differences from the oracle's outputs. max_rel_err: relative to output scales.

    exact: the outputs that equal the network's integers evaluated in NumPy, bit for bit, and such
    tensors that are read where floats are computed (`may_differ`).
    """

    ok: bool
    max_abs_err: float | None
    max_rel_err: float | None
    oracle: str
    seed: int
    exact: tuple[Name, ...] = ()


class Race(Struct, frozen=True):
    """A library timed in turns with another engine or library. ratio: ours to theirs.

    ours_ms, theirs_ms: a run of each, in the first of several shapes. seen: other work that the
    machine did; null where that was not observed.
    """

    peer: str
    ours_ms: Ms
    theirs_ms: Ms
    ratio: Ratio
    interval: Interval | None
    turns: Count
    verdict: Verdict
    seen: OtherWork | None

    def at(self, ours_ms: float) -> Race:
        """The same race, scaled to a time of our run that was measured elsewhere."""
        return structs.replace(self, ours_ms=ours_ms, theirs_ms=ours_ms / self.ratio)


class Speed(Struct, frozen=True):
    """The times of the tuned and the untuned library. records: digest of the records used.

    latency_ms: a run of the shipped one in the first shape; shapes_ms: in each. tuned_ms and
    untuned_ms: in the first shape; the ratio is over all shapes.
    verdict: same where both have the same bytes, null where no race was run.
    """

    latency_ms: Ms
    shapes_ms: tuple[Ms, ...]
    tuned_ms: Ms
    untuned_ms: Ms
    ratio: Ratio
    interval: Interval | None
    pairs: Count
    verdict: Verdict | Literal["same"] | None
    seen: OtherWork | None
    beside: Race | None
    records: Digest

    @classmethod
    def alone(cls, shapes_ms: tuple[float, ...], *, same: bool = False) -> Speed:
        """The times of a library that ran no race. same: the untuned one has the same bytes."""
        first = shapes_ms[0]
        verdict: Literal["same"] | None = "same" if same else None
        return cls(first, shapes_ms, first, first, 1.0, None, 0, verdict, None, None, "")

    @classmethod
    def raced(cls, shapes_ms: tuple[float, ...], race: Race) -> Speed:
        """The times of a race with the untuned library. shapes_ms: those of the shipped one."""
        figures = (race.ours_ms, race.theirs_ms, race.ratio, race.interval, race.turns)
        return cls(shapes_ms[0], shapes_ms, *figures, race.verdict, race.seen, None, "")

    @property
    def race(self) -> Race | None:
        """The race with the untuned library; None where there was none."""
        if self.verdict is None or self.verdict == "same":
            return None
        figures = (self.tuned_ms, self.untuned_ms, self.ratio, self.interval, self.pairs)
        return Race(UNTUNED, *figures, self.verdict, self.seen)


class Code(Struct, frozen=True):
    """The code of a library for one of its targets, where it has several.

    may_differ: for a quantised network, the places where another processor may give other bytes.
    """

    target: Target
    tasks: tuple[Task, ...]
    kernels: tuple[Kernel, ...]
    others: tuple[OtherPlace, ...]
    memory: Memory
    verification: Verified
    lenders: Digest | None
    may_differ: tuple[Place, ...] | None = None


class Draft(Interface, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about a library before its files are in place."""

    format: int
    tool: Name
    tvm: Name
    linker: Name
    identity: Digest
    model: Model
    precision: Literal["default", "strict"]
    rules: tuple[File, ...]
    variants: tuple[Interface, ...] | None
    context: Context | None = None
    target: Target
    tasks: tuple[Task, ...]
    kernels: tuple[Kernel, ...]
    others: tuple[OtherPlace, ...]
    shipped: Literal["tuned", "untuned"]
    ran_on: Name | None
    verification: Verified
    verify: Errors | None
    speed: Speed | None
    memory: Memory
    tuning: Tuned | None
    lock: Digest | None
    lenders: Digest | UnsetType | None = UNSET
    codes: tuple[Code, ...] | None = None
    may_differ: tuple[Place, ...] | None = None
    batch: Batch | None = None
    preset: Preset | None = None
    ranges: tuple[Range, ...] = ()
    labels: dict[Name, tuple[int | str, ...]] = {}

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """The inputs and outputs of the library in each of its shapes."""
        return self.variants or (self,)

    def keys(self, target: Machine) -> list[TaskKey]:
        """The keys of its tasks on a target, in the manifest's order."""
        return [TaskKey(task.key, target.fingerprint) for task in self.tasks]

    def to_json(self) -> dict[str, Any]:
        """The JSON object that is written."""
        made: dict[str, Any] = to_builtins(self)
        return made


class Manifest(Draft, frozen=True, kw_only=True):
    """NAME.json beside NAME.so."""

    artifact: Output
    header: Output | None

    @classmethod
    def of(cls, draft: Draft, artifact: Output, header: Output | None) -> Manifest:
        """The manifest of a library whose files are in place."""
        known = {name: getattr(draft, name) for name in Draft.__struct_fields__}
        return cls(**{**known, "artifact": artifact, "header": header})


def read_manifest(artifact: Path) -> Manifest:
    """The manifest of a library; AnsorError if it is missing, incomplete or invalid."""
    try:
        return convert(read_json(artifact), Manifest)
    except (ValidationError, UnicodeEncodeError) as error:  # the latter for a lone surrogate
        raise no_manifest(artifact, str(error)) from error


def header_path(artifact: Path) -> Path:
    """The path of a library's C header: the same name with .h."""
    return artifact.with_suffix(".h")


def provenance_path(artifact: Path) -> Path:
    """The path of a library's provenance statement: the same name with .intoto.json."""
    return artifact.with_suffix(".intoto.json")


def output_paths(artifact: Path, *, header: bool) -> list[Path]:
    """All files of a build, the manifest last. header: whether a C header is one."""
    headers = [header_path(artifact)] if header else []
    return [artifact, *headers, provenance_path(artifact), manifest_path(artifact)]


def json_bytes(value: dict[str, Any]) -> bytes:
    """A JSON object as it is written: equal objects give equal bytes."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
