"""Is the site as fast as it was? A reference kernel tells, before and after what is measured.

The kernel is a matrix product under the default schedule: it uses every core, the vector units
and the caches, as candidates do, so a clock that falls or a neighbour that wakes shows in it.
"""

from __future__ import annotations

# Another's work, or a falling clock, must change the kernel's time by this share to be noticed.
DRIFT = 0.15

SIDE = 192
TEXT = f"""
@T.prim_func(s_tir=True)
def main(a: T.Buffer(({SIDE}, {SIDE}), "float32"), b: T.Buffer(({SIDE}, {SIDE}), "float32"), c: T.Buffer(({SIDE}, {SIDE}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i, j, k in T.grid({SIDE}, {SIDE}, {SIDE}):
        with T.sblock("b0"):
            u, v, w = T.axis.remap("SSR", [i, j, k])
            T.reads(a[u, w], b[w, v])
            T.writes(c[u, v])
            with T.init():
                c[u, v] = T.float32(0)
            c[u, v] = c[u, v] + a[u, w] * b[w, v]
"""  # noqa: E501 - a signature of the script stands on one line


def drift(before: float, after: float) -> float:
    """By which share the slower of two times of the kernel exceeds the other."""
    return max(before, after) / min(before, after) - 1
