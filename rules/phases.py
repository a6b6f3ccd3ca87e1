"""Phases: what a transposed convolution computes by phases is stored to where it belongs.

for f, p: for k: y[f, p] += x[p + f, k] * weight[f, k]
for t: out[t] = epilogue(y[t % S, t / S])
-->
for f, p: for k: y[f, p] += x[p + f, k] * weight[f, k]
for f, p: out[p * S + f] = epilogue(y[f, p])

The epilogue then goes through the result as the reduction does, so that a tile can end with it: the
rules that follow are asked again.
"""

from ansor_deploy.space import ApplyAndSkipRest, Pass, follow_reads

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
    follow_reads(state.sch, consumer, view)
    return [state.again()]
