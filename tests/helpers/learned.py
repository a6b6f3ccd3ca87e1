"""Models of one operator of ai.onnx.ml, which are compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ansor_deploy.model.canonicalize import canonicalize
from helpers.graphs import randn, run, typed

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def learned(
    op: str,
    feeds: Mapping[str, np.ndarray],
    outputs: Mapping[str, int] | None = None,
    version: int = 3,
    opset: int = 17,
    **attributes: Any,
) -> ModelProto:
    """A model of one node that reads all feeds.

    outputs: types by name. version: of ai.onnx.ml. attributes: of the node; empty lists are left
    out.
    """
    outputs = outputs or {"y": FLOAT}
    attributes = {name: value for name, value in attributes.items() if value != []}
    made = helper.make_node(op, list(feeds), list(outputs), domain="ai.onnx.ml", **attributes)
    return typed([made], feeds, outputs, opset=opset, **{"ai.onnx.ml": version})


def classifier(op: str, x: np.ndarray, version: int = 3, **attributes: Any) -> ModelProto:
    """A classifier model with labels and scores as outputs."""
    return learned(op, {"x": x}, {"label": INT64, "score": FLOAT}, version, **attributes)


def svm(counts: int | Sequence[int], **words: Any) -> ModelProto:
    """An SVM classifier with so many vectors for each class, or one plane for each class."""
    classes = counts if isinstance(counts, int) else len(counts)
    weights = (classes, 6) if isinstance(counts, int) else (classes - 1, sum(counts))
    words |= {"coefficients": randn(1, *weights).ravel().tolist(), "rho": randn(3, 10).tolist()}
    words |= {"classlabels_ints": list(range(3, 3 + classes))}
    if not isinstance(counts, int):
        words |= {"support_vectors": randn(2, sum(counts), 6).ravel().tolist()}
        words |= {"vectors_per_class": counts}
    return classifier("SVMClassifier", randn(0, 9, 6), 1, **words)


def assert_alike(proto: ModelProto, feeds: Mapping[str, np.ndarray], tolerance=1e-5) -> None:
    """The canonical graph computes what the model does, including shapes and types."""
    after = canonicalize(proto)
    for want, have in zip(run(proto, feeds), run(after, feeds), strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)
