"""The order in which a block goes through its results, and that in which it reads another's."""

from typing import Any

from .._tvm import structural_map, tirx
from .block_view import SPATIAL, BlockView


def follow_reads(sch: Any, consumer: BlockView, made: BlockView) -> None:
    """Let a consumer go through its results in the order of the block that it reads.

        for t: out[t] = y[t % 2, t // 2]   -->   for f, p: out[2 p + f] = y[f, p]

    ScheduleError where it does not read each element once.
    """
    axes = [axis.var for axis in consumer.axes(SPATIAL)]
    (written,) = made.node.writes
    read = next(at for source, at in consumer.operands if source.same_as(written.source))

    def order(*new: Any) -> list[Any]:
        pairs = list(zip(axes, new, strict=True))
        put = lambda var: next((n for own, n in pairs if own.same_as(var)), var)  # noqa: E731
        return [structural_map(index, (tirx.Var, put)) for index in read]

    dtype = str(axes[0].ty.dtype)
    index_map = tirx.IndexMap.from_func(order, ndim=len(axes), index_dtype=dtype)
    sch.transform_block_layout(consumer.rv, index_map)
