"""Options that several commands share, and the request that the engine takes, made of them."""

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial, reduce, wraps
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ..errors import UsageError
from ..project import Project, shipped
from ..request import EFFORTS, Budget, Limits, Request
from ..system.environment import in_ci
from ..system.printable import printable
from ..target import Target, load_target, target_files
from .codes import best_here, code_targets, several_targets
from .completion import target_names
from .output import say
from .values import (
    InputShapes,
    parse_duration,
    parse_shape,
    parse_share,
    parse_size,
    shapes_together,
)

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

existing_file = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
new_file = click.Path(dir_okay=False, path_type=Path)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which help lists them."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def choice_option(name: str, words: Iterable[str], default: str, what: str) -> Decorator:
    """An option for one of several words. what: its help."""
    choice, text = click.Choice(list(words)), f"{what}  [default: {default}]"
    return click.option(name, type=choice, default=default, help=text)


def number_option(name: str, default: int, what: str) -> Decorator:
    """An option for a whole number, which may be its default or more than 0. what: its help."""
    number, words = click.IntRange(min=min(default, 1)), f"{what}  [default: {default}]"
    return click.option(name, type=number, default=default, metavar="N", help=words)


def with_request(command: Command) -> Command:
    """Make a request of the options that belong to one; the command takes it as `request`."""
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


def tuning_command(
    *,
    models: Sequence[Path] = (),
    model: Path | None = None,
    target: str | None = None,
    input_shapes: InputShapes = (),
    rules: Sequence[Path] = (),
    devices: Sequence[str] = (),
    lock: Path | None = None,
    **others: Any,
) -> str:
    """The command that writes the lock of a command with these options, as it can be pasted.

    A build system that has one of its own says so: ANSOR_DEPLOY_TUNE in the environment.
    """
    if said := os.environ.get("ANSOR_DEPLOY_TUNE"):
        return printable(said)
    shapes = [f"{name}={','.join(map(str, shape))}" for name, shape in input_shapes]
    options = {"--input-shape": shapes, "--rules": rules, "--device": devices}
    options |= {"--target": [target] if target else [], "--lock": [lock] if lock else []}
    pairs = ((option, one) for option, given in options.items() for one in given)
    words = [str(word) for pair in pairs for word in pair]
    named = [str(path) for path in (*models, model) if path]
    return shlex.join(["ansor-deploy", "tune", *named, *words])


_target = partial(click.option, "--target", shell_complete=target_names)
target_option = _target(
    help="A machine that `targets list` names.  [default: the project's, else host]"
)
targets_option = _target(
    "targets",
    multiple=True,
    help="A machine that `targets list` names; with --farm, several: repeat it.  "
    "[default: the project's, else host]",
)
registry_option = click.option(
    "--registry",
    type=new_file,
    help="The registry's file.  [default: the project's, else the user's]",
)
known_target_option = click.option(
    "--target", default="", help="Only this target, by name or start of its fingerprint."
)
rules_option = click.option(
    "--rules",
    type=click.Path(exists=True, readable=True, path_type=Path),
    multiple=True,
    callback=lambda ctx, option, given: tuple(chain.from_iterable(map(_rules_at, given))),
    help="A derivation rule to ask before the others, or a folder of them. Repeatable.",
)
input_shape_option = click.option(
    "--input-shape",
    "input_shapes",
    type=parse_shape,
    multiple=True,
    metavar="NAME=1,3,224,224",
    help="Set the shape of an input. Repeatable, for the same input, too: the library then takes "
    "each of its shapes; the n-th shapes of all inputs belong together.",
)
no_device_option = click.option(
    "--no-device", is_flag=True, help="Do without devices: what runs, runs here."
)
devices_options = together(
    click.option(
        "--device",
        "devices",
        multiple=True,
        metavar="NAME",
        help="Run candidates, and the model, on a device that `devices list` names. Repeatable.  "
        "[default: those of the target]",
    ),
    no_device_option,
)


def device_option(command: Command) -> Command:
    """The command gets `devices`, of which one runs the library; None for those of its target."""

    @click.option(
        "--device",
        default="",
        metavar="NAME",
        help="Run it on this device.  [default: one of the target's, else this machine]",
    )
    @no_device_option
    @wraps(command)
    def with_devices(device: str, no_device: bool, **rest: Any) -> Any:
        return command(devices=chosen_devices([device] if device else [], no_device), **rest)

    return with_devices


def chosen_devices(named: Sequence[str], no_device: bool) -> tuple[str, ...] | None:
    """The devices of these options, each once; None where those of the target are to be found."""
    if named and no_device:
        raise UsageError("--device and --no-device contradict each other", "give one of them")
    return tuple(dict.fromkeys(named)) if named or no_device else None


limit_options = together(
    click.option(
        "--max-size", type=parse_size, metavar="20MB", help="Fail if the library is larger."
    ),
    click.option(
        "--max-memory",
        type=parse_size,
        metavar="64MB",
        help="Fail if a run takes more memory: the library, inputs and workspace.",
    ),
)
reuse_option = choice_option(
    "--reuse",
    ("exact", "near"),
    "exact",
    "near: use records of a task's neighbours, made to fit, untuned.",
)


def registry_path(command: Command) -> Command:
    """The command gets `registry`, a path: of the option, else the project's or the user's."""

    @registry_option
    @wraps(command)
    def with_path(registry: Path | None, **rest: Any) -> Any:
        return command(registry=Project.find().registry_path(registry), **rest)

    return with_path


def opened(command: Command, *, write: bool = False) -> Command:
    """The command gets `store`, an open registry, which is closed when it returns."""

    @registry_path
    @wraps(command)
    def with_store(registry: Path, **rest: Any) -> Any:
        from ..registry.store import Registry

        if not (write or registry.exists()):
            say(f"warning: there is no registry {registry}; a build or tune makes it", err=True)
        with Registry.open(registry, write=write) as store:
            return command(store=store, **rest)

    return with_store


rule_set_options = together(target_option, rules_option)  # a target, and what it may be tuned by

# Of the commands that take a request; each group holds the one before it.
model_options = together(target_option, registry_option, input_shape_option, with_request)
_search_options = together(
    rules_option,
    choice_option("--search", ("ansor", "metaschedule"), "ansor", "How schedules are searched."),
    choice_option(
        "--precision",
        ("default", "strict"),
        "default",
        "strict: replace no computation by one of other products, such as Winograd's.",
    ),
    number_option("--seed", 0, "Seed of the search and of the verification's inputs."),
    choice_option("--effort", EFFORTS, "normal", "How far each task is searched."),
    click.option(
        "--trials",
        type=click.IntRange(min=0),
        metavar="N",
        help="Measure at most so many candidates.",
    ),
    click.option(
        "--time",
        "seconds",
        type=parse_duration,
        metavar="10m",
        help="Tune for at most so long: 90s, 10m, 1h30m.",
    ),
    click.option(
        "--min-impact",
        type=parse_share,
        metavar="1%",
        help="Leave alone tasks with less of the model's time.  [default: by --effort]",
    ),
    devices_options,
)
plan_options = together(model_options, _search_options)
_retune_option = click.option(
    "--retune",
    multiple=True,
    metavar="TASK",
    help="Search a task again though its search has ended: its name or the beginning of its "
    "key, as `plan --json` prints them; or all. Repeatable.",
)
_lock_option = click.option(
    "--lock",
    type=new_file,
    help="Keep the records that were used in this file, for version control.",
)


def _farm_option(what: str) -> Decorator:
    words = f"{what}  [default: on this machine]"
    return click.option("--farm", default="", metavar="tcp://HOST:PORT", help=words)


building_options = together(
    several_targets,
    plan_options,
    _retune_option,
    _farm_option("Build candidates on this Dask cluster."),
    _lock_option,
)
tuning_options = together(
    targets_option,
    registry_option,
    input_shape_option,
    with_requests,
    _search_options,
    _retune_option,
    _farm_option(
        "Tune on the boards and machines that the workers of this Dask cluster reach; with "
        "--device or --no-device, only build candidates there."
    ),
    _lock_option,
)


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
    """The request of these options, and of the project's settings where an option was not given.

    frozen: None where the environment decides; a frozen request has no registry, and needs no home
    directory. several: whether the target may be more than one, as "A,B". others: what a request
    takes as it is.
    """
    from ..registry.layers import layers_of

    if frozen and lock is None:
        raise UsageError("--frozen needs a lock to build from", "name it: --lock FILE")
    frozen = in_ci() and lock is not None if frozen is None else frozen
    chosen = chosen_devices(devices, no_device)
    project = Project.find()
    codes = code_targets(target or "", several and not (chosen or lock))
    names = target.split(",") if target and codes else [target or project.target or "host"]
    files = [one for name in names for one in target_files(name, project.target_path())]
    return Request(
        target=best_here(codes) if codes else chosen_target(target, *(chosen or ())),
        codes=codes,
        registry=Path(os.devnull) if frozen else project.registry_path(registry),
        input_shapes=shapes_together(input_shapes),
        rules=tuple(rule_files(rules)),
        budget=make_budget(effort, trials, seconds, min_impact),
        devices=chosen or (),
        finds_devices=chosen is None and not frozen and not codes,
        lock=lock,
        frozen=frozen,
        layers=layers_of(project, shipped("registry") / "seed"),
        sources=(*files, *project.files()),
        limits=Limits(max_size, max_memory),
        **others,
    )


def make_budget(
    effort: str, trials: int | None, seconds: float | None, min_impact: float | None
) -> Budget:
    """The effort's budget within the limits given."""
    budget = replace(EFFORTS[effort], trials=trials, seconds=seconds)
    return budget if min_impact is None else replace(budget, min_impact=min_impact)


def chosen_target(name: str | None, *devices: str) -> Target:
    """The target of `--target`, else of the first device, else of the project, else this machine.

    UsageError where there is no such target or device.
    """
    if devices and not name:
        from ..devices.inventory import Inventory, target_of  # loads more than all the rest here

        return target_of(Inventory.find().get(devices[0]))
    project = Project.find()
    return load_target(name or project.target or "host", project.target_path())


def _rules_at(path: Path) -> list[Path]:
    """The file, or those of the folder by name."""
    if path.is_dir() and not list(path.glob("*.py")):
        raise UsageError("there is no rule in this folder", "a rule is a file NAME.py", path)
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


def rule_files(given: Sequence[Path]) -> list[Path]:
    """The files of `--rules`, then those of the project."""
    return [*given, *Project.find().rule_files(given)]
