"""What others may have written into a registry is refused where no bundle could bring it."""

import os

import pytest
from helpers.cli_process import program, refused
from helpers.foreign import DECISIONS, INSTRUCTIONS, TVM, bundle, parts, trace
from helpers.hostile import HOSTILE

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry.record import Measurement, Record, SearchEnd
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import take_in

CODE = ("LLVM IR", "C code", "unknown instruction", "UnsafeSetDType", "IR that is no index map")


def planted(path, name=None):
    """A registry with a record that somebody wrote into it, and its key. name: of the spoiling."""
    theirs = bundle(64)
    take_in(path, theirs)
    (good,) = theirs.records.values()
    one = parts(64)
    if name:
        HOSTILE[name][0](one)
    found = Record(good.key, one["record"]["trace"], good.seconds, good.proof, good.provenance)
    with Registry.open(path) as registry:
        registry.add_batch([], [found])
    return found


def open_to_group(path):
    path.chmod(0o660)


def open_to_all(path):
    path.chmod(0o606)


def in_an_open_folder(path):
    path.parent.chmod(0o777)


def where_all_may_add_files(path):
    path.parent.chmod(0o1777)


@pytest.mark.parametrize("name", CODE)
def test_a_row_that_others_may_have_written_is_no_code(tmp_path, name):
    path = tmp_path / "registry.db"
    bad = planted(path, name)
    with Registry.open(path, write=False) as own:
        assert own.top(bad.key, TVM, 1) == [bad]  # it may be of a rule of the user's own
    open_to_all(path)
    with (
        Registry.open(path, write=False) as shared,
        pytest.raises(
            RegistryError, match=f"records as {bad.id[:12]} is refused: .*{HOSTILE[name][1]}"
        ),
    ):
        shared.top(bad.key, TVM, 1)


@pytest.mark.parametrize(
    "share", [open_to_group, open_to_all, in_an_open_folder, where_all_may_add_files]
)
def test_what_others_may_write_is_shared_and_good_rows_are_read(tmp_path, share):
    path = tmp_path / "registry.db"
    good = planted(path)
    share(path)
    with Registry.open(path) as shared:
        assert shared.is_shared
        assert shared.top(good.key, TVM, 1) == [good]
        assert shared.workloads([good.key])
        assert shared.query()


def test_what_is_made_with_an_umask_that_lets_a_group_write_is_not_shared(tmp_path):
    before = os.umask(0o002)
    try:
        with Registry.open(tmp_path / "new" / "registry.db") as mine:
            mine.add_searches([])
    finally:
        os.umask(before)
    with Registry.open(tmp_path / "new" / "registry.db") as mine:
        assert not mine.is_shared


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_registry_of_another_user_is_shared(tmp_path):
    path = tmp_path / "registry.db"
    planted(path)
    os.chown(path, 1234, -1)
    with Registry.open(path, write=False) as theirs:
        assert theirs.is_shared


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_a_journal_by_who_may_not_write_the_registry_is_not_obeyed(tmp_path, ending):
    path = tmp_path / "registry.db"
    good = planted(path)
    where_all_may_add_files(path)
    planted_journal = tmp_path / f"{path.name}{ending}"
    planted_journal.write_bytes(b"0" * 1024)
    os.chown(planted_journal, 1234, -1)
    with pytest.raises(RegistryError, match=f"{ending} was not written .* put it there"):
        Registry.open(path, write=False)
    open_to_all(path)
    with Registry.open(path, write=False) as shared:  # it may be a writer's who was killed
        assert shared.top(good.key, TVM, 1) == [good]


def test_measurements_of_others_are_no_code_either(tmp_path):
    path = tmp_path / "registry.db"
    good = planted(path)
    code = trace(
        [*INSTRUCTIONS, ["Annotate", ["l10", '"x"'], ["pragma_import_llvm"], []]], DECISIONS
    )
    one = Measurement(good.key, code, good.seconds, "", "", good.provenance)
    with Registry.open(path) as own:
        own.add_batch([one], [])
    open_to_all(path)
    with (
        Registry.open(path, write=False) as shared,
        pytest.raises(RegistryError, match="pragma_import_llvm"),
    ):
        list(shared.measurements(good.key.target, good.key))


def test_programs_of_a_shared_registry_are_not_run(tmp_path):
    """Whoever may write to it can say as well that a model of this machine has them."""
    path = tmp_path / "registry.db"
    good = planted(path)
    with Registry.open(path) as own:
        own.add_model("a" * 64, "net.onnx", [(good.key, 1)])
        end = SearchEnd(good.key, TVM, "ansor", 64, "limit", 64, good.provenance.created)
        own.add_searches([end])
        (known,) = own.workloads([good.key]).values()
        assert own.relatives([known.family], good.key.target, TVM)
    open_to_all(path)
    with Registry.open(path, write=False) as shared:
        assert not shared.relatives([known.family], good.key.target, TVM)
    words = ("registry", "show", good.id, "--script", "--registry", path)
    refused(program(tmp_path, *words), 2, "is not parsed")
