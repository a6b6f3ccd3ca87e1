"""Compute sine and cosine of numbers not too far from zero as arithmetic on whole vectors.

    sin(x)   -->   sin(x) if the largest |x| > FAR, else p(x)

Numbers far from zero need more digits of pi than a few multiplications provide. For them the C
library is called as before, once a lane, which takes some ten times as long as this arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from ..._tvm import op_name, structural_map, tirx, tvm
from .vector_math import ROUNDING, as_type, like, polynomial, shared

# sin(r) / r - 1 as a polynomial in r^2 from its first power on, for |r| <= pi / 2: 6.1e-9.
_SINE = (
    -0.16666659521015548,
    0.00833306542664245,
    -0.000198095387635819,
    2.6056307269039353e-06,
)
# The most half turns that may be subtracted from a number.
_MOST_HALVES = 256
# Pi in three parts. Products of the first two with integers up to `_MOST_HALVES` are exact in
# float32.
_PI = (3.1414794921875, 0.0001131594181060791, 1.984187159361081e-09)
FAR = _MOST_HALVES * 3.14
_SIGN = 31  # the bit of a float32's sign

Expr = Any


def periodic(body: Any) -> Any:
    """A lowered program with sines and cosines of float32 vectors replaced by arithmetic."""
    return structural_map(body, (tvm.ir.Call, _written_out))


def _written_out(call: Any) -> Any:
    function = _FUNCTIONS.get(op_name(call))
    if function is None or call.ty.dtype.lanes == 1 or call.ty.dtype.with_lanes(1) != "float32":
        return call
    return shared(call.args[0], function)


def _turned(exact: Callable[[Expr], Expr], ahead: float) -> Callable[[Expr], Expr]:
    """A function of x that makes the expression of sin(x + ahead * pi); NaN stays NaN.

    exact: makes the call of the same function.
    """

    def function(x: Expr) -> Expr:
        most = tirx.call_llvm_pure_intrin("float32", "llvm.vector.reduce.fmax", tirx.abs(x))
        return tirx.if_then_else(most > tirx.FloatImm("float32", FAR), exact(x), near(x))

    def near(x: Expr) -> Expr:
        turns = x * (1 / math.pi) + ahead if ahead else x * (1 / math.pi)
        return shared(turns + ROUNDING, lambda rounded: halves(x, rounded))

    def halves(x: Expr, turns: Expr) -> Expr:
        rest = shared(turns - ROUNDING - ahead, lambda n: remainder(x, n))
        odd = as_type("int32", turns) << like(as_type("int32", turns), _SIGN)
        value = shared(rest, lambda r: shared(r * r, lambda t: r + r * t * polynomial(t, _SINE)))
        return as_type("float32", tirx.bitwise_xor(as_type("int32", value), odd))

    def remainder(x: Expr, n: Expr) -> Expr:
        return reduce(lambda rest, part: rest - n * like(x, part), _PI, x)

    return function


_FUNCTIONS = {"tirx.sin": _turned(tirx.sin, 0.0), "tirx.cos": _turned(tirx.cos, 0.5)}
