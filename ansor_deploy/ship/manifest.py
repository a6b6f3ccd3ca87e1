"""The manifest of a library, NAME.json beside NAME.so: what a build writes, and commands rely on.

Each class is a JSON object, as it is written, as it is read and as it is published. A field with a
default is not always there; `X | None` may be null. Anyone may have changed the file, so all that
is read has its type and its bounds. Where libraries only run there is no msgspec: what runs them
reads plain JSON (`runtime/manifest_json.py`), and gets it of `to_json`.
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
UNTUNED = "untuned"  # the peer in the race that says what is shipped


class Tensor(Struct, frozen=True, omit_defaults=True):
    """An input or an output.

    lengths: of an output of which a run decides how large it is, by axis, the output that holds how
    much of it counts; the shape is what it has room for.
    """

    name: Name
    shape: Shape
    dtype: Name
    lengths: tuple[tuple[Annotated[int, Meta(ge=0)], Name], ...] = ()


class Interface(Struct, frozen=True, kw_only=True):
    """What a library takes and gives in one shape."""

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
        """The shapes that were asked for, and numbers that inputs are in all runs."""
        known = self.input_shapes
        listed = (known,) if isinstance(known, dict) else known
        return tuple({name: read_shape(one) for name, one in each.items()} for each in listed)


class Lender(Struct, frozen=True):
    """Whose schedule a task has borrowed: a task, and a target by its fingerprint."""

    key: Digest
    target: Digest


class Task(Struct, frozen=True, kw_only=True):
    """A task of a library. weight: how often it occurs. impact: its share of the time.

    byte_products: how many products of bytes it adds up in integers.
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
    """Where a model computes what is no task. kernels: the symbols that compute it."""

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
        """What a manifest says of a machine."""
        gpu = Gpu(**asdict(machine.gpu)) if machine.gpu else None
        return cls(**{**vars(machine), "gpu": gpu, "fingerprint": machine.fingerprint})

    @property
    def machine(self) -> Machine:
        """The machine; of a frozen build without what feeds estimates."""
        return built_for({"target": to_builtins(self)})


class Memory(Struct, frozen=True):
    """What a library takes."""

    library: Bytes
    weights: Bytes
    workspace: Bytes
    peak: Bytes


class Allowed(Struct, frozen=True):
    """What an element may differ by: rtol of itself, and atol."""

    rtol: float
    atol: float


class Verified(Struct, frozen=True):
    """Whether and where numbers were compared with ONNX Runtime's, and else why not.

    allowed: by output, what the user let it differ by; "" for all others.
    """

    verified: bool
    where: str | None
    reason: str | None
    allowed: dict[str, Allowed]


# Where --no-verify was given.
UNVERIFIED = Verified(verified=False, where=None, reason="asked for by --no-verify", allowed={})
# Of code that this machine's processor cannot run, beside code that it can.
UNTRIED = structs.replace(UNVERIFIED, reason="its instructions are not here")


class Errors(Struct, frozen=True):
    """The largest errors beside the oracle's numbers. max_rel_err: of an output's scale.

    exact: the outputs that are, bit for bit, what the network's integers come to in NumPy, and what
    is read where floats are computed (`may_differ`).
    """

    ok: bool
    max_abs_err: float | None
    max_rel_err: float | None
    oracle: str
    seed: int
    exact: tuple[Name, ...] = ()


class Race(Struct, frozen=True):
    """A library beside another engine, or library, in turns. ratio: of ours to theirs.

    ours_ms, theirs_ms: a run of each; of several shapes, in the first. seen: what else the machine
    did; null where nobody looked.
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
        """The same race, with the time that a run of ours is said to take elsewhere."""
        return structs.replace(self, ours_ms=ours_ms, theirs_ms=ours_ms / self.ratio)


class Speed(Struct, frozen=True):
    """The times of the tuned and the untuned library. records: digest of the records used.

    latency_ms: a run of what is shipped, in the first shape; shapes_ms: in each. tuned_ms and
    untuned_ms: in the first shape; the ratio is for all of them.
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
        """Of a library that was raced with nothing. same: the untuned one has its bytes."""
        first = shapes_ms[0]
        verdict: Literal["same"] | None = "same" if same else None
        return cls(first, shapes_ms, first, first, 1.0, None, 0, verdict, None, None, "")

    @classmethod
    def raced(cls, shapes_ms: tuple[float, ...], race: Race) -> Speed:
        """Of a library that was raced with the untuned one. shapes_ms: of what is shipped."""
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

    may_differ: of a quantised network, where another processor may make other bytes.
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
    """What is known of a library before its files are in place."""

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
        """What the library takes and gives, in each of its shapes."""
        return self.variants or (self,)

    def keys(self, target: Machine) -> list[TaskKey]:
        """The keys of its tasks on a target, in its order."""
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
        """The manifest of a library whose files are there."""
        known = {name: getattr(draft, name) for name in Draft.__struct_fields__}
        return cls(**{**known, "artifact": artifact, "header": header})


def read_manifest(artifact: Path) -> Manifest:
    """The manifest of a library that is whole; AnsorError if it is not, or is none."""
    try:
        return convert(read_json(artifact), Manifest)
    except (ValidationError, UnicodeEncodeError) as error:  # the latter of a lone surrogate
        raise no_manifest(artifact, str(error)) from error


def header_path(artifact: Path) -> Path:
    """Where a library's C header lies: the same name with .h."""
    return artifact.with_suffix(".h")


def provenance_path(artifact: Path) -> Path:
    """Where the statement of what a library was made from lies: the same name with .intoto.json."""
    return artifact.with_suffix(".intoto.json")


def output_paths(artifact: Path, *, header: bool) -> list[Path]:
    """All files of a build, the manifest last. header: whether a C header is one."""
    headers = [header_path(artifact)] if header else []
    return [artifact, *headers, provenance_path(artifact), manifest_path(artifact)]


def json_bytes(value: dict[str, Any]) -> bytes:
    """A JSON object as it is written: one text for equal objects."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
