"""`ansor-deploy verify`: is a library right, whole, and valid here?"""

from pathlib import Path

import click
from msgspec.structs import asdict

from ..errors import AnsorError, DeviceError, UsageError, VerificationError
from ..request import Tolerance
from .declare import existing_file, new_file, number_option
from .doctor import check_lines, checks_json, failed
from .helptext import Command, with_examples
from .options import device_option, rules_option
from .output import Answer, answering, message_format_option, quiet_option, report
from .requests import rule_files
from .tolerances import tolerance_options


@with_examples(
    "verify resnet18.so",
    "verify resnet18.so --device pi",
    "verify resnet18.so resnet18.onnx",
    "verify resnet18.so resnet18.onnx --seed 7 --json",
    "verify resnet18.so resnet18.onnx --by-node",
    "verify detector.so detector.onnx --atol boxes=0.5",
    "verify resnet18.so resnet18.onnx --rebuild --lock records.lock",
)
@click.command("verify", cls=Command)
@click.argument("artifact", type=existing_file)
@click.argument("model", type=existing_file, required=False)
@click.option("--rebuild", is_flag=True, help="Build it anew from the lock and compare the bytes.")
@click.option(
    "--lock",
    type=new_file,
    help="The lock that it was built from, for --rebuild.",
)
@click.option("--by-node", is_flag=True, help="List what each node of the model is off by.")
@tolerance_options
@rules_option
@number_option("--seed", 0, "Seed of the inputs that are compared.")
@device_option
@quiet_option
@answering
@message_format_option
def command(
    artifact: Path,
    model: Path | None,
    rebuild: bool,
    by_node: bool,
    tolerances: tuple[tuple[str, Tolerance], ...],
    lock: Path | None,
    rules: tuple[Path, ...],
    seed: int,
    devices: tuple[str, ...] | None,
) -> Answer:
    """Check a library's numbers, or that it is whole.

    With a model it is run, and compared with ONNX Runtime: exits 6 if outputs differ on seeded
    inputs by more than rounding explains, or --rtol and --atol allow. With --by-node, a library
    that gives the value of every node is built for this machine and compared, too. With --rebuild,
    it is built from the lock again: exits 6 if that makes other bytes.

    Without one nothing is loaded or run: exits 1 if the library or what lies beside it is not what
    was built, 4 if this machine, or the device that is named, could not run it.
    """
    if model is None:
        if rebuild:
            raise UsageError("--rebuild needs the model", f"verify {artifact} MODEL --rebuild")
        return _inspected(artifact, *(devices or ()))
    if rebuild:
        if lock is None:
            raise UsageError("--rebuild needs the lock to build from", "name it: --lock FILE")
        return _rebuilt(artifact, model, lock, rules)
    return _compared(artifact, model, seed, dict(tolerances), devices, by_node=by_node)


def _inspected(artifact: Path, device: str = "") -> Answer:
    """Whether it is whole, and valid."""
    from ..doctor.artifact import check_valid, check_whole

    whole, valid = list(check_whole(artifact)), list(check_valid(artifact, device))
    codes = [AnsorError.exit_code] * failed(whole) + [DeviceError.exit_code] * failed(valid)
    lines = [line for check in (*whole, *valid) for line in check_lines(check)]
    return Answer(checks_json([*whole, *valid]), lines, codes[0] if codes else 0)


def _rebuilt(artifact: Path, model: Path, lock: Path, rules: tuple[Path, ...]) -> Answer:
    """Whether the same bytes come out."""
    from ..pipeline import rebuild

    with report(quiet=True) as events:
        same = rebuild(artifact, model, lock, tuple(rule_files(rules)), events)
    lines = [f"{name}: {'the same bytes' if ok else 'DIFFERS'}" for name, ok in same.items()]
    ok = all(same.values())
    return Answer({"ok": ok, "same": same}, lines, 0 if ok else VerificationError.exit_code)


def _compared(
    artifact: Path,
    model: Path,
    seed: int,
    tolerances: dict[str, Tolerance],
    devices: tuple[str, ...] | None,
    *,
    by_node: bool,
) -> Answer:
    """Whether the outputs agree with ONNX Runtime's."""
    from ..ship.verify.finished import verify, verify_by_node
    from ..views.text import nodes_text, verification_text

    with report() as events:
        found = verify(artifact, model, seed, tolerances, devices, events)
        nodes = verify_by_node(artifact, model, seed, events) if by_node else None
    exit_code = 0 if found.ok else VerificationError.exit_code
    listed = None if nodes is None else [one.to_json() for one in nodes]
    lines = [verification_text(found), *found.wrong.values(), *nodes_text(nodes or ())]
    return Answer({**asdict(found), "nodes": listed}, lines, exit_code)
