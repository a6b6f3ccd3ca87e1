"""Functions of one tensor of bytes, as a table of their 256 results.

    y = quantise(x * sigmoid(x)), x = (b - zero) * scale    -->    y = table[b]

Each operator is computed in float64 and rounded to float32, as a run would round it. So the table
is the same on every host, and its results are the same on every target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import NodeProto, helper

from ..graph.constant_math import exponential
from ..graph.graph import Graph
from ..onnx.skeleton import attribute
from ..operators.emitter import Emitter
from ..operators.indexing import BYTES
from ..operators.quantization import UINT8, centred, requantise
from .real import Real

# Operators that take longer to compute than to look up.
_COSTLY = frozenset((
    "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Log", "Mish", "Pow", "Sigmoid",
    "Softplus", "Sqrt", "Tanh",
))  # fmt: skip
_NEAR = 2e-3  # so close to zero, a few powers are exact enough for tanh
Function = Callable[[NodeProto, list[np.ndarray]], np.ndarray]


@dataclass
class Tables:
    """The tables of a graph: for tensors of bytes, the bytes and table they are looked up from.

    makers: the node that makes each float tensor. reals: the tensors known to stand for bytes.
    """

    graph: Graph
    makers: Mapping[str, NodeProto]
    reals: Mapping[str, Real]
    _found: dict[str, tuple[str, np.ndarray]] = field(default_factory=dict)

    def of(self, name: str, to: Real) -> tuple[str, np.ndarray] | None:
        """(the bytes, the table) that give a float tensor's integers; None if there are none."""
        walk = _Evaluation(self)
        values = walk.values(name)
        if values is None or walk.root is None or not walk.is_costly or values.size != BYTES:
            return None
        return walk.root, to.steps(values).astype(np.uint8)

    def note(self, data: str, root: str, table: np.ndarray) -> None:
        """Note that a tensor of bytes is looked up."""
        self._found[data] = (root, table)

    def source(self, data: str) -> tuple[str, np.ndarray]:
        """The bytes and the table that a tensor of bytes is looked up from."""
        return self._found.get(data, (data, np.arange(BYTES, dtype=np.uint8)))


@dataclass
class _Evaluation:
    """A function of one tensor, evaluated for all bytes that it may hold.

    root: that tensor, once it is found. is_costly: whether the function takes longer than a
    look-up.
    """

    tables: Tables
    root: str | None = None
    is_costly: bool = False
    _seen: dict[str, np.ndarray | None] = field(default_factory=dict)

    def values(self, name: str) -> np.ndarray | None:
        """A float tensor's value for each byte, or its single constant; None for other tensors."""
        if name not in self._seen:
            self._seen[name] = self._values(name)
        return self._seen[name]

    def _values(self, name: str) -> np.ndarray | None:
        real = self.tables.reals.get(name)
        if real is not None:
            return self._of_real(real)
        known = self.tables.graph.value(name)
        if known is not None:
            return known.reshape(1) if known.dtype == np.float32 and known.size == 1 else None
        node = self.tables.makers.get(name)
        if node is None or node.op_type not in _FUNCTIONS or node.domain not in ("", "ai.onnx"):
            return None
        given = [self.values(one) for one in node.input if one]
        if any(one is None for one in given):
            return None
        self.is_costly |= node.op_type in _COSTLY
        wide = [one.astype(np.float64) for one in given if one is not None]
        with np.errstate(all="ignore"):
            return np.asarray(_FUNCTIONS[node.op_type](node, wide)).astype(np.float32)

    def _of_real(self, real: Real) -> np.ndarray | None:
        if not real.is_whole:
            return None
        known = self.tables.graph.value(real.data)
        if known is not None:
            return _real(known.reshape(1), real) if known.size == 1 else None
        root, table = self.tables.source(real.data)
        if real.kind != UINT8 or self.root not in (None, root):
            return None
        self.root = root
        self.is_costly |= root != real.data
        return _real(table, real)


def rescaled(emit: Emitter, real: Real, to: Real) -> str | None:
    """Bytes as unsigned ones of another scale: by one product if that is exact, else by a table."""
    all_bytes = np.arange(BYTES).astype(np.uint8).view(helper.tensor_dtype_to_np_dtype(real.kind))
    ratio, table = to.ratio(real.scale.reshape(())), to.steps(_real(all_bytes, real))
    steps = replace(to, scale=np.float32(1)).steps(_real(all_bytes, replace(real, scale=ratio)))
    if np.isfinite(ratio) and (table == steps).all():
        wide = centred(emit, real.data, real.constants(emit)[1])
        return requantise(emit, wide, emit.constant(ratio), to.constants(emit)[1])
    if real.kind != UINT8:
        return None
    return emit("Gather", emit.constant(table, UINT8), real.data, axis=0)


def _real(steps: np.ndarray, real: Real) -> np.ndarray:
    wide = (steps.astype(np.int64) - real.zero.item()).astype(np.float32)
    with np.errstate(all="ignore"):
        return np.asarray(wide * real.scale.reshape(()), np.float32)


def _clip(node: NodeProto, given: list[np.ndarray]) -> np.ndarray:
    x, *bounds = given
    named = [*node.input[1:], "", ""]
    ends = {at: bounds.pop(0) for at in (0, 1) if named[at]}
    low, high = (ends.get(at, attribute(node, key)) for at, key in enumerate(("min", "max")))
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + exponential(-x))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(exponential(-np.abs(x)))


def _tanh(x: np.ndarray) -> np.ndarray:
    far = np.sign(x) * (1 - 2 / (exponential(2 * np.abs(x)) + 1))
    # Near zero the difference loses its digits, and the next power is too small for a float64.
    return np.where(np.abs(x) < _NEAR, x - x**3 / 3 + x**5 * (2 / 15), far)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(one) for one in x.reshape(-1)])


def _gelu(node: NodeProto, x: np.ndarray) -> np.ndarray:
    if attribute(node, "approximate", "none") == "tanh":
        return 0.5 * x * (1 + _tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _hard_sigmoid(node: NodeProto, x: np.ndarray) -> np.ndarray:
    return np.clip(attribute(node, "alpha", 0.2) * x + attribute(node, "beta", 0.5), 0, 1)


def _below(node: NodeProto, x: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.where(x < 0, below, x)


def _each(function: Callable[..., np.ndarray]) -> Function:
    return lambda _node, given: function(*given)


_FUNCTIONS: dict[str, Function] = {
    "Abs": _each(np.abs),
    "Add": _each(np.add),
    "Clip": _clip,
    "Div": _each(np.divide),
    "Elu": lambda n, g: _below(n, g[0], attribute(n, "alpha", 1.0) * (exponential(g[0]) - 1)),
    "Erf": _each(_erf),
    "Exp": _each(exponential),
    "Gelu": lambda n, g: _gelu(n, g[0]),
    "HardSigmoid": lambda n, g: _hard_sigmoid(n, g[0]),
    "HardSwish": _each(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "LeakyRelu": lambda n, g: _below(n, g[0], attribute(n, "alpha", 0.01) * g[0]),
    "Log": _each(np.log),
    "Max": lambda _, g: np.maximum.reduce(np.broadcast_arrays(*g)),
    "Min": lambda _, g: np.minimum.reduce(np.broadcast_arrays(*g)),
    "Mish": _each(lambda x: x * _tanh(_softplus(x))),
    "Mul": _each(np.multiply),
    "Neg": _each(np.negative),
    "Pow": _each(np.power),
    "Relu": _each(lambda x: np.maximum(x, 0)),
    "Sigmoid": _each(_sigmoid),
    "Softplus": _each(_softplus),
    "Sqrt": _each(np.sqrt),
    "Sub": _each(np.subtract),
    "Tanh": _each(_tanh),
}
