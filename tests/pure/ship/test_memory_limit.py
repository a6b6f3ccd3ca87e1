"""A model that no run of could fit this machine is refused before it is tuned."""

from pathlib import Path

import pytest

from ansor_deploy.codegen.memory.figures import Memory, MemoryUse
from ansor_deploy.errors import ModelError
from ansor_deploy.request import Limits
from ansor_deploy.ship.memory_limits import check_limits
from ansor_deploy.system.host import memory_bytes


def taking(size):
    return Memory((), (MemoryUse("input x", size),), ())


def test_more_than_the_machine_has():
    check_limits(taking(memory_bytes()), Limits(), Path("net.onnx"))
    with pytest.raises(ModelError, match=r"a run takes .* this machine has") as caught:
        check_limits(taking(2**60), Limits(), Path("net.onnx"))
    assert "input x" in caught.value.message
    assert caught.value.file == Path("net.onnx")
