"""Random quantised graphs: what grows by segments, each of which makes integers of integers.

A segment is float operators between DequantizeLinear and QuantizeLinear, or one operator that takes
integers (`quantised_steps.py`). Scales and zero points are ordinary ones, and the oddest that ONNX
Runtime takes. It computes each node as it is added, which says what shapes there are, how large the
numbers become, and which nodes it does not take.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ansor_deploy.ship.verify.onnx_runtime import open_session

BYTES = (TensorProto.UINT8, TensorProto.INT8)
MICROSOFT = "com.microsoft"
MOST = 1 << 14  # elements of a tensor
_WORDS = (TensorProto.UINT16, TensorProto.INT16)
_ODD_SCALES = (1e-40, 1e-30, 1e30, 2.0**-7, 1.0)
_NORMAL = (1e-37, 1e37)
# Of the largest number of a segment: two right sums of float32 may differ by as much.
_FINEST = 2.0**-20


class RefusedError(Exception):
    """ONNX Runtime does not take a node, or makes of it what nobody can compare."""


@dataclass(frozen=True)
class Steps:
    """A tensor of integers, which stand for (q - zero) * scale. kind: its ONNX type."""

    name: str
    kind: int
    scale: float
    zero: int


@dataclass
class Segment:
    """What makes integers of integers. off: by how many steps two right results may differ."""

    nodes: list[NodeProto] = field(default_factory=list)
    read: list[Steps] = field(default_factory=list)
    made: list[Steps] = field(default_factory=list)
    off: int = 0


class Graph:
    """A graph that grows. values: of all its tensors. constants: the names of those that are."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.opset = self.chance.choice((17, 21))
        self.segments: list[Segment] = []
        self.values: dict[str, np.ndarray] = {}
        self.constants: list[str] = []
        self.inputs: list[Steps] = []

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.values[name].shape

    def input(self, shape: tuple[int, ...]) -> Steps:
        """A new input, of integers of some type."""
        made = self.steps(self.chance.uniform(0.5, 20), name=f"x{len(self.inputs)}")
        self.values[made.name] = self._integers(made.kind, shape)
        self.inputs.append(made)
        return made

    def constant(self, value: object, dtype: Any = np.int64) -> str:
        """The name of a constant."""
        name = f"k{len(self.values)}"
        self.values[name] = np.asarray(value, dtype)
        self.constants.append(name)
        return name

    def weights(self, *shape: int) -> str:
        """Some float32 numbers."""
        return self.constant(self.rng().standard_normal(shape), np.float32)

    def bytes(self, kind: int, *shape: int) -> str:
        """Some integers as a constant."""
        return self.constant(self._integers(kind, shape), helper.tensor_dtype_to_np_dtype(kind))

    def add(self, op: str, given: Iterable[str], domain: str = "", **how: Any) -> str:
        """Add a node with one output to the last segment; that output."""
        return self.several(op, given, 1, domain, **how)[0]

    def several(
        self, op: str, given: Iterable[str], count: int, domain: str = "", **how: Any
    ) -> list[str]:
        """Add a node to the last segment; its outputs.

        Raises:
            RefusedError: and then the node is not there.
        """
        names = [f"t{len(self.values) + at}" for at in range(count)]
        node = helper.make_node(op, list(given), names, name=names[0], domain=domain, **how)
        found = answers(self.model([node], names, node.input), self._fed(node.input))
        if any(not 0 < one.size <= MOST or not np.isfinite(one).all() for one in found):
            raise RefusedError(op)
        self.values |= dict(zip(names, found, strict=True))
        self.segments[-1].nodes.append(node)
        return names

    def numbers(self, one: Steps) -> str:
        """The numbers that integers stand for."""
        if one not in self.segments[-1].read:
            self.segments[-1].read.append(one)
        return self.add("DequantizeLinear", (one.name, *self.range_of(one)))

    def integers(self, numbers: str, to: Steps | None = None) -> None:
        """Make integers of numbers, of a scale that suits them, or of this one."""
        to = to or self.steps(self._reach([numbers]))
        if self.segments[-1].off:
            made = [name for node in self.segments[-1].nodes for name in node.output]
            self.tell_apart(to, self._reach(made))
        self.note(self.add("QuantizeLinear", (numbers, *self.range_of(to))), to)

    def tell_apart(self, to: Steps, reach: float) -> None:
        """RefusedError where roundings of numbers up to `reach` are more than a step.

        Then a sum of nothing is all steps up in one right result, and all down in another.
        """
        if to.scale < reach * _FINEST:
            raise RefusedError(f"steps of {to.scale} are finer than numbers up to {reach}")

    def note(self, name: str, to: Steps) -> None:
        """Let the last segment have made integers of a scale."""
        self.segments[-1].made.append(Steps(name, to.kind, to.scale, to.zero))

    def range_of(self, one: Steps) -> tuple[str, str]:
        """The scale and the zero point as constants."""
        kind = helper.tensor_dtype_to_np_dtype(one.kind)
        return self.constant(one.scale, np.float32), self.constant(one.zero, kind)

    def steps(self, reach: float, name: str = "", kinds: tuple[int, ...] = ()) -> Steps:
        """Some scale and zero point, mostly such that numbers up to `reach` fit."""
        chance = self.chance
        words = self.opset >= 21 and not kinds and chance.random() < 0.15
        kind = chance.choice(kinds or (_WORDS if words else BYTES))
        ends = np.iinfo(helper.tensor_dtype_to_np_dtype(kind))
        low, high = int(ends.min), int(ends.max)
        half = (high - low + 1) // 2
        zero = chance.choice((low + half, low + half, low, 0, high, chance.randint(low, high)))
        scale = reach / half * chance.uniform(0.3, 2)
        if chance.random() < 0.08 or not _NORMAL[0] < scale < _NORMAL[1]:
            scale = chance.choice(_ODD_SCALES)
        return Steps(name, kind, float(np.float32(scale)), zero)

    def model(
        self, nodes: list[NodeProto], outputs: Iterable[str], given: Iterable[str]
    ) -> ModelProto:
        """Nodes as a model; of what is given, what is no constant is its input."""
        fed = [name for name in dict.fromkeys(given) if name and name not in self.constants]
        read = {name for node in nodes for name in node.input}
        graph = helper.make_graph(
            nodes,
            "quantised",
            [self._described(name) for name in fed],
            [self._described(name) for name in outputs],
            [numpy_helper.from_array(self.values[k], k) for k in self.constants if k in read],
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def rng(self) -> np.random.Generator:
        """For the next numbers."""
        return np.random.default_rng(self.chance.getrandbits(32))

    def _reach(self, names: Iterable[str]) -> float:
        """The largest magnitude in some tensors."""
        return max(float(np.abs(self.values[name]).max(initial=0)) for name in names)

    def _described(self, name: str) -> Any:
        if (value := self.values.get(name)) is None:
            return helper.make_empty_tensor_value_info(name)
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        return helper.make_tensor_value_info(name, kind, value.shape)

    def _fed(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        return {name: self.values[name] for name in names if name and name not in self.constants}

    def _integers(self, kind: int, shape: tuple[int, ...]) -> np.ndarray:
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        ends = np.iinfo(dtype)
        return self.rng().integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


def answers(proto: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime makes of a model that it leaves as it is.

    Raises:
        RefusedError: it does not take it.
    """
    try:
        session = open_session(proto.SerializeToString(), 1, as_written=True)
        return list(session.run(None, feeds))
    except Exception as error:  # its errors have no common type
        raise RefusedError(str(error)) from error
