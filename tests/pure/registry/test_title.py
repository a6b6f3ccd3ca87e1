"""Titles: a person tells one task from another by them."""

import pytest

from ansor_deploy.registry.title import title

BIAS = [1, 1, 1, 64]
STEM = [1, 3, 224, 224]


@pytest.mark.parametrize(
    ("op", "name", "shapes", "said"),
    [
        (
            "conv2d",
            "conv2d_add_relu",
            ([1, 56, 56, 64], [3, 3, 64, 128], [1, 1, 1, 128], [1, 28, 28, 128]),
            "conv2d 3x3 s2 64->128 @56x56 +add+relu",
        ),
        (
            "conv2d",
            "conv2d",
            ([1, 7, 7, 64], [3, 3, 64, 8], [1, 4, 4, 8]),
            "conv2d 3x3 s2 64->8 @7x7",
        ),
        ("conv2d", "conv2d", ([1, 5, 5, 64], [3, 3, 64, 8], [1, 3, 3, 8]), "conv2d 3x3 64->8 @5x5"),
        ("conv2d", "conv2d", ([1, 7, 7, 64], [7, 7, 64, 8], [1, 1, 1, 8]), "conv2d 7x7 64->8 @7x7"),
        (
            "conv2d",
            "conv2d_add_relu_d4",
            ([1, 56, 56, 8], [3, 3, 8, 8], [1, 1, 1, 8], [1, 24, 24, 8]),
            "conv2d 3x3 s2 d4 8->8 @56x56 +add+relu",
        ),
        # Dilated, of a former version: what it spans is not known, but it makes no step of two.
        (
            "conv2d",
            "conv2d",
            ([1, 56, 56, 8], [3, 3, 8, 8], [1, 52, 52, 8]),
            "conv2d 3x3 8->8 @56x56",
        ),
        (
            "conv2d",
            "conv2d_add",
            ([16, 8, 8, 64], [1, 1, 64, 64], BIAS, [16, 8, 8, 64]),
            "conv2d 1x1 64->64 @16x8x8 +add",
        ),
        # A model's input, and the two ways in which its weights are laid out.
        (
            "conv2d",
            "conv2d",
            (STEM, [3, 7, 7, 64], [1, 112, 112, 64]),
            "conv2d 7x7 s2 3->64 @224x224",
        ),
        (
            "conv2d",
            "conv2d",
            (STEM, [7, 7, 3, 64], [1, 112, 112, 64]),
            "conv2d 7x7 s2 3->64 @224x224",
        ),
        # As wide as it has channels afterwards.
        (
            "conv2d",
            "conv2d",
            ([1, 3, 16, 16], [3, 3, 3, 16], [1, 16, 16, 16]),
            "conv2d 3x3 3->16 @16x16",
        ),
        (
            "depthwise_conv2d",
            "conv2d_add",
            ([1, 14, 14, 64], [5, 5, 1, 64], BIAS, [1, 14, 14, 64]),
            "depthwise_conv2d 5x5 64 @14x14 +add",
        ),
        ("conv1d", "conv1d", ([1, 80, 16], [3, 16, 32], [1, 40, 32]), "conv1d 3 s2 16->32 @80"),
        (
            "conv2d_transpose",
            "conv2d_transpose_add",
            ([1, 4, 4, 64], [4, 4, 64, 32], [1, 1, 1, 32], [1, 8, 8, 32]),
            "conv2d_transpose 4x4 64->32 @4x4->8x8 +add",
        ),
        (
            "matmul",
            "matmul_add_gelu",
            ([1, 64, 128], [128, 256], [256], [1, 64, 256]),
            "matmul 64x128->256 +add+gelu",
        ),
        ("matmul", "matmul", ([4, 64, 32], [4, 32, 64], [4, 64, 64]), "matmul 4x64x32->64"),
        ("matmul", "matmul", ([3], [3], []), "matmul 3->scalar"),
        (
            "max_pool2d",
            "max_pool2d",
            ([1, 56, 56, 8], [1, 28, 28, 8]),
            "max_pool2d 8 @56x56->28x28",
        ),
        (
            "softmax",
            "softmax_isnan_where",
            ([1, 4, 9, 9], [], [1, 4, 9, 9]),
            "softmax_isnan_where 4x9x9",
        ),
        ("mean", "mean", ([1, 56, 56, 144], [1, 1, 1, 144]), "mean 56x56x144->144"),
        ("add", "add_relu", ([1, 8], [4, 8], [4, 8]), "add_relu 4x8"),
        ("add", "add", ([], [], []), "add scalar"),
        ("cast", "cast", ([1, 1], [1, 1]), "cast scalar"),
        ("weird", "", (), "weird"),
    ],
)
def test_a_title(op, name, shapes, said):
    assert title(op, name, shapes) == said
