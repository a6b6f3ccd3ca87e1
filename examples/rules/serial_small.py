"""Serial small: a result that one core has written before a second one wakes stays on one core.

parallel i: y[i] = f(x[i])
-->
for i / lanes: vectorised lanes: y[i] = f(x[i])

An example of a project's own rule: put it into the `rules` folder beside your ansor-deploy.toml.
Handing a loop to other cores costs some microseconds; LARGEST is where that pays on the machine
that you build for.
"""

import math

from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "serial-small"
KINDS = ("llvm",)

# Results that one core writes in about the time that another needs to start.
LARGEST = 8192


def applies(state, block, target):
    sch = state.sch
    if any(b.is_reduction(sch.get(other)) for other in b.blocks(sch)):
        return Pass("the task reduces: its tiles decide what is parallel")
    if sch.get_consumers(state.block(block)):
        return Pass("it is no output")
    loops = sch.get_loops(state.block(block))
    if not loops:
        return Pass("it has no loop")
    if (results := math.prod(l.extent(sch, loop) for loop in loops)) > LARGEST:
        return Pass(f"its {results} results are work for several cores")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch = state.sch
    _, lanes = l.split_lanes(sch, sch.get_loops(state.block(block))[-1], target)
    if l.extent(sch, lanes) > 1:
        sch.vectorize(lanes)
    state.done.add(block)
    return [state]
