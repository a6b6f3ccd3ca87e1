"""Is a finished library right? Its numbers, node by node too, and whether it is built again."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import AnsorError, UsageError
from .pipeline import build
from .request import Outputs, Request, Tolerance
from .ship.library import callable_somewhere
from .ship.manifest import output_paths, read_manifest

if TYPE_CHECKING:
    from .ship.verify.by_node import NodeVerdict
    from .ship.verify.judges import Tolerances
    from .ship.verify.verify import Verification
    from .views import Report


def rebuild(
    artifact: Path, model: Path, lock: Path, rules: tuple[Path, ...], report: Report
) -> dict[str, bool]:
    """Build a library anew in a temporary folder: of each output, whether it has the same bytes.

    AnsorError where it was not built from a lock, and what a frozen build raises.
    """
    manifest = read_manifest(artifact)
    if manifest.lock is None:
        raise AnsorError(
            "it was not built from a lock: measured times are in its manifest",
            f"build it so: ansor-deploy build {model} -o {artifact} --lock {lock} --frozen",
            artifact,
        )
    known = manifest.verification
    request = Request(
        target=manifest.target.machine,
        registry=Path(os.devnull),
        input_shapes=manifest.model.shapes,
        rules=rules,
        lock=lock,
        remake=shlex.join(["ansor-deploy", "tune", str(model), "--lock", str(lock)]),
        frozen=True,
        verify=known.verified,
        tolerances=tuple(
            (name, Tolerance(one.rtol, one.atol)) for name, one in known.allowed.items()
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        outputs = Outputs(Path(folder, artifact.name), header=manifest.header is not None)
        build(model, outputs, request, report)
        made = output_paths(outputs.library, header=outputs.header)
        there = {path: artifact.with_name(path.name) for path in made}
        return {p.name: q.is_file() and p.read_bytes() == q.read_bytes() for p, q in there.items()}


def verify(
    artifact: Path,
    model: Path,
    seed: int,
    tolerances: Tolerances,
    devices: Sequence[str] | None,
    report: Report,
) -> Verification:
    """Compare an artifact's outputs with ONNX Runtime's on the model, on seeded inputs.

    tolerances: what the user allows of outputs. devices: as of `bench`; another machine is
    emulated. UsageError if the artifact was not built from a model with these inputs and outputs.
    """
    from .model.bind import bind_shapes
    from .model.onnx_file import load
    from .ship.verify.oracle import Oracle
    from .ship.verify.verify import verify_model

    with callable_somewhere(artifact, devices, report) as library:
        proto = load(model).proto
        _check_same_interface(artifact, model, library, proto)
        oracles = [Oracle(bind_shapes(proto, one.input_shapes)) for one in library.interfaces]
        return verify_model(library, oracles, seed, tolerances)


def verify_by_node(artifact: Path, model: Path, seed: int, report: Report) -> list[NodeVerdict]:
    """Every node of the model in the first of an artifact's shapes beside ONNX Runtime's.

    They are computed on this machine by a library of the same model that gives all of them, with
    default schedules. UsageError as of `verify`, AnsorError where that cannot be built.
    """
    from .devices.machine import this_machine
    from .model.prepare import prepare
    from .ship.verify.by_node import How, every_node
    from .space.rule import shipped_rules

    manifest, target = read_manifest(artifact), this_machine()
    shapes = manifest.interfaces[0].input_shapes
    prepared = prepare(model, target, (shapes,), report.stage, report.step)
    rules = shipped_rules(target.kind, manifest.precision)
    report.stage("by node", f"{len(prepared.protos[0].graph.node)} nodes, each an output")
    return every_node(prepared, How(target, rules, {}, seed))


def _check_same_interface(artifact: Path, model: Path, library: Any, proto: Any) -> None:
    from .model.bind import model_inputs

    takes = [value.name for value in model_inputs(proto)]
    gives = [value.name for value in proto.graph.output]
    first = library.interfaces[0]
    if takes == [i.name for i in first.inputs] and gives == [o.name for o in first.outputs]:
        return
    raise UsageError(
        f"{artifact} was not built from {model}: the model's inputs are {takes} and its outputs "
        f"{gives}",
        f"build it: ansor-deploy build {model} -o {artifact}",
    )
