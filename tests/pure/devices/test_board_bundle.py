"""What a board gets, and which boards are refused before anything is sent."""

import ast
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from helpers.local_board import LocalBoard

import ansor_deploy
from ansor_deploy.devices import board_bundle, probe, wheels
from ansor_deploy.devices.board_bundle import make_bundle
from ansor_deploy.devices.facts import look_at
from ansor_deploy.devices.frames import CHUNK, MARK, FrameError, Unpacker, pack
from ansor_deploy.errors import DeviceError
from ansor_deploy.system.host import ARCHES

ROOT = Path(ansor_deploy.__file__).parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
ELSEWHERE = ("aarch64", "3.12")  # or whatever this machine is not
OTHER = next(
    pair for pair in (ELSEWHERE, ("x86_64", "3.10")) if not board_bundle.is_like_here(*pair)
)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("arch", ARCHES)
def test_every_kind_of_board_has_its_wheels(arch, python):
    pinned = wheels.pinned(arch, python)
    names = [wheel.file.partition("-")[0] for wheel in pinned]
    assert names == ["apache_tvm", "apache_tvm_ffi", "ml_dtypes", "numpy", "typing_extensions"]
    assert all(len(bytes.fromhex(wheel.sha256)) == 32 for wheel in pinned)


@pytest.mark.parametrize(
    ("arch", "python", "reason"),
    [
        ("armv7l", "3.11", "not published for armv7l"),
        ("riscv64", "3.11", "not published for riscv64"),
        ("aarch64", "3.9", "Python is 3.9, and the runtime is pinned for 3.10, 3.11, 3.12, 3.13"),
        ("aarch64", "3.1", "Python is 3.1,"),
    ],
)
def test_other_boards_are_refused(arch, python, reason):
    with pytest.raises(DeviceError, match=reason):
        make_bundle("testboard", arch, python)


def test_a_wheel_that_is_missing_or_damaged_is_named_with_the_remedy(tmp_path):
    with pytest.raises(DeviceError, match=r"apache_tvm-.*\.whl is missing: rpi") as caught:
        make_bundle("rpi", *OTHER, tmp_path)
    assert caught.value.hint == "run: ansor-deploy devices install rpi"
    (tmp_path / wheels.pinned(*OTHER)[0].file).write_bytes(b"PK")
    with pytest.raises(DeviceError, match=r"\.whl is damaged: rpi"):
        make_bundle("rpi", *OTHER, tmp_path)


def test_a_download_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(DeviceError, match="could not be downloaded"):
        wheels.fetch_wheels(*OTHER, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_our_modules_in_the_bundle_need_no_others():
    packed = {ROOT / name for name in board_bundle.own_modules(board_bundle._OWN)}
    for path in packed:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                names = [folder.with_suffix(".py")] if node.module else []
                if not names or folder.is_dir():
                    names = [folder / f"{alias.name}.py" for alias in node.names]
                assert set(names) <= packed, f"{path.name}: {names}"


def test_the_same_files_make_the_same_archive():
    files = {"b": b"2", "a/c": b"1"}
    archive = board_bundle._tar(files)
    assert archive == board_bundle._tar(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert {m.name: tar.extractfile(m).read() for m in tar} == files
    made = board_bundle.BoardBundle(archive, "")
    assert made.packed() == made.packed()


def test_no_compiler_and_no_tests_are_sent():
    if not board_bundle.is_like_here("x86_64", "3.11"):
        pytest.skip("this machine's packages are not a board's")
    files = board_bundle._here()
    assert [name for name in files if name.startswith("tvm/")] == [board_bundle._RUNTIME]
    assert not [name for name in files if "/tests/" in name or name.endswith((".h", ".pyi"))]
    assert sum(map(len, files.values())) < 100e6


def test_of_a_wheel_only_what_runs_is_taken(tmp_path):
    path = tmp_path / "numpy.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name in ("numpy/", "numpy/a.py", "numpy/tests/b.py", "numpy.libs/c.so", "numpy/d.pyi"):
            wheel.writestr(name, name)
        wheel.writestr("numpy-1.dist-info/METADATA", "")
    assert board_bundle._of_wheel(path) == {
        "numpy/a.py": b"numpy/a.py",
        "numpy.libs/c.so": b"numpy.libs/c.so",
    }


# Boards


@pytest.fixture
def board(tmp_path):
    return LocalBoard(tmp_path)


def answering(board, facts):
    """The board's Python says these facts of itself."""
    python = Path(board.env["PATH"].partition(":")[0], "python3")
    python.unlink()
    python.write_text(f"#!/bin/sh\necho '{facts}'\n")
    python.chmod(0o755)
    return board.connect()


@pytest.mark.parametrize(
    ("arch", "bits", "kind", "libc", "reason"),
    [
        (
            "aarch64",
            32,
            "cpython",
            ("glibc", "2.36"),
            r"testboard \(aarch64\) runs a 32-bit system",
        ),
        ("aarch64", 64, "pypy", ("glibc", "2.36"), "its python3 is pypy"),
        ("aarch64", 64, "cpythont", ("glibc", "2.36"), "its python3 is cpythont"),
        ("aarch64", 64, "cpython", ("", ""), "another C library than glibc"),
        ("aarch64", 64, "cpython", ("glibc", "2.27"), "glibc 2.27, and"),
    ],
)
def test_a_board_that_cannot_run_the_runtime_is_told_so(board, arch, bits, kind, libc, reason):
    said = {"machine": arch, "bits": bits, "implementation": kind, "libc": libc}
    facts = json.dumps({**probe.facts(), **said})
    with pytest.raises(DeviceError, match=reason):
        look_at("testboard", answering(board, facts))


def test_a_board_without_python_is_told_so(board):
    Path(board.env["PATH"].partition(":")[0], "python3").unlink()
    board.env["PATH"] = board.env["PATH"].partition(":")[0]
    with pytest.raises(DeviceError, match="testboard has no python3") as caught:
        look_at("testboard", board.connect())
    assert "apt-get install python3" in caught.value.hint


def test_a_python_that_fails_is_told_so(board):
    with pytest.raises(DeviceError, match="does not report what machine it is: status 0"):
        look_at("testboard", answering(board, "garbage"))


def test_a_board_tells_what_it_is(board):
    found = look_at("testboard", board.connect())
    assert found.machine == os.uname().machine
    assert (found.cache, found.runtimes) == (str(board.cache), [])


# Frames


def test_frames_come_out_however_the_bytes_are_cut():
    frames = [({"id": 1}, b""), ({"id": 2, "text": "ä"}, b"\0" * 1000), ({}, b"x" * CHUNK)]
    sent = b"motd\n" + MARK + b"".join(pack(*frame) for frame in frames)
    for step in (1000, 7919, len(sent)):
        unpacker = Unpacker(json.loads, 100, marked=True)
        pieces = (sent[at : at + step] for at in range(0, len(sent), step))
        assert [frame for piece in pieces for frame in unpacker.feed(piece)] == frames


@pytest.mark.parametrize(
    "data", [b"\xff" * 8, pack({}, b"x" * (CHUNK + 1)), b"\0\0\0\x65\0\0\0\0", b"\0\0\0\1\0\0\0\0{"]
)
def test_what_is_no_frame_is_refused(data):
    with pytest.raises(ValueError, match=r"frame|Expecting"):
        Unpacker(json.loads, 100).feed(data)


def test_a_long_noise_without_a_mark_is_refused():
    unpacker = Unpacker(json.loads, 100, marked=True)
    assert unpacker.feed(b"Welcome to the board!") == []
    assert unpacker.noise == b"Welcome to the board!"
    assert unpacker.feed(b"x" * 300_000) == []
    with pytest.raises(FrameError, match="login script"):
        unpacker.feed(b"x" * (1 << 20))
