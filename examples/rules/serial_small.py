"""Serial small: a result that one core has written before a second one wakes stays on one core.

parallel i: y[i] = f(x[i])
-->
for i / lanes: vectorised lanes: y[i] = f(x[i])

An example of a project's own rule: put it into the `rules` folder beside your ansor-deploy.toml.
Handing a loop to other cores costs some microseconds; LARGEST is where that pays on the machine
that you build for.
"""

import math

from ansor_deploy.space import ApplyAndSkipRest, BlockView, Pass, blocks, vectorized

NAME = "serial-small"
KINDS = ("llvm",)

# Results that one core writes in about the time that another needs to start.
LARGEST = 8192


def applies(state, block, target):
    view = state.view(block)
    if any(BlockView(state.sch, other).is_reduction for other in blocks(state.sch)):
        return Pass("the task reduces: its tiles decide what is parallel")
    if view.consumers:
        return Pass("it is no output")
    if not view.spatial:
        return Pass("it has no loop")
    if (results := math.prod(view.spatial)) > LARGEST:
        return Pass(f"its {results} results are work for several cores")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch = state.sch
    vectorized(sch, sch.get_loops(state.block(block))[-1], target)
    state.done.add(block)
    return [state]
