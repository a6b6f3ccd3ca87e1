"""A convolution of bytes whose sums are rounded to bytes, as fusion makes it, and edits of it.

Its padding is the zero point. Weights are 1 or -1, so that sums are small enough for bytes; a
quantisation step is eight, so that one of eight sums is a tie.
"""

QUANTISED = """
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer((1, 9, 9, 8), "uint8"),
    w: T.Buffer((3, 3, 8, 16), "int8"),
    b: T.Buffer((16,), "int32"),
    y: T.Buffer((1, 9, 9, 16), "uint8"),
):
    T.func_attr({"tirx.noalias": True})
    p = T.alloc_buffer((1, 11, 11, 8), "uint8")
    z = T.alloc_buffer((1, 9, 9, 16), "int32")
    f = T.alloc_buffer((1, 9, 9, 16), "float32")
    g = T.alloc_buffer((1, 9, 9, 16), "float32")
    for n, h, v, c in T.grid(1, 11, 11, 8):
        with T.sblock("pad"):
            an, ah, av, ac = T.axis.remap("SSSS", [n, h, v, c])
            p[an, ah, av, ac] = T.if_then_else(
                1 <= ah and ah < 10 and 1 <= av and av < 10,
                x[an, ah - 1, av - 1, ac], T.uint8(3))
    for n, h, v, o, r, s, c in T.grid(1, 9, 9, 16, 3, 3, 8):
        with T.sblock("conv"):
            an, ah, av, ao, ar, as_, ac = T.axis.remap("SSSSRRR", [n, h, v, o, r, s, c])
            with T.init():
                z[an, ah, av, ao] = 0
            z[an, ah, av, ao] = (
                z[an, ah, av, ao] + T.Cast("int32", p[an, ah + ar, av + as_, ac])
                * (T.shift_right(T.Cast("int32", w[ar, as_, ac, ao]), 7) * 2 + 1))
    for n, h, v, o in T.grid(1, 9, 9, 16):
        with T.sblock("steps"):
            an, ah, av, ao = T.axis.remap("SSSS", [n, h, v, o])
            f[an, ah, av, ao] = (
                T.nearbyint(T.Cast("float32", z[an, ah, av, ao] + b[ao]) * T.float32(0.125))
                + T.float32(7))
    for n, h, v, o in T.grid(1, 9, 9, 16):
        with T.sblock("held"):
            an, ah, av, ao = T.axis.remap("SSSS", [n, h, v, o])
            g[an, ah, av, ao] = T.max(T.min(f[an, ah, av, ao], T.float32(255)), T.float32(0))
    for n, h, v, o in T.grid(1, 9, 9, 16):
        with T.sblock("out"):
            an, ah, av, ao = T.axis.remap("SSSS", [n, h, v, o])
            y[an, ah, av, ao] = T.Cast("uint8", T.Cast("int32", g[an, ah, av, ao]))
"""

_STEPS = 'T.Cast("float32", z[an, ah, av, ao] + b[ao]) * T.float32(0.125)'

EDITS = {
    "halves rounded up": (f"T.nearbyint({_STEPS})", f"T.floor({_STEPS} + T.float32(0.5))"),
    "cut off": ("T.nearbyint(", "T.floor("),
    "rounded after the zero point": (
        f"T.nearbyint({_STEPS})\n                + T.float32(7)",
        f"T.nearbyint({_STEPS} + T.float32(7))",
    ),
    "a last bit of the scale": ("T.float32(0.125)", "T.float32(0.12500001)"),
    "another zero point": ("T.float32(7)", "T.float32(8)"),
    "a border of zeros": ("T.uint8(3)", "T.uint8(0)"),
    "other bytes than there are": ("T.float32(255)", "T.float32(254)"),
    "bytes that begin anew": (
        "T.max(T.min(f[an, ah, av, ao], T.float32(255)), T.float32(0))",
        "f[an, ah, av, ao]",
    ),
    "unsigned bytes read as signed ones": (
        'T.Cast("int32", p[an, ah + ar, av + as_, ac])',
        'T.Cast("int32", T.reinterpret("int8", p[an, ah + ar, av + as_, ac]))',
    ),
    "sums that are cut off": (
        "z[an, ah, av, ao] + b[ao]",
        "T.min(z[an, ah, av, ao], 1000) + b[ao]",
    ),
    "bias dropped": ("z[an, ah, av, ao] + b[ao]", "z[an, ah, av, ao]"),
    "kernel turned": ("w[ar, as_, ac, ao]", "w[as_, ar, ac, ao]"),
}
