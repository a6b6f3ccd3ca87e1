"""Quantised networks on a board: the bytes that they have on this machine."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.quantised_nets import NAMES, network

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

BOARD = load_target("rpi3", [shipped("targets")])


def on_board(proto, feed, emulated, path):
    """The outputs of the model under default schedules, in the board's code."""
    model = built.imported(proto, BOARD)
    compile_model(model, extract(model.mod, BOARD), {}, BOARD).export(path, BOARD)
    (interface,) = model.interfaces
    library = emulated.load(path, {**interface.to_json(), "target": BOARD.to_json()})
    return [library(**feed)[info.name] for info in interface.outputs]


@pytest.mark.parametrize("name", NAMES)
def test_a_board_makes_the_same_bytes(name, emulated, tmp_path):
    proto = network(name)
    feed = graphs.random_feeds(proto)
    made = on_board(proto, feed, emulated, tmp_path / "net.so")
    for have, want in zip(made, built.run(proto, feed), strict=True):
        np.testing.assert_array_equal(have.view(np.uint8), want.view(np.uint8))
