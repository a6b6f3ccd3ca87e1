"""Products with what pads an image are left out, and all others are there."""

import numpy as np
from helpers import built
from helpers.graphs import model, node, randn

CHANNELS = 20  # which fill no vectors


def of_windows(weights: dict[str, np.ndarray], windows: list[dict]):
    """Depthwise convolutions of one image."""
    nodes = [
        node("Conv", f"x {name}", f"y_{name}", group=CHANNELS, **how)
        for name, how in zip(weights, windows, strict=True)
    ]
    return model(nodes, {"x": (1, CHANNELS, 9, 7)}, [f"y_{name}" for name in weights], weights)


def test_windows_of_any_kind():
    windows = [
        {"pads": [2, 2, 2, 2]},
        {"pads": [1, 0, 0, 3], "strides": [2, 2]},
        {"pads": [2, 4, 2, 0], "dilations": [2, 2]},
        {},
    ]
    sizes = ((5, 5), (3, 3), (3, 3), (2, 5))
    weights = {f"w{n}": randn(n, CHANNELS, 1, *size) for n, size in enumerate(sizes)}
    built.assert_like_oracle(of_windows(weights, windows))


def test_nothing_beside_the_image_is_multiplied():
    weight = randn(0, CHANNELS, 1, 5, 5)
    weight[:, :, 0] = np.inf
    proto = of_windows({"w": weight}, [{"pads": [2, 2, 2, 2]}])
    (found,) = built.run(proto, {"x": randn(1, 1, CHANNELS, 9, 7)})
    rows = np.isfinite(found).all(axis=(0, 1, 3))
    assert rows.tolist() == [True, True, *[False] * 7]
