"""Build a part of a model as the whole was built, and run it on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...codegen.memory.callers_memory import within
from ...codegen.model import compile_model
from ...devices.bare import open_bare
from ...devices.machine import runs_here, this_machine
from ...model.onnx.written import write_model
from ...model.prepare import Prepared, prepare
from ...space.rule import rule_set
from .draws import seeded_inputs

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from ...codegen.model import Scheduled
    from ...registry.record import Record, TaskKey
    from ...space.rule import Rule
    from ...target import Target
    from ..shipment import Shipment


@dataclass(frozen=True)
class How:
    """How a part of a model is built, and the seed of its inputs.

    records: the records of the model's tasks, by key, or the schedules that these were compiled
    with. seed: that of the whole model's inputs.
    """

    target: Target
    rules: Sequence[Rule]
    records: Mapping[TaskKey, Record | Scheduled]
    seed: int


def how_of(shipment: Shipment) -> How:
    """How parts of the model are built: as the library if it runs here, else as a stand-in."""
    request, target = shipment.request, shipment.request.target
    records: dict[TaskKey, Record | Scheduled] = {**shipment.records, **shipment.scheduled}
    if not runs_here(target):
        target, records = this_machine(), {}
    rules = rule_set(request.rules, target.kind, shipment.precision, shipment.report.printed)
    return How(target, rules, records, request.seed)


@dataclass(frozen=True)
class Ran:
    """A part of a model that ran. feed, outputs: its inputs and outputs, by name."""

    part: Prepared
    feed: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


def run_part(proto: onnx.ModelProto, how: How, feed: Mapping[str, np.ndarray]) -> Ran:
    """Build a part of a model and run it.

    feed: the whole model's inputs. Other inputs of the part are seeded; bytes take all values.
    """
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder, open_bare() as bare:
        library = Path(folder, "part.so")
        part = prepare(write_model(proto, Path(folder)), how.target)
        records = {one.key: how.records[one.key] for one in part.tasks if one.key in how.records}
        words = (records, how.target, how.rules)
        imported = replace(part.imported, mod=within(part.imported.mod))
        compile_model(imported, part.by_function, *words).export(library, how.target)
        interface = part.imported.interfaces[0]
        manifest = {**interface.to_json(), "target": how.target.to_json()}
        drawn = seeded_inputs(interface.inputs, how.seed, upper=256)
        given = {name: feed.get(name, one) for name, one in drawn.items()}
        return Ran(part, given, bare.load(library, manifest)(**given))
