"""Of two builds that miss the same task one tunes it; a lease ends with its holder."""

import os
import subprocess
import sys
import time

import pytest
from helpers import registry_samples
from helpers.registry_samples import key

from ansor_deploy.registry import leases
from ansor_deploy.registry.leases import Holder
from ansor_deploy.registry.store import Registry

KEYS = [key(n) for n in range(3)]
ELSEWHERE = Holder("elsewhere", "board", "another boot", "pid:[1]", os.getpid(), 1)


@pytest.fixture
def child(registry, path):
    """Another process that was granted all three."""
    with holding(path) as process:
        yield process
        process.kill()


def holding(path, *wrapper):
    command = [*wrapper, sys.executable, registry_samples.__file__, "lease", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "3\n"
    return process


def test_what_one_was_granted_the_other_is_not(registry, path):
    mine, other = Holder.here(), Holder.here()
    assert registry.lease(KEYS[:2], mine) == KEYS[:2]
    assert registry.lease(KEYS, other) == KEYS[2:]
    assert registry.lease(KEYS, mine) == KEYS[:2]  # asking again changes nothing
    assert registry.leaseholder(KEYS[0]) == mine
    registry.release(mine, KEYS[:1])
    assert registry.lease(KEYS, other) == [KEYS[0], KEYS[2]]
    registry.release(mine)
    registry.release(mine)
    assert registry.leaseholder(KEYS[1]) is None
    assert registry.lease(KEYS, other) == KEYS


def test_the_lease_of_a_running_process_is_kept(registry, child, monkeypatch):
    monkeypatch.setattr(leases, "SILENCE", -1.0)  # it is looked up, not listened to
    assert registry.lease(KEYS, Holder.here()) == []
    assert registry.leaseholder(KEYS[0]).pid == child.pid
    assert f"process {child.pid} on " in str(registry.leaseholder(KEYS[0]))


def test_the_lease_of_a_killed_process_is_free_at_once(registry, child):
    child.kill()
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT) is None:
        pass  # it is dead but not yet reaped
    assert registry.lease(KEYS, Holder.here()) == KEYS
    child.wait()


def test_the_lease_of_a_process_that_was_reaped_is_free(registry, child):
    child.kill()
    child.wait()
    assert registry.lease(KEYS, Holder.here()) == KEYS


def test_a_process_with_the_number_of_a_dead_one_does_not_inherit(registry):
    registry.lease(KEYS, Holder.here())
    registry._connection.execute("UPDATE holders SET started = started - 1")
    assert registry.lease(KEYS, Holder.here()) == KEYS


def test_another_machine_is_dead_after_a_long_silence(registry, monkeypatch):
    monkeypatch.setattr(leases, "SILENCE", 0.2)
    registry.lease(KEYS, ELSEWHERE)
    began = time.monotonic()
    while not registry.lease(KEYS, Holder.here()):
        time.sleep(0.02)
        assert time.monotonic() < began + 10
    assert time.monotonic() >= began + 0.2
    assert not registry.renew(ELSEWHERE)


def test_another_machine_that_is_heard_of_keeps_its_lease(registry, monkeypatch):
    monkeypatch.setattr(leases, "SILENCE", 0.2)
    registry.lease(KEYS, ELSEWHERE)
    until = time.monotonic() + 0.5
    mine = Holder.here()
    while time.monotonic() < until:
        assert registry.renew(ELSEWHERE)
        assert registry.lease(KEYS, mine) == []


def test_another_container_is_not_looked_up_among_our_processes(path, registry, monkeypatch):
    wrapper = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody make a PID namespace")
    with holding(path, *wrapper, "--kill-child") as process:
        try:
            assert registry.leaseholder(KEYS[0]).pid < 10
            assert registry.lease(KEYS, Holder.here()) == []
        finally:
            process.kill()
    monkeypatch.setattr(leases, "SILENCE", -1.0)
    assert registry.lease(KEYS, Holder.here()) == KEYS


def test_of_processes_that_ask_at_once_each_gets_other_tasks(path):
    Registry.open(path).close()
    command = [sys.executable, registry_samples.__file__, "lease-some", str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    asking = [subprocess.Popen(command, **pipes) for _ in range(4)]
    granted = [list(iter(process.stdout.readline, "done\n")) for process in asking]
    for process in asking:
        process.communicate()
    assert [process.returncode for process in asking] == [0] * 4
    assert sorted(int(number) for numbers in granted for number in numbers) == list(range(10))
