"""Names of `_tvm` that import TVM when they are first used.

With these, the table of operators, and the marks that the firewall of records checks, can be read
without TVM.
"""

from importlib import import_module
from typing import Any


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._there(), attribute)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._there()(*args, **named)

    def _there(self) -> Any:
        return getattr(import_module("ansor_deploy._tvm"), self._name)


at_step: Any = _Later("at_step")
collect: Any = _Later("collect")
conjuncts: Any = _Later("conjuncts")
has_features: Any = _Later("has_features")
lane: Any = _Later("lane")
op_name: Any = _Later("op_name")
relax: Any = _Later("relax")
structural_equal: Any = _Later("structural_equal")
structural_map: Any = _Later("structural_map")
structural_mutate: Any = _Later("structural_mutate")
substituted: Any = _Later("substituted")
tirx: Any = _Later("tirx")
tvm: Any = _Later("tvm")
tvm_target: Any = _Later("tvm_target")
uses: Any = _Later("uses")
