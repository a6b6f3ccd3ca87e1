"""`ansor-deploy registry export, import, merge, push, pull, withdraw`: exchanging records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import RegistryError, UsageError
from ..project import MARKER, Project
from ..system.json_types import Count
from ..system.words import count
from .declare import existing_file, new_file
from .helptext import Command, with_examples
from .options import registry_path
from .output import Answer, answering, say

if TYPE_CHECKING:
    from ..registry import exchange, transfer
    from ..registry.exchange import Trusted
    from ..registry.signing import Signer

_MOST_SAID = 8  # lines of a kind about files that were not taken


class Given(Struct, frozen=True):
    """The answer of `registry export --json` and `push --json`.

    bundle: its digest; "" where the folder had every record already.
    """

    bundle: str
    records: Count
    left_out: Count


class Taken(Struct, frozen=True):
    """The answer of `registry import --json`: numbers of records, and of new comparisons."""

    new: Count
    known: Count
    contests: Count


class Pulled(Taken, frozen=True):
    """The answer of `registry pull --json`.

    torn: bundles with a part missing. misnamed: bundles whose content does not match their name.
    """

    bundles: Count
    torn: Sequence[str]
    misnamed: dict[str, str]


class Withdrawn(Struct, frozen=True):
    """The answer of `registry withdraw --json`. bundle: the name of its file."""

    bundle: str


sign_option = click.option(
    "--sign",
    "key",
    type=existing_file,
    metavar="KEY",
    help="Sign with this private key, made by ssh-keygen -t ed25519.",
)
trust_option = click.option(
    "--trust",
    type=existing_file,
    metavar="KEYS",
    help="Take only what one of these public keys has signed.  [default: the project's]",
)


@with_examples("registry export team.jsonl", "registry export team.jsonl.zst --sign id")
@click.command("export", cls=Command)
@click.argument("file", type=new_file)
@registry_path
@sign_option
@answering
def export_command(file: Path, registry: Path, key: Path | None) -> Answer:
    """Write all records to FILE, for others to import.

    Measurements, their features and builds are not exported; `registry backup` copies these, too.

    Equal records give equal bytes, except that a signed file says when it was made. A file whose
    name ends in .zst is compressed. The signature is written beside the file, as FILE.sig.
    """
    from ..registry.exchange import export_file

    return _given(export_file(registry, file, _signer(key)), str(file))


@with_examples("registry import team.jsonl", "registry import team.jsonl --trust keys.pub")
@click.command("import", cls=Command)
@click.argument("file", type=existing_file)
@registry_path
@trust_option
@answering
def import_command(file: Path, registry: Path, trust: Path | None) -> Answer:
    """Take in an exported FILE.

    Every line is checked before TVM sees any of them. If a line is not what this tool writes,
    nothing of the file is taken, and each such line is named (exit 8).
    """
    from ..registry.exchange import import_file

    return _taken(import_file(registry, file, _trusted(trust)))


@with_examples("registry merge other.db", "registry merge old.db --json")
@click.command("merge", cls=Command)
@click.argument("other", type=existing_file)
@registry_path
@answering
def merge_command(other: Path, registry: Path) -> Answer:
    """Take in the registry file OTHER.

    Its records are checked like those of an import. The file stays as it is.
    """
    from ..registry.exchange import merge_file

    if _trusted(None) is not None:
        text = "this project trusts signed records only, and a registry's file is not signed"
        raise UsageError(text, "export there with --sign KEY, and import that file")
    return _taken(merge_file(registry, other))


@with_examples(
    "registry push /mnt/team/records", "registry push s3://bucket/records --sign ~/.ssh/id"
)
@click.command("push", cls=Command)
@click.argument("url", required=False)
@registry_path
@sign_option
@answering
def push_command(url: str | None, registry: Path, key: Path | None) -> Answer:
    """Add the records that the folder at URL lacks.

    URL is a path or an address that fsspec knows, such as file://, s3://, gs:// or sftp://, each
    with its own package; by default it is the project's `team`. Files that are there are never
    changed.
    """
    from ..registry.exchange import push

    url = _folder(url)
    return _given(push(registry, url, _signer(key)), url)


@with_examples(
    "registry pull /mnt/team/records", "registry pull https://example.org/r --trust keys.pub"
)
@click.command("pull", cls=Command)
@click.argument("url", required=False)
@registry_path
@trust_option
@answering
def pull_command(url: str | None, registry: Path, trust: Path | None) -> Answer:
    """Take in every bundle in the folder at URL.

    URL is by default the project's `team`. Incomplete uploads are ignored. A bundle is left out and
    named (exit 8) if a line is not what this tool writes, or if a signature is demanded and
    missing.
    """
    from ..registry.exchange import pull
    from ..registry.remote import misnamed

    url = _folder(url)
    pulled = pull(registry, url, _trusted(trust))
    _say_some(f"incomplete, and ignored: {name}" for name in pulled.torn)
    _say_some(f"not taken, as it was withdrawn: {name}" for name in pulled.withdrawn)
    _say_some(misnamed(f"{url}/{name}", right) for name, right in pulled.misnamed.items())
    if pulled.refused:
        reasons = "\n".join(error.message for error in pulled.refused)
        others = f"{pulled.bundles} other bundles were taken in, with {pulled.taken.records} new"
        raise RegistryError(f"{url}: {others} records\n{reasons}", pulled.refused[0].hint)
    taken = pulled.taken
    figures = taken.records, taken.known, taken.contests
    answer = Pulled(*figures, pulled.bundles, pulled.torn, pulled.misnamed)
    return Answer(answer, [_taken_line(taken)])


@with_examples("registry withdraw 61f0...c2 --sign ~/.ssh/id", "registry withdraw 61f0...c2 /mnt/r")
@click.command("withdraw", cls=Command)
@click.argument("bundle")
@click.argument("url", required=False)
@sign_option
@answering
def withdraw_command(bundle: str, url: str | None, key: Path | None) -> Answer:
    """Withdraw a bundle, so that nobody takes it any more.

    The bundle is one of the folder at URL, by default the project's `team`. BUNDLE is its digest;
    its file may be gone already. A machine that has seen the withdrawal refuses the bundle from
    then on, even if an old copy of the folder is served. What was pulled from it stays until
    `registry forget --claims`.
    """
    from ..registry.exchange import withdraw

    name = withdraw(_folder(url), bundle, _signer(key))
    return Answer(Withdrawn(name), [f"withdrawn: {name}"])


EXCHANGE = (
    export_command, import_command, merge_command, push_command, pull_command, withdraw_command,
)  # fmt: skip


def _say_some(lines: Iterable[str]) -> None:
    """Print the first few lines on stderr, and how many more there are."""
    left = iter(lines)
    for line in islice(left, _MOST_SAID):
        say(line, err=True)
    if more := sum(1 for _ in left):
        say(f"and {more} more such files", err=True)


def _folder(url: str | None) -> str:
    """The folder that is given, else the project's. UsageError where there is neither."""
    if folder := url or Project.find().team:
        return folder
    hint = f"name it, or say in {MARKER} where the team's records are: team = 'FOLDER or URL'"
    raise UsageError("no folder is named, and the project has none", hint)


def _signer(key: Path | None) -> Signer | None:
    from ..registry.signing import load_signer

    return load_signer(key) if key else None


def _trusted(option: Path | None) -> Trusted | None:
    """The keys of the option, else the project's; None where no signature is demanded."""
    from ..registry.signing import load_trusted

    file = option or Project.find().trust
    return load_trusted(file) if file else None


def _taken(taken: transfer.Taken) -> Answer:
    return Answer(Taken(taken.records, taken.known, taken.contests), [_taken_line(taken)])


def _taken_line(taken: transfer.Taken) -> str:
    contests = f"; {taken.contests} new comparisons" if taken.contests else ""
    return f"{taken.records} new records, {taken.known} known already{contests}"


def _given(given: exchange.Given, where: str) -> Answer:
    for refusal in given.left_out:
        say(f"left out, as no one would take it in: {refusal}", err=True)
    sent = f"{count(given.records, 'record')} to {where} ({given.name[:12]})"
    line = sent if given.name else f"{where} has every record already"
    return Answer(Given(given.name, given.records, len(given.left_out)), [line])
