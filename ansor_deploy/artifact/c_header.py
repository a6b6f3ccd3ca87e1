"""The C header of a library: what it takes and gives as constants, and a typed call.

It depends on the interface alone: a model that is trained or tuned again leaves it as it is, and
what includes it need not be compiled again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..errors import UsageError

# A type that C99 does not have is passed as its bits.
C_TYPES = {
    "bool": "uint8_t",
    "float64": "double",
    "float32": "float",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    **{f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}
_PLAIN = frozenset(
    b" !#$%&'()+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"
)


@dataclass(frozen=True)
class _Tensor:
    """name: its C identifier, `in_...` or `out_...`, which no keyword and no digit can spoil."""

    name: str
    onnx_name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def c_type(self) -> str:
        known = C_TYPES.get(self.dtype)
        return known or ("uint8_t" if self.dtype.startswith("float8") else _no_type(self))

    @property
    def count(self) -> int:
        return prod(self.shape)


def _no_type(tensor: _Tensor) -> str:
    raise UsageError(
        f"{tensor.onnx_name}: C has no type for {tensor.dtype}",
        "build without --header, and call the library through ansor_deploy.h",
    )


def header(manifest: dict[str, Any]) -> str:
    """The text of NAME.h for the library NAME.so of a manifest.

    UsageError if an input or an output is of a type with elements that are no whole bytes.
    """
    name = identifier(Path(manifest["artifact"]["file"]).stem)
    name = f"model_{name}" if not name or name[0].isdigit() else name
    inputs = _tensors("in", manifest["inputs"])
    outputs = _tensors("out", manifest["outputs"])
    return _TEXT.format(
        name=name,
        NAME=name.upper(),
        sizes="\n".join(_size(name, tensor) for tensor in (*inputs, *outputs)),
        shapes="".join(_shape(tensor) for tensor in (*inputs, *outputs)),
        inputs=_table("ansor_deploy_tensor", "inputs", map(_described, inputs), static=True),
        outputs=_table("ansor_deploy_tensor", "outputs", map(_described, outputs), static=True),
        arguments=_arguments(name, inputs, outputs),
        given=_table("ansor_deploy_input", "inputs", (_passed(name, one) for one in inputs)),
        taken=_table("ansor_deploy_output", "outputs", (_passed(name, one) for one in outputs)),
        counts=f"inputs, {len(inputs)}, outputs, {len(outputs)}",
    )


def identifier(text: str) -> str:
    """A text as the middle of a C identifier: what none can have becomes a `_`, at no end."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")


def _tensors(kind: str, declared: Sequence[dict[str, Any]]) -> list[_Tensor]:
    """The tensors, with identifiers that differ as capitals, too, as in their constants."""
    taken: set[str] = set()
    made = []
    for at, one in enumerate(declared):
        name = f"{kind}_{identifier(one['name']) or at}"
        while name.upper() in taken:
            name = f"{name}_{at}"
        taken.add(name.upper())
        made.append(_Tensor(name, one["name"], one["dtype"], tuple(one["shape"])))
    return made


def literal(text: str) -> str:
    """A text as a C string of its UTF-8 bytes, safe in a comment, too."""
    escaped = (chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(escaped)}"'


def _size(model: str, tensor: _Tensor) -> str:
    constant = f"{model}_{tensor.name}_COUNT".upper()
    what = f"{tensor.dtype}{list(tensor.shape)}, {literal(tensor.onnx_name)}"
    return f"#define {constant} {tensor.count} /* elements of {what} */"


def _shape(tensor: _Tensor) -> str:
    extents = ", ".join(map(str, tensor.shape)) or "0"
    return f"    static const int64_t {tensor.name}[] = {{{extents}}};\n"


def _described(tensor: _Tensor) -> str:
    size = f"{tensor.count} * sizeof({tensor.c_type})"
    name, dtype = literal(tensor.onnx_name), literal(tensor.dtype)
    return f"{{{name}, {dtype}, {len(tensor.shape)}, {tensor.name}, {size}}}"


def _passed(model: str, tensor: _Tensor) -> str:
    size = f"{model}_{tensor.name}_COUNT".upper() + f" * sizeof({tensor.c_type})"
    return f"{{{literal(tensor.dtype)}, {tensor.name}, {size}}}"


def _table(c_type: str, name: str, rows: Iterable[str], static: bool = False) -> str:
    """An array; a null pointer where it would be empty, which C has none of."""
    body = ",\n        ".join(rows)
    if not body:
        return f"    const {c_type} *{name} = NULL;"
    return f"    {'static ' * static}const {c_type} {name}[] = {{\n        {body}}};"


def _arguments(model: str, inputs: Sequence[_Tensor], outputs: Sequence[_Tensor]) -> str:
    words = [f"const {one.c_type} *{one.name}" for one in inputs]
    words += [f"{one.c_type} *{one.name}" for one in outputs]
    return ",\n    ".join(["ansor_deploy_model *model", *words])


_TEXT = """\
/* Written by ansor-deploy with the library {name}: its inputs, outputs and a typed call. */
#ifndef ANSOR_DEPLOY_MODEL_{NAME}_H
#define ANSOR_DEPLOY_MODEL_{NAME}_H

#include "ansor_deploy.h"

{sizes}

/* The library at a path; NULL if it cannot be loaded or has another interface than this. */
static inline ansor_deploy_model *{name}_load(const char *path) {{
{shapes}{inputs}
{outputs}
    ansor_deploy_model *model = ansor_deploy_load(path);
    if (model == NULL || ansor_deploy_expect(model, {counts}) == 0)
        return model;
    ansor_deploy_free(model);
    return NULL;
}}

/* Run once; 0, or -1 if it fails: ansor_deploy_last_error() says why. */
static inline int {name}_run(
    {arguments}) {{
{given}
{taken}
    return ansor_deploy_run(model, {counts});
}}

#endif
"""
