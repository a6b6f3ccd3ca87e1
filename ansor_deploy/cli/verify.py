"""`ansor-deploy verify`: whether a library is right, complete, and runs here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, structs

from ..errors import AnsorError, DeviceError, UsageError, VerificationError
from ..request import Tolerance
from ..ship.manifest import Errors, read_manifest
from .arrays import input_option, read_inputs
from .declare import existing_file, new_file, number_option
from .doctor import check_lines, failed
from .helptext import Command, with_examples
from .options import device_option, rules_option
from .output import Answer, answering, message_format_option, report
from .requests import rule_files
from .tolerances import tolerance_options

if TYPE_CHECKING:
    from ..ship.verify.by_node import NodeVerdict
    from ..ship.verify.finished import Inputs


class NodeErrors(Struct, frozen=True):
    """The largest errors of a tensor that a node computes."""

    name: str
    op: str
    tensor: str
    ok: bool
    max_abs_err: float | None
    max_rel_err: float | None


class Compared(Errors, frozen=True, kw_only=True):
    """The answer of `verify --json`. wrong: a message for each wrong output. nodes: for --by-node.

    seed: 0 where the inputs were given.
    """

    wrong: dict[str, str]
    nodes: list[NodeErrors] | None


class Rebuilt(Struct, frozen=True):
    """The answer of `verify --rebuild --json`. same: by file name, whether the bytes are equal."""

    ok: bool
    same: dict[str, bool]


@with_examples(
    "verify resnet18.so",
    "verify resnet18.so --device pi",
    "verify resnet18.so resnet18.onnx",
    "verify resnet18.so resnet18.onnx --seed 7 --json",
    "verify resnet18.so resnet18.onnx --input data=image.npy",
    "verify resnet18.so resnet18.onnx --by-node",
    "verify detector.so detector.onnx --atol boxes=0.5",
    "verify resnet18.so resnet18.onnx --rebuild --lock records.lock",
)
@click.command("verify", cls=Command)
@click.argument("artifact", type=existing_file)
@click.argument("model", type=existing_file, required=False)
@click.option(
    "--rebuild", is_flag=True, help="Build the library again from the lock and compare the bytes."
)
@click.option(
    "--lock", type=new_file, help="The lock that the library was built from, for --rebuild."
)
@click.option("--by-node", is_flag=True, help="List how far each node of the model is off.")
@tolerance_options
@rules_option
@number_option("--seed", 0, "The seed of the inputs that are compared.")
@input_option
@device_option
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
    inputs: tuple[str, ...],
    devices: tuple[str, ...] | None,
) -> Answer:
    """Check a library's numbers, or that its files are whole.

    With MODEL, the library runs on seeded inputs, or on those of --input, and its outputs are
    compared with ONNX Runtime's. Exits 6 if they differ by more than rounding explains, or than
    --rtol and --atol allow. With --by-node, a library that also gives the value of every node is
    built for this machine and compared. With --rebuild, the library is built from the lock again;
    exits 6 if the bytes differ.

    Without MODEL, nothing is loaded or run. Exits 1 if the library or a file beside it is not what
    was built, and 4 if the device, or this machine if there is none, could not run it.
    """
    asked = {"--rebuild": rebuild, "--by-node": by_node, "--input": inputs, "--seed": seed}
    if model is None:
        if option := _first(asked | {"--rtol": tolerances}):
            raise UsageError(f"{option} needs the model", f"verify {artifact} MODEL {option}")
        return _inspected(artifact, devices)
    if rebuild:
        if lock is None:
            raise UsageError("--rebuild needs the lock to build from", "name it: --lock FILE")
        return _rebuilt(artifact, model, lock, rules)
    if inputs and (option := _first({"--seed": seed, "--by-node": by_node})):
        raise UsageError(f"{option} is for seeded inputs", f"leave out --input, or {option}")
    given = partial(read_inputs, inputs) if inputs else None
    return _compared(artifact, model, seed, dict(tolerances), devices, given, by_node=by_node)


def _first(asked: Mapping[str, Any]) -> str:
    """The first of these options that was given, or "" if none was."""
    return next((option for option, given in asked.items() if given), "")


def _inspected(artifact: Path, devices: tuple[str, ...] | None) -> Answer:
    """Check that the library is complete, and can run on the device or here.

    devices: None for those of its target.
    """
    from ..devices.registered import registered_for
    from ..doctor.artifact import check_valid, check_whole
    from ..doctor.host import Checks

    whole = list(check_whole(artifact))
    if devices is None:
        with report() as events:
            devices = registered_for(read_manifest(artifact).target.machine, events)
    valid = list(check_valid(artifact, next(iter(devices), "")))
    codes = [AnsorError.exit_code] * failed(whole) + [DeviceError.exit_code] * failed(valid)
    lines = [line for check in (*whole, *valid) for line in check_lines(check)]
    return Answer(Checks.of([*whole, *valid]), lines, codes[0] if codes else 0)


def _rebuilt(artifact: Path, model: Path, lock: Path, rules: tuple[Path, ...]) -> Answer:
    """Build the library again, and compare the bytes of its files."""
    from ..pipeline import rebuild

    with report(quiet=True) as events:
        same = rebuild(artifact, model, lock, tuple(rule_files(rules)), events)
    lines = [f"{name}: {'the same bytes' if ok else 'DIFFERS'}" for name, ok in same.items()]
    ok = all(same.values())
    return Answer(Rebuilt(ok, same), lines, 0 if ok else VerificationError.exit_code)


def _compared(
    artifact: Path,
    model: Path,
    seed: int,
    tolerances: dict[str, Tolerance],
    devices: tuple[str, ...] | None,
    given: Inputs | None,
    *,
    by_node: bool,
) -> Answer:
    """Compare the outputs with ONNX Runtime's, on the inputs that are given or on seeded ones."""
    from ..ship.verify.finished import verify, verify_by_node
    from ..views.text import nodes_text, verification_text

    with report() as events:
        verification = verify(artifact, model, seed, tolerances, devices, events, given)
        nodes = verify_by_node(artifact, model, seed, events) if by_node else None
    wrong = dict(verification.wrong)
    first = verification_text(verification, seeded=given is None)
    lines = [first, *wrong.values(), *nodes_text(nodes or ())]
    listed = None if nodes is None else list(map(_errors, nodes))
    answer = Compared(**structs.asdict(verification.errors), wrong=wrong, nodes=listed)
    return Answer(answer, lines, 0 if verification.ok else VerificationError.exit_code)


def _errors(node: NodeVerdict) -> NodeErrors:
    verdict = node.verdict
    return NodeErrors(node.name, node.op, node.tensor, verdict.ok, verdict.abs_err, verdict.rel_err)
