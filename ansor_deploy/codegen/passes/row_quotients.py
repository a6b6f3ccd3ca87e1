"""Divide rows of exponentials by their sums (softmax) with one division a row, then products.

    for j: y[i, j] = e[i, j] / s[i]   -->   for j: y[i, j] = e[i, j] * (1 / s[i])

Dividing a vector takes as long as half of an exponential. The product may differ by one unit in the
last place. The reciprocal of another divisor may be infinite where the quotient is not. A sum of
exponentials has a finite one, since our exponentials are normal numbers or 0.
"""

from collections import defaultdict
from typing import Any

from ..._tvm import collect, op_name, structural_map, tirx, tvm


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.RowQuotients")
def row_quotients(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with products instead of quotients by sums of exponentials."""
    sums = _Sums(collect(func.body, tirx.BufferStore))

    def changed(node: Any) -> Any:
        divisor = node.b
        if not isinstance(divisor, tvm.ir.TensorLoad) or divisor.source not in sums:
            return node
        return node.a * (tirx.const(1, divisor.ty.dtype) / divisor)

    return func.with_body(structural_map(func.body, (tirx.Div, changed)))


class _Sums:
    """The buffers that hold exponentials and sums of them, and nothing else."""

    def __init__(self, stores: list[Any]) -> None:
        self._values: dict[Any, list[Any]] = defaultdict(list)
        for store in stores:
            self._values[store.buffer].append(store.value)
        self._known: dict[Any, bool] = {}

    def __contains__(self, buffer: Any) -> bool:
        if buffer not in self._known:
            self._known[buffer] = True  # so that it may be added to itself
            values = self._values.get(buffer, [])
            self._known[buffer] = bool(values) and all(map(self._is_sum, values))
        return self._known[buffer]

    def _is_sum(self, value: Any) -> bool:
        if isinstance(value, tirx.Add):
            return self._is_sum(value.a) and self._is_sum(value.b)
        if isinstance(value, tvm.ir.TensorLoad):
            return value.source in self
        if isinstance(value, tirx.FloatImm):
            return bool(value.value == 0)
        return op_name(value) == "tirx.exp"
