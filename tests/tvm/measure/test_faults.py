"""Kernels that do what no kernel should, in real processes: each becomes an outcome.

None stops the measurer, harms the next candidate, or leaves a process behind.
"""

import errno
import fcntl
import os
import re
import signal
import struct
import subprocess
import tempfile
import time

import onnx
import pytest
from helpers.cli_inside import answer
from helpers.cli_process import PROGRAM
from helpers.graphs import model, node
from helpers.processes import MARK, remaining
from helpers.suspects import compute, suspects
from helpers.warm_workers import none_kept

from ansor_deploy.registry.store import Registry
from ansor_deploy.system import worker
from ansor_deploy.system.scratch import Scratch

pytestmark = pytest.mark.slow

OTHERS = "for (int i = 0; i < 3; i++) if (!fork()) for (;;) pause();\n  "
EVERY_PIPE = "for (int fd = 3; fd < 256; fd++) "
EVERY_SIGNAL = "sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, 0);\n  "

TIMEOUTS = {
    "loops with every signal blocked": EVERY_SIGNAL + "for (;;) ;",
    "stops itself": "raise(SIGSTOP);",
    "ends its thread": "pthread_exit(0);",
    "waits for ever": "for (;;) pause();",
    "loops in a group of others": OTHERS + "for (;;) ;",
    "prints for ever": 'for (;;) printf("%065536d", 7);',
    "closes nothing and waits on its parent": "char c; for (;;) if (read(3, &c, 1) < 0) pause();",
}
CRASHES = {
    "writes to nowhere": "*(volatile int *)16 = 1;",
    "calls nowhere": "((void (*)(void))16)();",
    "illegal instruction": "__builtin_trap();",
    "recurses without end": "volatile char page[4096]; page[0] = 1; __tvm_ffi_compute(self, args, "
    "count, result); page[1] = page[0];",
    "aborts": "abort();",
    "exits": "exit(0);",
    "exits at once": "_exit(7);",
    "dies among others": OTHERS + "abort();",
    "frees what is not its own": "free(x + 1); free(y + 1);",
    "closes every pipe": "doubled(x, y); " + EVERY_PIPE + "close(fd);",
    "closes every pipe and loops": EVERY_PIPE + "close(fd); for (;;) ;",
    "sends what is no answer": EVERY_PIPE + 'if (write(fd, "\\0\\0\\0\\5nojso", 9)) ;',
    "sends too long an answer": EVERY_PIPE + 'if (write(fd, "\\x7f\\0\\0\\0", 4)) ; for (;;) ;',
    "sends half an answer": EVERY_PIPE + 'if (write(fd, "\\0\\0\\1\\0half", 8)) ; for (;;) ;',
    # The second takes less at once than malloc maps for itself. Both reach the limit long before
    # the time is up, also on a busy machine.
    "eats memory": "for (;;) memset(malloc(1 << 24), 1, 1 << 16);",
    "eats memory on the heap": "for (;;) *(volatile char *)malloc(1 << 15) = 1;",
}
HARMLESS = {
    "prints megabytes": "doubled(x, y); if (calls == 1) for (int i = 0; i < 999; i++)"
    ' printf("%065536d", 7);',
    "leaves others behind": "doubled(x, y); if (calls == 1) { " + OTHERS + "}",
    "ignores signals": EVERY_SIGNAL + "doubled(x, y);",
    "leaves a thread that spins": "pthread_t t; doubled(x, y); if (calls == 1)"
    " pthread_create(&t, 0, spin, 0);",
}
SPIN = "static void *spin(void *none) { for (volatile int i = 0;; i++) ; return none; }\n"


@pytest.fixture(scope="module")
def court(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suspects")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, str(folder))
        none_kept(patch)
        patch.setattr(worker, "_STALLED", struct.pack("@ll", 1, 0))
        patch.setattr(worker, "_END_SECONDS", 3.0)  # of which some that go on take all, twice
        with suspects(folder) as made:
            yield made
        assert remaining(str(folder)) == []


def the_next_is_right(court):
    """A good candidate is measured, and no process is left but the workers."""
    assert court.right().error == ""
    assert remaining(os.environ[MARK], besides=court.processes()) == []


@pytest.mark.parametrize("body", TIMEOUTS.values(), ids=TIMEOUTS)
def test_what_does_not_end_is_a_timeout(court, body):
    outcome = court.library(compute(body))
    assert (outcome.error, outcome.message) == ("timeout", "killed after 5 s")
    the_next_is_right(court)


@pytest.mark.parametrize("body", CRASHES.values(), ids=CRASHES)
def test_what_takes_its_process_down_is_a_crash(court, body):
    outcome = court.library(compute(body))
    assert (outcome.error, outcome.seconds) == ("crash", ())
    assert outcome.message
    the_next_is_right(court)


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS)
def test_what_is_right_is_measured_whatever_else_it_does(court, body):
    assert court.library(SPIN + compute(body), best=1.0).error == ""
    assert court.right().error == ""


def test_a_kernel_that_asks_for_more_memory_than_is_allowed_fails_alone(court):
    outcome = court.library(compute("for (;;) if (!malloc(1 << 28)) return fail(); "))
    assert (outcome.error, outcome.message) == ("run", "ValueError: gives up")
    the_next_is_right(court)


def test_memory_that_one_candidate_kept_is_not_wanting_to_the_next(court):
    keep = "if (calls == 1) while (malloc(1 << 24)) ;\n  doubled(x, y);"
    needs = "float *z = malloc(1 << 28); if (!z) return fail();\n  doubled(x, y); free(z);"
    court.library(compute(keep))
    assert court.library(compute(needs)).error == ""


def test_printing_without_end_fills_no_disk(court):
    court.library(compute(TIMEOUTS["prints for ever"]))
    assert os.fstat(court.measurer.sites[0]._worker._output).st_size <= 1 << 30


# Folders of processes that were killed


def aged(folder):
    past = time.time() - 3600
    os.utime(folder, (past, past))
    return folder


def test_the_folder_of_a_dead_process_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (left,) = [tmp_path / "ansor-deploy-measure-left"]
    left.mkdir()
    (left / "candidate-0.so").touch()
    alive, young = Scratch(), Scratch()
    fresh = tmp_path / "ansor-deploy-measure-fresh"
    fresh.mkdir()
    for folder in (left, alive.path):
        aged(folder)
    other = Scratch()
    assert set(tmp_path.iterdir()) == {alive.path, young.path, fresh, other.path}
    for scratch in (alive, young, other):
        scratch.close()
        scratch.close()
    assert list(tmp_path.iterdir()) == [fresh]


def test_a_file_system_without_locks_is_used_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_locks)
        alive = Scratch()
        aged(alive.path)
        other = Scratch()
        assert set(tmp_path.iterdir()) == {alive.path, other.path}
    alive.close()
    other.close()


def no_locks(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")


def test_a_link_in_place_of_a_folder_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "tmp").mkdir()
    link = tmp_path / "tmp" / "ansor-deploy-measure-link"
    link.symlink_to(kept)
    os.utime(link, (0, 0), follow_symlinks=False)
    Scratch().close()
    assert link.is_symlink()
    assert kept.is_dir()


# The whole program killed


def softmaxes():
    nodes = [node("Softmax", "x", "a", axis=1), node("ReduceMean", "x", "b", axes=[0], keepdims=1)]
    return model(nodes, {"x": (64, 96)}, outputs=("a", "b"))


TUNE = ("tune", "net.onnx", "--registry", "r.db", "--trials", "96")


def killed_while_measuring(folder):
    """Trials that a run had reported when it was killed."""
    environment = {**os.environ, MARK: str(folder), "TMPDIR": str(folder / "tmp")}
    words = [*PROGRAM, *TUNE, "--json"]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=-1, stderr=-1, text=True
    ) as one:
        for line in one.stderr:
            if counted := re.match(r"(\d+)/\d+ trials", line):
                one.send_signal(signal.SIGKILL)
                return int(counted[1])
    pytest.fail("it ended before it reported a batch")


@pytest.mark.slow
def test_a_killed_run_loses_nothing_and_its_folder_goes_with_the_next(tmp_path):
    onnx.save(softmaxes(), tmp_path / "net.onnx")
    (tmp_path / "tmp").mkdir()
    counted = killed_while_measuring(tmp_path)
    assert remaining(str(tmp_path)) == []
    left = list((tmp_path / "tmp").glob("ansor-deploy-measure-*"))
    assert left
    with Registry.open(tmp_path / "r.db", write=False) as registry:
        assert registry.verify() == []
        kept = registry.stats()["measurements"]
    assert kept >= counted
    for folder in left:
        aged(folder)
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    again = answer(tmp_path, *TUNE, env=environment)
    assert not list((tmp_path / "tmp").glob("ansor-deploy-*"))
    with Registry.open(tmp_path / "r.db", write=False) as registry:
        assert registry.stats()["measurements"] == kept + again["trials"]
