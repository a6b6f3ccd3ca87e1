"""Verify a finished library: its outputs, or the nodes of its model one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...model.batches import Given, values_of
from ...model.fixed_inputs import with_values
from ...model.onnx.bind import bind_shapes, model_inputs
from ...model.onnx.file import load
from ...runtime.interface import interfaces
from ..library import callable_somewhere
from ..manifest import read_manifest
from .judges import Tolerances, check_named
from .oracle import Oracle, oracles_of
from .verify import Verification, interfaces_tried, verify_model, verify_on

if TYPE_CHECKING:
    import numpy as np

    from ...runtime.interface import Interface
    from ...views import Report
    from .by_node import NodeVerdict

    Inputs = Callable[[Sequence[Interface]], dict[str, np.ndarray]]


def verify(
    artifact: Path,
    model: Path,
    seed: int,
    tolerances: Tolerances,
    devices: Sequence[str] | None,
    report: Report,
    given: Inputs | None = None,
) -> Verification:
    """Compare an artifact's outputs with ONNX Runtime's on the model, on seeded inputs.

    tolerances: the differences that the user allows. devices: as in `bench`; another architecture
    is emulated. given: reads the inputs to compare on instead of seeded ones. UsageError if the
    artifact was not built from a model with these inputs and outputs.
    """
    with callable_somewhere(artifact, devices, report) as library:
        known = read_manifest(artifact)
        proto = with_values(load(model).proto, values_of(known.model.shapes[0]))
        _check_same_interface(artifact, model, library, proto)
        check_named(tolerances, proto)
        if given is not None:
            inputs = given(library.interfaces)
            shapes = {name: array.shape for name, array in inputs.items()}
            return verify_on(library, Oracle(bind_shapes(proto, shapes)), inputs, tolerances)
        tried = [bind_shapes(proto, one.input_shapes) for one in interfaces_tried(library)]
        return verify_model(library, oracles_of(tried), seed, tolerances, known.may_differ)


def verify_by_node(artifact: Path, model: Path, seed: int, report: Report) -> list[NodeVerdict]:
    """Compare every node of the model with ONNX Runtime's, in the artifact's first shape.

    This machine computes them by a library of the same model that outputs all of them, with default
    schedules. UsageError as in `verify`; AnsorError where that library cannot be built.
    """
    from ...devices.machine import this_machine
    from ...model.prepare import prepare
    from ...space.rule import shipped_rules
    from .by_node import every_node
    from .parts import How

    manifest, target = read_manifest(artifact), this_machine()
    shapes = interfaces(manifest.to_json())[0].input_shapes
    given: Given = {**shapes, **values_of(manifest.model.shapes[0])}
    prepared = prepare(model, target, (given,), report.stage, report.step)
    rules = shipped_rules(target.kind, manifest.precision)
    report.stage("by node", f"{len(prepared.protos[0].graph.node)} nodes, each an output")
    return every_node(prepared, How(target, rules, {}, seed))


def _check_same_interface(artifact: Path, model: Path, library: Any, proto: Any) -> None:
    takes = [value.name for value in model_inputs(proto)]
    gives = [value.name for value in proto.graph.output]
    first = library.interfaces[0]
    inner = {name for one in first.outputs for _, name in one.lengths}
    made = [one.name for one in first.outputs if one.name not in inner]
    if takes == [one.name for one in first.inputs] and gives == made:
        return
    raise UsageError(
        f"{artifact} was not built from {model}: the model's inputs are {takes} and its outputs "
        f"{gives}",
        f"build it: ansor-deploy build {model} -o {artifact}",
    )
