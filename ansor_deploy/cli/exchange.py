"""`ansor-deploy registry export, import, merge, push, pull`: what registries give each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import RegistryError, UsageError
from .helptext import examples
from .options import existing_file
from .output import json_option, print_json
from .store import registry_path

if TYPE_CHECKING:
    from ..registry.exchange import Given, Pulled, Trusted
    from ..registry.transfer import Taken

sign_option = click.option(
    "--sign",
    "key",
    type=existing_file,
    metavar="KEY",
    help="Sign with this private key (ssh-keygen -t ed25519).",
)
trust_option = click.option(
    "--trust",
    type=existing_file,
    metavar="KEYS",
    help="Take only what one of these public keys has signed.  [default: the project's]",
)


@click.command(
    "export",
    epilog=examples("registry export team.jsonl", "registry export team.jsonl.zst --sign id"),
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@registry_path
@sign_option
@json_option
def export_command(file: Path, registry: Path, key: Path | None, as_json: bool) -> None:
    """Write all records to FILE, for others to import.

    Equal records give equal bytes. A name that ends in .zst is compressed. A signature is written
    beside it, as FILE.sig.
    """
    from ..registry.exchange import export_file
    from ..registry.signing import load_signer

    signer = load_signer(key) if key else None
    given = export_file(registry, file, signer)
    _print_given(given, str(file), as_json)


@click.command(
    "import",
    epilog=examples("registry import team.jsonl", "registry import team.jsonl --trust keys.pub"),
)
@click.argument("file", type=existing_file)
@registry_path
@trust_option
@json_option
def import_command(file: Path, registry: Path, trust: Path | None, as_json: bool) -> None:
    """Take in an exported FILE.

    Every line is checked before TVM sees any. If one is not what this tool writes, nothing of the
    file is taken and each such line is named (exit 8).
    """
    from ..registry.exchange import import_file

    _print_taken(import_file(registry, file, _trusted(trust)), as_json)


@click.command("merge", epilog=examples("registry merge other.db", "registry merge old.db --json"))
@click.argument("other", type=existing_file)
@registry_path
@json_option
def merge_command(other: Path, registry: Path, as_json: bool) -> None:
    """Take in the registry file OTHER, checked like an import and left as it is."""
    from ..registry.exchange import merge_file

    if _trusted(None) is not None:
        raise UsageError(
            "this project trusts signed records only, and a registry's file is not signed",
            "Export there with --sign KEY, and import that file.",
        )
    _print_taken(merge_file(registry, other), as_json)


@click.command(
    "push",
    epilog=examples(
        "registry push /mnt/team/records", "registry push s3://bucket/records --sign ~/.ssh/id"
    ),
)
@click.argument("url")
@registry_path
@sign_option
@json_option
def push_command(url: str, registry: Path, key: Path | None, as_json: bool) -> None:
    """Add to the folder at URL the records that it does not have yet.

    URL is a path, or what fsspec knows: file://, s3://, gs://, sftp:// and others, each with its
    own package. What is there is never changed.
    """
    from ..registry.exchange import push
    from ..registry.signing import load_signer

    signer = load_signer(key) if key else None
    _print_given(push(registry, url, signer), url, as_json)


@click.command(
    "pull",
    epilog=examples(
        "registry pull /mnt/team/records", "registry pull https://example.org/r --trust keys.pub"
    ),
)
@click.argument("url")
@registry_path
@trust_option
@json_option
def pull_command(url: str, registry: Path, trust: Path | None, as_json: bool) -> None:
    """Take in every bundle in the folder at URL.

    Uploads that did not end are passed over. A bundle with a line that is not what this tool
    writes, or without a signature where one is demanded, is left out and named (exit 8).
    """
    from ..registry.exchange import pull

    pulled = pull(registry, url, _trusted(trust))
    for name in pulled.torn:
        click.echo(f"passed over, not whole: {name}", err=True)
    if pulled.refused:
        raise _partly(url, pulled)
    _print_taken(pulled.taken, as_json, bundles=pulled.bundles, torn=pulled.torn)


EXCHANGE: tuple[click.Command, ...] = (
    export_command,
    import_command,
    merge_command,
    push_command,
    pull_command,
)


def _trusted(option: Path | None) -> Trusted | None:
    """The keys of the option, else of the project; None where no signature is demanded."""
    from ..project import Project
    from ..registry.signing import load_trusted

    file = option or Project.find().trust
    return load_trusted(file) if file else None


def _partly(url: str, pulled: Pulled) -> RegistryError:
    reasons = "\n".join(error.message for error in pulled.refused)
    others = f"{pulled.bundles} other bundles were taken in, with {pulled.taken.records} new"
    return RegistryError(f"{url}: {others} records\n{reasons}", pulled.refused[0].hint)


def _print_taken(taken: Taken, as_json: bool, **more: Any) -> None:
    if as_json:
        counts = {"new": taken.records, "known": taken.known, "contests": taken.contests}
        print_json({**counts, **more})
    else:
        contests = f"; {taken.contests} new comparisons" if taken.contests else ""
        click.echo(f"{taken.records} new records, {taken.known} known already{contests}")


def _print_given(given: Given, where: str, as_json: bool) -> None:
    for refusal in given.left_out:
        click.echo(f"left out, as no one would take it in: {refusal}", err=True)
    if as_json:
        left_out = len(given.left_out)
        print_json({"bundle": given.name, "records": given.records, "left_out": left_out})
    elif given.name:
        click.echo(f"{given.records} records to {where} ({given.name[:12]})")
    else:
        click.echo(f"{where} has every record already")
