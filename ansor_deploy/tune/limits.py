"""Lower bounds of tasks' times on this machine: no trial is spent where nothing is left to find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..devices.machine import runs_here

if TYPE_CHECKING:
    from ..model.tasks import Task
    from ..registry.record import TaskKey
    from ..request import Request


def limits(tasks: Sequence[Task], request: Request) -> dict[TaskKey, float]:
    """For each task, seconds that no program of it can beat; {} where another machine runs it.

    Targets of other machines and GPUs only declare speeds, which serve for estimates and not here.
    """
    if request.devices or request.target.gpu or not tasks or not runs_here(request.target):
        return {}
    from ..measure.roof import measured_roof
    from ..model.relax.byte_products import byte_products

    products = {task.key: byte_products(task.mod) for task in tasks}
    roof = measured_roof(request.target, of_bytes=any(products.values()))
    rewrites = request.precision != "strict"
    return {one.key: roof.least(one, products[one.key], rewrites=rewrites) for one in tasks}
