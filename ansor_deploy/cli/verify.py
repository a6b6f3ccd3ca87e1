"""`ansor-deploy verify`: is a library right, whole, and valid here?"""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import AnsorError, DeviceError, UsageError, VerificationError
from .doctor import failed, print_checks
from .helptext import examples
from .messages import message_format_option
from .options import (
    artifact_file,
    device_option,
    json_option,
    model_file,
    rules_option,
    seed_option,
)
from .output import print_json, stdout_kept_clean


@click.command(
    "verify",
    epilog=examples(
        "verify resnet18.so",
        "verify resnet18.so --device pi",
        "verify resnet18.so resnet18.onnx",
        "verify resnet18.so resnet18.onnx --seed 7 --json",
        "verify resnet18.so resnet18.onnx --rebuild --lock records.lock",
    ),
)
@click.argument("artifact", type=artifact_file)
@click.argument("model", type=model_file, required=False)
@click.option("--rebuild", is_flag=True, help="Build it anew from the lock and compare the bytes.")
@click.option(
    "--lock",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The lock that it was built from, for --rebuild.",
)
@rules_option
@seed_option
@device_option
@json_option
@message_format_option
@click.pass_context
def command(
    ctx: click.Context,
    artifact: Path,
    model: Path | None,
    rebuild: bool,
    lock: Path | None,
    rules: tuple[Path, ...],
    seed: int,
    device: str,
    as_json: bool,
    message_format: str,
) -> None:
    """Check a library's numbers, or that it is whole.

    With a model it is run, and compared with ONNX Runtime: exits 6 if the outputs differ on seeded
    inputs. With --rebuild, it is built from the lock again: exits 6 if that makes other bytes.

    Without one nothing is loaded or run: exits 1 if the library or what lies beside it is not what
    was built, 4 if this machine, or the device, could not run it.
    """
    if model is None:
        if rebuild:
            raise UsageError("--rebuild needs the model", f"verify {artifact} MODEL --rebuild")
        ctx.exit(_look(artifact, device, as_json))
    if rebuild:
        if lock is None:
            raise UsageError("--rebuild needs the lock to build from", "name it: --lock FILE")
        ctx.exit(_rebuild(artifact, model, lock, rules, as_json, message_format))
    ctx.exit(_compare(artifact, model, seed, device, as_json, message_format))


def _look(artifact: Path, device: str, as_json: bool) -> int:
    """Whether it is whole, and valid; the exit code."""
    from ..doctor.artifact import check_valid, check_whole

    whole, valid = list(check_whole(artifact)), list(check_valid(artifact, device))
    print_checks([*whole, *valid], as_json)
    codes = [AnsorError.exit_code] * failed(whole) + [DeviceError.exit_code] * failed(valid)
    return codes[0] if codes else 0


def _rebuild(
    artifact: Path,
    model: Path,
    lock: Path,
    rules: tuple[Path, ...],
    as_json: bool,
    message_format: str,
) -> int:
    """Whether the same bytes come out; the exit code."""
    from ..pipeline import rebuild
    from ..project import Project
    from ..report.choose import report_on_stderr

    files = (*rules, *Project.find().rule_files())
    with (
        stdout_kept_clean(),
        report_on_stderr(as_json, message_format=message_format, quiet=True) as report,
    ):
        same = rebuild(artifact, model, lock, files, report)
    ok = all(same.values())
    if as_json:
        print_json({"ok": ok, "same": same})
    else:
        for name, equal in same.items():
            click.echo(f"{name}: {'the same bytes' if equal else 'DIFFERS'}")
    return 0 if ok else VerificationError.exit_code


def _compare(
    artifact: Path, model: Path, seed: int, device: str, as_json: bool, message_format: str
) -> int:
    """Whether the outputs agree with ONNX Runtime's; the exit code."""
    from ..pipeline import verify
    from ..report.choose import report_on_stderr
    from ..report.text import verification_text

    with (
        stdout_kept_clean(),
        report_on_stderr(as_json, message_format=message_format) as report,
    ):
        verification = verify(artifact, model, seed, device, report)
    if as_json:
        print_json(verification.to_json())
    else:
        click.echo(verification_text(verification))
    return 0 if verification.ok else VerificationError.exit_code
