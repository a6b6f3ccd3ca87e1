"""Compute exp, log, tanh, erf and sigmoid as arithmetic on whole vectors.

LLVM would call libm once a lane for these, some thirty times slower than the arithmetic here, which
stays in registers. Errors are a few units in the last place of a float32, as in libm; NaN stays
NaN, and infinities give the right limits. exp is 0 where it would be below the least normal number.

The coefficients are minimax fits of the relative error: weighted least squares on 4,000 Chebyshev
nodes, with the weights multiplied by the error until it is level (Lawson's algorithm). Quotients
are fitted with the denominator of the iteration before. The errors given below are those of the
fits.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._tvm import lane, op_name, structural_map, tirx, tvm

# exp(r) for |r| <= ln(2) / 2: 1.9e-9.
_EXP = (
    1.0000000005585967,
    1.0000000365391113,
    0.49999992032290375,
    0.166664191903654,
    0.0416682318077436,
    0.00837489836188636,
    0.0013836741680946678,
)
_TWICE_EXP = tuple(2 * one for one in _EXP)
# exp(-r) for the same r, and exactly 1 at 0: 9.2e-8. That is enough, since 1 is added to it.
_EXP_NEGATIVE = (
    1.0,
    -0.9999997063133296,
    0.4999914784110504,
    -0.16667638127322312,
    0.041898159620811594,
    -0.008290272107392107,
)
# (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2): 7.5e-10 of log(1 + f).
_LOG = (
    0.3333331260399267,
    -0.2500000959963918,
    0.20002118662904134,
    -0.166679958432854,
    0.14219552278805722,
    -0.12405589063963712,
    0.11888162971472853,
    -0.11675651208057682,
    0.06746638255282754,
)
# tanh(x) / x as a quotient of polynomials in x^2, below TANH_ONE: 2.1e-8.
_TANH = (
    (
        0.99999997903778,
        0.13379708196075746,
        0.0034940229301791887,
        2.0583290499168448e-05,
        1.3318814045126807e-08,
    ),
    (1.0, 0.4671302344376212, 0.02587102907070388, 0.00032830738096973104, 7.761912268775361e-07),
)
# erf(x) / x as a quotient of polynomials in x^2, below ERF_ONE: 1.9e-8.
_ERF = (
    (
        1.1283791453817442,
        0.19078179477462212,
        0.052789999375123874,
        0.0037795180956275006,
        0.000284805947599072,
        2.0419779385502626e-06,
    ),
    (
        1.0,
        0.5024086833648087,
        0.11425666535458485,
        0.0149972540713979,
        0.0011651895611026449,
        3.800401151391321e-05,
    ),
)
# From here on tanh(x) and erf(x) are 1 to the last bit. The quotients exceed 1 there, so x is
# limited to these numbers, and the result to 1.
TANH_ONE, ERF_ONE = 9.5, 4.1

# ln(2) in two parts: the product of the first one and an integer below 256 is exact.
_LN2_HIGH = 0.693359375
_LN2_LOW = math.log(2) - _LN2_HIGH
_LEAST_NORMAL = 2.0**-126
# Divisors between this and its reciprocal have a reciprocal that is a normal number.
_LEAST = 2.0**-100
# exp(x) is a normal number for |x| up to this; half a power of two is kept in reserve.
EXP_ENDS = 86.9
# exp(x) is computed as 0 at this x and below.
_NOTHING = -87.5
# exp(x) is infinite at this x and above.
_INFINITE = 88.8
_MANTISSA = 23  # stored bits of a float32's mantissa
_BIAS = 127  # of a float32's exponent
# A float32 of this size has no bits for fractions: a number that is added to it is rounded. The
# factor 1.5 keeps that so for negative numbers.
ROUNDING = 1.5 * 2.0**_MANTISSA

Expr = Any


def on_vectors(body: Any) -> Any:
    """A lowered program with calls of these functions on float32 replaced by arithmetic."""
    return structural_map(body, (tvm.ir.Call, _written_out))


def _written_out(call: Any) -> Any:
    function = _FUNCTIONS.get(op_name(call))
    if function is None or call.ty.dtype.with_lanes(1) != "float32":
        return call
    return shared(_without_division(call.args[0]), function)


def _without_division(value: Expr) -> Expr:
    """A division by a constant as a product, whose error is no larger than that of these functions.

    Dividing a vector takes 16 cycles, in which the processor could multiply 32 vectors. Other
    quotients stay: one that is rounded down to an integer must not become less than that integer.
    """
    if not isinstance(value, tirx.Div):
        return value
    divisor = lane(value.b)
    return value.a * like(value, 1 / divisor.value) if has_reciprocal(divisor) else value


def has_reciprocal(divisor: Expr) -> bool:
    """Whether a divisor is a constant with a reciprocal that is a normal number."""
    return isinstance(divisor, tirx.FloatImm) and _LEAST <= abs(divisor.value) <= 1 / _LEAST


def shared(value: Expr, use: Callable[[Expr], Expr]) -> Expr:
    """An expression that uses a value several times but computes it once."""
    if isinstance(value, tirx.Var):
        return use(value)
    name = tirx.Var("v", value.ty.dtype)
    return tirx.Let(name, value, use(name))


def _exp(x: Expr) -> Expr:
    return shared(_held(x, _NOTHING, _INFINITE), exp_within)


def exp_within(x: Expr) -> Expr:
    """exp(x) for x from -EXP_ENDS to EXP_ENDS, as 2^(n - 1) * 2 exp(x - n ln 2)."""
    return _power(x, 1.0, _TWICE_EXP, ROUNDING + _BIAS - 1)


def _held(x: Expr, least: float, most: float) -> Expr:
    """A number limited to a range; NaN stays, as the second argument of min and max."""
    return tirx.max(like(x, least), tirx.min(like(x, most), x))


def _power(x: Expr, sign: float, coefficients: Sequence[float], biased: float) -> Expr:
    """2^n * exp(sign x - n ln 2), where n is `sign x / ln 2` rounded.

    coefficients: those of the second factor, as a polynomial in x - n ln 2 (without the sign).
    biased: the number that is added to round n. It also turns the last bits into those of an
    exponent: shifted, they are 2^n, infinite from n = 128 on and 0 for n = -127. NaN comes through
    the other factor.
    """

    def product(turns: Expr) -> Expr:
        rest = shared(turns - biased, lambda n: (x - n * high) - n * low)
        bits = as_type("int32", turns)
        power = as_type("float32", bits << like(bits, _MANTISSA))
        return shared(rest, lambda r: polynomial(r, coefficients)) * power

    high, low = sign * _LN2_HIGH, sign * _LN2_LOW
    return shared(x * (sign * math.log2(math.e)) + biased, product)


def _log(x: Expr) -> Expr:
    """log(x) = e ln 2 + log(m), with x = m 2^e and m from sqrt(1/2) to sqrt(2)."""
    small = x < _LEAST_NORMAL
    normal = tirx.Select(small, x * 2.0**_MANTISSA, x)
    surplus = tirx.Select(small, like(x, float(_MANTISSA)), like(x, 0.0))
    finite = shared(as_type("int32", normal), lambda bits: _log_of(bits, surplus))
    below = tirx.Select(tirx.EQ(x, like(x, 0.0)), like(x, -math.inf), like(x, math.nan))
    # All comparisons with NaN are false, so NaN gives itself.
    proper = tirx.Select(x < math.inf, finite, x)
    return tirx.Select(x <= 0.0, below, proper)


def _log_of(bits: Expr, surplus: Expr) -> Expr:
    half = like(bits, 0x3F3504F3)  # sqrt(1/2)
    shift = like(bits, _MANTISSA)
    exponent = (bits - half) >> shift
    fraction = as_type("float32", bits - (exponent << shift)) - 1.0
    power = _cast("float32", exponent) - surplus
    return shared(power, lambda e: shared(fraction, lambda f: _log_near_one(f) + e * math.log(2)))


def _log_near_one(f: Expr) -> Expr:
    return f + f * f * (polynomial(f, _LOG) * f - 0.5)


def _sigmoid(x: Expr) -> Expr:
    near = _held(x, -_INFINITE, EXP_ENDS)
    power = shared(near, lambda v: _power(v, -1.0, _EXP_NEGATIVE, ROUNDING + _BIAS))
    return like(x, 1.0) / (power + 1.0)


def _odd(parts: tuple[Sequence[float], Sequence[float]], one: float) -> Callable[[Expr], Expr]:
    """An odd function that is 1 from `one` on: x times a quotient of polynomials in x^2."""
    above, below = parts

    def function(x: Expr) -> Expr:
        # NaN stays, as the second argument of min and max.
        near = tirx.max(like(x, -one), tirx.min(like(x, one), x))
        return tirx.max(like(x, -1.0), tirx.min(like(x, 1.0), shared(near, quotient)))

    def quotient(x: Expr) -> Expr:
        return shared(x * x, lambda t: x * polynomial(t, above) / polynomial(t, below))

    return function


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Horner's scheme, one multiply-add a coefficient. coefficients: the lowest power first."""
    *lower, value = coefficients
    result = like(x, value)
    for value in reversed(lower):
        result = result * x + like(x, value)
    return result


def like(x: Expr, value: float) -> Expr:
    """A constant with another value's type and lanes."""
    return tirx.const(value, x.ty.dtype)


def _cast(dtype: str, x: Expr) -> Expr:
    return tirx.Cast(_wide(dtype, x), x)


def as_type(dtype: str, x: Expr) -> Expr:
    """The bits of a value as a value of another type."""
    return tirx.reinterpret(_wide(dtype, x), x)


def _wide(dtype: str, x: Expr) -> str:
    lanes = x.ty.dtype.lanes
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


_FUNCTIONS = {
    "tirx.exp": _exp,
    "tirx.log": _log,
    "tirx.sigmoid": _sigmoid,
    "tirx.tanh": _odd(_TANH, TANH_ONE),
    "tirx.erf": _odd(_ERF, ERF_ONE),
}
# TVM does not vectorise a loop with a call that is not registered as vectorisable: erf, isnan and
# nearbyint are not.
for _name in (*_FUNCTIONS, "tirx.isnan", "tirx.nearbyint"):
    tvm.ir.Op.get(_name).set_attr("TVectorizable", True, plevel=11)
