"""Phases: a transposed convolution's epilogue runs in the order in which the phases are computed.

for f, p: for k: y[f, p] += x[p + f, k] * weight[f, k]
for t: out[t] = epilogue(y[t % S, t / S])
-->
for f, p: for k: y[f, p] += x[p + f, k] * weight[f, k]
for f, p: out[p * S + f] = epilogue(y[f, p])

The epilogue then has the loops of the reduction, so that a tile can end with it. The rules are
asked about the reduction again.
"""

from ansor_deploy.space import SPATIAL, ApplyAndSkipRest, Pass, structural_map, tirx

NAME = "phases"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if reason := view.reduces_nothing() or view.has_several_results():
        return reason
    readers = view.consumers
    if len(readers) != 1 or not readers[0].reads_remainders:
        return Pass("its consumer reads it in order")
    return ApplyAndSkipRest()


def apply(state, block, target):
    view = state.view(block)
    (consumer,) = view.consumers
    _follow_reads(state.sch, consumer, view)
    return [state.again()]


def _follow_reads(sch, consumer, made):
    """Reorder a consumer's loops so that it reads a block in the order in which that is computed.

    ScheduleError where the consumer does not read each element once.
    """
    axes = [axis.var for axis in consumer.axes(SPATIAL)]
    (written,) = made.node.writes
    read = next(at for source, at in consumer.operands if source.same_as(written.source))

    def order(*new):
        pairs = list(zip(axes, new, strict=True))
        put = lambda var: next((n for own, n in pairs if own.same_as(var)), var)  # noqa: E731
        return [structural_map(index, (tirx.Var, put)) for index in read]

    dtype = str(axes[0].ty.dtype)
    index_map = tirx.IndexMap.from_func(order, ndim=len(axes), index_dtype=dtype)
    sch.transform_block_layout(consumer.rv, index_map)
