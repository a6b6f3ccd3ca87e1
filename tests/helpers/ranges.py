"""Graphs of models whose inputs have a range of lengths."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from onnx import ModelProto

from ansor_deploy.model.batches import Span
from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.counted import ranges
from ansor_deploy.model.graph.graph import OWN, Graph
from ansor_deploy.model.misfit import Trials
from ansor_deploy.model.onnx.bind import bind_shapes
from ansor_deploy.model.operators.recurrent import SCALES
from ansor_deploy.model.ranges import at_sizes
from helpers.graphs import model, randn, run

MOST = 12
LONG = Span(1, MOST)


def opened(proto: ModelProto, shapes: Mapping[str, tuple[int | Span, ...]]) -> Graph:
    """The canonical graph of a model, with room for the longest inputs."""
    found = ranges.asked_of(Trials(proto), shapes)
    bound = bind_shapes(proto, at_sizes(shapes, found, [one.most for one in found]))
    return canonical_graph(bound, partial(ranges.prepare, asked=found))


def as_given(proto):
    """The graph without our nodes that check numbers, which ONNX Runtime does not know."""
    for one in proto.graph.node:
        if one.domain == OWN and one.op_type in ("LSTM", "GRU", "RNN"):
            del one.input[SCALES:]
            while not one.input[-1]:
                one.input.pop()
            one.domain = ""
        if one.op_type in ("Length", "Places"):
            del one.input[1:]
            one.op_type, one.domain = "Identity", ""  # the length is given in steps
            del one.attribute[:]
    return proto


def given(shapes, length):
    """Seeded inputs of a length; and the same in full-size arrays, with NaN behind them."""
    exact = {n: [length if isinstance(k, Span) else k for k in one] for n, one in shapes.items()}
    feeds = {n: randn(at, *one) for at, (n, one) in enumerate(exact.items())}
    rooms = {}
    for name, one in shapes.items():
        room = np.full([n.most if isinstance(n, Span) else n for n in one], np.nan, np.float32)
        room[tuple(map(slice, feeds[name].shape))] = feeds[name]
        rooms[name] = room
    return feeds, rooms


def check(nodes, shapes, lengths=(12, 7, 4), constants=None, opset=18):
    """Compare a graph for a range with the model at some lengths, both in ONNX Runtime."""
    sizes = {n: ["?" if isinstance(k, Span) else k for k in one] for n, one in shapes.items()}
    proto = model(nodes, sizes, constants=constants, opset=opset)
    graph = opened(proto, shapes)
    whole = as_given(graph.to_proto())
    names = [value.name for value in whole.graph.output]
    for length in lengths:
        feeds, rooms = given(shapes, length)
        (want,) = run(proto, feeds)
        steps = length // graph.ranges[0].step
        found = run(whole, {**rooms, "length": np.array(steps, np.int64)})
        made = dict(zip(names, found, strict=True))
        cut = [slice(None)] * want.ndim
        for one in graph.lengths:
            cut[one.axis] = slice(int(made[one.name]))
        np.testing.assert_allclose(made["y"][tuple(cut)], want, rtol=1e-4, atol=1e-5)
