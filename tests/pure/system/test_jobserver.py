"""Make's tokens: as many threads as it has to spare, and every token given back."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys

import pytest

from ansor_deploy.system.jobserver import threads


class Server:
    """A jobserver with so many tokens, of either style, as make sets it up."""

    def __init__(self, tokens, folder=None):
        if folder is None:
            self.read, self.write = os.pipe()
            self.flags = f" -j --jobserver-auth={self.read},{self.write}"
        else:
            path = folder / "job server"
            os.mkfifo(path)
            self.read = os.open(path, os.O_RDWR)
            self.write = os.dup(self.read)
            escaped = str(path).replace(" ", "\\ ")
            self.flags = f" -j --jobserver-auth=fifo:{escaped}"
        os.write(self.write, tokens)

    def left(self):
        """The tokens that are there, in order of their bytes; they stay there."""
        before = fcntl.fcntl(self.read, fcntl.F_GETFL)
        fcntl.fcntl(self.read, fcntl.F_SETFL, before | os.O_NONBLOCK)
        try:
            found = os.read(self.read, 100)
        except BlockingIOError:
            found = b""
        fcntl.fcntl(self.read, fcntl.F_SETFL, before)
        os.write(self.write, found)
        return bytes(sorted(found))

    def close(self):
        os.close(self.read)
        os.close(self.write)


@pytest.fixture(params=["pipe", "named"])
def server(request, tmp_path, monkeypatch):
    made = Server(b"abc", tmp_path if request.param == "named" else None)
    monkeypatch.setenv("MAKEFLAGS", made.flags)
    yield made
    made.close()


@pytest.mark.parametrize(("wanted", "width", "left"), [(1, 1, 3), (2, 2, 2), (4, 4, 0), (9, 4, 0)])
def test_each_thread_but_the_first_costs_a_token(server, wanted, width, left):
    with threads(wanted) as got:
        assert got == width
        assert len(server.left()) == left
    assert server.left() == b"abc"


def test_where_none_is_left_there_is_one_thread(server):
    with threads(4), threads(4) as got:
        assert got == 1
    assert server.left() == b"abc"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_give_them_back(server, error):
    with pytest.raises(error), threads(4):
        raise error
    assert server.left() == b"abc"


@pytest.mark.parametrize("flags", ["", "-j", "n --trace"])
def test_without_a_jobserver_nothing_is_spared(monkeypatch, flags):
    monkeypatch.setenv("MAKEFLAGS", flags)
    with threads(4) as got:
        assert got == 4


@pytest.mark.parametrize(
    "auth", ["998,999", "0,1", "fifo:/no/such/pipe", "{0},{0}", "{1},{0}", "{0},{2}"]
)
def test_what_is_no_jobserver_is_left_alone(monkeypatch, auth):
    ends = [*os.pipe(), *os.pipe()]
    os.write(ends[1], b"not a token")
    monkeypatch.setenv("MAKEFLAGS", "-j4 --jobserver-auth=" + auth.format(*ends[:2], ends[3]))
    with threads(4) as got:
        assert got == 1
    assert os.read(ends[0], 100) == b"not a token"
    for end in ends:
        os.close(end)


HOLDS = """
import sys, time
from functools import partial
from ansor_deploy.cli.errors import leave
from ansor_deploy.system.jobserver import threads
def hold():
    with threads(4) as got:
        print(got, flush=True)
        time.sleep(60)
leave(hold, [])
"""


def test_a_terminated_build_gives_them_back(server):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        stdout=subprocess.PIPE,
        pass_fds=(server.read, server.write),
        text=True,
    ) as child:
        assert child.stdout.readline() == "4\n"
        assert server.left() == b""
        child.send_signal(signal.SIGTERM)
        assert child.wait() == 143
    assert server.left() == b"abc"


MAKEFILE = """
all: $(foreach n,1 2 3 4 5 6,job$(n))
job%:
\t+@$(PYTHON) -c 'from ansor_deploy.system.jobserver import threads; w = threads(3); \
print(w.__enter__()); w.__exit__(None, None, None)'
"""


def test_make_lends_what_it_has(tmp_path):
    if not (make := shutil.which("make")):
        pytest.skip("there is no make here")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    words = [make, "-j3", f"PYTHON={sys.executable}"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    # Make itself says so where it ends with fewer tokens, or more, than it began with.
    assert (result.returncode, result.stderr) == (0, "")
    widths = [int(digit) for digit in "".join(result.stdout.split())]  # the lines may interleave
    assert len(widths) == 6
    assert all(1 <= width <= 3 for width in widths)
