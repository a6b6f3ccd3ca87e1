"""`ansor-deploy verify`: is a library right, whole, and valid here?"""

from dataclasses import asdict
from pathlib import Path

import click

from ..errors import AnsorError, DeviceError, UsageError, VerificationError
from .doctor import check_lines, checks_json, failed
from .helptext import Command, with_examples
from .options import device_option, existing_file, new_file, number_option, rule_files, rules_option
from .output import Answer, answering, message_format_option, quiet_option, report


@with_examples(
    "verify resnet18.so",
    "verify resnet18.so --device pi",
    "verify resnet18.so resnet18.onnx",
    "verify resnet18.so resnet18.onnx --seed 7 --json",
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
    lock: Path | None,
    rules: tuple[Path, ...],
    seed: int,
    devices: tuple[str, ...] | None,
) -> Answer:
    """Check a library's numbers, or that it is whole.

    With a model it is run, and compared with ONNX Runtime: exits 6 if the outputs differ on seeded
    inputs. With --rebuild, it is built from the lock again: exits 6 if that makes other bytes.

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
    return _compared(artifact, model, seed, devices)


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


def _compared(artifact: Path, model: Path, seed: int, devices: tuple[str, ...] | None) -> Answer:
    """Whether the outputs agree with ONNX Runtime's."""
    from ..pipeline import verify
    from ..report.text import verification_text

    with report() as events:
        found = verify(artifact, model, seed, devices, events)
    exit_code = 0 if found.ok else VerificationError.exit_code
    return Answer(asdict(found), [verification_text(found)], exit_code)
