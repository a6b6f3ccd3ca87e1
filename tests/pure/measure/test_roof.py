"""What a kernel takes at least, by the threads of a run and by where its tensors lie."""

from dataclasses import replace
from math import prod
from types import SimpleNamespace

import pytest
from helpers.registry_samples import TARGET

from ansor_deploy.measure.roof import Roof, roof_of
from ansor_deploy.runtime.profile import KernelTime, Profile
from ansor_deploy.views.profile import lines

TASK_OF_BYTES = {"flops": 3e8, "bytes": 1e3, "title": "dense"}
ROOF = Roof(1, 100.0, ((1e6, 1e11), (float("inf"), 1e10)))


def least(flops, size, **more):
    task = {"flops": flops, "bytes": size, "title": "conv2d 3x3 64->64 @56x56", **more}
    return ROOF.seconds(KernelTime("k", "conv2d", 1e-3, (), task))


def test_arithmetic_or_the_cache_that_can_hold_the_tensors_limits():
    assert least(1e9, 1e3) == pytest.approx(1e-2)
    assert least(1.0, 1e6) == pytest.approx(1e-5)
    assert least(1.0, 2e6) == pytest.approx(2e-4)


def test_a_cache_is_written_to_while_it_is_read_and_memory_is_not():
    def seconds(size, *shapes):
        task = {"flops": 1.0, "bytes": size, "title": "multiply"}
        return ROOF.seconds(KernelTime("k", "multiply", 1.0, shapes, task))

    one = (100, 250)  # of 1e5 bytes
    assert seconds(3e5, one, one, one) == pytest.approx(2e-6)
    assert seconds(1.5e5, one, (4000,), (8000, 250)) == pytest.approx(0.75e-6)  # a part of it
    assert seconds(3e6, one, one, one) == pytest.approx(3e-4)


def test_winograd_is_held_to_the_multiplications_that_it_makes():
    assert least(1e9, 1e3, rewriting="winograd conv 4") == pytest.approx(1e-2 / 4)
    assert least(1e9, 1e3, rewriting="winograd conv 2") == pytest.approx(1e-2 / 2.25)


LAYER = (50, 1, 1, 8, 3, 32), (1, 8, 256, 3, 32), (1, 1, 8, 32), (1, 8, 32), (50, 1, 1, 8, 32)
WEIGHTS = 4 * prod(LAYER[1])


@pytest.mark.parametrize(
    ("short", "first", "seconds"),
    [
        (0, 1e5, 50 * (WEIGHTS - 1e5) / 1e11),
        (WEIGHTS / 2, 1e5, 50 * (WEIGHTS / 2 - 1e5) / 1e11),  # of 16 bits
        (0, 8e5, 4 * sum(map(prod, LAYER[:-1])) / 1e11),  # what is written moves meanwhile
    ],
)
def test_each_step_of_a_layer_reads_the_weights_that_no_first_cache_keeps(short, first, seconds):
    roof = Roof(1, 1e6, ((first, 1e12), (1e6, 1e11), (float("inf"), 1e10)))
    size = 4 * sum(map(prod, LAYER)) - short
    task = {"op": "gru", "flops": 1.0, "bytes": size, "title": "gru"}
    assert roof.seconds(KernelTime("k", "gru", 1e-3, LAYER, task)) == pytest.approx(seconds)
    program = SimpleNamespace(op="gru", bytes=size, shapes=LAYER)
    layer = SimpleNamespace(flops=1.0, title="gru", workload=program)
    assert roof.least(layer, rewrites=True) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("title", "image", "result", "read"),
    [
        ("depthwise_conv2d 5x5 8 @7x7", 7, 7, 29**2),
        ("depthwise_conv2d 3x3 s2 8 @14x14", 14, 7, 20**2),
        ("depthwise_conv2d 3x3 d2 8 @7x7", 7, 7, 17**2),
        ("depthwise_conv2d 3x3 8 @9x9", 9, 7, 21**2),
    ],
)
def test_a_depthwise_convolution_may_leave_out_what_pads_its_image(title, image, result, read):
    taps = result**2 * int(title.split()[1][0]) ** 2
    shapes = ((1, image, image, 8), (3, 3, 1, 8), (1, result, result, 8))
    task = {"flops": 2 * 8 * taps + 1e6, "bytes": 1.0, "title": title}
    seconds = (2 * 8 * read + 1e6) / 100e9
    kernel = KernelTime("k", "depthwise_conv2d", 1.0, shapes, task)
    assert ROOF.seconds(kernel) == pytest.approx(seconds)
    program = Program(task["flops"], 1.0, title)
    program.workload.shapes = shapes
    assert ROOF.least(program, rewrites=True) == pytest.approx(seconds)


@pytest.mark.parametrize(("dilation", "read"), [(18, (20 + 2 + 2) ** 2), (2, 400 * 9)])
def test_so_may_one_whose_taps_lie_far_apart(dilation, read):
    title, shapes = f"conv2d 3x3 d{dilation} 96->48 @20x20", ((1, 20, 20, 96), (3, 3, 96, 48))
    task = {"flops": 2.0 * 400 * 9 * 96 * 48, "bytes": 1.0, "title": title}
    kernel = KernelTime("k", "conv2d", 1.0, (*shapes, (1, 20, 20, 48)), task)
    assert ROOF.seconds(kernel) == pytest.approx(2 * read * 96 * 48 / 100e9)


def test_a_models_image_is_read_with_its_channels_first():
    shapes = ((2, 3, 160, 160), (3, 3, 3, 64), (2, 80, 80, 64))
    task = {"flops": 2.0 * 2 * 80**2 * 27 * 64, "bytes": 1.0}
    task["title"] = "conv2d 3x3 s2 3->64 @2x160x160"
    seconds = ROOF.seconds(KernelTime("k", "conv2d", 1.0, shapes, task))
    assert seconds == pytest.approx(task["flops"] / 100e9)


class Program:
    """The part of a task that its limit is read from."""

    def __init__(self, flops, size, title="conv2d 3x3 64->64 @56x56"):
        op = title.partition(" ")[0]
        self.flops, self.title = flops, title
        self.workload = SimpleNamespace(op=op, bytes=size, shapes=())


def test_a_task_is_limited_as_its_kernel_is():
    dense = Program(1e9, 1e3, "dense 64->64")
    assert ROOF.least(dense, rewrites=True) == pytest.approx(1e-2)
    assert ROOF.least(Program(1.0, 2e6), rewrites=True) == pytest.approx(2e-4)
    of_bytes = replace(ROOF, byte_gops=400.0).least(dense, 1e8, rewrites=True)
    assert of_bytes == pytest.approx(5e-4)


def test_a_convolution_may_be_computed_in_fewer_multiplications():
    assert ROOF.least(Program(1e9, 1e3), rewrites=True) == pytest.approx(1e-2 / 4)
    assert ROOF.least(Program(1e9, 1e3), rewrites=False) == pytest.approx(1e-2)
    alone = Program(1e9, 1e3, "conv2d 1x1 64->64 @56x56")
    assert ROOF.least(alone, rewrites=True) == pytest.approx(1e-2)


def test_what_is_no_task_has_no_limit():
    assert ROOF.seconds(KernelTime("k", "copy", 1e-3, (), None)) is None


def test_a_run_on_one_thread_is_held_to_one_core():
    target = replace(TARGET, cores=4, peak_gflops=400.0)
    assert roof_of(target, 1, [], here=False) == Roof(1, 100.0)
    all_of_them, more = (roof_of(target, count, [], here=False) for count in (0, 8))
    assert all_of_them.gflops == more.gflops == 400.0


def test_products_of_bytes_are_held_to_what_was_measured_of_bytes():
    kernel = KernelTime("k", "dense", 1e-3, (), {**TASK_OF_BYTES, "byte_products": 1e8})
    assert replace(ROOF, byte_gops=400.0).share(kernel) == pytest.approx(0.5)
    unknown = Roof(1, 100.0)
    assert unknown.share(kernel) is None  # of another machine: not what floats take


def test_a_profile_says_what_share_of_the_peak_its_products_of_bytes_reach():
    bytes_, floats = TASK_OF_BYTES | {"byte_products": 1e8}, TASK_OF_BYTES
    kernels = tuple(KernelTime("k", "dense", 1e-3, (), task) for task in (bytes_, bytes_, floats))
    text = lines(Profile(3e-3, kernels), replace(ROOF, byte_gops=400.0))
    assert "room: 1.00 ms of a run lie above the kernels' limits" in text
    said = "products of bytes: 200 Gop/s in 2.00 ms, 50% of the 400 that this machine reaches"
    assert said in text
    assert not any("bytes:" in line for line in lines(Profile(1e-3, kernels[2:]), ROOF))
