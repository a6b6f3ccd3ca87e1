"""Which devices a target has, and why one that is registered is left out."""

import pytest

from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.known_hosts import HostKey
from ansor_deploy.devices.registered import how_to_add, registered_for
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from ansor_deploy.views import Report

KEY = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519...")
RPI3 = load_target("rpi3", [shipped("targets")])


class Warnings(Report):
    """Keeps what it is warned of."""

    def __init__(self):
        self.messages = []

    def warn(self, message):
        self.messages.append(message)


@pytest.fixture
def inventory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return Inventory.find()


@pytest.fixture
def add(inventory):
    def add(name, target="rpi3", *, trusted=True):
        inventory.put(parse_url(name, f"ssh://pi@{name}.invalid", target))
        if trusted:
            inventory.trust(name, KEY)

    return add


def test_every_device_that_is_such_a_machine(add, tmp_path):
    add("one")
    add("two", "cortex-a53")  # the same code and records
    add("other", "v100")
    add("gone", str(tmp_path / "gone.toml"))
    told = Warnings()
    assert registered_for(RPI3, told) == ("one", "two")
    assert told.messages == []


def test_this_machine_asks_for_no_device(add):
    add("twin", "host")
    host = load_target("host", [shipped("targets")])
    assert registered_for(host, Warnings()) == ()


def test_without_a_device_or_a_home(inventory, monkeypatch):
    assert registered_for(RPI3, Warnings()) == ()
    assert not inventory.path.parent.exists()
    monkeypatch.setattr("pathlib.Path.home", _no_home)
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert registered_for(RPI3, Warnings()) == ()


def _no_home():
    raise RuntimeError


def test_what_may_not_work_is_named_with_the_way_out(add, inventory):
    add("well")
    add("sick")
    add("new", trusted=False)
    inventory.quarantine("sick", "it miscomputes")
    told = Warnings()
    assert registered_for(RPI3, told) == ("well",)
    new, sick = told.messages
    assert "ansor-deploy devices trust new" in new
    assert "it miscomputes" in sick
    assert "ansor-deploy devices doctor sick" in sick


def test_a_key_that_the_user_s_ssh_knows_will_do(add, tmp_path):
    add("pi", trusted=False)
    (tmp_path / ".ssh").mkdir()
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIEB2cRTdRoxJdaHcTtvVjCNeiYhAYOvm/vbP0T1bfnXe"
    (tmp_path / ".ssh" / "known_hosts").write_text(f"pi.invalid ssh-ed25519 {key}\n")
    assert registered_for(RPI3, Warnings()) == ("pi",)


def test_the_project_may_bind_devices_in_its_own_order(add, tmp_path):
    for name in ("a", "b", "c"):
        add(name)
    add("board", "v100")
    text = '[target.rpi3]\ndevices = ["c", "nobody", "a"]\n'
    (tmp_path / "ansor-deploy.toml").write_text(text)
    told = Warnings()
    assert registered_for(RPI3, told) == ("c", "a")
    (said,) = told.messages
    assert said.startswith("nobody is left out: there is no such device here")


def test_how_a_device_is_added(tmp_path):
    assert how_to_add(RPI3) == "ansor-deploy devices add USER@HOST --target rpi3"
    (tmp_path / "mine.toml").write_text('extends = "rpi3"\n')
    mine = load_target(str(tmp_path / "mine.toml"), [shipped("targets")])
    assert how_to_add(mine) == "ansor-deploy devices add USER@HOST"
