"""Exchange records between registries: through a file, a folder or any fsspec URL.

A folder to push to holds bundles that never change, each named after the SHA-256 of its bytes.
Pulling takes in all of them. A registry is a set of records, so neither order nor repetition
matters, and no server is needed.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import AnsorError, RegistryError, UsageError
from ..system.atomic_file import write_whole
from ..system.digest import canonical_json, sha256
from ..system.environment import cache_folder
from ..system.regular_file import read_regular
from .bundle import Bundle, BundleRefused, read_bundle, refused
from .limits import BUNDLE_BYTES, SIGNATURE_BYTES
from .remote import (
    NAME,
    SIGNATURE,
    WITHDRAWN,
    BundleStore,
    digest,
    name_of,
    right_name,
    withdrawal,
    withdraws,
)
from .signing import Signer, check_signature, signed_by
from .stamp import Seen, Stamp
from .transfer import Taken, contents, contents_of_other, take_in

Trusted = frozenset[bytes]

_ZSTD = ".zst"


@dataclass(frozen=True)
class Given:
    """What was exported. name: that of the bundle, "" where there was nothing new.

    left_out: records that no other registry would take in, such as those of a rule that uses an
    instruction the firewall does not know.
    """

    name: str
    records: int
    left_out: list[str]


@dataclass(frozen=True)
class Pulled:
    """What was pulled.

    torn: bundles that were not uploaded completely. refused: hostile ones, with the reasons.
    misnamed: the right names of complete bundles, by the wrong names that they have. withdrawn:
    bundles that are there but were withdrawn.
    """

    taken: Taken
    bundles: int
    torn: list[str]
    refused: list[BundleRefused]
    misnamed: dict[str, str]
    withdrawn: list[str]


def export_file(registry: Path, file: Path, signer: Signer | None = None) -> Given:
    """Write all of a registry as a bundle; compressed if the name ends in `.zst`."""
    bundle, left_out = contents(registry)
    if signer is not None:
        bundle = replace(bundle, stamp=Stamp.succeeding((), ()))
    plain = bundle.to_bytes()
    content = _zstandard().ZstdCompressor().compress(plain) if file.suffix == _ZSTD else plain
    signature = file.with_name(file.name + SIGNATURE)
    if signer is None:
        signature.unlink(missing_ok=True)  # that of an earlier file
    else:
        write_whole(signature, signer.sign(content).encode())
    write_whole(file, content)
    return Given(digest(plain), len(bundle.records), left_out)


def _read(file: Path) -> bytes:
    try:
        return read_regular(file, BUNDLE_BYTES)
    except OSError as error:
        hint = "Name a bundle that `registry export` has written."
        raise RegistryError(f"it cannot be read: {error.strerror}", hint, file) from error


def import_file(registry: Path, file: Path, trusted: Trusted | None = None) -> Taken:
    """Take in all of a bundle's file, or nothing. trusted: keys, one of which must have signed."""
    return take_in(registry, read_bundle(read_signed(file, trusted)[0], str(file)))


def read_signed(file: Path, trusted: Trusted | None) -> tuple[bytes, str]:
    """The text of a bundle's file, unpacked, and the fingerprint of the key that has signed it.

    trusted: one of these keys must have signed it; with None nobody has to, and the fingerprint is
    "".
    """
    content, key = _read(file), ""
    if trusted is not None:
        signature = file.with_name(file.name + SIGNATURE)
        signed = _read(signature) if signature.exists() else None
        key = check_signature(str(file), content, signed, trusted)
    return (_expanded(file, content) if file.suffix == _ZSTD else content), key


def import_bytes(registry: Path, content: bytes, name: str) -> Taken:
    """Take in all of a bundle, or nothing. name: what to call it in the message of a refusal."""
    return take_in(registry, read_bundle(content, name))


def merge_file(registry: Path, other: Path) -> Taken:
    """Take in all of another registry's file, or nothing of it."""
    bundle, refusals = contents_of_other(other)
    if refusals:
        raise refused(str(other), refusals)
    return take_in(registry, bundle)


def push(registry: Path, url: str, signer: Signer | None = None) -> Given:
    """Push a bundle of everything that the folder at a URL does not have yet.

    With a signer, bundles there that others signed do not count.
    """
    bundle, left_out = contents(registry)
    store = BundleStore(url)
    known = list(_known(store, signer)) if store.exists() else []
    new = bundle.without(known)
    if not new.records and not new.searches:
        return Given("", 0, left_out)
    if signer is not None:
        gone = set[str]()
        if known:
            _not_withdrawn(store, frozenset([signer.public]), gone)
        new = replace(new, stamp=Stamp.succeeding((one.stamp for one in known), gone))
    content = new.to_bytes()
    name = name_of(content)
    if signer is not None:  # written first, so that the bundle is never there without it
        store.write(name + SIGNATURE, signer.sign(content).encode())
    store.write(name, content)
    return Given(name, len(new.records), left_out)


def pull(registry: Path, url: str, trusted: Trusted | None = None) -> Pulled:
    """Take in every complete bundle at a URL; a hostile one is skipped, and the reasons reported.

    Where bundles must be signed, all are read before any is taken: a later one may withdraw others.
    """
    store, seen = BundleStore(url), _seen(url, trusted)
    names, withdrawn = _not_withdrawn(store, trusted, seen.withdrawn)
    taken, count, refusals = Taken(0, 0), 0, list[BundleRefused]()
    other: dict[str, str] = {}  # the right name of each bundle that has a wrong one
    found = _whole(store, names, trusted, seen, refusals, other)
    for name, bundle in found if trusted is None else list(found):
        if Path(name).stem in seen.withdrawn:
            withdrawn.append(name)
            continue
        taken += take_in(registry, bundle)
        count += 1
    if trusted is not None:
        seen.save(whole=True)
    torn = [name for name, right in other.items() if not right and NAME.fullmatch(name)]
    misnamed = {name: right for name, right in other.items() if right}
    return Pulled(taken, count, torn, refusals, misnamed, withdrawn)


def _seen(url: str, trusted: Trusted | None) -> Seen:
    """What this machine has seen at a URL, when it pulled with these trusted keys."""
    identity = canonical_json([url, sorted(key.hex() for key in trusted or ())])
    return Seen(cache_folder("layers") / f"pull-{sha256(identity)[:16]}.seen")


def _whole(
    store: BundleStore,
    names: list[str],
    trusted: Trusted | None,
    seen: Seen,
    refusals: list[BundleRefused],
    other: dict[str, str],
) -> Iterator[tuple[str, Bundle]]:
    """The bundles of a place that may be taken.

    refusals: receives the errors of hostile ones. other: receives the right names of the rest.
    """
    for name in names:
        content = store.read(name)
        if name_of(content) != name:
            other[name] = right_name(content)
            continue
        try:
            bundle = _checked(store, name, content, trusted, seen)
        except BundleRefused as error:
            refusals.append(error)
            continue
        yield name, bundle


def _checked(
    store: BundleStore, name: str, content: bytes, trusted: Trusted | None, seen: Seen
) -> Bundle:
    if trusted is None:
        return read_bundle(content, name)
    key = check_signature(name, content, store.signature(name), trusted)
    bundle, digest = read_bundle(content, name), Path(name).stem
    if old := seen.replayed(digest, key, bundle.stamp):
        raise BundleRefused(f"{name} is refused: {old}")
    seen.note(digest, key, bundle.stamp)
    return bundle


def withdraw(url: str, bundle: str, signer: Signer | None = None) -> str:
    """Mark a bundle, whether it is there or not, as withdrawn; return its name.

    bundle: its digest. UsageError where it is not a digest.
    """
    name = f"{bundle.removesuffix('.jsonl')}.jsonl"
    if not NAME.fullmatch(name):
        raise UsageError(f"{bundle} is no bundle", "Give its digest, the 64 digits of its name.")
    words = signer.sign(withdrawal(name)) if signer else ""
    BundleStore(url).write(name + WITHDRAWN, words.encode())
    return name


def _not_withdrawn(
    store: BundleStore, trusted: Trusted | None, known: set[str]
) -> tuple[list[str], list[str]]:
    """The names of the bundles at a place that are not withdrawn, and of those that are.

    known: digests of bundles that were withdrawn before; receives those withdrawn at this place.
    """
    files = store.files()
    for words in (one for one in files if one.endswith(WITHDRAWN)):
        name = words.removesuffix(WITHDRAWN)
        if withdraws(name, store.read(words, SIGNATURE_BYTES), trusted):
            known.add(Path(name).stem)
    left, gone = list[str](), list[str]()
    for name in (one for one in files if not one.endswith(WITHDRAWN)):
        (gone if Path(name).stem in known else left).append(name)
    return left, gone


def _known(store: BundleStore, signer: Signer | None) -> Iterator[Bundle]:
    """The bundles that others can pull; with a signer, only those that it has signed."""
    for name in store.names():
        content = store.bundle(name)
        if content is None:
            continue
        if signer and not signed_by(content, store.signature(name), signer.public):
            continue
        with suppress(BundleRefused):
            yield read_bundle(content, name)


def _expanded(file: Path, content: bytes) -> bytes:
    zstandard = _zstandard()
    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as stream:
            return bytes(stream.read(BUNDLE_BYTES + 1))
    except zstandard.ZstdError as error:
        raise RegistryError(
            f"{file} is damaged: {error}", "Copy it again, or have it exported again."
        ) from error


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise AnsorError(
            f"a file that ends in {_ZSTD} needs the package zstandard",
            "Install it (pip install 'ansor-deploy[zstd]'), or leave the ending away.",
        ) from error
    return zstandard
