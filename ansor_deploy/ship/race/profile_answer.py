"""A library's profile for programs: what `profile --json` and a report say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from ...model.graph.places import Node
from ...system.json_types import Digest, Ms, Shape, Share
from ..manifest import RecordId
from .node_groups import Group

if TYPE_CHECKING:
    from ...runtime import profile


class KernelTime(Struct, frozen=True, kw_only=True):
    """A kernel in its place in a run; the task's fields are null for a kernel that is no task's."""

    symbol: str
    name: str
    shapes: Sequence[Shape]
    ms: Ms
    share: Share
    title: str | None
    op: str
    key: Digest | None
    record: RecordId | None
    flops: float | None
    bytes: float | None
    nodes: Sequence[Node]


class ProfileBeside(Struct, frozen=True):
    """Another engine's profile of the same model, its profiler on."""

    peer: str
    groups: list[Group]


class Profile(Struct, frozen=True, kw_only=True):
    """`profile --json` of a library for one shape. rest_ms: outside the kernels."""

    latency_ms: Ms
    rest_ms: float
    kernels: list[KernelTime]
    beside: ProfileBeside | UnsetType = UNSET


class ProfileVariant(Profile, frozen=True, kw_only=True):
    """The same for one of several shapes."""

    inputs: dict[str, Shape]


class ProfileVariants(Struct, frozen=True):
    """`profile --json` of a library for several shapes."""

    variants: list[ProfileVariant]


_OF_TASK = ("title", "key", "record", "flops", "bytes")


def answer(times: profile.Profile) -> Profile:
    """What a profile says."""
    kernels = [_kernel(kernel, times.seconds) for kernel in times.kernels]
    return Profile(latency_ms=times.seconds * 1e3, rest_ms=times.rest * 1e3, kernels=kernels)


def _kernel(kernel: profile.KernelTime, whole: float) -> KernelTime:
    return KernelTime(
        symbol=kernel.symbol,
        name=kernel.name,
        shapes=kernel.shapes,
        ms=kernel.seconds * 1e3,
        share=kernel.seconds / whole,
        op=kernel.op,
        **{name: (kernel.task or {}).get(name) for name in _OF_TASK},
        nodes=[Node(**node) for node in kernel.nodes],
    )
