"""GridSample of many channels reads vectors of them, whatever the mode and the padding."""

from itertools import product

from helpers.built import assert_like_oracle, imported
from helpers.graphs import model, node

from ansor_deploy._tvm import tirx

SHAPES = {"x": (2, 9, 5, 7), "grid": (2, 4, 3, 2)}
MANNERS = list(product(("linear", "nearest"), ("zeros", "border", "reflection"), (0, 1)))


def sampled(manners):
    nodes = []
    for at, (mode, padding, aligned) in enumerate(manners):
        how = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
        nodes.append(node("GridSample", "x grid", f"y{at}", **how))
    return model(nodes, SHAPES, tuple(f"y{at}" for at in range(len(nodes))), opset=20)


def test_places_within_and_beyond_the_image_are_right():
    assert_like_oracle(sampled(MANNERS))


def test_channels_lie_beside_each_other():
    functions = imported(sampled(MANNERS[:1])).mod.functions
    (made,) = (one for name, one in functions.items() if "grid_sample" in name.name_hint)
    assert isinstance(made, tirx.PrimFunc)
    assert [int(buffer.shape[-1]) for buffer in made.params] == [9, 2, 9]
