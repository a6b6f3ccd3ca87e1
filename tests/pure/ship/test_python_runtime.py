"""ansor_deploy_runtime is whole, and its archive a function of its files."""

import ast
import os
import tarfile
from pathlib import Path

import pytest

from ansor_deploy.errors import UsageError
from ansor_deploy.ship.package.archive import pack, stem
from ansor_deploy.ship.package.python_runtime import python_files


def test_its_modules_import_no_others():
    files = python_files()
    for name, code in files.items():
        folder = name.split("/")[:-1]
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = folder[: len(folder) - node.level + 1]
                imported = [node.module] if node.module else [one.name for one in node.names]
                for module in imported:
                    path = "/".join([*base, *module.split(".")])
                    known = {f"{path}.py", f"{path}/__init__.py"} & files.keys()
                    assert known, f"{name}: {path}"


def test_a_name_says_how_an_archive_is_compressed(tmp_path):
    assert stem(Path("out/net.v2.tar.zst")) == "net.v2"
    for name in ("net.zip", "net.tar", "net", ".tar.gz", "...tar.gz"):
        with pytest.raises(UsageError, match=r"does not end in \.tar\.gz or \.tar\.zst"):
            stem(Path(name))


def test_an_archive_has_no_times_and_owners(tmp_path):
    folder = tmp_path / "in"
    (folder / "net").mkdir(parents=True)
    for name, mode in (("run", 0o700), ("b", 0o600), ("a", 0o664)):
        (folder / "net" / name).write_text(name)
        (folder / "net" / name).chmod(mode)
    (folder / "net" / "link").symlink_to("a")
    pack(folder, tmp_path / "one.tar.gz")
    os.utime(folder / "net" / "a", (1, 1))
    pack(folder, tmp_path / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as file:
        found = [(each.name, oct(each.mode), each.mtime, each.uid) for each in file]
        assert all(each.isreg() for each in file)
    plain = [("net/a", "0o644"), ("net/b", "0o644"), ("net/link", "0o644"), ("net/run", "0o755")]
    assert found == [(*each, 0, 0) for each in plain]
