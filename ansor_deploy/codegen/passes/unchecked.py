"""Kernels take the tensors that the plan of memory gives them as they are.

TVM has a function check the rank, the shape, the strides, the type and the place of all that it is
called with, in more code than most kernels have of their own. What lies in the arena or among the
weights is as it was planned. A caller's tensors are checked: kernels that take any of these rely on
no alignment (`memory/callers_memory.py`). So are values, such as indices, of which operators assert
something.
"""

from typing import Any

from ..._tvm import structural_map, tirx, tvm
from ..memory.arena import ALIGNMENT

_OF_VALUES = "IndexError"  # `model/operators/indices.py`


@tvm.transform.module_pass(opt_level=0, name="ansor.PackedAPI")
def packed_api(mod: Any, _context: Any) -> Any:
    """The functions as they are called, those whose tensors were planned without checks of them."""
    planned = {name for name, func in mod.functions.items() if _planned(func)}
    made = tirx.transform.MakePackedAPI()(mod)
    functions = {n: _unchecked(f) if n in planned else f for n, f in made.functions.items()}
    return tvm.IRModule(functions, attrs=made.attrs)


def _planned(func: Any) -> bool:
    return all(int(buffer.data_alignment) >= ALIGNMENT for buffer in func.params)


def _unchecked(func: Any) -> Any:
    return func.with_body(structural_map(func.body, (tirx.AssertStmt, _dropped)))


def _dropped(check: Any) -> Any:
    return check if str(check.error_kind.value) == _OF_VALUES else tirx.Evaluate(0)
