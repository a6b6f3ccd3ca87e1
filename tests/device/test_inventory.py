"""The files that devices and their host keys are kept in."""

import json
import os
import subprocess
import sys

import pytest
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.sshd import fingerprint, make_key

from ansor_deploy.devices.inventory import Device, Inventory, parse_url
from ansor_deploy.devices.known_hosts import Entry, HostKey, is_revoked, keys_of, parse
from ansor_deploy.errors import AnsorError, UsageError

PI = Device("pi", "pi", "192.0.2.7", 22, "rpi3")


@pytest.fixture
def inventory(tmp_path):
    return Inventory(tmp_path / "config" / "devices.json")


@pytest.fixture
def key(tmp_path):
    """A host key, as a line of a known_hosts file has it."""
    text = make_key(tmp_path / "key").with_name("key.pub").read_text()
    (entry,) = parse(f"board {text}")
    return entry.key


# Addresses


@pytest.mark.parametrize(
    ("url", "user", "host", "port"),
    [
        ("ssh://pi@board", "pi", "board", 0),
        ("ssh://pi@board.example:2222", "pi", "board.example", 2222),
        ("ssh://board/", "", "board", 0),
        ("ssh://pi@[2001:db8::7]", "pi", "2001:db8::7", 0),
        ("ssh://pi@[fe80::1%25eth0]:22", "pi", "fe80::1%eth0", 22),
        ("ssh://pi@[fe80::1%eth0]", "pi", "fe80::1%eth0", 0),
        ("ssh://user.name@192.0.2.7:65535", "user.name", "192.0.2.7", 65535),
    ],
)
def test_addresses(url, user, host, port):
    device = parse_url("pi", url, "rpi3")
    assert (device.user, device.host, device.port) == (user, host, port)
    assert parse_url("pi", device.url, "rpi3") == device


# Devices


def test_devices_are_kept(inventory):
    other = Device("lab", "", "2001:db8::7", 0, "./lab.toml", "/keys/lab", "gate,pi")
    inventory.put(PI)
    inventory.put(other)
    again = Inventory(inventory.path)
    assert again.list() == [other, PI]
    assert again.get("pi") == PI
    again.remove("pi")
    assert inventory.list() == [other]


def test_a_quarantine(inventory):
    inventory.put(PI)
    inventory.quarantine("pi", "three crashes")
    assert inventory.reason("pi").reason == "three crashes"
    assert inventory.reason("pi").since.endswith("+00:00")
    inventory.release("pi")
    inventory.release("pi")
    assert inventory.reason("pi") is None
    with pytest.raises(UsageError):
        inventory.quarantine("nobody", "x")


def test_pins(inventory, key, tmp_path):
    inventory.put(PI)
    inventory.put(Device("PI", "", "board", 0, "host"))
    inventory.trust("pi", key)
    assert inventory.keys("pi") == [key]
    assert inventory.keys("PI") == []
    find = ["ssh-keygen", "-F", "pi", "-f", str(inventory.pins)]
    subprocess.run(find, capture_output=True, check=True)  # OpenSSH can read the file
    inventory.remove("pi")
    assert inventory.keys("pi") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"devices": []}',
        '{"devices": {}}',
        '{"devices": {"pi": {}}, "quarantine": {}}',
        '{"devices": {"pi": "ssh://pi@board"}, "quarantine": {}}',
        '{"devices": {}, "quarantine": {"pi": {"reason": "x"}}}',
        "\x00\xff",
    ],
)
def test_a_damaged_file(inventory, text):
    inventory.path.parent.mkdir()
    inventory.path.write_text(text)
    for use in (inventory.list, lambda: inventory.put(PI), lambda: inventory.remove("pi")):
        with pytest.raises(AnsorError, match="is damaged"):
            use()
    assert inventory.path.read_text() == text


@pytest.mark.parametrize(
    ("field", "value"),
    [("host", "-oProxyCommand=x"), ("user", "-x"), ("port", "22"), ("port", 0.5), ("jump", None)],
)
def test_a_file_with_what_add_would_refuse(inventory, field, value):
    inventory.put(PI)
    data = json.loads(inventory.path.read_text())
    data["devices"]["pi"][field] = value
    inventory.path.write_text(json.dumps(data))
    with pytest.raises(AnsorError, match="is damaged"):
        inventory.get("pi")


def test_processes_at_once_lose_nothing(tmp_path):
    code = (
        "import sys; from ansor_deploy.devices.inventory import Inventory, parse_url; "
        "Inventory.find().put(parse_url(sys.argv[1], 'ssh://pi@board', 'host'))"
    )
    command = [sys.executable, "-c", code]
    writers = [subprocess.Popen([*command, f"pi{n}"], cwd=tmp_path) for n in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    assert [device.name for device in Inventory.find().list()] == [f"pi{n}" for n in range(8)]
    left = {path.name for path in Inventory.find().path.parent.iterdir()}
    assert left == {"devices.json", ".devices.lock"}


def test_no_home(tmp_path):
    """A user without a home: help needs none, the list of devices does."""
    code = (
        "import os, pathlib, sys\n"
        "def nowhere(): raise RuntimeError('no home')\n"
        "pathlib.Path.home = nowhere\n"
        "sys.argv[0] = 'ansor-deploy'\n"
        "from ansor_deploy.cli import main; main()"
    )
    command = [sys.executable, "-c", code]
    env = {name: value for name, value in os.environ.items() if name != "XDG_CONFIG_HOME"}

    def run(*words):
        return subprocess.run(
            [*command, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    assert run("devices", "--help").returncode == 0
    refused(run("devices", "list"), 2, "no home directory", "XDG_CONFIG_HOME")


def test_a_folder_that_is_none(tmp_path, monkeypatch):
    place = tmp_path / "file"
    place.touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place))
    words = ("devices", "add", "pi@board", "--target", "host")
    refused(program(tmp_path, *words), 1, str(place), "not a directory")


# Host keys


def test_fingerprints_are_those_of_openssh(tmp_path):
    for kind in ("ed25519", "ecdsa", "rsa"):
        public = make_key(tmp_path / kind, kind=kind).with_name(f"{kind}.pub")
        (entry,) = parse("board " + public.read_text())
        assert entry.key.fingerprint == fingerprint(public)


@pytest.mark.parametrize(
    ("names", "matching", "others"),
    [
        ("board", ["board", "BOARD"], ["boards", "[board]:2222", ""]),
        ("[board]:2222", ["[board]:2222"], ["board", "b", "[board]:22"]),
        ("*.example,!bad.example", ["a.example"], ["bad.example", "example"]),
        ("192.0.2.?", ["192.0.2.7"], ["192.0.2.77"]),
        ("|1|broken", [], ["board", "|1|broken"]),
        ("|1|@@|@@", [], ["board"]),
    ],
)
def test_names(names, matching, others, key):
    entry = Entry("", names, key)
    assert [name for name in (*matching, *others) if entry.matches(name)] == matching


def test_what_is_no_line_is_passed_over(key):
    line = Entry("", "board", key).line()
    noise = ["", "# board x", "board", "board ssh-ed25519", "board ssh-ed25519 !!!", "@x", "a b c"]
    wrong_kind = line.replace("ssh-ed25519", "ssh-rsa", 1)
    assert keys_of(parse("\n".join([*noise, wrong_kind, line, "\x00"])), "board") == [key]


def test_marked_lines(key):
    authority = Entry("@cert-authority", "*", key)
    revoked = Entry("@revoked", "*", key)
    assert keys_of([authority, revoked], "board") == []
    assert is_revoked(parse(revoked.line()), "board", key)
    assert not is_revoked([authority], "board", key)
    assert not is_revoked([revoked], "board", HostKey(key.kind, b"other"))
