"""The error edge: every failure is one message, one exit code, and one JSON object if asked."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner

from ansor_deploy import cli, pipeline
from ansor_deploy.cli.errors import HungUp, Terminated, describe
from ansor_deploy.errors import AnsorError, MachineError, MissingRecordError, ModelError

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = [sys.executable, "-m", "ansor_deploy"]


def invoke(*words):
    return CliRunner().invoke(cli.main, words)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tracebacks show notes from 3.11 on")
def test_the_traceback_of_an_error_ends_with_its_hint():
    error = ModelError("it is damaged", "export it again")
    assert traceback.format_exception(error)[-1] == "hint: export it again\n"


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (AnsorError("no"), "failed", 1),
        (ModelError("no"), "model", 3),
        (MissingRecordError("no"), "missing-record", 5),
        (OSError(errno.ENOSPC, "No space left on device", "r.db"), "machine", 9),
        (MachineError("no"), "machine", 9),
        (PermissionError(errno.EACCES, "Permission denied", "out.so"), "system", 1),
        (MemoryError(), "machine", 9),
        (KeyboardInterrupt(), "interrupted", 130),
        (Terminated(), "interrupted", 143),
        (HungUp(), "interrupted", 129),
        (EOFError(), "bug", 70),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "bug", 70),
        (FileNotFoundError(errno.ENOENT, "No such file"), "bug", 70),  # as of a socket
    ],
)
@pytest.mark.usefixtures("model")
def test_errors_become_messages(monkeypatch, error, kind, code):
    monkeypatch.setattr(pipeline, "build", lambda *_: raises(error))
    result = invoke("build", "net.onnx", "--json")
    failure = json.loads(result.stdout)["error"]
    assert (result.exit_code, failure["exit_code"], failure["kind"]) == (code, code, kind)
    assert f"{failure['file'] or 'ansor-deploy'}: error: {failure['message']}\n" in result.stderr
    assert "Traceback" not in result.stderr


def raises(error):
    raise error


def test_a_current_folder_that_was_removed_is_named(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        Path.cwd()
    failure = describe(caught.value, [])
    assert (failure.message, failure.exit_code) == ("the current folder was removed", 2)


def test_messages_name_the_file_and_the_remedy():
    failure = describe(OSError(errno.ENOSPC, "No space left on device", "r.db"), [])
    assert (failure.file, failure.message) == (None, "no space left on device: r.db")
    assert "--registry" in failure.hint


def test_a_full_folder_for_temporary_files_is_named_by_its_variable():
    path = f"{tempfile.gettempdir()}/folder/file"
    failure = describe(OSError(errno.ENOSPC, "No space left on device", path), [])
    assert failure.message == f"no space left on device: {path} (TMPDIR)"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("Cannot open file: /x: Too many open files"), "too many open files"),
        (RuntimeError("InternalError: std::bad_alloc"), "cannot allocate memory"),
        (RuntimeError("can't start new thread"), "resource temporarily unavailable"),
        (OSError(errno.EFBIG, "File too large"), "file too large"),
        (OSError(errno.ENOSPC, "No space", "from.so", None, "to.so"), "left on device: to.so"),
        (BlockingIOError(errno.EAGAIN, "of fork"), "resource temporarily unavailable"),
        (
            OSError("Failed to load /t/a.so /t/a.so: failed to map segment from shared object"),
            "/t/a.so cannot be run where it is: failed to map segment",
        ),
        (FileNotFoundError(2, "No usable temporary directory found in ['/t']"), "No usable"),
    ],
)
def test_what_a_library_says_of_the_machine_is_the_machines(error, says):
    failure = describe(error, [])
    assert (failure.kind, failure.exit_code) == ("machine", 9)
    assert says in failure.message


def test_a_bug_leaves_a_log(model, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(pipeline, "build", lambda *_: raises(ZeroDivisionError("of all")))
    result = invoke("build", "net.onnx")
    assert result.exit_code == 70
    (log,) = (tmp_path / "state" / "ansor-deploy").glob("crash-*.log")
    assert str(log) in result.stderr
    text = log.read_text("utf-8")
    assert "ZeroDivisionError: of all" in text
    assert all(word in text for word in ("Traceback", "apache-tvm ", "command: ansor-deploy build"))


def test_a_log_has_no_password(model, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(pipeline, "build", lambda *_: raises(ZeroDivisionError("ssh://a:geheim@b")))
    invoke("build", "net.onnx")
    (log,) = (tmp_path / "state" / "ansor-deploy").glob("crash-*.log")
    text = log.read_text("utf-8")
    assert ("ssh://a:***@b" in text, "geheim" in text) == (True, False)


def test_a_log_finds_a_place(model, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(pipeline, "build", lambda *_: raises(ZeroDivisionError()))
    path = invoke("build", "net.onnx").stderr.split()[-1]
    assert Path(path).is_file()
    Path(path).unlink()


def test_standalone_mode_off_raises(model, monkeypatch):
    monkeypatch.setattr(pipeline, "build", lambda *_: raises(ModelError("no")))
    with pytest.raises(ModelError):
        cli.main.main(["build", "net.onnx"], standalone_mode=False)


ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_signals_end_the_program(tmp_path, number, code):
    (tmp_path / "net.onnx").touch()
    script = (
        "import time\nfrom ansor_deploy import cli, pipeline\n"
        "def build(*arguments):\n"
        "    import sys; print('ready', file=sys.stderr, flush=True); time.sleep(60)\n"
        "pipeline.build = build\ncli.main(['build', 'net.onnx'])"
    )
    # Ctrl-C works in a test that was itself started with SIGINT ignored, as by `nohup`.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as child:
        assert child.stderr.readline() == "ready\n"
        child.send_signal(number)
        _, text = child.communicate(timeout=30)
    signal.signal(signal.SIGINT, before)
    assert child.returncode == code
    assert "the same command resumes" in text
    assert "Traceback" not in text


def test_a_closed_pipe_is_quiet():
    with subprocess.Popen(
        [*PROGRAM, "targets", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as child:
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


# Who opens a file first gets the place of a closed stream: here what a message would be written to.
SPEAKS = """
import os, sys
from ansor_deploy.cli.errors import leave
from ansor_deploy.errors import ModelError
from ansor_deploy.views.plain import PlainReport
def run():
    file = os.open("file", os.O_CREAT | os.O_WRONLY)
    for number in range(3):
        PlainReport().stage("read", f"a model {number}")
    os.write(2, b"of a library")
    if sys.argv[1:]:
        raise ModelError("no model")
    print("answer")
leave(run, sys.argv)
"""


@pytest.mark.parametrize("end", ["2>&-", "<&- >&- 2>&-", "2>/dev/full", "2>&1 | true; exit 0"])
@pytest.mark.parametrize("code", [0, 3])
def test_messages_that_nobody_takes_change_nothing(tmp_path, end, code):
    script = f'"$0" -c "$1" {"fail" if code else ""} {end}'
    words = ["/bin/sh", "-c", script, sys.executable, SPEAKS]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=tmp_path, env=env
    )
    assert result.returncode == (0 if "exit" in end else code)
    assert result.stdout in ("", "answer\n")
    assert result.stderr == ""
    assert (tmp_path / "file").read_bytes() == b""


def test_what_nohup_ignores_stays_ignored(tmp_path):
    script = (
        "import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from ansor_deploy.cli.errors import leave\n"
        "leave(lambda: os.kill(os.getpid(), signal.SIGHUP), [])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], check=False, env=env).returncode == 0


@pytest.mark.parametrize(
    ("end", "code"), [(">&-", 0), ("<&- >&-", 0), ("1< /dev/null", 0), ("> /dev/full", 9)]
)
def test_stdout_that_takes_nothing(end, code):
    script = f'exec "$0" -m ansor_deploy targets list {end}'
    result = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    assert ("no space left" in result.stderr) == (code != 0)


SHORT_OF_ADDRESSES = """
import errno, resource
from ansor_deploy.cli.errors import describe
errors = [
    AttributeError("module 'tvm' has no attribute 'half of it is loaded'"),
    ImportError("libx.so: failed to map segment from shared object"),
    OSError(errno.EAGAIN, "Resource temporarily unavailable"),
]
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, resource.RLIM_INFINITY))
for error in errors:
    print(describe(error, []).message)
"""


def test_a_limit_of_the_address_space_is_named_however_it_shows():
    command = [sys.executable, "-c", SHORT_OF_ADDRESSES]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.count("(ulimit -v)") == 3, said.stdout
