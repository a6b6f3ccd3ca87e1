"""Decoders with growing caches, whose steps are compared with ONNX Runtime's."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

EXAMPLES = Path(__file__).parents[2] / "examples" / "llm"
llama = runpy.run_path(str(EXAMPLES / "llama.py"))["llama"]
TINY = {"layers": 1, "width": 32, "heads": 4, "groups": 2, "words": 50}


class Growing:
    """A model with caches as inputs and outputs, in ONNX Runtime; a call is a step."""

    def __init__(self, proto: Any) -> None:
        self._session = onnxruntime.InferenceSession(proto.SerializeToString())
        given = {one.name: one.shape for one in self._session.get_inputs()}
        self.inputs = list(given)
        caches = [name for name in given if name.startswith("past")]
        shapes = {name: [n if isinstance(n, int) else 0 for n in given[name]] for name in caches}
        self.caches = {n: np.zeros((1, *s[1:]), np.float32) for n, s in shapes.items()}

    @property
    def length(self) -> int:
        return int(next(iter(self.caches.values())).shape[2])

    def feed(self, *tokens: int) -> dict[str, np.ndarray]:
        """The inputs of a step, without the caches."""
        length, count = self.length, len(tokens)
        made = {
            "input_ids": np.array([tokens]),
            "attention_mask": np.ones((1, length + count), np.int64),
            "position_ids": np.arange(length, length + count)[None],
        }
        return {name: one for name, one in made.items() if name in self.inputs}

    def __call__(self, **feed: np.ndarray) -> dict[str, np.ndarray]:
        names = [one.name for one in self._session.get_outputs()]
        made = dict(zip(names, self._session.run(None, {**feed, **self.caches}), strict=True))
        present = [name for name in names if name.startswith("present")]
        self.caches = dict(zip(self.caches, (made[name] for name in present), strict=True))
        return made
