"""Row fusion: softmax, normalisations and other reductions along the contiguous axis.

for i: for k: s[i] += a[i, k]
for i, j: y[i, j] = a[i, j] / s[i]
-->
parallel i:
    for k: for v (unrolled): for lane (vector): p[v, lane] += a[i, k, v, lane]
    s = sum of p
    for j (vectors): y[i, j] = a[i, j] / s

A row is read once from memory, and stays in the cache for all stages.
"""

import math

from ansor_deploy.space import blocks as b
from ansor_deploy.space import loops as l
from ansor_deploy.space.rule import ApplyAndSkipRest, Pass

NAME = "row-fusion"
KINDS = ("llvm",)

# Elements of a row that one core does sooner than several can be woken.
LONG_ROW = 1 << 15


def applies(state, block, target):
    sch = state.sch
    stages = _group(state, state.block(block))
    nodes = [sch.get(stage) for stage in stages]
    reductions = [node for node in nodes if b.is_reduction(node)]
    if not reductions:
        return Pass("no row reduction leads to it")
    if any(len(node.writes) != 1 for node in nodes):
        return Pass("a stage computes several results at once")
    across = [node.name_hint for node in reductions if not b.along_rows(node)]
    if across:
        return Pass(f"{across[0]} does not reduce along the contiguous axis")
    names = {node.name_hint for node in nodes}
    for stage in stages[:-1]:
        if any(sch.get(user).name_hint not in names for user in sch.get_consumers(stage)):
            return Pass(f"{sch.get(stage).name_hint} is also needed elsewhere")
    depth = _depth(nodes)
    if depth < 1:
        return Pass("all of it is one row")
    extents = [int(axis.dom.extent) for axis in nodes[-1].iter_vars]
    longest = max(_reduced(node) for node in reductions)
    if math.prod(extents[:depth]) < target.cores and longest > LONG_ROW:
        return Pass("its rows are too few and too long for one core each")
    return ApplyAndSkipRest()


def apply(state, block, target):
    sch = state.sch
    l.inline_producers(sch, state.block(block))
    stages = _group(state, state.block(block))
    depth = _depth([sch.get(stage) for stage in stages])
    vectors = state.choose("accumulators", [4, 2, 8])
    partials, rows = [], []
    for stage in stages:
        if b.is_reduction(sch.get(stage)):
            made = l.lane_partials(sch, stage, vectors, target)
            partials.append(made)
            rows += made
        rows.append(stage)
    loops = sch.get_loops(stages[-1])[:depth]
    row = sch.fuse(*loops) if depth > 1 else loops[0]
    sch.parallel(row)
    for stage in reversed(rows[:-1]):
        sch.compute_at(stage, row, preserve_unit_loops=True)
    steps = state.choose("unroll", [0, 64, 16])
    if steps:
        sch.annotate(row, "pragma_auto_unroll_max_step", steps)
        sch.annotate(row, "pragma_unroll_explicit", True)
    for stage in rows:
        if not b.is_reduction(sch.get(stage)):
            _vectorize(sch, stage, target)
    inits = [init for made in partials for init in l.vectorize_partials(sch, made)]
    state.done |= {sch.get(stage).name_hint for stage in [*rows, *inits]}
    return [state]


def _group(state, block):
    """The stages that a block's rows need, itself last: not contractions, nothing finished."""
    sch = state.sch
    names, pending = set(), [block]
    while pending:
        stage = pending.pop()
        name = sch.get(stage).name_hint
        if name in names:
            continue
        names.add(name)
        for producer in sch.get_producers(stage):
            node = sch.get(producer)
            if node.name_hint not in state.done and not b.is_contraction(node):
                pending.append(producer)
    return [stage for stage in b.blocks(sch) if sch.get(stage).name_hint in names]


def _depth(nodes):
    """How many outer axes of the last stage tell rows apart: those that all reductions keep."""
    depths = []
    for node in nodes:
        if b.is_reduction(node):
            extents = [int(axis.dom.extent) for axis in node.iter_vars][: len(b.spatial_vars(node))]
            while len(extents) > 1 and extents[-1] == 1:
                extents.pop()
            depths.append(len(extents))
    last = nodes[-1]
    own = len(b.spatial_vars(last))
    return min([*depths, own if b.is_reduction(last) else own - 1])


def _reduced(node):
    return math.prod(int(a.dom.extent) for a in node.iter_vars[len(b.spatial_vars(node)) :])


def _vectorize(sch, stage, target):
    loops = sch.get_loops(stage)
    if len(loops) < 2:
        return
    _, lane = l.split_lanes(sch, loops[-1], target)
    if l.extent(sch, lane) > 1:
        sch.vectorize(lane)
