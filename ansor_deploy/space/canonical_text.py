"""The canonical, name-free text of a program; a task's key is the hash of it.

TVMScript is Python, so names are replaced on its syntax tree: variables, buffers and blocks are
numbered in the order of their first appearance. Shapes, dtypes, constants, attributes and structure
stay. The text can be parsed again, which gives the program that tuning works on. Its block names
are canonical, so a trace recorded for one program replays on every equal one, whatever names its
front end gave the blocks.
"""

import ast
from typing import Any

from .._tvm import parsing, structural_equal, structural_map, tirx, tvm

# Attribute with sentences that say why the readers of the result are not part of the program.
APART = "ansor.apart"
# Attributes that say where a program came from, not what it computes.
INCIDENTAL = ("global_symbol", "op_pattern", "target", "tirx.is_scheduled", APART)
# Names that mean something in TVMScript.
KEPT = ("T", "bool", "int", "float", "range", "True", "False", "None", "metadata")


def canonical_text(func: tirx.PrimFunc) -> str:
    """TVMScript of the function with canonical names; equal programs give equal texts.

    ValueError where the function has constants that cannot be written as text.
    """
    renamed = _Rename().visit(ast.parse(normalized(func).script(show_meta=True)))
    body = [node for node in renamed.body if isinstance(node, ast.FunctionDef)]
    if len(body) != 1:
        raise ValueError("a program with metadata constants has no canonical text")
    return ast.unparse(body[0]) + "\n"


def normalized(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function without the attributes that do not affect what it computes."""
    for attribute in INCIDENTAL:
        func = func.without_attr(attribute)
    return func.with_attr("global_symbol", "main")


def canonical_program(func: tirx.PrimFunc) -> tvm.IRModule:
    """The module, with one function `main`, that `parse` would make of the canonical text.

    Variables may have other names than in the text; blocks, which traces refer to, have the same.
    The module is made from the function itself, in a thirtieth of the time that parsing takes TVM.
    """
    names = _Names()
    renaming = [(tirx.Var, names.variable), (tvm.s_tir.SBlock, names.block)]
    return tvm.IRModule({"main": structural_map(normalized(func), renaming, order="pre")})


def check_text(text: str, program: tvm.IRModule) -> None:
    """RuntimeError if a canonical text does not parse to this program, as other processes need."""
    if not structural_equal(parse(text)["main"], program["main"]):
        raise RuntimeError(f"canonical text does not reproduce its program:\n{text}")


def parse(text: str) -> tvm.IRModule:
    """The module, with one function `main`, that a canonical text describes.

    The text runs as TVMScript: pass only texts that `canonical_text` made in this process.
    """
    with parsing():
        func = tvm.script.from_source(text)
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


class _Rename(ast.NodeTransformer):
    def __init__(self) -> None:
        self.names = {name: name for name in KEPT}
        self.blocks = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.name = "main"
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.arg = self._name(node.arg)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._name(node.id)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sblock":
            (name,) = node.args
            if not (isinstance(name, ast.Constant) and name.value == "root"):
                node.args = [ast.Constant(f"b{self.blocks}")]
                self.blocks += 1
            return node
        return self.generic_visit(node)

    def _name(self, name: str) -> str:
        return self.names.setdefault(name, f"v{len(self.names) - len(KEPT)}")


class _Names:
    """Gives new names in the order of a walk; variables with equal names get equal names.

    Where such variables are in scope together, the printer distinguishes them.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._variables: dict[Any, Any] = {}
        self._blocks = 0

    def variable(self, var: tirx.Var) -> tirx.Var:
        if var not in self._variables:
            name = self._names.setdefault(var.name, f"v{len(self._names)}")
            self._variables[var] = made = tirx.Var(name, var.ty)
            self._variables[made] = made
        return self._variables[var]

    def block(self, block: Any) -> Any:
        if block.name_hint == "root":
            return block
        name, self._blocks = f"b{self._blocks}", self._blocks + 1
        fields = (block.body, block.init, block.alloc_buffers, block.match_buffers)
        return tvm.s_tir.SBlock(
            block.iter_vars, block.reads, block.writes, name, *fields, block.annotations
        )
