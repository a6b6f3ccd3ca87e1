"""Programs as fusion makes them in a network, and edits that make each of them wrong.

An edit replaces one piece of the text, and its name says what is wrong afterwards. TVM can still
build the text.
"""

from __future__ import annotations

from helpers import mutants_of_bytes

MATMUL = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((37, 64), "float32"),
    w: T.Buffer((64, 48), "float32"),
    b: T.Buffer((48,), "float32"),
    y: T.Buffer((37, 48), "float32"),
):
    T.func_attr({"tirx.noalias": True})
    total = T.alloc_buffer((37, 48), "float32")
    for i, j, k in T.grid(37, 48, 64):
        with T.sblock("total"):
            r, c, d = T.axis.remap("SSR", [i, j, k])
            with T.init():
                total[r, c] = T.float32(0)
            total[r, c] = total[r, c] + x[r, d] * w[d, c]
    for i, j in T.grid(37, 48):
        with T.sblock("relu"):
            r, c = T.axis.remap("SS", [i, j])
            y[r, c] = T.max(total[r, c] + b[c], T.float32(0))
"""

# For two threads that add to the same sums: each reads one, adds for a while and writes it back.
RACE = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((256, 1024), "float32"),
    w: T.Buffer((1024, 64), "float32"),
    y: T.Buffer((256, 64), "float32"),
):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(256, 64):
        with T.sblock("zero"):
            r, c = T.axis.remap("SS", [i, j])
            y[r, c] = T.float32(0)
    for k0 in T.serial(8):
        for i, j, k1 in T.grid(256, 64, 128):
            with T.sblock("total"):
                r, c = T.axis.remap("SS", [i, j])
                d = T.axis.reduce(1024, k0 * 128 + k1)
                y[r, c] = y[r, c] + x[r, d] * w[d, c]
"""

CONV = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((1, 9, 9, 8), "float32"),
    w: T.Buffer((3, 3, 8, 16), "float32"),
    b: T.Buffer((16,), "float32"),
    y: T.Buffer((1, 9, 9, 16), "float32"),
):
    T.func_attr({"tirx.noalias": True})
    p = T.alloc_buffer((1, 11, 11, 8), "float32")
    z = T.alloc_buffer((1, 9, 9, 16), "float32")
    for n, h, v, c in T.grid(1, 11, 11, 8):
        with T.sblock("pad"):
            an, ah, av, ac = T.axis.remap("SSSS", [n, h, v, c])
            p[an, ah, av, ac] = T.if_then_else(
                1 <= ah and ah < 10 and 1 <= av and av < 10,
                x[an, ah - 1, av - 1, ac], T.float32(0))
    for n, h, v, o, r, s, c in T.grid(1, 9, 9, 16, 3, 3, 8):
        with T.sblock("conv"):
            an, ah, av, ao, ar, as_, ac = T.axis.remap("SSSSRRR", [n, h, v, o, r, s, c])
            with T.init():
                z[an, ah, av, ao] = T.float32(0)
            z[an, ah, av, ao] = (
                z[an, ah, av, ao] + p[an, ah + ar, av + as_, ac] * w[ar, as_, ac, ao])
    for n, h, v, o in T.grid(1, 9, 9, 16):
        with T.sblock("out"):
            an, ah, av, ao = T.axis.remap("SSSS", [n, h, v, o])
            y[an, ah, av, ao] = T.max(z[an, ah, av, ao] + b[ao], T.float32(0))
"""

DEPTHWISE = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((1, 10, 10, 12), "float32"),
    w: T.Buffer((3, 3, 12), "float32"),
    y: T.Buffer((1, 8, 8, 12), "float32"),
):
    T.func_attr({"tirx.noalias": True})
    for h, v, c, r, s in T.grid(8, 8, 12, 3, 3):
        with T.sblock("depthwise"):
            ah, av, ac, ar, as_ = T.axis.remap("SSSRR", [h, v, c, r, s])
            with T.init():
                y[0, ah, av, ac] = T.float32(0)
            y[0, ah, av, ac] = y[0, ah, av, ac] + x[0, ah + ar, av + as_, ac] * w[ar, as_, ac]
"""

SOFTMAX = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((7, 50), "float32"), y: T.Buffer((7, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    top = T.alloc_buffer((7,), "float32")
    e = T.alloc_buffer((7, 50), "float32")
    total = T.alloc_buffer((7,), "float32")
    for i, k in T.grid(7, 50):
        with T.sblock("top"):
            r, c = T.axis.remap("SR", [i, k])
            with T.init():
                top[r] = T.float32(-3.4e38)
            top[r] = T.max(top[r], x[r, c])
    for i, j in T.grid(7, 50):
        with T.sblock("exp"):
            r, c = T.axis.remap("SS", [i, j])
            e[r, c] = T.exp(x[r, c] - top[r])
    for i, k in T.grid(7, 50):
        with T.sblock("total"):
            r, c = T.axis.remap("SR", [i, k])
            with T.init():
                total[r] = T.float32(0)
            total[r] = total[r] + e[r, c]
    for i, j in T.grid(7, 50):
        with T.sblock("divide"):
            r, c = T.axis.remap("SS", [i, j])
            y[r, c] = e[r, c] / total[r]
"""

POOL = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((1, 41, 41, 16), "float32"), y: T.Buffer((1, 20, 20, 16), "float32")):
    T.func_attr({"tirx.noalias": True})
    for h, v, c, r, s in T.grid(20, 20, 16, 3, 3):
        with T.sblock("pool"):
            ah, av, ac, ar, as_ = T.axis.remap("SSSRR", [h, v, c, r, s])
            with T.init():
                y[0, ah, av, ac] = T.float32(-3.4e38)
            y[0, ah, av, ac] = T.max(y[0, ah, av, ac], x[0, ah * 2 + ar, av * 2 + as_, ac])
"""

INTEGERS = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((12, 32), "int8"), w: T.Buffer((32, 20), "int8"), y: T.Buffer((12, 20), "int32")
):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(12, 20, 32):
        with T.sblock("total"):
            r, c, d = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[r, c] = 0
            y[r, c] = y[r, c] + T.Cast("int32", x[r, d]) * T.Cast("int32", w[d, c])
"""

HALVES = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((12, 64), "float16"), w: T.Buffer((64, 20), "float16"),
    y: T.Buffer((12, 20), "float16")
):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(12, 20, 64):
        with T.sblock("total"):
            r, c, d = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[r, c] = T.float16(0)
            y[r, c] = y[r, c] + x[r, d] * w[d, c]
"""

BATCHED = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((3, 10, 16), "float32"),
    w: T.Buffer((3, 16, 16), "float32"),
    y: T.Buffer((3, 10, 16), "float32"),
):
    T.func_attr({"tirx.noalias": True})
    for n, i, j, k in T.grid(3, 10, 16, 16):
        with T.sblock("total"):
            a, r, c, d = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                y[a, r, c] = T.float32(0)
            y[a, r, c] = y[a, r, c] + x[a, r, d] * w[a, d, c]
"""

ABOVE = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((5, 32), "float32"), n: T.Buffer((5, 32), "int32"),
         above: T.Buffer((5, 32), "bool"), half: T.Buffer((5, 32), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(5, 32):
        with T.sblock("above"):
            r, c = T.axis.remap("SS", [i, j])
            above[r, c] = T.float32(0) < x[r, c]
    for i, j in T.grid(5, 32):
        with T.sblock("half"):
            r, c = T.axis.remap("SS", [i, j])
            half[r, c] = T.shift_right(n[r, c], 1)
"""

_MATMUL = {
    "no init": ("total[r, c] = T.float32(0)", "T.evaluate(0)"),
    "init to one": ("total[r, c] = T.float32(0)", "total[r, c] = T.float32(1)"),
    "init of another element": (
        "total[r, c] = T.float32(0)",
        "total[r, (c + 1) % 48] = T.float32(0)",
    ),
    "sum that stops early": ("T.grid(37, 48, 64)", "T.grid(37, 48, 63)"),
    "rows left out": ("T.grid(37, 48, 64)", "T.grid(36, 48, 64)"),
    "tail of columns left unwritten": ("T.grid(37, 48):", "T.grid(37, 47):"),
    "last row left unwritten": ("T.grid(37, 48):", "T.grid(36, 48):"),
    "one row too many": ("T.grid(37, 48):", "T.grid(38, 48):"),
    "row before the first": ("y[r, c] = T.max", "y[r - 1, c] = T.max"),
    "weights read one column on": ("w[d, c]", "w[d, c + 1]"),
    "weights read transposed": ("w[d, c]", "w[c, d % 48]"),
    "input read transposed": ("x[r, d]", "x[d % 37, r]"),
    "bias dropped": ("total[r, c] + b[c]", "total[r, c]"),
    "bias of the row": ("+ b[c]", "+ b[r]"),
    "relu dropped": ("T.max(total[r, c] + b[c], T.float32(0))", "total[r, c] + b[c]"),
    "relu before the bias": (
        "T.max(total[r, c] + b[c], T.float32(0))",
        "T.max(total[r, c], T.float32(0)) + b[c]",
    ),
    "relu of another level": (", T.float32(0))\n", ", T.float32(0.001))\n"),
    "not a number below zero": (
        "T.max(total[r, c] + b[c], T.float32(0))",
        "T.exp(T.log(total[r, c] + b[c]))",
    ),
    "one element infinite": (
        "T.max(total[r, c] + b[c], T.float32(0))",
        "T.if_then_else(r + c == 83, T.infinity('float32'), total[r, c])",
    ),
    "subtracts": ("total[r, c] + x[r, d]", "total[r, c] - x[r, d]"),
    "cut to bfloat16": (
        "x[r, d] * w",
        'T.reinterpret("float32", T.reinterpret("uint32", x[r, d]) & T.uint32(0xFFFF0000)) * w',
    ),
    "rounded to half": (
        "x[r, d] * w[d, c]",
        'T.Cast("float32", T.Cast("float16", x[r, d]) * T.Cast("float16", w[d, c]))',
    ),
    "upper half only": (
        "y[r, c] = T.max(total[r, c] + b[c], T.float32(0))",
        "y[r % 19, c] = T.max(total[r % 19, c] + b[c], T.float32(0))",
    ),
    "output through the input": (
        "y[r, c] = T.max(total[r, c] + b[c], T.float32(0))",
        "x[r, c] = T.max(total[r, c] + b[c], T.float32(0))\n            y[r, c] = x[r, c]",
    ),
    "weights scaled in place": (
        "y[r, c] = T.max",
        "w[0, c] = w[0, c] * T.float32(2)\n            y[r, c] = T.max",
    ),
    "one float behind the bias": (
        "y[r, c] = T.max",
        "b[48] = T.float32(0)\n            y[r, c] = T.max",
    ),
}

_RACE = {
    "parallel reduction": ("T.serial(8)", "T.parallel(8)"),
    "parallel zeroing of sums": ("for i, j in T.grid(256, 64):", "for i, j in T.grid(255, 64):"),
}

_CONV = {
    "padding left unwritten": ("T.grid(1, 11, 11, 8)", "T.grid(1, 10, 11, 8)"),
    "padding of one side": ("1 <= ah and ah < 10", "1 <= ah and ah < 9"),
    "padding of ones": (
        "x[an, ah - 1, av - 1, ac], T.float32(0)",
        "x[an, ah - 1, av - 1, ac], T.float32(1)",
    ),
    "no padding": (
        "1 <= ah and ah < 10 and 1 <= av and av < 10",
        "1 <= ah and ah < 11 and 1 <= av and av < 10",
    ),
    "padding shifted": ("x[an, ah - 1, av - 1, ac]", "x[an, ah - 1, av, ac]"),
    "kernel turned": ("w[ar, as_, ac, ao]", "w[as_, ar, ac, ao]"),
    "kernel flipped": ("w[ar, as_, ac, ao]", "w[2 - ar, 2 - as_, ac, ao]"),
    "kernel one row short": ("16, 3, 3, 8):", "16, 2, 3, 8):"),
    "channels one short": ("16, 3, 3, 8):", "16, 3, 3, 7):"),
    "weights packed by twos, read by ones": (
        "w[ar, as_, ac, ao]",
        "w[ar, as_, ac, ao // 2 + ao % 2 * 8]",
    ),
    "bias dropped": ("z[an, ah, av, ao] + b[ao]", "z[an, ah, av, ao]"),
    "relu dropped": ("T.max(z[an, ah, av, ao] + b[ao], T.float32(0))", "z[an, ah, av, ao] + b[ao]"),
    "image turned": ("y[an, ah, av, ao] = T.max", "y[an, av, ah, ao] = T.max"),
    "init in the last step": (
        "z[an, ah, av, ao] + p",
        "T.if_then_else(ar + as_ + ac == 11, T.float32(0), z[an, ah, av, ao]) + p",
    ),
}

_DEPTHWISE = {
    "no init": ("y[0, ah, av, ac] = T.float32(0)", "T.evaluate(0)"),
    "channels one off": ("w[ar, as_, ac]", "w[ar, as_, (ac + 1) % 12]"),
    "window turned": ("x[0, ah + ar, av + as_, ac]", "x[0, ah + as_, av + ar, ac]"),
    "window beyond the image": ("x[0, ah + ar, av", "x[0, ah + ar + 1, av"),
    "tail of channels": ("T.grid(8, 8, 12, 3, 3)", "T.grid(8, 8, 8, 3, 3)"),
    "one row too many": ("T.grid(8, 8, 12, 3, 3)", "T.grid(9, 8, 12, 3, 3)"),
}

_SOFTMAX = {
    "sum of another row": ("/ total[r]", "/ total[(r + 1) % 7]"),
    "sum not divided by": ("e[r, c] / total[r]", "e[r, c]"),
    "sum one short": (
        "total[r] = total[r] + e[r, c]",
        "total[r] = T.if_then_else(c < 49, total[r] + e[r, c], total[r])",
    ),
    "sum from one": ("total[r] = T.float32(0)", "total[r] = T.float32(1)"),
    "sum without init": ("total[r] = T.float32(0)", "T.evaluate(0)"),
    "top of a row dropped": ("x[r, c] - top[r])", "x[r, c] - top[r] * T.float32(2000))"),
    "exponential to the base two": ("T.exp(x", "T.exp2(x"),
    "tail unwritten": (
        'with T.sblock("divide"):',
        'with T.sblock("divide"):\n            T.where(i * 50 + j < 349)',
    ),
}

_POOL = {
    "init of zero": ("T.float32(-3.4e38)", "T.float32(0)"),
    "no init": ("y[0, ah, av, ac] = T.float32(-3.4e38)", "T.evaluate(0)"),
    "least": ("T.max(y", "T.min(y"),
    "window of two": ("T.grid(20, 20, 16, 3, 3)", "T.grid(20, 20, 16, 3, 2)"),
    "stride of one": ("av * 2 + as_", "av + as_"),
    "window one on": ("ah * 2 + ar, av", "ah * 2 + ar + 1, av"),
}

_INTEGERS = {
    "sums of eight bits": (
        'y[r, c] + T.Cast("int32", x[r, d]) * T.Cast("int32", w[d, c])',
        'T.Cast("int32", T.Cast("int8", y[r, c] + T.Cast("int32", x[r, d] * w[d, c])))',
    ),
    "one too many": ("y[r, c] = 0", "y[r, c] = 1"),
    "no init": ("y[r, c] = 0", "T.evaluate(0)"),
    "sum that stops early": ("T.grid(12, 20, 32)", "T.grid(12, 20, 31)"),
    "tail unwritten": ("T.grid(12, 20, 32)", "T.grid(12, 16, 32)"),
}

_HALVES = {
    "no init": ("y[r, c] = T.float16(0)", "T.evaluate(0)"),
    "half of the sum": ("T.grid(12, 20, 64)", "T.grid(12, 20, 32)"),
    "weights transposed": ("w[d, c]", "w[c, d % 20]"),
    "tail unwritten": ("T.grid(12, 20, 64)", "T.grid(12, 19, 64)"),
}

_BATCHED = {
    "weights of the first": ("w[a, d, c]", "w[0, d, c]"),
    "weights transposed": ("w[a, d, c]", "w[a, c, d]"),
    "last of the batch left out": ("T.grid(3, 10, 16, 16)", "T.grid(2, 10, 16, 16)"),
    "one more in the batch": ("T.grid(3, 10, 16, 16)", "T.grid(4, 10, 16, 16)"),
}

_ABOVE = {
    "at least": ("T.float32(0) < x", "T.float32(-0.01) <= x"),
    "any byte for true": (
        "above[r, c] = T.float32(0) < x[r, c]",
        "above[r, c] = x[r, c] < T.float32(0)",
    ),
    "tail unwritten": ('sblock("half"):', 'sblock("half"):\n            T.where(i * 32 + j < 159)'),
    "third instead of half": ("T.shift_right(n[r, c], 1)", "n[r, c] // 3"),
}

PROGRAMS = {
    "matmul": (MATMUL, _MATMUL),
    "long sums": (RACE, _RACE),
    "conv": (CONV, _CONV),
    "depthwise": (DEPTHWISE, _DEPTHWISE),
    "softmax": (SOFTMAX, _SOFTMAX),
    "pool": (POOL, _POOL),
    "integers": (INTEGERS, _INTEGERS),
    "quantised": (mutants_of_bytes.QUANTISED, mutants_of_bytes.EDITS),
    "halves": (HALVES, _HALVES),
    "batched": (BATCHED, _BATCHED),
    "two outputs": (ABOVE, _ABOVE),
}
MUTANTS = [(program, edit) for program, (_, edits) in PROGRAMS.items() for edit in edits]


def mutant(program: str, edit: str) -> str:
    """The text of a program with one edit."""
    text, edits = PROGRAMS[program]
    old, new = edits[edit]
    if text.count(old) != 1:
        raise ValueError(f"{program}, {edit}: {old!r} stands {text.count(old)} times in the text")
    return text.replace(old, new)
