"""Rewritings replace a block by an equal computation, which no primitive of a schedule can do.

A trace names its rewriting, which is applied to the task's own program before the trace's
instructions, so that a record never contains a program. The name is an annotation of the root
block, such as "winograd b1 4": the rewriting, the block and the size. Rewritings are defined here
and not in the rules that ask for them, because a record is replayed without rules.
"""

from collections.abc import Callable
from typing import Any

from .._tvm import structural_map, tirx, tvm
from ..registry.record import REWRITING
from .block_view import BlockView
from .winograd import winograd

# Each takes a block and a size, and gives a function of the block's operands and result.
REWRITINGS: dict[str, Callable[[BlockView, int], Any]] = {"winograd": winograd}


def rewritten(mod: tvm.IRModule, step: str) -> tvm.IRModule:
    """The program with a block replaced. step: the rewriting as a trace names it.

    ValueError where there is no such rewriting, or it does not take such a block.
    """
    name, block, size = step.split()
    if name not in REWRITINGS:
        raise ValueError(f"there is no rewriting {name!r}")
    sch = tvm.s_tir.Schedule(mod, debug_mask="none")
    view = BlockView(sch, sch.get_sblock(block))
    stages = REWRITINGS[name](view, int(size))
    func = sch.mod["main"]
    return tvm.IRModule({"main": func.with_body(_replaced(func.body, view, stages))})


def mark(sch: Any, step: str) -> None:
    """Record, as the first instruction of a schedule's trace, how its program was rewritten."""
    sch.annotate(sch.get_sblock("root"), REWRITING, step)


def rewritings(func: Any) -> list[str]:
    """The rewritings of a scheduled function, as a trace names them."""
    found = (func.body.block.annotations or {}).get(REWRITING)
    return [str(found)] if found else []


def steps_of(instructions: list[Any]) -> list[str]:
    """The rewritings that a trace's instructions, as JSON, name."""
    return [
        inputs[1].strip('"')
        for name, inputs, attributes, *_ in instructions
        if name == "Annotate" and attributes == [REWRITING]
    ]


def _replaced(realize: Any, view: BlockView, stages: Any) -> Any:
    """The root of a program with the loops of a block replaced by those of other stages."""
    root, made = realize.block, stages.body.block
    buffers = [*_operands(view), view.node.writes[0].source]
    known = dict(zip(stages.params, buffers, strict=True))
    body = structural_map(made.body, (tirx.Var, lambda var: known.get(var, var)))
    statements = list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]
    loops = view.sch.get(view.sch.get_loops(view.rv)[0])
    at = next(k for k, one in enumerate(statements) if one.same_as(loops))
    statements[at : at + 1] = body.seq
    block = tvm.s_tir.SBlock(
        root.iter_vars,
        root.reads,
        root.writes,
        root.name_hint,
        tirx.SeqStmt(statements),
        root.init,
        [*root.alloc_buffers, *made.alloc_buffers],
        root.match_buffers,
        root.annotations,
    )
    return tvm.s_tir.SBlockRealize(realize.iter_values, realize.predicate, block)


def _operands(view: BlockView) -> list[Any]:
    return [buffer for buffer, _ in view.operands]
