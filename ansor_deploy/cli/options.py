"""Options that several commands share, turned into the request that the engine takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..request import EFFORTS
from ..system.environment import in_ci
from .values import Duration, InputShape, Share

if TYPE_CHECKING:
    from ..request import Budget, Request
    from ..target import Target

    Command = Callable[..., Any]

existing_file = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
model_file = existing_file
artifact_file = existing_file

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the answer as one JSON object."
)
target_option = click.option(
    "--target", help="A machine that `targets list` names.  [default: the project's, else host]"
)
registry_option = click.option(
    "--registry",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The registry's file.  [default: the project's, else the user's]",
)
rules_option = click.option(
    "--rules",
    type=existing_file,
    multiple=True,
    metavar="FILE",
    help="A derivation rule to ask before the others. Repeatable.",
)
input_shape_option = click.option(
    "--input-shape",
    "input_shapes",
    type=InputShape(),
    multiple=True,
    metavar="NAME=1,3,224,224",
    help="Fix the shape of a dynamic input. Repeatable.",
)
lock_option = click.option(
    "--lock",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the records that were used in this file, for version control.",
)
device_option = click.option(
    "--device", default="", metavar="NAME", help="Run it on this device.  [default: this machine]"
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Of the inputs compared.  [default: 0]",
)


def request_options(command: Command) -> Command:
    """Options of every command that reads a model; the command gets `request`."""

    @target_option
    @registry_option
    @input_shape_option
    @rules_option
    @click.option(
        "--search",
        type=click.Choice(["ansor", "metaschedule"]),
        default="ansor",
        help="How schedules are searched.  [default: ansor]",
    )
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Of the search and the verification's inputs.  [default: 0]",
    )
    @wraps(command)
    def with_request(
        target: str | None,
        registry: Path | None,
        input_shapes: tuple[tuple[str, tuple[int, ...]], ...],
        rules: tuple[Path, ...],
        search: str,
        seed: int,
        **rest: Any,
    ) -> Any:
        words = (target, registry, dict(input_shapes), search, seed, rules)
        request = make_request(*words, frozen=rest.get("frozen", False))
        return command(request=request, **rest)

    return with_request


def make_request(
    target: str | None,
    registry: Path | None,
    input_shapes: dict[str, tuple[int, ...]],
    search: str,
    seed: int,
    rules: tuple[Path, ...] = (),
    *,
    frozen: bool = False,
) -> Request:
    """Options, and the project's settings where an option was not given.

    frozen: the request has no registry, so that it needs no home directory either.
    """
    from ..project import Project, shipped
    from ..registry.layers import layers_of
    from ..request import Request
    from ..target import load_target, target_files

    project = Project.find()
    name, folders = target or project.target or "host", project.target_path()
    return Request(
        target=load_target(name, folders),
        registry=Path(os.devnull) if frozen else project.registry_path(registry),
        input_shapes=input_shapes,
        search=search,
        seed=seed,
        rules=(*rules, *project.rule_files()),
        layers=layers_of(project, shipped("registry") / "seed"),
        sources=(*target_files(name, folders), *project.files()),
    )


def frozen_options(command: Command) -> Command:
    """The lock, and whether a build has nothing else; goes above `request_options`."""

    @lock_option
    @click.option(
        "--frozen/--no-frozen",
        default=None,
        help="Use the lock's records only; measure nothing; exit 5 if it lacks one.  "
        "[default: where CI is set and there is a lock]",
    )
    @wraps(command)
    def with_lock(lock: Path | None, frozen: bool | None, **rest: Any) -> Any:
        if frozen and lock is None:
            raise UsageError("--frozen needs a lock to build from", "name it: --lock FILE")
        if frozen is None:
            frozen = in_ci() and lock is not None
        return command(lock=lock, frozen=frozen, **rest)

    return with_lock


def budget_options(command: Command) -> Command:
    """Options that limit tuning, noted in the request; goes below `request_options`."""

    @click.option(
        "--effort",
        type=click.Choice(list(EFFORTS)),
        default="normal",
        help="How far each task is searched.  [default: normal]",
    )
    @click.option(
        "--trials", type=click.IntRange(min=0), metavar="N", help="Most candidates measured in all."
    )
    @click.option(
        "--time", "seconds", type=Duration(), metavar="10m", help="Longest tuning: 90s, 10m, 1h30m."
    )
    @click.option(
        "--min-impact",
        type=Share(),
        metavar="1%",
        help="Leave alone tasks with less of the model's time.  [default: by --effort]",
    )
    @wraps(command)
    def with_budget(
        request: Request,
        effort: str,
        trials: int | None,
        seconds: float | None,
        min_impact: float | None,
        **rest: Any,
    ) -> Any:
        budget = make_budget(effort, trials, seconds, min_impact)
        return command(request=replace(request, budget=budget), **rest)

    return with_budget


def reuse_option(command: Command) -> Command:
    """Which records may serve, noted in the request; goes below `request_options`."""

    @click.option(
        "--reuse",
        type=click.Choice(["exact", "near"]),
        default="exact",
        help="near: records of a task's neighbours, made to fit, serve it untuned.  "
        "[default: exact]",
    )
    @wraps(command)
    def with_reuse(request: Request, reuse: str, **rest: Any) -> Any:
        return command(request=replace(request, reuse=reuse), **rest)

    return with_reuse


def place_options(command: Command) -> Command:
    """Options that say where candidates are built and run, noted in the request."""

    @click.option(
        "--device",
        "devices",
        multiple=True,
        metavar="NAME",
        help="Run candidates, and the model, on a device that `devices list` names. Repeatable.",
    )
    @click.option(
        "--farm",
        default="",
        metavar="tcp://HOST:PORT",
        help="Build candidates on this Dask cluster.  [default: on this machine]",
    )
    @wraps(command)
    def with_places(request: Request, devices: tuple[str, ...], farm: str, **rest: Any) -> Any:
        devices = tuple(dict.fromkeys(devices))
        if devices and click.get_current_context().params["target"] is None:
            request = replace(request, target=device_target(devices[0]))
        return command(request=replace(request, devices=devices, farm=farm), **rest)

    return with_places


def device_target(device: str) -> Target:
    """What a device of the user's inventory is; UsageError where there is no such device."""
    from ..devices.inventory import Inventory, target_of

    return target_of(Inventory.find().get(device))


def make_budget(
    effort: str, trials: int | None, seconds: float | None, min_impact: float | None
) -> Budget:
    """The effort's budget within the limits given."""
    budget = replace(EFFORTS[effort], trials=trials, seconds=seconds)
    return budget if min_impact is None else replace(budget, min_impact=min_impact)
