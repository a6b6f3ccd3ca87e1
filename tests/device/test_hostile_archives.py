"""Archives that would reach beyond their folder on a board: refused there, before they are written.

Each comes over a real SSH connection and is unpacked by the board's own Python, as the runtime is.
"""

import hashlib
import io
import tarfile
from contextlib import closing, suppress

import pytest
from helpers.plain_board import PlainBoard

from ansor_deploy.devices import ssh
from ansor_deploy.devices.board_bundle import BoardBundle, _upload
from ansor_deploy.devices.facts import look_at
from ansor_deploy.errors import DeviceError, DeviceLost


def entry(name, kind=tarfile.REGTYPE, content=b"x", linkname=""):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, linkname
    made.size = len(content) if kind == tarfile.REGTYPE else 0
    return made, content


def sparse(board):
    """One byte that says to lie a terabyte behind the beginning of its file (pax, GNU.sparse)."""
    made, content = entry("a/huge")
    made.pax_headers = {
        "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "a/huge",
        "GNU.sparse.size": str(1 << 40), "GNU.sparse.numblocks": "1",
        "GNU.sparse.map": f"{(1 << 40) - 1},1",
    }  # fmt: skip
    return [(made, content)]


ENTRIES = {
    "an absolute path": lambda home: [entry(f"{home}/out")],
    "a path upwards": lambda home: [entry("a/../../../../out")],
    "a link, and a file behind it": lambda home: [
        entry("a", tarfile.SYMTYPE, linkname=str(home)), entry("a/out"),
    ],
    "a hard link": lambda home: [entry("a/b", tarfile.LNKTYPE, linkname=f"{home}/secret")],
    "a device": lambda home: [entry("a/null", tarfile.CHRTYPE)],
    "a pipe": lambda home: [entry("a/pipe", tarfile.FIFOTYPE)],
    "a folder": lambda home: [entry("a", tarfile.DIRTYPE)],
    "a file twice": lambda home: [entry("a/b"), entry("a/b")],
    "a terabyte of nothing": sparse,
}  # fmt: skip


def packed(entries):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for made, content in entries:
            archive.addfile(made, io.BytesIO(content))
    content = stream.getvalue()
    return BoardBundle(content, hashlib.sha256(content).hexdigest())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    board = PlainBoard(tmp_path_factory.mktemp("plain"))
    yield board
    with suppress(ProcessLookupError):
        board.sshd.stop()


@pytest.fixture
def sent(plain, device):
    """`sent(bundle)`: it goes the way of the runtime."""
    with closing(ssh.connect(device(plain.sshd))) as connection:
        facts = look_at("pi", connection)
        yield lambda bundle: _upload("pi", connection, facts, bundle)


@pytest.mark.parametrize("name", ENTRIES)
def test_nothing_but_plain_files_is_unpacked(name, plain, sent):
    secret = plain.home / "secret"
    secret.write_text("mine")
    with pytest.raises(DeviceError, match=r"no plain file|File exists"):
        sent(packed(ENTRIES[name](plain.home)))
    assert plain.bundles == []
    assert sorted(path.name for path in plain.home.iterdir()) == [".cache", "secret"]
    assert secret.stat().st_nlink == 1


def test_no_more_is_unpacked_than_a_bundle_has(plain, sent):
    with pytest.raises(DeviceError, match="more than 1024 MiB"):
        sent(BoardBundle(bytes((1 << 30) + 1), "0" * 64))
    assert plain.bundles == []


def test_another_archive_than_was_announced_is_none(plain, sent):
    with pytest.raises(DeviceLost, match="damaged"):
        sent(BoardBundle(packed([entry("a/b")]).archive, "0" * 64))
    assert plain.bundles == []


def test_plain_files_are_unpacked(plain, sent):
    sent(packed([entry("a/b", content=b"words")]))
    (bundle,) = plain.bundles
    assert (bundle / "a" / "b").read_bytes() == b"words"
