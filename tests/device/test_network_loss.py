"""A network that goes away without a word: no socket is closed, nothing answers."""

import os
import shutil
import subprocess
import sys
import uuid

import pytest

from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.known_hosts import parse

HERE, THERE = "10.231.77.1", "10.231.77.2"
CLIENT = """\
import sys
from ansor_deploy.devices.inventory import Inventory
from ansor_deploy.devices.ssh import connect
from ansor_deploy.errors import DeviceLost

stream = connect(Inventory.find().get("pi")).open("echo ready; exec cat")
print(stream.read(100, 30).decode(), end="", flush=True)
try:
    {action}
except DeviceLost as error:
    print("lost:", error.message)
"""
READ = "stream.read(1, 120)"
WRITE = "[stream.write(bytes(1 << 20), 120) for _ in range(100)]"


def ip(*words):
    command = ["ip", *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def network():
    """A network namespace, joined to this one by a pair of virtual interfaces; its name."""
    name = f"ansor-{uuid.uuid4().hex[:6]}"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, to make a network to cut")
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces are not allowed here")
    try:
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", f"{HERE}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "addr", "add", f"{THERE}/30", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        yield name
    finally:
        ip("netns", "del", name)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["direct", "jump"])
@pytest.mark.parametrize("action", [READ, WRITE], ids=["reading", "writing"])
def test_the_network_goes_away(sshd, network, way, action):
    gate = sshd("gate")
    board = sshd("board", address=THERE, prefix=("ip", "netns", "exec", network))
    inventory = Inventory.find()
    inventory.add(parse_url("gate", gate.url, "host", str(gate.key)))
    jump = "gate" if way == "jump" else ""
    inventory.add(parse_url("pi", board.url, "host", str(board.key), jump))
    for name, server in (("gate", gate), ("pi", board)):
        public = server.host_key.with_name("host_key.pub").read_text()
        (entry,) = parse(f"{name} {public}")
        inventory.trust(name, entry.key)
    program = CLIENT.format(action=action)
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "ready\n"
        ip("link", "set", network, "down")
        rest, _ = client.communicate(timeout=90)
        assert rest == "lost: pi: the connection was lost\n"
    finally:
        client.kill()
        client.communicate()
