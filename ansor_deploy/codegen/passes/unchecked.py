"""Remove the checks of tensors from kernels that take only planned tensors.

TVM lets a function check the rank, shape, strides, type and device of every argument, in more code
than most kernels have themselves. Tensors in the arena and among the weights are as they were
planned. A caller's tensors stay checked: kernels that take any of them are those that rely on no
alignment (`memory/callers_memory.py`). Checks of values, such as indices, stay as well.
"""

from typing import Any

from ..._tvm import structural_map, tirx, tvm
from ..memory.arena import ALIGNMENT

_OF_VALUES = "IndexError"  # `model/operators/indices.py`


@tvm.transform.module_pass(opt_level=0, name="ansor.PackedAPI")
def packed_api(mod: Any, _context: Any) -> Any:
    """The functions with TVM's packed signature; without checks where all tensors were planned."""
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
