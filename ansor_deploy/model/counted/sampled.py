"""Images with a size that a run decides, sampled at places relative to their edges.

    y = GridSample(x, at), n of x count, and there is room for m
    -->
    y = GridSample(Where(arange < n, x, 0), (at + 1) * n / m - 1)

With align_corners the outer places are the centres of elements, which are n - 1 apart.
"""

from __future__ import annotations

from onnx import TensorProto

from .known import Axes, Step

_REAL = TensorProto.FLOAT
_BETWEEN = ("linear", "bilinear")  # modes in which a rounding error picks no other element


def sampled(step: Step) -> list[tuple[str, Axes]] | None:
    """Values between elements of an image; outside it they are zeros or those of the edge."""
    own, asked = step.axes(0), step.axes(1)
    data, grid = (step.known_shape(step.input(at)) for at in (0, 1))
    outside = step.attribute("padding_mode", "zeros")
    known = step.attribute("mode", _BETWEEN[0]) in _BETWEEN and outside in ("zeros", "border")
    if not data or not grid or len(grid) - 1 in asked or (own and not known):
        return None
    if 1 in own or own.get(0, asked.get(0)) != asked.get(0):  # channels; other images than places
        return None
    images = min(data[0], grid[0])
    at = step.masked(step.cut(step.input(1), 0, images), asked)
    sides = {axis: number for axis, number in own.items() if axis}
    if sides:
        at = _placed(step, at, data)
    # The counted axes of the places, except the last axis, are behind the channels in the result.
    axes = {axis + (axis > 0): number for axis, number in asked.items()}
    image = step.cut(step.input(0), 0, images)
    return [(step.again(step.masked(image, sides), at), axes)]


def _placed(step: Step, at: str, room: tuple[int, ...]) -> str:
    """The places, relative to images with room around; coordinates are in reverse order of axes."""
    dims = step.dims(0)[:1:-1]
    form = [1] * (len(step.shape(at)) - 1) + [len(dims)]
    parts = [step.reshape(step.cast(step.scalar(number), _REAL), 1) for number in dims]
    size = step.reshape(step("Concat", *parts, axis=0), *form)
    rooms = step.reshape(step.constant(room[:1:-1], _REAL), *form)
    one, half = step.constant(1, _REAL), step.constant(0.5, _REAL)
    last = step("Sub", size, one)
    corners = step.attribute("align_corners", 0)
    high = step("Mul", step("Add", at, one), half)  # from 0 to 1
    edge = step.constant(0.0 if corners else 0.5, _REAL)
    element = step("Sub", step("Mul", high, last if corners else size), edge)
    if step.attribute("padding_mode", "zeros") == "border":
        element = step("Min", step("Max", element, step.constant(0, _REAL)), last)
    end = step("Max", step("Sub", rooms, one), one) if corners else rooms
    high = step("Div", step("Add", element, edge), end)
    return step("Sub", step("Mul", high, step.constant(2, _REAL)), one)


RULES = {"GridSample": sampled}
