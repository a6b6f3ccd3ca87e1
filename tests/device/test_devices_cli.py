"""`ansor-deploy devices` against a real sshd, as a user has it: processes and their exit codes."""

import json
import os
import shlex
import subprocess
import sys

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import PROGRAM, refused
from helpers.libraries import build
from helpers.plain_board import PlainBoard, add_board
from helpers.sshd import USER, make_key

from ansor_deploy.devices import probe
from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import detect_host
from ansor_deploy.target import load_target

# What an ssh session finds, whichever environment the tests run in.
PYTHON_THERE = [
    *("/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-c"),
    "import sys; print(*sys.version_info[:2])",
]
UNKNOWN = "its host key is not known: "


@pytest.fixture
def devices(tmp_path):
    """Run `ansor-deploy devices ...`."""

    def run(*words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return program(tmp_path, "devices", *words, **options)

    return run


@pytest.fixture
def added(sshd, devices):
    """`added(name)`: a server that is a device of that name, its host key not yet trusted."""

    def add(name="pi", **options):
        board = sshd(name, **options)
        Inventory.find().put(parse_url(name, board.url, "host", str(board.key)))
        return board

    return add


def checks(devices, name, code=0):
    result = devices("doctor", name, "--json")
    assert result.returncode == code, result.stderr + result.stdout
    return {check["name"]: check for check in json.loads(result.stdout)["checks"]}


def test_a_board_from_add_to_remove(added, devices, home, tmp_path):
    board = added("pi")
    trusted = devices("trust", "pi", "--fingerprint", board.fingerprint, "--json")
    assert trusted.returncode == 0, trusted.stderr
    assert json.loads(trusted.stdout)["host_keys"] == [board.fingerprint]
    assert board.fingerprint in trusted.stderr
    found = checks(devices, "pi")
    assert found["host key"]["found"] == f"{board.fingerprint} (ssh-ed25519)"
    well = {name for name, check in found.items() if check["level"] == "ok"}
    assert {"reachable", "architecture", "word size", "libc", "python", "cpu features"} <= well
    (row,) = answer(tmp_path, "devices", "list")["devices"]
    assert (row["name"], row["url"], row["host_keys"]) == ("pi", board.url, [board.fingerprint])
    assert "trusted" in devices("list").stdout
    for name in ("devices.json", "known_hosts"):
        assert (home / ".config" / "ansor-deploy" / name).stat().st_mode & 0o777 == 0o600
    assert answer(tmp_path, "devices", "remove", "pi") == row
    assert answer(tmp_path, "devices", "list") == {"devices": []}
    assert (
        board.host_key.with_suffix(".pub").read_text().split()[1]
        not in (home / ".config" / "ansor-deploy" / "known_hosts").read_text()
    )
    refused(devices("doctor", "pi"), 2, "there is no device 'pi'")


def test_a_library_is_valid_for_a_board_or_not(added, devices, tmp_path):
    board = added("pi")
    devices("trust", "pi", "--fingerprint", board.fingerprint)
    build(tmp_path / "m.so")
    told = answer(tmp_path, "verify", "m.so", "--device", "pi")
    assert {check["level"] for check in told["checks"]} == {"ok"}
    build(tmp_path / "m.so", load_target("rpi3", [shipped("targets")]))
    result = program(tmp_path, "verify", "m.so", "--device", "pi")
    assert result.returncode == 4
    assert "FAIL  architecture: " in result.stdout


def test_an_unknown_key_is_refused(added, devices):
    board = added("pi")
    found = checks(devices, "pi", code=4)
    assert found["reachable"]["level"] == "FAIL"
    assert UNKNOWN + board.fingerprint in found["reachable"]["found"]
    assert "ansor-deploy devices trust pi" in found["reachable"]["remedy"]
    assert "Accepted publickey" not in (board.folder / "log").read_text()


def test_trust_without_a_terminal(added, devices, tmp_path):
    board = added("pi")
    result = devices("trust", "pi")
    refused(result, 2, "there is no terminal", "--fingerprint")
    assert board.fingerprint in result.stderr
    wrong = "SHA256:" + "A" * 43
    refused(devices("trust", "pi", "--fingerprint", wrong), 4, f"not {wrong}")
    assert answer(tmp_path, "devices", "list")["devices"][0]["host_keys"] == []
    assert devices("trust", "pi", "--yes").returncode == 0
    refused(devices("trust", "pi", "--fingerprint", wrong), 4, f"not {wrong}")
    again = devices("trust", "pi")
    assert (again.returncode, "trusted already" in again.stderr) == (0, True)


@pytest.mark.parametrize(("reply", "code"), [("y", 0), ("n", 4)])
def test_trust_asks_at_a_terminal(added, tmp_path, reply, code):
    board = added("pi")
    command = [*PROGRAM, "devices", "trust", "pi"]
    script = ["script", "-qec", subprocess.list2cmdline(command), "/dev/null"]
    result = subprocess.run(
        script, cwd=tmp_path, input=reply + "\n", capture_output=True, text=True, check=False
    )
    assert "Is this the board's own fingerprint? [y/N]" in result.stdout
    assert board.fingerprint in result.stdout
    assert result.returncode == code


def test_a_changed_key_is_refused_loudly(added, devices):
    board = added("pi")
    before = board.fingerprint
    assert devices("trust", "pi", "--yes").returncode == 0
    board.new_host_key()
    log = len((board.folder / "log").read_text())
    found = checks(devices, "pi", code=4)["reachable"]["found"]
    assert "THE HOST KEY HAS CHANGED" in found
    assert before in found
    assert board.fingerprint in found
    assert "Accepted publickey" not in (board.folder / "log").read_text()[log:]
    refused(devices("trust", "pi", "--yes"), 4, "HAS CHANGED", "trust pi --replace")
    assert devices("trust", "pi", "--yes", "--replace").returncode == 0
    checks(devices, "pi")


def test_the_wrong_user_key(added, devices, tmp_path):
    board = added("pi")
    assert devices("trust", "pi", "--yes").returncode == 0
    board.authorise(make_key(tmp_path / "other"))
    found = checks(devices, "pi", code=4)["reachable"]
    assert f"{USER}@127.0.0.1 accepted none of the keys: SHA256:" in found["found"]
    assert "--identity" in found["remedy"]


def test_a_quarantine_ends_when_the_board_is_well(added, devices, tmp_path):
    board = added("pi")
    assert devices("trust", "pi", "--yes").returncode == 0
    Inventory.find().quarantine("pi", "three crashes")
    assert "in quarantine since" in devices("list").stdout
    board.stop()
    assert "nothing listens at" in checks(devices, "pi", code=4)["reachable"]["found"]
    assert answer(tmp_path, "devices", "list")["devices"][0]["quarantine"]["reason"]
    board.start()
    assert "out of quarantine" in devices("doctor", "pi").stderr
    assert answer(tmp_path, "devices", "list")["devices"][0]["quarantine"] is None


def test_the_runtime_is_installed_once(added, devices, tmp_path):
    """Over the real thing: wheels are needed for no board of this machine's own kind."""
    there = subprocess.run(PYTHON_THERE, capture_output=True, text=True, check=True).stdout
    if there.split() != [str(part) for part in sys.version_info[:2]]:
        pytest.skip(f"the python3 of this machine's ssh sessions is another one: {there}")
    board_home = tmp_path / "board-home"
    board_home.mkdir()
    added("pi", extra=f"SetEnv HOME={board_home}\n")
    assert devices("trust", "pi", "--yes").returncode == 0
    assert checks(devices, "pi")["runtime"]["found"] == "not installed"
    for _ in range(2):
        result = devices("install", "pi")
        assert result.returncode == 0, result.stderr
    assert checks(devices, "pi")["runtime"]["level"] == "ok"
    cache = board_home / ".cache" / "ansor-deploy"
    assert len([path for path in cache.iterdir() if path.is_dir() and len(path.name) == 64]) == 1


def test_a_board_of_another_architecture(sshd, devices, tmp_path):
    board = sshd()
    words = ("--name", "pi", "--target", "cortex-a53", "--identity", board.key, "--yes")
    refused(devices("add", board.url, *words), 4, "pi cannot be a cortex-a53: architecture: ")
    assert answer(tmp_path, "devices", "list") == {"devices": []}
    Inventory.find().put(parse_url("pi", board.url, "cortex-a53", str(board.key)))
    found = checks(devices, "pi", code=4)["architecture"]
    assert (found["level"], "a target for" in found["remedy"]) == ("FAIL", True)


@pytest.fixture
def plain(tmp_path):
    """A board of this machine's kind with a home of its own."""
    board = PlainBoard(tmp_path / "plain")
    (tmp_path / "lab.toml").write_text('extends = "host"\n')
    yield board
    board.pull_plug()


def test_one_command_from_nothing_to_usable(plain, devices, home, tmp_path):
    words = ("add", plain.sshd.url, "--name", "pi", "--identity", plain.sshd.key)
    given = f"--name pi --identity {shlex.quote(str(plain.sshd.key))} --fingerprint"
    refused(devices(*words), 2, "no terminal", "devices add", given)
    sure = ("--fingerprint", plain.sshd.fingerprint)
    refused(devices(*words, "--fingerprint", "SHA256:" + "A" * 43), 4, "not SHA256:AAA")
    assert plain.bundles == []
    done = devices(*words, *sure, "--target", "lab.toml")
    assert done.returncode == 0, done.stderr + done.stdout
    for line in ("pi is trusted", "pi is: ", "the runtime on pi (", "pi is ready"):
        assert line in done.stderr
    assert "reference kernel" in done.stdout
    assert len(plain.bundles) == 1
    (row,) = answer(tmp_path, "devices", "list")["devices"]
    assert (row["name"], row["target"]) == ("pi", str(tmp_path / "lab.toml"))
    # What was done stays: the key is not asked for again.
    again = devices(*words, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["ok"]
    assert "pi is trusted already" in again.stderr
    assert "the runtime on pi (" not in again.stderr


def answering(plain, **said):
    """The board's Python says such facts of it."""
    facts = json.dumps({**probe.facts(), **said})
    python = plain.programs / "python3"
    python.unlink()
    python.write_text(f"#!/bin/sh\necho '{facts}'\n")
    python.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"machine": "armv7l", "bits": 32}, "pi (armv7l) runs a 32-bit system"),
        ({"machine": "aarch64", "bits": 32}, "pi (aarch64) runs a 32-bit system"),
    ],
)
@pytest.mark.parametrize("target", [(), ("--target", "rpi3")])
def test_a_32_bit_board_is_refused(plain, devices, tmp_path, said, reason, target):
    answering(plain, **said)
    words = ("--name", "pi", "--identity", plain.sshd.key, "--yes", *target)
    refused(devices("add", plain.sshd.url, *words), 4, reason, "run a 64-bit system on the board")
    assert answer(tmp_path, "devices", "list") == {"devices": []}


def test_a_board_that_the_doctor_fails_gets_no_work(plain, devices, tmp_path):
    (tmp_path / "many.toml").write_text('extends = "host"\ncores = 500\n')
    words = ("--name", "pi", "--identity", plain.sshd.key, "--yes", "--target", "many.toml")
    added = devices("add", plain.sshd.url, *words)
    assert (added.returncode, "FAIL  cores: " in added.stdout) == (4, True), added.stderr
    (row,) = answer(tmp_path, "devices", "list")["devices"]
    assert "the doctor found cores: " in row["quarantine"]["reason"]
    (tmp_path / "many.toml").write_text('extends = "host"\n')
    assert devices("doctor", "pi").returncode == 0
    assert answer(tmp_path, "devices", "list")["devices"][0]["quarantine"] is None


def test_a_board_whose_target_is_sure(plain, devices, tmp_path):
    """Its processor has a name, and a project's target is about that."""
    (tmp_path / "ansor-deploy.toml").touch()
    (tmp_path / "targets").mkdir()
    with (tmp_path / "targets" / "lab.toml").open("w") as file:
        name = detect_host()["description"]
        file.write(f'extends = "host"\ndescription = "{name} (in the lab)"\n')
    done = devices("add", plain.sshd.url, "--name", "pi", "--identity", plain.sshd.key, "--yes")
    assert done.returncode == 0, done.stderr
    assert "its target is lab" in done.stderr


def test_a_key_that_ssh_knows_is_not_asked_for(plain, devices, home):
    public = plain.sshd.host_key.with_name("host_key.pub").read_text()
    known = f"[127.0.0.1]:{plain.sshd.port} {public}"
    (home / ".ssh" / "known_hosts").write_text(known)
    words = ("add", plain.sshd.url, "--name", "pi", "--identity", plain.sshd.key)
    assert devices(*words, "--target", "lab.toml").returncode == 0
    assert devices("remove", "pi").returncode == 0
    plain.sshd.new_host_key()
    refused(devices(*words, "--yes"), 4, "HAS CHANGED", "ssh-keygen -R '[127.0.0.1]:")


def test_a_board_whose_speed_has_changed_is_accepted(plain, devices, tmp_path):
    words = ("--name", "pi", "--identity", plain.sshd.key, "--yes", "--target", "lab.toml")
    assert devices("add", plain.sshd.url, *words).returncode == 0
    Inventory.find().quarantine("pi", "the reference kernel takes 4.0 times as long as at first")
    listed = devices("list").stdout
    assert "takes 4.0 times as long as at first; `devices doctor pi` or `accept` ends it" in listed
    accepted = devices("accept", "pi", "--json")
    assert accepted.returncode == 0, accepted.stderr
    assert "the reference kernel takes " in accepted.stderr
    assert Inventory.find().reason("pi") is None
    assert 0 < json.loads(accepted.stdout)["accepted"] == Inventory.find().pace("pi") < 1


def test_a_board_without_python(added, devices):
    added("pi", extra="SetEnv PATH=/nonexistent HOME=/nonexistent\n")
    assert devices("trust", "pi", "--yes").returncode == 0
    found = checks(devices, "pi", code=4)
    assert found["python"]["found"] == "there is no python3"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://pi@board", "of the form"),
        ("ssh://pi@", "no host"),
        ("ssh://@board", "no user"),
        ("ssh://pi@board:0", "no port"),
        ("ssh://pi@board:99999", "no port"),
        ("ssh://pi@2001:db8::7", "of the form"),
        ("ssh://pi@[2001:db8::7", "of the form"),
        ("ssh://pi@[board]", "no host"),
        ("ssh://-oProxyCommand=x@board", "no user's name"),
        ("ssh://pi@-oProxyCommand=x", "no host"),
        ("ssh://pi@board/home", "of the form"),
    ],
)
def test_addresses_that_are_none(devices, url, says):
    refused(devices("add", url, "--target", "host"), 2, says)


def test_a_board_that_cannot_be_reached_is_not_added(devices):
    words = ("add", "ssh://pi@127.0.0.1:1", "--name", "lost")
    said = "nothing listens at 127.0.0.1 port 1\n  hint: Look at its power and network, then: "
    refused(devices(*words), 4, f"{said}ansor-deploy devices {' '.join(words)}")
    assert "no devices" in devices("list").stdout


def test_other_words_that_are_wrong(added, devices):
    refused(devices("add", "pi@board", "--name", "../pi"), 2, "cannot be called")
    refused(devices("add", "pi@board", "--target", "hoost"), 2, "no target 'hoost'")
    board = added("pi")
    refused(devices("add", "pi@board", "--name", "pi"), 2, "already", board.url)
    refused(devices("add", board.url, "--name", "pi", "--target", "v100"), 2, "pi is a host")
    refused(devices("remove", "pii"), 2, "Did you mean 'pi'")


@pytest.mark.parametrize(
    "words",
    [
        ["ssh://pi:geheim@board"],
        ["ssh://pi:geheim@board:x:y"],
        ["ssh://pi@board", "--jump", "gate,me:geheim@other"],
    ],
)
def test_a_password_in_an_address_is_neither_kept_nor_repeated(devices, words, home):
    result = devices("add", *words, "--target", "host")
    refused(result, 2)
    assert "geheim" not in result.stdout + result.stderr
    assert not (home / ".config").exists()


def test_an_account_without_a_shell(added, devices):
    board = added("pi", extra="ForceCommand echo This account is not available.; exit 1\n")
    devices("trust", "pi", "--fingerprint", board.fingerprint)
    found = checks(devices, "pi", code=4)
    assert "architecture" not in found
    assert found["shell"]["found"].endswith("runs no commands: This account is not available.")


def test_a_login_script_that_prints_without_an_end_of_line(plain, devices):
    add_board(plain.sshd, "pi", "host")
    (plain.home / ".bashrc").write_text("head -c 300000 /dev/zero | tr '\\0' x\n")
    assert checks(devices, "pi")["word size"]["found"] == "64 bits"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_home_that_nothing_can_be_run_below(devices, tmp_path):
    mount = f"mount -t tmpfs -o noexec home {tmp_path}/pi/home"
    board = PlainBoard(
        tmp_path / "pi", prefix=("unshare", "--mount", "sh", "-c", f'{mount} && exec "$0" "$@"')
    )
    add_board(board.sshd, "pi", "host")
    try:
        refused(devices("install", "pi"), 4, "nothing can be run below", "noexec")
        assert checks(devices, "pi", code=4)["home"]["found"] == "mounted noexec"
    finally:
        board.sshd.stop()
