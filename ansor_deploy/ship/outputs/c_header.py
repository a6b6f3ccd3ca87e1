"""The C header of a library: constants of its inputs and outputs, and typed calls.

It depends on the interface alone: training or tuning a model again does not change it, and files
that include it need not be compiled again.
"""

import re
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...model.batches import Batch
from ..manifest import Interface, Tensor

Words = dict[str, Any]  # the fields of a tensor for the templates below

# C's types. A type that C99 does not have is passed as its bits.
C_TYPES = {
    "bool": "uint8_t",
    "float64": "double",
    "float32": "float",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    **{f"{u}int{bits}": f"{u}int{bits}_t" for u in ("", "u") for bits in (8, 16, 32, 64)},
}
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"*?\\')  # bytes that a literal need not escape


def header(library: str, interfaces: Sequence[Interface], batch: Batch | None = None) -> str:
    """The text of NAME.h for a library, NAME.so, with all its shapes. batch: the one it takes.

    For a manifest with a context it has a call that takes a step.

    UsageError if an input or an output has a type whose elements are not whole bytes.
    """
    name = prefix(Path(library).stem)
    parts = [
        _variant(name if at == 0 else f"{name}_{at}", at, one) for at, one in enumerate(interfaces)
    ]
    return _TEXT.format(
        name=name,
        NAME=name.upper(),
        sizes="\n".join(part["sizes"] for part in parts),
        expected="\n".join(map(_EXPECTED.format_map, parts)),
        checks=" ||\n         ".join(map(_CHECK.format_map, parts)),
        calls="\n".join(map(_CALL.format_map, parts))
        + _of_batch(name, interfaces[0], batch)
        + _step(name, interfaces[0]),
    )


def _variant(name: str, number: int, declared: Interface) -> Words:
    """The parts of a header for one variant of a library. name: the prefix of its names."""
    inputs = tensors(name, "in", declared.inputs)
    outputs = tensors(name, "out", declared.outputs)
    return {
        "name": name,
        "number": number,
        "sizes": "\n".join(map(_SIZE.format_map, inputs + outputs)),
        "shapes": "".join(map(_SHAPE.format_map, inputs + outputs)),
        "inputs": _table("ansor_deploy_tensor", "inputs", _DESCRIBED, inputs, "static "),
        "outputs": _table("ansor_deploy_tensor", "outputs", _DESCRIBED, outputs, "static "),
        "arguments": "".join(map(_ARGUMENT.format_map, inputs + outputs)),
        "given": _table("ansor_deploy_input", "inputs", _PASSED, inputs),
        "taken": _table("ansor_deploy_output", "outputs", _PASSED, outputs),
        "counts": f"inputs, {len(inputs)}, outputs, {len(outputs)}",
    }


def _of_batch(name: str, declared: Interface, batch: Batch | None) -> str:
    """The call that takes the rows of a batch. declared: the interface with the fewest rows."""
    if batch is None:
        return ""
    shared = {one.name for one in declared.inputs} - {*batch.inputs}
    inputs, outputs = tensors(name, "in", declared.inputs), tensors(name, "out", declared.outputs)
    for words, one in zip(inputs, declared.inputs, strict=True):
        words["rows"] = "" if one.name in shared else f" / {batch.least} * (size_t)rows"
    for words in outputs:
        words["rows"] = f" / {batch.least} * (size_t)rows"
    return _BATCH.format(
        name=name,
        least=batch.least,
        most=batch.most,
        arguments="".join(map(_ARGUMENT.format_map, inputs + outputs)),
        given=_table("ansor_deploy_input", "inputs", _ROWS, inputs),
        taken=_table("ansor_deploy_output", "outputs", _ROWS, outputs),
        counts=f"inputs, {len(inputs)}, outputs, {len(outputs)}",
    )


def _step(name: str, declared: Interface) -> str:
    """The call of a step, for a library with a context; else ""."""
    if (context := getattr(declared, "context", None)) is None:
        return ""
    inner = {context.length, *(cache.input for cache in context.caches)}
    longer = {one.name: one for one in context.counted}
    every = zip(declared.inputs, tensors(name, "in", declared.inputs), strict=True)
    given = [(tensor, words) for tensor, words in every if tensor.name not in inner]
    for tensor, words in given:
        words["size"] = words["constant"]
        if one := longer.get(tensor.name):
            each = words["count"] // tensor.shape[one.axis]
            words["size"] = f"(ansor_deploy_length(model) + {one.more}) * {each}"
    takes, gives = [words for _, words in given], tensors(name, "out", declared.outputs)
    return _STEP.format(
        name=name,
        arguments="".join(map(_ARGUMENT.format_map, takes + gives)),
        given=_table("ansor_deploy_input", "inputs", _COUNTED, takes),
        taken=_table("ansor_deploy_output", "outputs", _PASSED, gives),
        counts=f"inputs, {len(takes)}, outputs, {len(gives)}",
    )


def prefix(stem: str) -> str:
    """The prefix of the names in a library's header. stem: the library's name without .so."""
    name = identifier(stem)
    return f"model_{name}" if not name or name[0].isdigit() else name


def identifier(text: str) -> str:
    """A text as the middle of a C identifier: invalid characters become `_`, none at the ends."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")


def tensors(model: str, kind: str, declared: Sequence[Tensor]) -> list[Words]:
    """The tensors' fields, with identifiers that differ in capitals as well, as in constants.

    An identifier begins with `kind`, "in" or "out", so that it is no keyword and begins with no
    digit.
    """
    made: dict[str, Words] = {}
    for at, tensor in enumerate(declared):
        name = f"{kind}_{identifier(tensor.name) or at}"
        while (constant := f"{model}_{name}_COUNT".upper()) in made:
            name = f"{name}_{at}"
        const = "const " if kind == "in" else ""
        made[constant] = {"name": name, "constant": constant, "const": const, **_words(tensor)}
    return list(made.values())


def _words(tensor: Tensor) -> Words:
    shape, dtype = list(tensor.shape), tensor.dtype
    return {
        "c_type": _c_type(tensor),
        "type": f"{dtype}{shape}",
        "onnx_name": literal(tensor.name),
        "counted": "".join(
            f"; along axis {axis}, as many count as {literal(name)} says"
            for axis, name in tensor.lengths
        ),
        "dtype": literal(dtype),
        "rank": len(shape),
        "count": prod(shape),
        "extents": ", ".join(map(str, shape)) or "0",
    }


def _c_type(tensor: Tensor) -> str:
    dtype = tensor.dtype
    if dtype.startswith("float8"):
        return "uint8_t"
    if dtype not in C_TYPES:
        hint = "build without --header, and call the library through ansor_deploy.h"
        raise UsageError(f"{tensor.name}: C has no type for {dtype}", hint)
    return C_TYPES[dtype]


def literal(text: str) -> str:
    """A text as a C string of its UTF-8 bytes, which is also safe in a comment."""
    escaped = (chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(escaped)}"'


def _table(c_type: str, name: str, row: str, tensors: Iterable[Words], storage: str = "") -> str:
    """A C array; a null pointer where it would be empty, since C has no empty arrays."""
    body = ",\n        ".join(map(row.format_map, tensors))
    if not body:
        return f"    const {c_type} *{name} = NULL;"
    return f"    {storage}const {c_type} {name}[] = {{\n        {body}}};"


_SIZE = "#define {constant} {count} /* elements of {type}, {onnx_name}{counted} */"
_SHAPE = "    static const int64_t {name}[] = {{{extents}}};\n"
_DESCRIBED = "{{{onnx_name}, {dtype}, {rank}, {name}, {count} * sizeof({c_type})}}"
_PASSED = "{{{dtype}, {name}, {constant} * sizeof({c_type})}}"
_ROWS = "{{{dtype}, {name}, {constant}{rows} * sizeof({c_type})}}"
_COUNTED = "{{{dtype}, {name}, {size} * sizeof({c_type})}}"
_ARGUMENT = ",\n    {const}{c_type} *{name}"
_EXPECTED = """\
/* 0 if the library has, as its variant {number}, what {name}_run takes and gives; -1 if not. */
static inline int {name}_expect(const ansor_deploy_model *model) {{
{shapes}{inputs}
{outputs}
    return ansor_deploy_expect_variant(model, {number}, {counts});
}}
"""
_CHECK = "{name}_expect(model) != 0"
_CALL = """\
/* Run once; 0, or -1 if it fails: ansor_deploy_last_error() says why. */
static inline int {name}_run(
    ansor_deploy_model *model{arguments}) {{
{given}
{taken}
    return ansor_deploy_run_variant(model, {number}, {counts});
}}
"""
_BATCH = """
/* The same with a batch of {least} to {most} rows. */
static inline int {name}_run_batch(
    ansor_deploy_model *model, int64_t rows{arguments}) {{
{given}
{taken}
    return ansor_deploy_run_batch(model, rows, {counts});
}}
"""
_STEP = """
/* Run a step, and append to the caches that the model keeps; 0, or -1 if it fails. Of what grows
   with them, as much is read as then counts. */
static inline int {name}_step(
    ansor_deploy_model *model{arguments}) {{
{given}
{taken}
    return ansor_deploy_step(model, {counts});
}}
"""
_TEXT = """\
/* Written by ansor-deploy with the library {name}: its inputs, outputs and typed calls. */
#ifndef ANSOR_DEPLOY_MODEL_{NAME}_H
#define ANSOR_DEPLOY_MODEL_{NAME}_H

#include "ansor_deploy.h"

{sizes}

{expected}
/* The library at a path; NULL if it cannot be loaded or has another interface than this. */
static inline ansor_deploy_model *{name}_load(const char *path) {{
    ansor_deploy_model *model = ansor_deploy_load(path);
    if (model != NULL && ({checks})) {{
        ansor_deploy_free(model);
        return NULL;
    }}
    return model;
}}

{calls}
#endif
"""
