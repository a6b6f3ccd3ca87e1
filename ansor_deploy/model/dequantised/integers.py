"""Compute on integers where they stand for numbers, if the results are the same.

    DequantizeLinear(x), DequantizeLinear(w) ; Conv ; Relu ; QuantizeLinear
    -->
    ConvInteger(x, w) ; Cast ; Mul ; Round ; Add ; Max ; Min ; Cast

The graph is walked once, in order. Tensors that are known to stand for integers are kept as
integers: convolutions and products of them become sums of integers, operators that only move
elements move bytes, and a function of one tensor is looked up in a table. Signed bytes of
activations are kept as unsigned ones, and unsigned 16-bit integers as signed ones. Everything else
is computed as it stands, between conversions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ..graph.cleanup import drop_dead
from ..graph.clips import Clip, clip_of
from ..graph.graph import Graph
from ..operators.emitter import Emitter
from ..operators.quantization import INT32, UINT8, Range
from .averages import averaged, is_average
from .dynamic import product_of_run
from .layers import layer
from .moves import is_beside, is_move, moved
from .pairs import is_pair, paired
from .real import Real, Sum, is_dequantize, is_quantize, real_of
from .tables import Tables, rescaled
from .transposed import transposed

# The distance between signed and unsigned bytes.
_TURN = 1 << 7
# The distance between signed and unsigned 16-bit integers.
_TURN_WORDS = 1 << 15


def integers(graph: Graph) -> None:
    """Compute on integers what is between DequantizeLinear and QuantizeLinear.

    graph: its nodes in topological order, its constants folded, its shapes known.
    """
    if any(is_dequantize(node) for node in graph.nodes):
        transposed(graph)
        walk = _Walk(graph)
        graph.nodes = [made for node in graph.nodes for made in walk.made_of(node)]
        drop_dead(graph)


class _Walk:
    """What is known of the tensors so far.

    reals: the float tensors that stand for integers. sums: those that stand for sums of integers.
    unsigned: for bytes that were made here, an equal tensor of unsigned ones. signed: the same for
    16-bit integers, as signed ones.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = graph.producers()
        self.reals: dict[str, Real] = {}
        self.sums: dict[str, Sum] = {}
        self.unsigned: dict[str, str] = {}
        self.signed: dict[str, str] = {}
        self.tables = Tables(graph, self.makers, self.reals)

    def made_of(self, node: NodeProto) -> list[NodeProto]:
        """The nodes that replace a node."""
        emit = Emitter(self.graph, node)
        if is_dequantize(node):
            return [*self._noted(emit), node]
        if is_quantize(node):
            return self._quantised(emit)
        if (found := layer(emit, self.reals)) is not None:
            self.sums[node.output[0]] = found
            return _named(emit, found.real(emit))
        if (numbers := product_of_run(emit, self.makers, self.reals)) is not None:
            return _named(emit, numbers)
        if (reals := moved(emit, self.reals)) is not None:
            return self._moved(emit, reals)
        return [node]

    def _noted(self, emit: Emitter) -> list[NodeProto]:
        """Note a DequantizeLinear; returns nodes that make bytes unsigned, or words signed."""
        real = real_of(self.graph, emit.node)
        if real is None:
            return []
        real = self._in_bytes(real)
        if real.kind == TensorProto.UINT16 and self._is_activation(real):
            real = self._signed(emit, real)
        data = self.unsigned.get(real.data)
        if data is None and real.kind == TensorProto.INT8 and self._is_activation(real):
            wide = emit("Add", emit.cast(real.data, INT32), emit.constant(_TURN, INT32))
            data = self.unsigned[real.data] = emit.cast(wide, UINT8)
            self._know(data, emit.node.output[0], UINT8)
        if data is not None:
            self.graph.aliases.setdefault(data, real.data)
            real = real.like(data) if real.kind == UINT8 else _turned(real, data)
        self.reals[emit.node.output[0]] = real
        return emit.nodes

    def _signed(self, emit: Emitter, real: Real) -> Real:
        """Unsigned 16-bit integers as signed ones."""
        data = self.signed.get(real.data)
        if data is None:
            wide = emit("Sub", emit.cast(real.data, INT32), emit.constant(_TURN_WORDS, INT32))
            data = self.signed[real.data] = emit.cast(wide, TensorProto.INT16)
            self._know(data, emit.node.output[0], TensorProto.INT16)
        zero = real.zero - _TURN_WORDS
        return replace(real, data=data, zero=zero, kind=TensorProto.INT16)

    def _in_bytes(self, real: Real) -> Real:
        """A constant with less than a byte for each element, with the same integers as bytes."""
        values = self.graph.value(real.data)
        if values is None or not real.is_short:
            return real
        kind = Range.of(real.kind).stored
        whole = values.astype(helper.tensor_dtype_to_np_dtype(kind))
        data = self.graph.add_constant(whole, real.data)
        self._know(data, real.data, kind)
        return replace(real, data=data, kind=kind)

    def _is_activation(self, real: Real) -> bool:
        return real.is_whole and real.data not in self.graph.constants

    def _moved(self, emit: Emitter, reals: list[Real]) -> list[NodeProto]:
        for name, real in zip(emit.node.output, reals, strict=True):
            self._know(real.data, name, real.kind)
            self.graph.aliases.setdefault(real.data, name)
            self.reals[name] = real
            axis = None if real.is_whole else real.axis
            given = [real.data, *real.constants(emit)]
            emit.nodes.append(helper.make_node("DequantizeLinear", given, [name], axis=axis))
        return emit.nodes

    def _know(self, data: str, like: str, kind: int) -> None:
        """Note the type of integers, and that their shape is that of the numbers they stand for."""
        self.graph.dtypes[data] = kind
        if like in self.graph.shapes:
            self.graph.shapes[data] = self.graph.shapes[like]

    def _quantised(self, emit: Emitter) -> list[NodeProto]:
        """The nodes that replace a QuantizeLinear."""
        name, made = emit.node.input[0], emit.node.output[0]
        to = real_of(self.graph, emit.node)
        if to is not None and name in self.graph.constants:
            return self._known_integers(emit.node, to)
        if to is not None and to.is_whole and to.is_words:
            return self._words(emit, to) or [emit.node]
        if to is None or not (to.is_whole and to.is_bytes):
            return [emit.node]
        data = self._bytes(emit, name, to if to.kind == UINT8 else _turned(to, ""))
        self.unsigned[made] = data
        self.graph.aliases.setdefault(data, made)
        if to.kind == UINT8:
            return _named(emit, data)
        signed = emit("Sub", emit.cast(data, INT32), emit.constant(_TURN, INT32))
        return _named(emit, emit.cast(signed, TensorProto.INT8))

    def _words(self, emit: Emitter, to: Real) -> list[NodeProto]:
        """The nodes for 16-bit integers that were only moved; none if their scale is another."""
        real, made = self.reals.get(emit.node.input[0]), emit.node.output[0]
        unsigned = to.kind == TensorProto.UINT16
        signed = replace(to, zero=to.zero - _TURN_WORDS, kind=TensorProto.INT16) if unsigned else to
        if real is None or not (real.is_whole and real.is_of(signed)):
            return []
        if not unsigned:
            return _named(emit, real.data)
        self.signed[made] = real.data
        wide = emit("Add", emit.cast(real.data, INT32), emit.constant(_TURN_WORDS, INT32))
        return _named(emit, emit.cast(wide, TensorProto.UINT16))

    def _known_integers(self, node: NodeProto, to: Real) -> list[NodeProto]:
        """A constant's integers as a constant, such as weights that the file has as float32."""
        made, numbers = node.output[0], self.graph.value(node.input[0])
        if numbers is None or numbers.dtype != np.float32 or made in self.graph.output_names:
            return [node]
        kind = helper.tensor_dtype_to_np_dtype(to.kind)
        self.graph.keep(numpy_helper.from_array(to.steps(numbers).astype(kind), made))
        self._know(made, node.input[0], to.kind)
        return []

    def _bytes(self, emit: Emitter, name: str, to: Real) -> str:
        """A float tensor as unsigned bytes with a scale, by the first way that applies."""
        clip = self._within(name)
        found = self._looked_up(emit, name, to)
        if found is None and (data := self._computed(emit, clip.data, to)) is not None:
            found = _clamped(emit, data, to, clip)
        found = found or self._moved_bytes(emit, name, to)
        found = found or emit("QuantizeLinear", name, *to.constants(emit))
        self._know(found, name, to.kind)
        return found

    def _looked_up(self, emit: Emitter, name: str, to: Real) -> str | None:
        """Look bytes up in a table, if it is a function of one tensor that is worth a table."""
        found = self.tables.of(name, to)
        shapes = self.graph.shapes
        if found is None or shapes.get(found[0]) != shapes.get(name):
            return None
        root, table = found
        data = emit("Gather", emit.constant(table, UINT8), root, axis=0)
        self.tables.note(data, root, table)
        return data

    def _computed(self, emit: Emitter, name: str, to: Real) -> str | None:
        """The tensor's own bytes, or bytes computed by operators on integers."""
        real, found = self.reals.get(name), self.sums.get(name)
        if real is not None and real.is_whole and real.is_bytes:
            return real.data if real.is_of(to) else rescaled(emit, real, to)
        if found is not None:
            return found.requantised(emit, to)
        node = self.makers.get(name)
        if node is None:
            return None
        mean = (emit, node, self.makers, self.reals, to)
        return paired(emit, node, self.reals, to) or averaged(*mean)

    def _moved_bytes(self, emit: Emitter, name: str, to: Real) -> str | None:
        """Move bytes: those of a node's input, or of each part that it concatenates."""
        node = self.makers.get(name)
        if node is None or name in self.reals or not is_move(node):
            return None
        given = node.input if is_beside(node) else node.input[:1]
        if not all(self._is_integer(one) for one in given):
            return None
        known = {one: to.like(self._bytes(emit, one, to)) for one in given}
        inside = Emitter(self.graph, node)
        reals = moved(inside, known)
        emit.nodes.extend(inside.nodes)
        return None if reals is None else reals[list(node.output).index(name)].data

    def _is_integer(self, name: str) -> bool:
        """Whether a float tensor comes from integers by moves, or by functions of elements."""
        inner = self._within(name).data
        node = self.makers.get(inner)
        through = node is not None and is_move(node) and self._is_integer(node.input[0])
        computed = node is not None and (
            is_pair(node, self.reals) or is_average(self.graph, node, self.makers, self.reals)
        )
        return inner in self.reals or inner in self.sums or through or computed

    def _within(self, name: str) -> Clip:
        """The tensor that a float tensor clips, and the bounds."""
        clip = Clip(name, -np.inf, np.inf)
        while (node := self.makers.get(clip.data)) is not None:
            if (first := clip_of(self.graph, node)) is None:
                break
            clip = clip.after(first)
        return clip


def _turned(real: Real, data: str) -> Real:
    """Signed bytes as unsigned ones."""
    return replace(real, data=data, zero=real.zero + _TURN, kind=UINT8)


def _clamped(emit: Emitter, data: str, to: Real, clip: Clip) -> str:
    """Unsigned bytes clipped to the steps of two numbers, since rounding is monotone."""
    least, most = to.steps(np.array([clip.low, clip.high], np.float32)).tolist()
    if least > 0:
        data = emit("Max", data, emit.constant(least, UINT8))
    return emit("Min", data, emit.constant(most, UINT8)) if most < 255 else data


def _named(emit: Emitter, result: str) -> list[NodeProto]:
    """The emitted nodes, with the result under the name of the node's output."""
    return [*emit.nodes, helper.make_node("Identity", [result], [emit.node.output[0]])]
