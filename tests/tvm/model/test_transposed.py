"""Transposed convolutions: right for every stride, kernel and padding, and free of zeros."""

from __future__ import annotations

import pytest
from helpers import built
from helpers.built import HOST
from helpers.graphs import model, node, randn
from helpers.together import Together

from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.transposed_geometry import Geometry


def transposed(extent, kernel, stride, pad, output_padding, dims, groups=1, outputs=16):
    constants = {"w": randn(0, 8, outputs, *[kernel] * dims), "b": randn(1, outputs * groups)}
    nodes = [
        node(
            "ConvTranspose",
            "x w b",
            "c",
            strides=[stride] * dims,
            pads=[pad] * 2 * dims,
            output_padding=[output_padding] * dims,
            kernel_shape=[kernel] * dims,
            group=groups,
        ),
        node("Relu", "c", "y"),
    ]
    return model(nodes, {"x": [2, 8, *[extent] * dims]}, constants=constants)


def tasks_of(proto):
    return extract(built.imported(proto).mod, HOST)


# Extent, kernel, stride, padding, output padding and axes; then groups and channels.
GEOMETRIES = {
    "extent{}-kernel{}-stride{}-pad{}-extra{}-{}d".format(*geometry): geometry
    for geometry in (
        (4, 4, 2, 1, 0, 2),
        (1, 4, 1, 0, 0, 2),
        (5, 3, 2, 1, 1, 2),
        (5, 3, 1, 1, 0, 2),
        (7, 2, 3, 0, 0, 2),
        (6, 5, 3, 2, 2, 1),
        (3, 4, 2, 1, 0, 3),
        (4, 1, 2, 0, 1, 2),
        (4, 3, 2, 2, 0, 2),
        (5, 3, 2, 0, 0, 2),
        (4, 9, 4, 3, 3, 1),
        (6, 7, 2, 3, 1, 1),
        (5, 4, 1, 2, 0, 1),
        (3, 2, 2, 0, 0, 3),
        (5, 8, 4, 6, 0, 1),
    )
}
GROUPED = {
    f"{groups} groups of {outputs}, {dims}d": (4, 3, 2, 1, 0, dims, groups, outputs)
    for groups, outputs, dims in ((2, 16, 2), (8, 1, 2), (8, 3, 1), (4, 2, 3))
}


@pytest.fixture(scope="module")
def models():
    return Together({name: transposed(*one) for name, one in {**GEOMETRIES, **GROUPED}.items()})


@pytest.mark.parametrize("name", [*GEOMETRIES, *GROUPED])
def test_transposed_convolution_is_that_of_the_oracle(name, models):
    models.assert_like_oracle(name)


@pytest.mark.parametrize("way", ["apart", "together", "dense"])
def test_each_way_gives_the_same(way, monkeypatch):
    monkeypatch.setattr(Geometry, "costs", lambda self, lanes: {way: 0.0})
    geometries = (5, 3, 2, 1, 0, 2), (6, 5, 3, 2, 2, 1), (3, 3, 2, 1, 1, 3), (6, 9, 4, 8, 0, 1)
    models = Together({one: transposed(*one) for one in geometries})
    for one in geometries:
        models.assert_like_oracle(one)


def test_no_inserted_zero_is_multiplied_and_nothing_beyond_the_result():
    extent, kernel = 16, 4
    tasks = tasks_of(transposed(extent, kernel, 2, 1, 0, 2))
    flops = sum(task.weight * task.flops for task in tasks.values())
    useful = 2 * 2 * extent**2 * kernel**2 * 8 * 16  # batch 2, two for each multiply-add
    assert flops < 1.04 * useful  # bias and ReLU are the rest


def imported(geometry, outputs=16):
    mod = built.imported(transposed(*geometry, outputs=outputs)).mod
    return [gv.name_hint for gv in mod.functions if gv.name_hint != "main"]


@pytest.mark.parametrize("geometry", [(4, 4, 2, 1, 0, 2), (5, 3, 1, 1, 0, 2)])
def test_bias_and_activation_end_the_one_kernel_that_there_is(geometry):
    (kernel,) = [name for name in imported(geometry) if not name.startswith("transpose")]
    assert kernel.rstrip("0123456789").endswith("add_relu")


def test_channels_too_few_for_vectors_are_computed_at_once():
    names = imported((4, 4, 2, 1, 0, 2), outputs=1)
    assert not [name for name in names if "conv2d_transpose" in name]


@pytest.mark.parametrize("name", GROUPED)
def test_grouped_transposed_convolution_multiplies_by_no_inserted_zero(name):
    tasks = tasks_of(transposed(*GROUPED[name]))
    assert not [task for task in tasks if "_transpose" in task and "conv" in task]
