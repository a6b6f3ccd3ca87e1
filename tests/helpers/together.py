"""Small models that are parts of one library: what every build costs is paid once for many.

A part shares no tensor with another, so its tasks are those of the model alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, compose, helper

from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.target import Target
from helpers import built, graphs

_MOST = 24  # parts of a library: where it cannot be built, the tests of no more models fail

Feeds = Mapping[str, np.ndarray]


class Together:
    """Models by name, each with inputs: a library is built when one of its models is asked for.

    feeds: of the models that are not fed at random.
    """

    def __init__(
        self,
        models: Mapping[Any, ModelProto],
        feeds: Mapping[Any, Feeds] | None = None,
        target: Target = built.HOST,
    ) -> None:
        self._models, self._target = models, target
        random = {name: graphs.random_feeds(models[name]) for name in {*models} - {*(feeds or {})}}
        self.feeds = {**random, **(feeds or {})}
        alike: dict[Hashable, list[Hashable]] = {}
        for name, proto in models.items():
            alike.setdefault(_kind(name, proto), []).append(name)
        parts = [
            names[at : at + _MOST] for names in alike.values() for at in range(0, len(names), _MOST)
        ]
        self._parts = {name: tuple(names) for names in parts for name in names}
        self._outputs: dict[Hashable, list[np.ndarray]] = {}

    def outputs(self, name: Hashable) -> list[np.ndarray]:
        """As `built.run`, of one of the models."""
        if name not in self._outputs:
            self._run(self._parts[name])
        return self._outputs[name]

    def expected(self, name: Hashable) -> list[np.ndarray]:
        """As `graphs.run`, of one of the models."""
        return graphs.run(self._models[name], self.feeds[name])

    def assert_like_oracle(self, name: Hashable) -> None:
        """As `built.assert_like_oracle`, of one of the models."""
        for have, want in zip(self.outputs(name), self.expected(name), strict=True):
            assert (have.shape, have.dtype) == (want.shape, want.dtype)
            ok, worst, _ = compare(have, want)
            assert ok, f"off by {worst}"

    def _run(self, names: tuple[Hashable, ...]) -> None:
        whole, feeds = ModelProto(), {}
        for at, name in enumerate(names):
            whole.MergeFrom(compose.add_prefix(self._models[name], f"m{at}_"))
            feeds |= {f"m{at}_{key}": value for key, value in self.feeds[name].items()}
        versions = {one.domain: one.version for one in whole.opset_import}
        del whole.opset_import[:]
        whole.opset_import.extend(helper.make_opsetid(*pair) for pair in versions.items())
        found = iter(built.run(whole, feeds, self._target))
        for name in names:
            self._outputs[name] = [next(found) for _ in self._models[name].graph.output]


def _kind(name: Hashable, proto: ModelProto) -> Hashable:
    """What models of one library have in common; a branch takes part in the layouts of others."""
    if any(attribute.HasField("g") for one in proto.graph.node for attribute in one.attribute):
        return name
    return str([one.version for one in proto.opset_import if not one.domain])
