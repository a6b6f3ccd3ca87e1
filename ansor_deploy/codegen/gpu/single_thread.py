"""Let one thread of the GPU run the statements that no schedule spreads over threads, in order.

    f = alloc_buffer(1)             f = alloc_buffer(1)
    f[0] = 0                        blockIdx.x 1, threadIdx.x 1:
    for i: ...              -->         f[0] = 0
    assert f[0] == 0                    for i: ...
                                    assert f[0] == 0

That is slow, and rare: only programs that no rule schedules, such as checks of indices. Their
assertions stay on the host (`machine_code.py`).
"""

from collections.abc import Iterator
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm

_SPREAD = ("thread_extent", "virtual_thread")
_THREAD_INDEX = 1  # the kind of a tirx.IterVar that is an axis of threads


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.FromBeginning")
def from_beginning(func: Any, _mod: Any, _context: Any) -> Any:
    """Give tensors the offset 0 in their memory: a launch takes addresses and no offsets."""
    moved = [one for one in func.params if not isinstance(one.elem_offset, tirx.IntImm)]
    fresh = {one: tirx.decl_buffer(one.shape, one.dtype, name=one.name) for one in moved}
    return structural_map(func, (tirx.Var, lambda var: fresh.get(var, var))) if fresh else func


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.BySingleThread")
def by_single_thread(func: Any, _mod: Any, _context: Any) -> Any:
    """A flat function in which one thread of the GPU does what the host would compute."""
    made: list[Any] = []
    alone: list[Any] = []
    for one in _statements(func.body):
        if not _is_hosts(one):
            alone.append(one)
            continue
        if alone:
            made.append(_by_one(alone))
            alone = []
        made.append(one)
    if not alone and len(made) == len(list(_statements(func.body))):
        return func
    return func.with_body(_sequence(made + ([_by_one(alone)] if alone else [])))


def _statements(body: Any) -> Iterator[Any]:
    if isinstance(body, tirx.SeqStmt):
        for one in body.seq:
            yield from _statements(one)
    elif isinstance(body, tirx.AttrStmt) and body.attr_key not in _SPREAD:
        yield from _statements(body.body)
    else:
        yield body


def _is_hosts(one: Any) -> bool:
    """Whether a statement stays on the host: an allocation, a launch or an assertion."""
    spread = isinstance(one, tirx.AttrStmt)
    return spread or isinstance(one, tirx.AllocBuffer | tirx.DeclBuffer | tirx.AssertStmt)


def _by_one(statements: list[Any]) -> Any:
    """A launch of one thread, after the allocations of its global buffers, which the host makes."""
    whole = _sequence(statements)
    rooms = [one for one in collect(whole, tirx.AllocBuffer) if one.buffer.scope() == "global"]
    nothing = tirx.Evaluate(tirx.IntImm("int32", 0))
    left = structural_map(whole, (tirx.AllocBuffer, lambda one: nothing if one in rooms else one))
    body = structural_map(left, (tirx.For, _in_order))
    for axis in ("threadIdx.x", "blockIdx.x"):
        var, extent = tirx.Var(axis, "int32"), tirx.IntImm("int32", 1)
        thread = tirx.IterVar(tvm.ir.Range(0, 1), var, _THREAD_INDEX, axis)
        body = tirx.AttrStmt(thread, _SPREAD[0], extent, body)
    return _sequence([*rooms, body])


def _in_order(loop: Any) -> Any:
    """A serial loop instead of one that is vectorised or parallel on a CPU."""
    if loop.kind not in (tirx.ForKind.VECTORIZED, tirx.ForKind.PARALLEL):
        return loop
    return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)


def _sequence(statements: list[Any]) -> Any:
    return tirx.SeqStmt(statements) if len(statements) > 1 else statements[0]
