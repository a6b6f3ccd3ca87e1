"""`--target A,B`: one library with code for several targets."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..errors import UsageError
from ..project import Project
from ..system.host import architecture
from ..target import Target, load_target


def several_targets(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command's `--target`, and so its request, name several targets."""

    @wraps(command)
    def call(**words: Any) -> Any:
        return command(several=True, **words)

    return call


def code_targets(named: str, allowed: bool) -> tuple[Target, ...]:
    """The targets of "A,B", those with the widest vectors first; none where only one is named.

    Targets with equally wide vectors keep their order. allowed: whether the command can build a
    library with code for several. UsageError where it cannot, or one library cannot hold these.
    """
    names = [name.strip() for name in named.split(",")]
    if len(names) == 1:
        return ()
    if not allowed:
        raise UsageError(
            f"--target {named}: only a build makes one library for several targets, "
            "without devices, without a lock and without --require-hits",
            f"name one of them, as --target {names[0]}",
        )
    folders = Project.find().target_path()
    targets = sorted(
        (load_target(name, folders) for name in names), key=lambda target: -target.vector_bytes
    )
    _check(named, targets)
    return tuple(targets)


def _check(named: str, targets: Sequence[Target]) -> None:
    kinds = {(target.kind, architecture(target.triple)) for target in targets}
    if len(kinds) > 1 or targets[0].kind != "llvm":
        raise UsageError(
            f"--target {named}: one library has code for processors of one architecture",
            "build a library for each of them",
        )
    if len({target.fingerprint for target in targets}) < len(targets):
        raise UsageError(f"--target {named}: two of them are the same machine", "leave one out")


def best_here(targets: Sequence[Target]) -> Target:
    """The first that this processor can run, which a loader would pick too; else the first."""
    from ..devices.machine import has_instructions

    return next((target for target in targets if has_instructions(target)), targets[0])
