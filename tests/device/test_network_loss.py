"""A network that goes away without a word: no socket is closed, nothing answers."""

import subprocess
import sys

import pytest

from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.known_hosts import parse

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


@pytest.mark.slow
@pytest.mark.parametrize("way", ["direct", "jump"])
@pytest.mark.parametrize("action", [READ, WRITE], ids=["reading", "writing"])
def test_the_network_goes_away(sshd, cable, way, action):
    gate = sshd("gate")
    board = sshd("board", address=cable.address, prefix=cable.prefix)
    inventory = Inventory.find()
    inventory.put(parse_url("gate", gate.url, "host", str(gate.key)))
    jump = "gate" if way == "jump" else ""
    inventory.put(parse_url("pi", board.url, "host", str(board.key), jump))
    for name, server in (("gate", gate), ("pi", board)):
        public = server.host_key.with_name("host_key.pub").read_text()
        (entry,) = parse(f"{name} {public}")
        inventory.trust(name, entry.key)
    program = CLIENT.format(action=action)
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "ready\n"
        cable.pull()
        rest, _ = client.communicate(timeout=90)
        assert rest == "lost: pi: the connection was lost\n"
    finally:
        client.kill()
        client.communicate()
