"""One node test of the `onnx` package: built, run, and its outputs compared.

This is the side of the worker process. A test is imported, scheduled by default and compiled in
this process, and run on one thread in another process, which has TVM's runtime alone.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.backend.test.case import node as onnx_cases

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.devices.bare import open_bare
from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.onnx.bind import bind_shapes, model_inputs
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model
from ansor_deploy.runtime.interface import Interface
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import Target, load_target

# Inputs that give sizes or places and not data, by their names in the operator's definition: a
# compiler of static shapes needs their values when it compiles. Node tests have them as inputs of
# the graph; here they become initializers, as they are in most networks.
# fmt: off
PARAMETERS = frozenset((
    "axes", "axis", "block_shape", "cond", "delta", "depth", "dft_length", "dtype_like", "ends",
    "frame_length", "frame_step", "image_shape", "iou_threshold", "k", "limit",
    "lower_edge_hertz", "M", "max_output_boxes_per_class", "num_mel_bins", "output_shape", "pads",
    "ratio", "repeats", "roi", "sample_rate", "scales", "score_threshold", "shape", "size",
    "sizes", "split", "start", "starts", "steps", "training_mode", "upper_edge_hertz",
))
# fmt: on
_OTHERS = frozenset((("ConstantOfShape", "input"), ("TopK", "K")))
# What the goal of 95% excludes: random results, types that are not tensors, and training.
_RANDOM = re.compile("Random|Bernoulli|Multinomial")
_NO_TENSORS = re.compile("Sequence|Optional|String|Regex|TfIdf|LabelEncoder|ImageDecoder")
_TRAINING = frozenset(("ai.onnx.preview.training",))
# fmt: off
_TYPES = frozenset((
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL,
    TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64,
))
# fmt: on


@cache
def cases() -> dict[str, Any]:
    """All node tests of the package (`onnx.backend.test.case.TestCase`), by name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = {case.name: case for case in onnx_cases.collect_testcases(None)}
    return dict(sorted(found.items()))


@cache
def case_of(name: str) -> Any:
    """One of the `cases`. Only the tests of its own file are made: to make all takes seconds."""
    if not cases.cache_info().currsize:
        _make_file_of(name)
    made = onnx_cases._NodeTestCases  # noqa: SLF001
    return next((one for one in made if one.name == name), None) or cases()[name]


def _make_file_of(name: str) -> None:
    """Import the files that contain the name, or the longest beginning of it that any contains."""
    begin = re.sub("_expanded.*", "", name)
    while not (found := [file for file, text in _texts().items() if f'"{begin}' in text]):
        begin = begin.rpartition("_")[0]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for file in found:
            import_module(file)


@cache
def _texts() -> dict[str, str]:
    """The sources of the modules that make cases, by module name."""
    folder = Path(onnx_cases.__file__).parent
    paths = {
        path.relative_to(folder).with_suffix("").parts: path for path in folder.rglob("[!_]*.py")
    }
    return {
        ".".join((onnx_cases.__name__, *parts)): path.read_text(encoding="utf-8")
        for parts, path in paths.items()
    }


def operator(case: Any) -> str:
    """The operator that a case tests."""
    return str(_whole(case).model.graph.node[0].op_type)


def _whole(case: Any) -> Any:
    """The case with the same inputs and one node, of which an expanded case is the expansion."""
    return case_of(re.sub("_expanded.*", "", case.name))


def counts(case: Any) -> bool:
    """Whether the goal includes the case: float32, float16, integers and booleans.

    It excludes random results, sequences, strings and training steps.
    """
    graph = case.model.graph
    values = [*graph.input, *graph.output]
    if any(value.type.WhichOneof("value") != "tensor_type" for value in values):
        return False
    if any(value.type.tensor_type.elem_type not in _TYPES for value in values):
        return False
    return all(map(_is_meant, graph.node)) and not _is_training(case)


@cache
def meant() -> list[str]:
    """The names of the cases that the goal includes."""
    return [name for name, case in cases().items() if counts(case)]


def _is_meant(node: NodeProto) -> bool:
    kinds = _RANDOM.search(node.op_type) or _NO_TENSORS.search(node.op_type)
    return not kinds and node.domain not in _TRAINING


def _is_training(case: Any) -> bool:
    """Whether dropout or batch norm are in training mode: random, or updating statistics."""
    flags = [a.i for n in case.model.graph.node for a in n.attribute if a.name == "training_mode"]
    given = dict(zip((v.name for v in case.model.graph.input), case.data_sets[0][0], strict=False))
    dropout = any(n.op_type == "Dropout" for n in case.model.graph.node)
    return any(flags) or (dropout and bool(np.any(given.get("t", False))))


def attempt(payload: dict[str, Any]) -> dict[str, str]:
    """Build and run a case: {"outcome": "right", "refused" or "wrong", "detail": why}.

    If it raises, or kills this process, the caller counts a crash.
    """
    case = case_of(payload["case"])
    inputs, expected = case.data_sets[0]
    try:
        proto, feeds = bound(case, inputs)
        results = _run(proto, feeds)
    except ModelError as error:
        return {"outcome": "refused", "detail": str(error)}
    names = [value.name for value in case.model.graph.output]
    faults = [
        f"{name}: {wrong}"
        for name, have, want in zip(names, results, expected, strict=True)
        if (wrong := fault(have, _plain(want)))
    ]
    detail = "; ".join(faults)
    return {"outcome": "wrong" if faults else "right", "detail": detail}


def bound(case: Any, values: list[Any]) -> tuple[ModelProto, list[Any]]:
    """The model with its parameters as initializers, and the values of the other inputs."""
    proto = ModelProto()
    proto.CopyFrom(case.model)
    names = [value.name for value in proto.graph.input]
    fixed = _parameters(_whole(case).model)
    for name, value in zip(names, values, strict=True):
        if name in fixed and isinstance(value, (np.ndarray, np.generic)):
            proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    left = {value.name for value in model_inputs(proto)}
    feeds = [value for name, value in zip(names, values, strict=True) if name in left]
    # An initializer that is also a graph input may be overridden; these must not be.
    kept = list(model_inputs(proto))
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    return proto, feeds


def _parameters(proto: ModelProto) -> set[str]:
    """Names of tensors that some operator takes as one of the `PARAMETERS`."""
    return {
        name
        for node in proto.graph.node
        for name, formal in zip(node.input, _formals(node), strict=False)
        if formal in PARAMETERS or (node.op_type, formal) in _OTHERS
    }


def _formals(node: NodeProto) -> list[str]:
    try:
        return [one.name for one in onnx.defs.get_schema(node.op_type, domain=node.domain).inputs]
    except onnx.defs.SchemaError:
        return []


def _run(proto: ModelProto, feeds: list[Any]) -> list[np.ndarray]:
    target = shipped_target("host")
    with tempfile.TemporaryDirectory() as folder, open_bare() as bare:
        interface = build(proto, target, path := Path(folder, "case.so"))
        manifest = {**interface.to_json(), "target": target.to_json()}
        names = [info.name for info in interface.inputs]
        given = {name: np.asarray(_plain(one)) for name, one in zip(names, feeds, strict=True)}
        results = bare.load(path, manifest, threads=1)(**given)
    return [results[value.name] for value in proto.graph.output]


def build(proto: ModelProto, target: Target, library: Path) -> Interface:
    """Write a library with default schedules, compiled in this process."""
    model = import_model(canonical_graph(bind_shapes(proto, {})), target)
    compile_model(model, extract(model.mod, target), {}, target).export(library, target)
    (interface,) = model.interfaces
    return interface


@cache
def shipped_target(name: str) -> Target:
    """A target that comes with the tool, even if the folder's project has one of that name."""
    return load_target(name, [shipped("targets")])


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def fault(have: np.ndarray, want: Any) -> str:
    """What is wrong with an output, or "" if nothing is. Integers and booleans must be equal."""
    want = np.asarray(want)
    if (have.shape, have.dtype) != (want.shape, want.dtype):
        return f"{have.dtype}{list(have.shape)} for {want.dtype}{list(want.shape)}"
    if np.issubdtype(want.dtype, np.integer) or want.dtype == np.bool_:
        differ = int((have != want).sum())
        return f"{differ} of {want.size} differ" if differ else ""
    ok, worst, _ = compare(have, want)
    return "" if ok else f"off by {worst:.3g}"
