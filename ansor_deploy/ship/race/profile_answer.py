"""A library's profile for programs, as in `profile --json` and in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from ...model.graph.places import Node
from ...system.json_types import Digest, Ms, Shape, Share
from ..manifest import RecordId
from .node_groups import Group

if TYPE_CHECKING:
    from ...measure.roof import Roof
    from ...runtime import profile


class KernelTime(Struct, frozen=True, kw_only=True):
    """A kernel at its place in a run; the task's fields are null for a kernel without a task.

    byte_products: how many int8 multiply-adds it does. limit: the share of its time that its
    arithmetic, or the caches that can hold its tensors, need at least; null where unknown.
    """

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
    byte_products: float | None
    limit: float | None
    nodes: Sequence[Node]


class ProfileBeside(Struct, frozen=True):
    """Another engine's profile of the same model, measured with its profiler."""

    peer: str
    groups: list[Group]


class Profile(Struct, frozen=True, kw_only=True):
    """`profile --json` of a library for one shape. rest_ms: time outside the kernels.

    room_ms: the time beyond their limits of all kernels that have one.

    byte_gops: 10^9 operations a second that the run's threads reach with int8 multiply-adds, each
    counted as two operations; null where no kernel has any, or it was not measured.
    """

    latency_ms: Ms
    rest_ms: float
    room_ms: Ms
    byte_gops: float | None
    kernels: list[KernelTime]
    beside: ProfileBeside | UnsetType = UNSET


class ProfileVariant(Profile, frozen=True, kw_only=True):
    """The profile for one of several shapes."""

    inputs: dict[str, Shape]


class ProfileVariants(Struct, frozen=True):
    """`profile --json` of a library for several shapes."""

    variants: list[ProfileVariant]


_OF_TASK = ("title", "key", "record", "flops", "bytes", "byte_products")


def answer(times: profile.Profile, roof: Roof) -> Profile:
    """The answer for a profile. roof: that of the run's threads."""
    kernels = [_kernel(kernel, times.seconds, roof.share(kernel)) for kernel in times.kernels]
    return Profile(
        latency_ms=times.seconds * 1e3,
        rest_ms=times.rest * 1e3,
        room_ms=roof.room(times) * 1e3,
        byte_gops=roof.byte_gops,
        kernels=kernels,
    )


def _kernel(kernel: profile.KernelTime, whole: float, limit: float | None) -> KernelTime:
    return KernelTime(
        symbol=kernel.symbol,
        name=kernel.name,
        shapes=kernel.shapes,
        ms=kernel.seconds * 1e3,
        share=kernel.seconds / whole,
        op=kernel.op,
        limit=limit,
        **{name: (kernel.task or {}).get(name) for name in _OF_TASK},
        nodes=[Node(**node) for node in kernel.nodes],
    )
