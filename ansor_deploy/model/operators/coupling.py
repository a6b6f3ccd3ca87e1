"""Probabilities of classes from those of each pair of classes: an operator of our own.

    p = Coupling(r)          r[n, k]: how likely the first of pair k is, of the two; p[n, class]

The method is that of libsvm (Wu, Lin and Weng, 2004): p minimises the sum of (r_ji p_i - r_ij
p_j)^2. The minimum is found class by class, from equal probabilities on. As in ONNX Runtime,
iteration ends for each sample once all classes are close enough, so sums are in the same order and
in float32.
"""

from __future__ import annotations

from itertools import combinations
from math import isqrt
from typing import Any

from ..._lazy_tvm import tirx, tvm
from .converting import ROWS_APART, Call
from .emitter import Emitter
from .operator import Operator
from .scores import FLOAT

DOMAIN = "ai.onnx.ml"  # a model that needs the operator imports this domain already
_ROUNDS = 100  # at most; with ten classes five suffice
_NEAR = 0.005  # the tolerance, to be divided by the number of classes


def coupled(emit: Emitter, pairs: str, samples: int, classes: int) -> str:
    """The probability of each class, (samples, classes), from those of the pairs in their order."""
    (made,) = emit.several("Coupling", [pairs], 1, domain=DOMAIN)
    emit.graph.declare(made, FLOAT, (samples, classes))
    return made


def _converted(call: Call) -> Any:
    words = {"primfunc_name_hint": "coupling", "primfunc_attrs": {ROWS_APART: 0}}
    return call.emit(call.bb.emit_te(_compute, call.inputs[0], **words))


def _compute(pairs: Any) -> Any:
    """The operator in TE."""
    samples, count = map(int, pairs.shape)
    shape = (samples, (1 + isqrt(1 + 8 * count)) // 2)
    build = lambda ins, outs: _Program(ins[0], outs[0], shape).build()  # noqa: E731
    return tvm.te.extern([shape], [pairs], build, name="coupling", dtype=["float32"])


class _Program:
    """The statements. q: the matrix of the minimised form. qp, pqp: q p, and p^T q p."""

    def __init__(self, pairs: Any, made: Any, shape: tuple[int, int]) -> None:
        self.T = tvm.script.ir_builder.tirx
        self.r, self.p = map(self.T.buffer_proxy, (pairs, made))
        self.samples, self.classes = shape

    def build(self) -> Any:
        """The whole statement."""
        T, count = self.T, self.classes  # noqa: N806
        with tvm.script.ir_builder.IRBuilder() as builder:
            with T.seq_scope():
                self.q, self.qp = self._buffer(count, count), self._buffer(count)
                self.pqp, self.step, self.off = (self._buffer(1) for _ in range(3))
                with T.serial(0, self.samples) as self.sample:
                    self._start()
                    left = self._buffer(1, kind="int32")
                    left[0] = tirx.const(_ROUNDS, "int32")
                    with T.While(left[0] > 0):
                        left[0] = left[0] - 1
                        self._products()
                        with T.If(self.off[0] < _number(_NEAR / count)):
                            with T.Then():
                                left[0] = tirx.const(0, "int32")
                            with T.Else(), T.serial(0, count) as one:
                                self._improve(one)
            return builder.get()

    def _buffer(self, *shape: int, kind: str = "float32") -> Any:
        return self.T.buffer_proxy(self.T.alloc_buffer(shape, kind, scope="global"))

    def _start(self) -> None:
        """Set equal probabilities, and compute the matrix."""
        for one in range(self.classes):
            self.p[self.sample, one] = _number(1 / self.classes)
            self.q[one, one] = _number(0.0)
        for at, (one, other) in enumerate(combinations(range(self.classes), 2)):
            first = self.r[self.sample, at]
            second = _number(1.0) - first
            self.q[one, one] = self.q[one, one] + second * second
            self.q[other, other] = self.q[other, other] + first * first
            self.q[one, other] = self.q[other, one] = _number(0.0) - second * first

    def _products(self) -> None:
        """Compute the products anew, and how far the probabilities are from the minimum."""
        T, count = self.T, self.classes  # noqa: N806
        self.pqp[0] = self.off[0] = _number(0.0)
        with T.serial(0, count) as one:
            self.qp[one] = _number(0.0)
            with T.serial(0, count) as other:
                self.qp[one] = self.qp[one] + self.q[one, other] * self.p[self.sample, other]
            self.pqp[0] = self.pqp[0] + self.p[self.sample, one] * self.qp[one]
        with T.serial(0, count) as one:
            self.off[0] = tirx.max(self.off[0], tirx.abs(self.qp[one] - self.pqp[0]))

    def _improve(self, one: Any) -> None:
        """Set a class's probability to the best one beside the others; the sum stays one."""
        T, p, q, step = self.T, self.p, self.q, self.step  # noqa: N806
        step[0] = (self.pqp[0] - self.qp[one]) / q[one, one]
        p[self.sample, one] = p[self.sample, one] + step[0]
        whole = _number(1.0) + step[0]
        more = step[0] * (step[0] * q[one, one] + _number(2.0) * self.qp[one])
        self.pqp[0] = (self.pqp[0] + more) / whole / whole
        with T.serial(0, self.classes) as other:
            self.qp[other] = (self.qp[other] + step[0] * q[one, other]) / whole
            p[self.sample, other] = p[self.sample, other] / whole


def _number(value: float) -> Any:
    return tirx.const(value, "float32")


OPERATORS = (Operator("Coupling", DOMAIN, types=("float32",), convert=_converted),)
