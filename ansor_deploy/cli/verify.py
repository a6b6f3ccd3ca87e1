"""`ansor-deploy verify`: is a library right?"""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import VerificationError
from .helptext import examples
from .options import artifact_file, device_option, json_option, model_file, seed_option
from .output import print_json, stdout_kept_clean


@click.command(
    "verify",
    epilog=examples(
        "verify resnet18.so resnet18.onnx",
        "verify resnet18.so resnet18.onnx --seed 7 --json",
        "verify resnet18.so resnet18.onnx --device pi",
    ),
)
@click.argument("artifact", type=artifact_file)
@click.argument("model", type=model_file)
@seed_option
@device_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, artifact: Path, model: Path, seed: int, device: str, as_json: bool
) -> None:
    """Compare a library with ONNX Runtime on its model.

    Exits 6 if the outputs differ on seeded inputs.
    """
    from ..pipeline import verify
    from ..report.choose import report_on_stderr
    from ..report.text import verification_text

    with stdout_kept_clean(), report_on_stderr(plain=as_json) as report:
        verification = verify(artifact, model, seed, device, report)
    if as_json:
        print_json(verification.to_json())
    else:
        click.echo(verification_text(verification))
    if not verification.ok:
        ctx.exit(VerificationError.exit_code)
