"""Round to steps of a scale by an addition, and keep the steps in registers without narrowing.

    uint8(int32(max(min(round(x) + z, 255), 0)))
    -->
    t = clip(x, -z, 255 - z) + M            its last bits are the integer nearest to x
    uint8(bits(t) - bits(M) + z)            the step as an integer
    t - M                                   the step as a float, without z

    uint8(int32(max(min(float32(int32(round(x))) + z, 255), 0)))
    -->
    t = min(max(x, -z), 255 - z) + M        x is known to fit int32, and so to be no NaN

with M = 1.5 * 2^23: a float32 of that size has no bits for fractions, so that the sum is rounded,
half to even as ONNX defines it. It is the same on every processor and as cheap as an instruction
that rounds. NaN becomes the least step. The zero point may be a byte that is read from memory: it
is then known to be a small integer. Where clipped steps are widened again, as in a sum of two
convolutions, they are not narrowed to bytes in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._tvm import collect, lane, op_name, structural_equal, structural_map, tirx, tvm
from .edge_values import is_arm
from .quotients import adds_products, in_steps
from .vector_math import ROUNDING, Expr, shared

# The bits of M.
_BITS = int(np.float32(ROUNDING).view(np.int32))
# Integers up to this one are exact when M is added to them.
_MOST = 1 << 20
_BYTES = ("uint8", "int8")
NEAREST = "tirx.nearbyint"
WITHOUT_NAN = "llvm.maxnum"

# TVM does not know that a loop with a reinterpret can be vectorised.
tvm.ir.Op.get("tirx.reinterpret").set_attr("TVectorizable", True, plevel=11)


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Rounding")
def rounding(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with rounded and clipped floats as sums with M, read by their bits."""
    target = (func.attrs or {}).get("target")
    arm, fused = is_arm(target), adds_products(target)
    changes = [(tirx.Cast, lambda cast: _cast(cast, arm, fused)), (tirx.Mul, _multiplied)]
    return func.with_body(structural_map(func.body, changes))


def _multiplied(product: Any) -> Any:
    """A product of steps and a constant, of which TVM makes no sum of two products.

    The bits of M, multiplied by the constant, would not fit int32.
    """
    steps, factor = product.a, product.b
    if str(product.ty.dtype) != "int32" or not isinstance(factor, tirx.IntImm):
        return product
    calls = collect(steps, tvm.ir.Call)
    if not any(op_name(call) == "tirx.reinterpret" for call in calls):
        return product
    return tirx.Mul(tirx.reinterpret("int32", tirx.reinterpret("float32", steps)), factor)


def _cast(cast: Any, arm: bool, fused: bool) -> Any:
    kind = str(cast.ty.dtype)
    if kind == "float32":
        steps = Steps.of(cast.value)
        return cast if steps is None else steps.real
    if kind != "int32":
        return cast
    if isinstance(cast.value, tirx.Cast):
        steps = Steps.of(cast.value.value)
        fits = steps is not None and steps.fits(str(cast.value.ty.dtype))
        return cast.value.value if fits else cast
    clipped = _Clipped.of(cast.value)
    if clipped is None:
        return cast
    return (clipped.undivided() if fused else clipped).rounded(arm)


@dataclass(frozen=True)
class _Clipped:
    """The expression clip(nearest(value) + zero, low, high).

    read: a byte in memory that is added instead of `zero`, which is 0 then; else None. bounded:
    whether the value is a number that surely fits int32, since it is converted to that and
    back before it is clipped.
    """

    value: Expr
    zero: int
    read: Expr | None
    low: int
    high: int
    bounded: bool

    @classmethod
    def of(cls, expr: Expr) -> _Clipped | None:
        """The parts of an expression of this form; None where it has another form."""
        ends: dict[Any, int] = {}
        while isinstance(expr, (tirx.Max, tirx.Min)) and type(expr) not in ends:
            end, inner = _whole(expr.b), expr.a
            if end is None:
                end, inner = _whole(expr.a), expr.b
            if end is None:
                return None
            ends[type(expr)], expr = end, inner
        read = _byte(expr.b) if isinstance(expr, tirx.Add) else None
        zero = _whole(expr.b) if isinstance(expr, tirx.Add) and read is None else 0
        rounded = expr.a if isinstance(expr, tirx.Add) else expr
        bounded = isinstance(rounded, tirx.Cast) and isinstance(rounded.value, tirx.Cast)
        rounded = rounded.value.value if bounded else rounded
        if len(ends) < 2 or zero is None or op_name(rounded) != NEAREST:
            return None
        if str(rounded.ty.dtype) != "float32" or ends[tirx.Max] > ends[tirx.Min]:
            return None
        return cls(rounded.args[0], zero, read, ends[tirx.Max], ends[tirx.Min], bounded)

    def undivided(self) -> _Clipped:
        """The same number without a division, where that is certain."""
        return replace(
            self, value=in_steps(self.value, self.low - self.zero, self.high - self.zero)
        )

    def rounded(self, arm: bool) -> Expr:
        """The same number as an int32 expression, rounded by an addition."""
        low, high = (less(end - self.zero, self.read) for end in (self.low, self.high))
        if self.bounded:
            above = tirx.Max(self.value, low)
        elif arm:
            above = tirx.call_llvm_pure_intrin("float32", WITHOUT_NAN, self.value, low)
        else:
            above = shared(self.value, lambda x: tirx.Select(x > low, x, low))
        total = tirx.Min(high, above) + tirx.const(ROUNDING, "float32")
        bits = tirx.reinterpret("int32", total)
        steps = tirx.Sub(bits, tirx.const(_BITS - self.zero, "int32"))
        return steps if self.read is None else steps + tirx.Cast("int32", self.read)


@dataclass(frozen=True)
class Steps:
    """Steps that were rounded by an addition: bits(total) - bits(M) + more + added bytes.

    total: the sum with M. value: the float that was clipped and rounded. more: the constant that
    the steps are larger than the rounded float. low, high: the ends at which the float was clipped,
    without `read`. read: a byte that is subtracted from both ends; None for none. added: bytes that
    are added to the steps besides `more`, each with its sign. bounded: whether the float is a
    number that surely fits int32.
    """

    total: Expr
    value: Expr
    more: int
    low: int
    high: int
    read: Expr | None
    added: tuple[tuple[int, Expr], ...]
    bounded: bool

    @classmethod
    def of(cls, expr: Expr) -> Steps | None:
        """The steps of an int32 expression or vector; None where it was not rounded so."""
        more, added, totals = _BITS, list[tuple[int, Expr]](), list[Expr]()
        for sign, one in _terms(expr):
            if isinstance(lane(one), tirx.IntImm):
                more += sign * int(lane(one).value)
            elif (byte := _byte(lane(one))) is not None:
                added.append((sign, byte))
            elif sign == 1 and op_name(one) == "tirx.reinterpret":
                totals.append(one.args[0])
            else:
                return None
        if len(totals) != 1 or not isinstance(total := totals[0], tirx.Add):
            return None
        if not _rounds(lane(total.b)) or not isinstance(total.a, tirx.Min):
            return None
        if (above := _above(total.a.b)) is None:
            return None
        (low, read), (high, _) = (_end(lane(one)) for one in (above[1], total.a.a))
        bounded = isinstance(total.a.b, tirx.Max)
        return cls(total, above[0], more, low, high, read, _without_pairs(added), bounded)

    def fits(self, kind: str) -> bool:
        """Whether each step fits an integer of a type."""
        if "int" not in kind or not self.ends_are_known:
            return False
        least, most = (int(end(kind).value) for end in (tirx.min_value, tirx.max_value))
        return least <= self.low + self.more and self.high + self.more <= most

    @property
    def ends_are_known(self) -> bool:
        """Whether the byte subtracted from the ends is the only one that is added again."""
        if self.read is None or len(self.added) != 1:
            return self.read is None and not self.added
        ((sign, byte),) = self.added
        return sign == 1 and bool(structural_equal(byte, self.read))

    @property
    def real(self) -> Expr:
        """The steps as float32."""
        # Through the bits: otherwise TVM would cancel the addition and the subtraction of M.
        bits = tirx.reinterpret("int32", self.total)
        number = tirx.reinterpret("float32", bits) - tirx.const(ROUNDING, "float32")
        if self.more:
            number += tirx.const(float(self.more), "float32")
        for sign, byte in self.added:
            more = tirx.Cast("float32", byte)
            number = number + more if sign == 1 else number - more
        return number


def _terms(expr: Expr, sign: int = 1) -> Iterator[tuple[int, Expr]]:
    """The terms of a sum, each with its sign."""
    if isinstance(expr, (tirx.Add, tirx.Sub)):
        yield from _terms(expr.a, sign)
        yield from _terms(expr.b, sign if isinstance(expr, tirx.Add) else -sign)
    else:
        yield sign, expr


def _without_pairs(added: list[tuple[int, Expr]]) -> tuple[tuple[int, Expr], ...]:
    """The added bytes without those that are both added and subtracted."""
    left: list[tuple[int, Expr]] = []
    for sign, byte in added:
        same = (at for at, (s, b) in enumerate(left) if s == -sign and structural_equal(b, byte))
        if (at := next(same, None)) is None:
            left.append((sign, byte))
        else:
            del left[at]
    return tuple(left)


def less(end: int, byte: Expr | None) -> Expr:
    """A number as float32, minus a byte if there is one."""
    number = tirx.const(float(end), "float32")
    return number if byte is None else number - tirx.Cast("float32", byte)


def _end(value: Expr) -> tuple[int, Expr | None]:
    """The number and the byte that an expression of `less` was made from."""
    if isinstance(value, tirx.Sub):
        return int(value.a.value), value.b.value
    return int(value.value), None


def _byte(value: Expr) -> Expr | None:
    """The byte in memory that a value was cast from; None for any other value."""
    if not isinstance(value, tirx.Cast) or not isinstance(value.value, tvm.ir.TensorLoad):
        return None
    return value.value if str(value.value.ty.dtype) in _BYTES else None


def _above(expr: Expr) -> tuple[Expr, Expr] | None:
    """The value that `_Clipped.rounded` limited from below, and the limit; or None."""
    if isinstance(expr, tvm.ir.Call):
        return expr.args[-2], expr.args[-1]
    if isinstance(expr, tirx.Max):
        return expr.a, expr.b
    chosen = expr.body if isinstance(expr, tirx.Let) else expr
    if not isinstance(chosen, tirx.Select):
        return None
    value = expr.value if isinstance(expr, tirx.Let) else chosen.true_value
    return value, chosen.false_value


def _rounds(value: Expr) -> bool:
    """Whether a value is M, which rounds what it is added to."""
    return isinstance(value, tirx.FloatImm) and float(value.value) == ROUNDING


def _whole(value: Expr) -> int | None:
    """The integer value of a constant whose sums with M are exact; None for any other value."""
    if not isinstance(value, tirx.FloatImm) or abs(value.value) > _MOST:
        return None
    return int(value.value) if float(value.value).is_integer() else None
