"""Regions pooled as ONNX Runtime does it: at the edges of an image and far beyond, by any scale."""

from itertools import product

import numpy as np
import pytest
from helpers import graphs
from helpers.graphs import node
from helpers.together import Together

REGIONS = np.float32(
    [
        [0, 0, 13, 9],  # the whole image
        [-1, -1, 13, 9],  # whose points lie on the last line at which there is something
        [1.3, 2.7, 6.1, 8.9],
        [3, 3, 3, 3],
        [5, 5, 2, 1],  # of negative size
        [-500, -400, 600, 700],
        [1e4, 1e4, 1.01e4, 1.02e4],
    ]
)


def pooled(coordinates, points, scale):
    given = {
        "x": ("float32", (2, 20, 9, 13)),
        "regions": ("float32", (7, 4)),
        "images": ("int64", (7,)),
    }
    pool = node(
        "RoiAlign", "x regions images", "y", output_height=3, output_width=4,
        sampling_ratio=points, spatial_scale=scale, coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    return graphs.typed([pool], given, {"y": "float32"}, opset=16)


def fed(regions):
    return {"x": graphs.randn(0, 2, 20, 9, 13), "regions": regions, "images": np.arange(7) % 2}


WAYS = list(product(("half_pixel", "output_half_pixel"), (0, 2, 3), (0.25, 1.0)))
FINITE = [way for way in WAYS if (way[1] == 3) == (way[2] == 1.0)]
OTHERS = [("half_pixel", points, 1.0) for points in (0, 2)]


@pytest.fixture(scope="module")
def pools():
    regions = np.zeros((7, 4), np.float32)
    regions[:, 0] = [np.nan, np.inf, -np.inf, 0, 0, 0, 3e38]
    regions[:, 2] = [1, np.inf, np.inf, np.nan, np.inf, -np.inf, -3e38]
    feeds = {way: fed(REGIONS / np.float32(way[2])) for way in FINITE}
    feeds |= dict.fromkeys(OTHERS, fed(regions))
    return Together({way: pooled(*way) for way in feeds}, feeds)


@pytest.mark.parametrize("way", FINITE, ids=str)
def test_like_onnx_runtime(way, pools):
    np.testing.assert_allclose(pools.outputs(way)[0], pools.expected(way)[0], atol=2e-6)


@pytest.mark.parametrize("way", OTHERS, ids=str)
def test_a_region_that_is_not_finite_is_of_zeros(way, pools):
    assert not pools.outputs(way)[0].any()
