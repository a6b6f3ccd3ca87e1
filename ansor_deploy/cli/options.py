"""Options that several commands share."""

from functools import partial, wraps
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ..errors import UsageError
from ..project import Project
from ..request import EFFORTS
from .codes import several_targets
from .completion import target_names
from .declare import (
    Command,
    Decorator,
    check_files,
    choice_option,
    new_file,
    number_option,
    together,
)
from .output import say
from .quantising import quantising_options
from .requests import chosen_devices, with_request, with_requests
from .shapes import parse_shape
from .values import parse_duration, parse_share, parse_size

_target = partial(click.option, "--target", shell_complete=target_names)
target_option = _target(
    help="The machine to build for, a name of `targets list`. NAME:4 means with four cores; auto, "
    "the GPU of this machine, or host if it has none.  [default: the project's, else host]"
)
targets_option = _target(
    "targets",
    multiple=True,
    help="The machine to tune for, a name of `targets list`. With --farm, repeat it for several.  "
    "[default: the project's, else host]",
)
registry_option = click.option(
    "--registry",
    type=new_file,
    help="The registry's file.  [default: the project's, else the user's]",
)
known_target_option = click.option(
    "--target", default="", help="Only this target: its name or the start of its fingerprint."
)
rules_option = click.option(
    "--rules",
    type=click.Path(exists=True, readable=True, path_type=Path),
    multiple=True,
    callback=lambda ctx, option, given: tuple(chain.from_iterable(map(_rules_at, given))),
    help="A derivation rule to ask before the others, or a folder of rules. Repeatable.",
)
input_shape_option = click.option(
    "--input-shape",
    "input_shapes",
    type=parse_shape,
    multiple=True,
    metavar="NAME=1,3,224,224",
    help="Set the shape of an input. Repeatable: several shapes of an input make a library for all "
    "of them; the n-th shapes of all inputs belong together. 1..8 for the first axis is any batch "
    "in that range; 1..512 for another axis, any length; 320..640:32, any size in steps of 32. "
    "NAME==16000 makes an input a constant.",
)
context_option = click.option(
    "--context",
    type=click.IntRange(min=0),
    default=0,
    metavar="ROWS",
    help="How many rows the caches of a decoder have room for. The library keeps the caches and "
    "appends to them in place.  [default: 1024, or as many as the model takes]",
)
no_device_option = click.option(
    "--no-device", is_flag=True, help="Use no device: run everything on this machine."
)
devices_options = together(
    click.option(
        "--device",
        "devices",
        multiple=True,
        metavar="NAME",
        help="Measure on this device, a name of `devices list`. Repeatable.  "
        "[default: those of the target]",
    ),
    no_device_option,
)


def device_option(command: Command) -> Command:
    """Give a command `devices`: the one that runs the library.

    It is empty for none, and None where the target's devices are to be looked for.
    """

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
    "near: a task without a record takes the schedule of a similar task, made to fit.",
)
require_hits_option = click.option(
    "--require-hits",
    is_flag=True,
    help="Tune nothing. If a task that matters has no record, exit 5 and print the command that "
    "tunes it.",
)


def registry_path(command: Command) -> Command:
    """Give a command `registry`: the path of the option, else the project's or the user's."""

    @registry_option
    @wraps(command)
    def with_path(registry: Path | None, **rest: Any) -> Any:
        path = Project.find().registry_path(registry)
        check_files(click.get_current_context(), registry=path)
        return command(registry=path, **rest)

    return with_path


def check_there(registry: Path) -> None:
    """UsageError where there is no registry: the path given may be a mistake."""
    if not registry.exists():
        hint = "a build or tune makes it; name another one with --registry FILE"
        raise UsageError(f"there is no registry {registry}", hint)


def opened(command: Command, *, write: bool = False) -> Command:
    """Give a command `store`, an open registry, which is closed when the command returns.

    write: open it for writing, and only if it exists: only builds and tuning create registries.
    """

    @registry_path
    @wraps(command)
    def with_store(registry: Path, **rest: Any) -> Any:
        from ..registry.store import Registry

        if write:
            check_there(registry)
        elif not registry.exists():
            say(f"warning: there is no registry {registry}; a build or tune makes it", err=True)
        with Registry.open(registry, write=write) as store:
            return command(store=store, **rest)

    return with_store


rule_set_options = together(target_option, rules_option)  # a target, and the rules for it

# For commands that take a request. Each set includes most of the one before it.
_shape_options = together(input_shape_option, context_option)
model_options = together(target_option, registry_option, _shape_options, with_request)
_search_options = together(
    rules_option,
    choice_option("--search", ("ansor", "metaschedule"), "ansor", "The search to use."),
    number_option("--seed", 0, "The seed of the search and of the inputs for verification."),
    choice_option("--effort", EFFORTS, "normal", "How far each task is searched."),
    click.option(
        "--trials",
        type=click.IntRange(min=0),
        metavar="N",
        help="Measure at most N candidates.",
    ),
    click.option(
        "--time",
        "seconds",
        type=parse_duration,
        metavar="10m",
        help="Tune for at most this time, such as 90s, 10m or 1h30m.",
    ),
    click.option(
        "--min-impact",
        type=parse_share,
        metavar="1%",
        help="Do not tune tasks with a smaller share of the model's time.  [default: by --effort]",
    ),
    devices_options,
)
_precision_option = choice_option(
    "--precision",
    ("default", "strict"),
    "default",
    "strict: use no algorithm that rounds in other places, such as Winograd's.",
)
plan_options = together(model_options, _search_options, _precision_option)
_retune_option = click.option(
    "--retune",
    multiple=True,
    metavar="TASK",
    help="Search a task again, although its search has ended: its name or the start of its key, "
    "as `plan --json` prints them, or all. Repeatable.",
)
_lock_option = click.option(
    "--lock",
    type=new_file,
    help="The file that keeps the records that were used, for version control.",
)


def _farm_option(what: str) -> Decorator:
    words = f"{what}  [default: on this machine]"
    return click.option("--farm", default="", metavar="tcp://HOST:PORT", help=words)


building_options = together(
    several_targets,
    quantising_options,
    model_options,
    _search_options,
    _retune_option,
    _farm_option("Build candidates on this Dask cluster."),
    _lock_option,
)
tuning_options = together(
    targets_option,
    registry_option,
    _shape_options,
    with_requests,
    _search_options,
    _precision_option,
    _retune_option,
    _farm_option(
        "Tune on the boards and machines that the workers of this Dask cluster reach. With "
        "--device or --no-device, the workers only build candidates."
    ),
    _lock_option,
)


def _rules_at(path: Path) -> list[Path]:
    """The rule file itself, or the rule files of a folder, sorted by name."""
    if path.is_dir() and not list(path.glob("*.py")):
        raise UsageError("there is no rule in this folder", "a rule is a file NAME.py", path)
    return sorted(path.glob("*.py")) if path.is_dir() else [path]
