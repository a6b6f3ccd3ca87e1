"""What a manifest must say for its readers to rely on it: anyone may have changed the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

_Name = Annotated[str, Meta(max_length=4096)]
_Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Number = float | None


class _Tensor(Struct):
    name: _Name
    shape: list[_Count]
    dtype: _Name


class _Interface(Struct):
    inputs: list[_Tensor]
    outputs: list[_Tensor]


class _File(Struct):
    file: _Name
    sha256: _Digest


class _Output(_File):
    bytes: _Count


class _Model(Struct):
    name: _Name
    digest: _Digest
    sha256: _Digest
    external: list[_File]
    input_shapes: Any


class _Node(Struct):
    name: str
    op: str


class _Place(Struct):
    shape: _Count
    nodes: list[_Node]


class _OtherPlace(_Place):
    kernels: list[str]


class _Task(Struct):
    key: _Digest
    name: _Name
    title: _Name
    op: _Name
    record: _Name
    weight: _Count
    impact: _Number
    latency_ms: _Number
    flops: _Number
    bytes: _Number
    places: list[_Place]


class _Kernel(Struct):
    symbol: _Name
    name: _Name
    task: _Digest | None


class _Target(Struct):
    """As `Target`, but that a frozen build leaves out what feeds estimates."""

    name: _Name
    kind: Literal["llvm", "cuda"]
    triple: _Name
    cpu: _Name
    cores: Annotated[int, Meta(ge=1, le=4096)]
    vector_bytes: _Count
    vector_registers: _Count
    l1_bytes: _Count
    l2_bytes: _Count
    l3_bytes: _Count
    cache_line_bytes: _Count
    features: list[_Name]
    description: str
    gpu: dict[str, int | str] | None
    peak_gflops: _Number
    memory_gbs: _Number


class _Code(Struct):
    target: _Target
    tasks: list[_Task]
    kernels: list[_Kernel]


class _Tuning(Struct):
    no_room: list[_Digest]


class _Memory(Struct):
    library: _Count
    weights: _Count
    workspace: _Count
    peak: _Count


class _Verification(Struct):
    verified: bool
    where: str | None
    reason: str | None
    allowed: dict[str, dict[str, float]]


class _Speed(Struct):
    latency_ms: float
    tuned_ms: float
    untuned_ms: float
    ratio: float
    interval: tuple[float, float] | None
    pairs: _Count
    verdict: str | None
    seen: dict[str, float] | None


class _Manifest(_Interface):
    artifact: _Output
    header: _Output | None
    identity: _Digest
    lock: _Digest | None
    model: _Model
    ran_on: _Name | None
    rules: list[_File]
    shipped: _Name
    speed: _Speed | None
    target: _Target
    tasks: list[_Task]
    tool: _Name
    tuning: _Tuning | None
    tvm: _Name
    verify: dict[str, Any] | None
    memory: _Memory
    kernels: list[_Kernel]
    others: list[_OtherPlace]
    variants: list[_Interface] | None
    verification: _Verification
    codes: list[_Code] | None = None


def fault(manifest: Any) -> str:
    """What is wrong with a manifest that was read, and where; "" if nothing is."""
    try:
        convert(manifest, _Manifest)
    except (ValidationError, UnicodeEncodeError) as error:  # the latter of a lone surrogate
        return str(error)
    return ""
