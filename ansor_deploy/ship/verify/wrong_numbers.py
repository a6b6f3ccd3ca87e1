"""The error for a library with wrong outputs: which node is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import VerificationError
from ...space.default_schedule import default_program
from .by_node import NodeVerdict, first_wrong_node
from .parts import How, how_of
from .reduce import write_reduced

if TYPE_CHECKING:
    from ...model.tasks import Task
    from ...registry.record import Record
    from ...space.rule import Rule
    from ...target import Target
    from ..shipment import Shipment
    from .verify import Verification


def wrong_outputs(verification: Verification) -> str:
    """A sentence about each wrong output."""
    faults = "; ".join(verification.wrong.values())
    return f"the library differs from {verification.oracle}: {faults}"


def refusal(shipment: Shipment, verification: Verification) -> VerificationError:
    """The error for a library with wrong outputs, which names the first wrong node."""
    shipment.report.stage("bisect", "which node of the model is the first that is off")
    step = partial(shipment.report.step, "nodes ruled out")
    how = how_of(shipment)
    node = first_wrong_node(shipment.model, list(verification.wrong), how, step)
    if shipment.request.reduce:
        _reduce(shipment, node, how, shipment.request.reduce)
    text = f"{wrong_outputs(verification)}. {_where(node)}; no library was written"
    return VerificationError(text, _advice(shipment, node, how.rules), shipment.model.path)


def _reduce(shipment: Shipment, node: NodeVerdict | None, how: How, output: Path) -> None:
    """Write the part of the model that is wrong by itself, or say that there is none."""
    files: list[Path] = []
    if node is not None:
        shipment.report.stage(
            "reduce", f"to a small part with {node.tensor} that is wrong by itself"
        )
        files = write_reduced(shipment.model, node.tensor, how, output)
    if files:
        shipment.report.wrote(files)
    else:
        shipment.report.warn(f"{output} is not written: no part is wrong by itself")


def _where(node: NodeVerdict | None) -> str:
    if node is None:
        return "Each part of the model by itself is right, and only the whole is not"
    off = f"by {node.verdict.abs_err:.3g} where rounding explains {node.verdict.allowed:.2g}"
    return f"The first node that is off is {node.name} ({node.op}): its {node.tensor} is off {off}"


def _advice(shipment: Shipment, node: NodeVerdict | None, rules: Sequence[Rule]) -> str:
    """The hint: mend a rule, search the node's task again, or report the model."""
    task = next((one for one in shipment.model.tasks if node and _computes(one, node)), None)
    record = shipment.records.get(task.key) if task else None
    if task is not None and (own := _own_rules(task, record, shipment.target, rules)):
        again = f", and search its task again with {_retune(task)}" if record else ""
        return (
            f"its schedule is by {' and '.join(own)}, a rule of yours: correct or remove it{again}"
        )
    if task is not None and record is not None:
        return (
            f"its task has a record, which may be wrong: search it again with {_retune(task)}, "
            "and report the record"
        )
    return (
        "it has the default schedule, so that no record is at fault: report the model, or the part "
        "that --reduce FILE.onnx writes; "
        "--rtol and --atol allow more, if you know that it may be so"
    )


def _retune(task: Task) -> str:
    return f"--retune {task.key.workload[:6]}"


def _own_rules(
    task: Task, record: Record | None, target: Target, rules: Sequence[Rule]
) -> list[str]:
    """The names of the user's rules that took part in a task's schedule."""
    own = [rule.name for rule in rules if rule.process]
    if not own:
        return []
    if record:
        took_part = record.provenance.derived_by
    else:
        took_part = default_program(task.mod, target, rules).sketch.rules
    return [name for name in own if name in took_part]


def _computes(task: Task, node: NodeVerdict) -> bool:
    return any(one.name == node.name for place in task.places for one in place.nodes)
