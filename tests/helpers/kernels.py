"""Texts of faulty programs, which are called with x and y, both (64, 64) float32."""

_PROGRAM = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
"""
# Its loop would take years.
ENDLESS = f"""{_PROGRAM}
    for i, j in T.grid(T.int64(1125899906842624), 64):
        with T.sblock("b0"):
            v, w = T.axis.remap("RS", [i, j])
            T.reads(y[0, w])
            T.writes(y[0, w])
            y[0, w] = y[0, w] * T.float32(0.5) + x[0, w]
"""
# It writes far beyond its buffer.
ASTRAY = f"""{_PROGRAM}
    for i, j in T.grid(T.int64(64), 64):
        with T.sblock("b0"):
            v, w = T.axis.remap("SS", [i, j])
            T.reads(x[v, w])
            T.writes(y[v * 1073741824, w])
            y[v * 1073741824, w] = x[v, w]
"""


def leaving(path):
    """A program that doubles x, and makes a folder, which a candidate must not do."""
    return f"""{_PROGRAM}
    for i, j in T.grid(T.int64(64), 64):
        with T.sblock("b0"):
            v, w = T.axis.remap("SS", [i, j])
            T.reads(x[v, w])
            T.writes(y[v, w])
            y[v, w] = T.if_then_else(
                T.call_extern("int32", "mkdir", "{path}", 448) < 1,
                x[v, w] * T.float32(2),
                T.float32(0),
            )
"""
