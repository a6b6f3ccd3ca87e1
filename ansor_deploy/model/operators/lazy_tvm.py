"""Names of `_tvm` that import TVM when they are first used: the table of operators needs none."""

from importlib import import_module
from typing import Any


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        door = import_module("ansor_deploy._tvm")
        return getattr(getattr(door, self._name), attribute)


relax: Any = _Later("relax")
tirx: Any = _Later("tirx")
tvm: Any = _Later("tvm")
