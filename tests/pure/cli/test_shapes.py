"""What --input-shape may say: a shape, several, or ranges of sizes."""

import click
import pytest

from ansor_deploy.cli.shapes import parse_shape, shape_text, shapes_together
from ansor_deploy.errors import UsageError
from ansor_deploy.model.batches import Span, Value


def test_shapes():
    assert parse_shape("data=1,3,224,224") == ("data", (1, 3, 224, 224))
    assert parse_shape("a=b:0=8") == ("a=b:0", (8,))
    assert parse_shape("a:0=1,2..6:2") == ("a:0", (1, Span(2, 6, 2)))
    assert shape_text(*parse_shape("x=1,2..6:2")) == "x=1,2..6:2"
    assert parse_shape("x=1..8,3") == ("x", (Span(1, 8), 3))
    assert shape_text(*parse_shape("x=1..8,3")) == "x=1..8,3"
    assert parse_shape("ids=1,1..512") == ("ids", (1, Span(1, 512)))
    assert parse_shape("sr==16000") == ("sr", (Value("16000"),))
    assert shape_text(*parse_shape("on==true")) == "on==true"


NO_SHAPES = ["", "data", "data=", "=1", "data=1,,2", "data=0", "data=1x2"]
NO_RANGES = ["x=4..1:1", "x=1..4:0", "x=1..4:2", "x=0..4:2", "x=1..:2", "x=3..3"]


@pytest.mark.parametrize("text", [*NO_SHAPES, *NO_RANGES])
def test_no_shapes(text):
    with pytest.raises(click.BadParameter):
        parse_shape(text)


def test_shapes_that_do_not_go_together():
    given = [("x", (1,)), ("x", (2,)), ("y", (3,))]
    assert shapes_together(given) == ({"x": (1,), "y": (3,)}, {"x": (2,), "y": (3,)})
    assert shapes_together([]) == ({},)
    steps = [("x", (Span(2, 6, 2), 4)), ("y", (Span(1, 5, 2),)), ("z", (3,))]
    assert shapes_together(steps) == (
        {"x": (2, 4), "y": (1,), "z": (3,)},
        {"x": (4, 4), "y": (3,), "z": (3,)},
        {"x": (6, 4), "y": (5,), "z": (3,)},
    )
    sizes = [("x", (1, 3, Span(32, 64, 32), Span(32, 96, 32))), ("y", (1, Span(1, 8)))]
    assert shapes_together(sizes) == (dict(sizes),)
    with pytest.raises(UsageError, match="3 for x, 2 for y"):
        shapes_together([("x", (1,)), ("x", (2,)), ("x", (3,)), ("y", (1,)), ("y", (2,))])
    batch = [("x", (Span(1, 4), 3)), ("y", (Span(1, 4),)), ("z", (2,))]
    assert shapes_together(batch) == (dict(batch),)
    for other in (("x", (5, 3)), ("w", (Span(1, 8),)), ("z", (Span(2, 4, 2),))):
        with pytest.raises(UsageError, match="a range goes with no other"):
            shapes_together([*batch[:2], other])
    with pytest.raises(UsageError, match="the same shapes are given twice"):
        shapes_together([("x", (1,)), ("x", (1,))])
