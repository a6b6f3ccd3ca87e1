"""Random quantised graphs, which grow by segments from integers to integers.

A segment is float operators between DequantizeLinear and QuantizeLinear, or one operator on
integers (`quantised_steps.py`). Most scales and zero points are ordinary, some are the oddest that
ONNX Runtime accepts. ONNX Runtime computes each node as it is added, which shows the shapes, the
range of the values, and which nodes it does not support.
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
MOST = 1 << 14  # elements of a tensor, at most
_WORDS = (TensorProto.UINT16, TensorProto.INT16)
_ODD_SCALES = (1e-40, 1e-30, 1e30, 2.0**-7, 1.0)
_NORMAL = (1e-37, 1e37)
# As a share of a segment's largest value: two correct float32 sums may differ by as much.
_FINEST = 2.0**-20


class RefusedError(Exception):
    """ONNX Runtime does not support a node, or its result cannot be compared."""


@dataclass(frozen=True)
class Steps:
    """A tensor of integers q, which stand for (q - zero) * scale. kind: its ONNX type."""

    name: str
    kind: int
    scale: float
    zero: int


@dataclass
class Segment:
    """Nodes from integers to integers. off: how many steps two right results may differ by."""

    nodes: list[NodeProto] = field(default_factory=list)
    read: list[Steps] = field(default_factory=list)
    made: list[Steps] = field(default_factory=list)
    off: int = 0


class Graph:
    """A graph that grows. values: of all its tensors. constants: the names of constant tensors."""

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
        """A new input, of a random integer type."""
        made = self.steps(self.chance.uniform(0.5, 20), name=f"x{len(self.inputs)}")
        self.values[made.name] = self._integers(made.kind, shape)
        self.inputs.append(made)
        return made

    def constant(self, value: object, dtype: Any = np.int64) -> str:
        """Add a constant; returns its name."""
        name = f"k{len(self.values)}"
        self.values[name] = np.asarray(value, dtype)
        self.constants.append(name)
        return name

    def weights(self, *shape: int) -> str:
        """Add random float32 numbers as a constant."""
        return self.constant(self.rng().standard_normal(shape), np.float32)

    def bytes(self, kind: int, *shape: int) -> str:
        """Add random integers as a constant."""
        return self.constant(self._integers(kind, shape), helper.tensor_dtype_to_np_dtype(kind))

    def add(self, op: str, given: Iterable[str], domain: str = "", **how: Any) -> str:
        """Add a node with one output to the last segment; returns the output."""
        return self.several(op, given, 1, domain, **how)[0]

    def several(
        self, op: str, given: Iterable[str], count: int, domain: str = "", **how: Any
    ) -> list[str]:
        """Add a node to the last segment; returns its outputs.

        Raises:
            RefusedError: the node was not added.
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
        """The float values of an integer tensor."""
        if one not in self.segments[-1].read:
            self.segments[-1].read.append(one)
        return self.add("DequantizeLinear", (one.name, *self.range_of(one)))

    def integers(self, numbers: str, to: Steps | None = None) -> None:
        """Quantise floats, with a scale that suits them or with the given one."""
        to = to or self.steps(self._reach([numbers]))
        if self.segments[-1].off:
            made = [name for node in self.segments[-1].nodes for name in node.output]
            self.tell_apart(to, self._reach(made))
        self.note(self.add("QuantizeLinear", (numbers, *self.range_of(to))), to)

    def tell_apart(self, to: Steps, reach: float) -> None:
        """RefusedError where rounding errors of numbers up to `reach` exceed a step.

        Then a sum that should be zero may be all steps up in one right result, and down in another.
        """
        if to.scale < reach * _FINEST:
            raise RefusedError(f"steps of {to.scale} are finer than numbers up to {reach}")

    def note(self, name: str, to: Steps) -> None:
        """Note an output of the last segment, with the scale of `to`."""
        self.segments[-1].made.append(Steps(name, to.kind, to.scale, to.zero))

    def range_of(self, one: Steps) -> tuple[str, str]:
        """The scale and the zero point as constants."""
        kind = helper.tensor_dtype_to_np_dtype(one.kind)
        return self.constant(one.scale, np.float32), self.constant(one.zero, kind)

    def steps(self, reach: float, name: str = "", kinds: tuple[int, ...] = ()) -> Steps:
        """A random scale and zero point; for most of them, numbers up to `reach` fit."""
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
        """Nodes as a model; what is given and is no constant becomes its input."""
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
        """A generator for the next random numbers."""
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
    """ONNX Runtime's outputs of a model, which it does not optimise.

    Raises:
        RefusedError: it does not support the model.
    """
    try:
        session = open_session(proto.SerializeToString(), 1, as_written=True)
        return list(session.run(None, feeds))
    except Exception as error:  # its errors have no common type
        raise RefusedError(str(error)) from error
