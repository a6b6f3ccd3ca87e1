"""Make the engine's request from a command's options and the project's settings."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

from ..errors import UsageError, blaming
from ..project import Project
from ..request import EFFORTS, Budget, Limits, Request
from ..system.apart import check_apart
from ..system.environment import in_ci, shipped
from ..system.printable import printable
from ..target import HOST, Target, load_target, target_files
from .codes import best_here, code_targets
from .declare import Command
from .shapes import InputShapes, shape_text, shapes_together


def with_request(command: Command) -> Command:
    """Turn the options that belong to a request into `request`, which the command takes."""
    several = with_requests(lambda requests, **rest: command(request=requests[0], **rest))

    @wraps(command)
    def call(target: str | None = None, **words: Any) -> Any:
        return several(targets=[target], **words)

    return call


def with_requests(command: Command) -> Command:
    """As `with_request`, but the command takes `requests`, one for each of `targets`."""
    names = {*signature(make_request).parameters, *(field.name for field in fields(Request))}

    @wraps(command)
    def call(targets: Sequence[str | None], **words: Any) -> Any:
        own = {name: words[name] for name in names & words.keys()}
        rest = {name: word for name, word in words.items() if name not in names}
        requests = [
            make_request(**own, target=one, remake=tuning_command(**words, target=one))
            for one in dict.fromkeys(targets or [None])
        ]
        return command(requests=requests, **rest)

    return call


_AUTO = "auto"  # a value of `--target`: this machine's GPU, or its processor if it has none
_NO_REGISTRY = Path(os.devnull, "registry.db")  # for frozen builds: no file can be there


def tuning_command(
    *,
    models: Sequence[Path] = (),
    model: Path | None = None,
    target: str | None = None,
    registry: Path | None = None,
    input_shapes: InputShapes = (),
    rules: Sequence[Path] = (),
    devices: Sequence[str] = (),
    lock: Path | None = None,
    context: int = 0,
    **others: Any,
) -> str:
    """The command that writes the lock for these options, quoted for a shell.

    The variable ANSOR_DEPLOY_TUNE replaces it, for build systems with a command of their own.
    """
    if said := os.environ.get("ANSOR_DEPLOY_TUNE"):
        return printable(said)
    shapes = [shape_text(name, shape) for name, shape in input_shapes]
    options = {"--input-shape": shapes, "--rules": rules, "--device": devices}
    options |= {"--target": [target] if target else [], "--lock": [lock] if lock else []}
    options |= {"--context": [context] if context else []}
    options |= {"--registry": [registry] if registry else []}
    pairs = ((option, one) for option, given in options.items() for one in given)
    words = [str(word) for pair in pairs for word in pair]
    named = [str(path) for path in (*models, model) if path]
    return shlex.join(["ansor-deploy", "tune", *named, *words])


def chosen_devices(named: Sequence[str], no_device: bool) -> tuple[str, ...] | None:
    """The devices that are named, without duplicates; None where the target's are to be looked for.

    UsageError where devices are named along with --no-device.
    """
    if named and no_device:
        raise UsageError("--device and --no-device contradict each other", "give one of them")
    return tuple(dict.fromkeys(named)) if named or no_device else None


def make_request(
    *,
    target: str | None = None,
    registry: Path | None = None,
    input_shapes: InputShapes = (),
    rules: tuple[Path, ...] = (),
    effort: str = "normal",
    trials: int | None = None,
    seconds: float | None = None,
    min_impact: float | None = None,
    devices: tuple[str, ...] = (),
    no_device: bool = False,
    lock: Path | None = None,
    frozen: bool | None = False,
    max_size: int | None = None,
    max_memory: int | None = None,
    several: bool = False,
    **others: Any,
) -> Request:
    """The request of these options; the project's settings stand in for those not given.

    frozen: None where the environment decides; a frozen request has no registry, and needs no home
    directory. several: whether "A,B" may name more than one target. others: fields that a request
    takes unchanged. UsageError where options conflict, or name something that does not exist.
    """
    from ..registry.layer import layers_of

    if frozen and lock is None:
        raise UsageError("--frozen needs a lock to build from", "name it: --lock FILE")
    frozen = in_ci() and lock is not None if frozen is None else frozen
    chosen = chosen_devices(devices, no_device)
    project = Project.find()
    alone = chosen or lock or others.get("require_hits")
    codes = code_targets(target or "", several and not alone)
    names = target.split(",") if target and codes else [_target_name(target, project)]
    files = _target_files(names, project, said_there=not target)
    return Request(
        target=best_here(codes) if codes else chosen_target(target, *(chosen or ())),
        codes=codes,
        registry=_NO_REGISTRY if frozen else _apart(project.registry_path(registry), lock),
        input_shapes=shapes_together(input_shapes),
        rules=tuple(rule_files(rules)),
        budget=make_budget(effort, _trials(trials, seconds, others), seconds, min_impact),
        devices=chosen or (),
        finds_devices=chosen is None and not frozen and not codes,
        lock=lock,
        frozen=frozen,
        layers=layers_of(project, shipped("registry") / "seed"),
        sources=(*files, *project.files()),
        limits=Limits(max_size, max_memory),
        **others,
    )


def _apart(registry: Path, lock: Path | None) -> Path:
    """The registry's path. UsageError where the lock would overwrite the registry."""
    check_apart([registry, *([lock] if lock else [])], [], "name another lock, or registry")
    return registry


def _trials(trials: int | None, seconds: float | None, asked: Mapping[str, Any]) -> int | None:
    """The limit of trials: 0 with --require-hits or --read-only, which tune nothing.

    seconds: the limit of tuning time, if given. asked: the other options. UsageError where one of
    these two comes with trials or a time.
    """
    idle = [name for name in ("require_hits", "read_only") if asked.get(name)]
    if not idle:
        return trials
    if trials or seconds:
        option = f"--{idle[0].replace('_', '-')}"
        raise UsageError(f"{option} tunes nothing", "leave it out, or --trials and --time")
    return 0


def make_budget(
    effort: str, trials: int | None, seconds: float | None, min_impact: float | None
) -> Budget:
    """The effort's budget, with the given limits."""
    budget = replace(EFFORTS[effort], trials=trials, seconds=seconds)
    return budget if min_impact is None else replace(budget, min_impact=min_impact)


def chosen_target(name: str | None, *devices: str) -> Target:
    """The target of `--target`, else of the first device, else of the project, else this machine.

    UsageError where there is no such target or device.
    """
    if devices and not name:
        from ..devices.inventory import Inventory, target_of  # slow to import

        return target_of(Inventory.find().get(devices[0]))
    project = Project.find()
    return load_target(_target_name(name, project), project.target_path())


def _target_files(names: Sequence[str], project: Project, *, said_there: bool) -> list[Path]:
    """The files of targets. UsageError where one does not exist.

    It names the project's file where that holds the target's name. said_there: whether it may.
    """
    blamed = project.files() if said_there and project.target else []
    with blaming(blamed[0]) if blamed else nullcontext():
        return [one for name in names for one in target_files(name, project.target_path())]


def _target_name(given: str | None, project: Project) -> str:
    """The target's name: the one given, else the project's; for "auto", that of this machine."""
    name = given or project.target or HOST
    if name != _AUTO:
        return name
    from ..devices.machine import automatic

    return automatic(project.target_path())


def rule_files(given: Sequence[Path]) -> list[Path]:
    """The rule files given by `--rules`, then those of the project."""
    return [*given, *Project.find().rule_files(given)]
