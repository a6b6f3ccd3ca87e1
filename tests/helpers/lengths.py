"""Libraries for any length up to a most, as functions of arrays with room for it."""

import numpy as np

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.batches import Span
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model
from ansor_deploy.runtime.functions import into_functions
from helpers.built import HOST
from helpers.graphs import model, randn, run
from helpers.ranges import opened

MOST = 96


def library(folder, nodes, rows, constants):
    """A library for any length up to 96 as a function of arrays, and its model."""
    return of_spans(folder, nodes, rows, constants, {"n": Span(1, MOST)})


def of_spans(folder, nodes, rows, constants, spans):
    """As `library`, for such sizes."""
    shape = tuple(spans.get(n, n) for n in rows)
    proto = model(nodes, {"x": rows}, constants=constants, opset=18)
    imported = import_model(opened(proto, {"x": shape}), HOST)
    built = compile_model(imported, extract(imported.mod, HOST), {}, HOST)
    built.export(path := folder / "net.so", HOST)
    _, (function,), _ = into_functions(path, 1, 1, None)
    return proto, imported.interfaces[0], function


def check(folder, nodes, rows, constants, lengths=(96, 61, 17, 5, 2, 1), behind=16):
    """The right numbers at each length, and few of those that do not count, if any."""
    proto, one, function = library(folder, nodes, rows, constants)
    axis = one.outputs[0].lengths[0][0]
    for length in lengths:
        x = randn(length, *(length if n == "n" else n for n in rows))
        room = np.full(one.inputs[0].shape, np.nan, np.float32)
        room[tuple(map(slice, x.shape))] = x
        made = np.full(one.outputs[0].shape, 7.0, np.float32)
        count = np.zeros((), np.int64)
        function([room, np.array(length, np.int64)], [made, count])
        (want,) = run(proto, {"x": x})
        rows_made = np.moveaxis(made, axis, 0)
        np.testing.assert_allclose(
            rows_made[: int(count)], np.moveaxis(want, axis, 0), rtol=1e-4, atol=1e-4
        )
        assert (rows_made[int(count) + behind :] == 7.0).all()
