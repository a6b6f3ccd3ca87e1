"""The title of a task: a line for people that distinguishes it from its neighbours.

"conv2d 3x3 s2 64->128 @56x56 +add+relu" is an operator, its window, stride and channels, the image
that it reads, and what is computed along with it; "d4" after the stride is a dilation. Titles are
made from what the registry stores for every task, so that naming one needs no import. Images are
channels-last, as in all programs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

Shape = Sequence[int]

_CONVOLUTION = re.compile(r"(depthwise_)?conv[123]d(_transpose)?")
_DILATED = re.compile(r"d\d+")
_POOL = re.compile(r"(max|avg)_pool[123]d")


def title(op: str, name: str, shapes: Sequence[Shape]) -> str:
    """The title. op, name: of the workload; shapes: of its inputs, then of its output."""
    if not shapes:
        return name or op
    image, result = shapes[0], shapes[-1]
    if _CONVOLUTION.fullmatch(op) and (kernel := _kernel(shapes)):
        figures = _convolution(op, image, kernel, result, _dilation(name))
    elif op in ("matmul", "dense") and len(shapes) > 2:
        figures = f"{_without_ones(image)}->{shape_text(result[-1:])}"
    elif _POOL.fullmatch(op):
        figures = f"{result[-1]} @{_place(image)}->{_place(result)}"
    else:
        less = math.prod(image) > math.prod(result)  # the input is shown where the task shrinks it
        read = f"{_without_ones(image)}->" * less
        return f"{name or op} {read}{_without_ones(result)}"
    return " ".join(filter(None, (op, figures, _along(op, name))))


def titled(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the workloads, which must have op, name and shapes, with its title."""
    return {**row, "title": title(row["op"], row["name"], row["shapes"])}


def shape_text(sizes: Shape) -> str:
    """A shape, such as "1x3x224x224"; "scalar" without dimensions."""
    return "x".join(map(str, sizes)) or "scalar"


def _kernel(shapes: Sequence[Shape]) -> Shape | None:
    """A convolution's weights: the first input after its image that has as many dimensions."""
    return next((one for one in shapes[1:-1] if len(one) == len(shapes[0]) > 2), None)


def _dilation(name: str) -> int:
    """The distance of a window's taps, read from the name, since no shape has it."""
    return next((int(word[1:]) for word in name.split("_") if _DILATED.fullmatch(word)), 1)


def _convolution(op: str, image: Shape, kernel: Shape, result: Shape, dilation: int) -> str:
    window = kernel[:-2]
    grows = "transpose" not in op and image[1] < result[1]  # no convolution enlarges an image
    if image[1] in kernel and (grows or image[-1] not in kernel[-2:]):
        # This is a model's input with channels first.
        window = window if kernel[-2] == image[1] else kernel[1:-1]
        image = (image[0], *image[2:], image[1])
    alone = op.startswith("depthwise") and image[-1] == result[-1]
    channels = str(image[-1]) if alone else f"{image[-1]}->{result[-1]}"
    reach = (window[0] - 1) * dilation + 1
    stride = 1 if "transpose" in op else _stride(image[1], reach, result[1])
    place = f"@{_place(image)}" + (f"->{_place(result)}" if "transpose" in op else "")
    steps = [f"{letter}{step}" for letter, step in (("s", stride), ("d", dilation)) if step > 1]
    return " ".join([shape_text(window), *steps, channels, place])


def _stride(size: int, window: int, steps: int) -> int:
    """The least stride with which a window takes so many steps over an image.

    The image may be padded by less than the window on either side.
    """
    least, most = size - window, size + window - 2
    fits = (s for s in range(1, size + 1) if s * steps > least and s * (steps - 1) <= most)
    return next(fits, 1) if steps > 1 else 1


def _place(image: Shape) -> str:
    """The size of an image, preceded by the number of images if there are several."""
    return shape_text(image[1:-1] if image[0] == 1 else image[:-1])


def _without_ones(shape: Shape) -> str:
    """A shape without its leading ones."""
    first = next((at for at, size in enumerate(shape) if size != 1), len(shape))
    return shape_text(shape[first:])


def _along(op: str, name: str) -> str:
    """What is computed with the operator, such as "+add+relu"."""
    own = op.removeprefix("depthwise_").split("_")
    words = [word for word in name.split("_") if not _DILATED.fullmatch(word)]
    for word in own:
        if word in words:
            words.remove(word)
    return "".join(f"+{word}" for word in words)
