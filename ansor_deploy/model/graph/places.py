"""Where a model computes what a library has kernels for: in which of its shapes, by which nodes."""

from typing import Annotated

from msgspec import Meta, Struct


class Node(Struct, frozen=True):
    """A node of the model. name: its own, or that of its first output if it has none."""

    name: str
    op: str


class Place(Struct, frozen=True):
    """Where a model computes a task. shape: the number of the model's shape, from 0."""

    shape: Annotated[int, Meta(ge=0, le=2**53)]
    nodes: tuple[Node, ...]
