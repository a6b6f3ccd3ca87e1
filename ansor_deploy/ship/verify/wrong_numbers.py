"""What a build says of a library with wrong numbers: which node is off, and what to do about it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...errors import VerificationError
from .by_node import NodeVerdict, first_wrong_node
from .parts import how_of

if TYPE_CHECKING:
    from ...model.tasks import Task
    from ..shipment import Shipment
    from .verify import Verification


def wrong_outputs(verification: Verification) -> str:
    """A sentence that says of each wrong output what is wrong of it."""
    faults = "; ".join(verification.wrong.values())
    return f"the library differs from {verification.oracle}: {faults}"


def refusal(shipment: Shipment, verification: Verification) -> VerificationError:
    """The error for a library with wrong outputs, which names the first node that is off."""
    shipment.report.stage("bisect", "which node of the model is the first that is off")
    step = partial(shipment.report.step, "nodes ruled out")
    node = first_wrong_node(shipment.model, list(verification.wrong), how_of(shipment), step)
    text = f"{wrong_outputs(verification)}. {_where(node)}; no library was written"
    return VerificationError(text, _advice(shipment, node), shipment.model.path)


def _where(node: NodeVerdict | None) -> str:
    if node is None:
        return "Each part of the model by itself is right, and only the whole is not"
    off = f"by {node.verdict.abs_err:.3g} where rounding explains {node.verdict.allowed:.2g}"
    return f"The first node that is off is {node.name} ({node.op}): its {node.tensor} is off {off}"


def _advice(shipment: Shipment, node: NodeVerdict | None) -> str:
    """What the user can do: without the record of a node's task, or with a report."""
    task = next((one for one in shipment.model.tasks if node and _computes(one, node)), None)
    if task is not None and task.key in shipment.records:
        return (
            f"its task has a record, which may be wrong: search it anew with "
            f"--retune {task.key.workload[:6]}, and report the record"
        )
    return (
        "it has the default schedule, so that no record is at fault: report the model; "
        "--rtol and --atol allow more, if you know that it may be so"
    )


def _computes(task: Task, node: NodeVerdict) -> bool:
    return any(one.name == node.name for place in task.places for one in place.nodes)
