"""A loaded library, which is called with arrays by name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DeviceError, UsageError
from ..system.host import architecture
from . import session
from .batches import Arrays
from .context import Context
from .dlpack import in_place
from .fit import apart, check_outputs, choose, fitting
from .functions import ON_GPU, into_functions
from .interface import Interface, declared, interfaces, of_true_size, ranges
from .lengths import Lengths
from .manifest_json import read_json, threads_of
from .out_of_range import RANGE_HINT
from .shared import Shared
from .steps import Steps
from .tensors import room_for

_DECODE = "take steps: model.decode(...), and model.truncate(rows)"


class Model(Shared):
    """A loaded library: call it with the inputs by name, get the outputs by name.

    Threads may share it: one runs, the others wait. In a child of `os.fork` it runs on one thread,
    even if another thread was running it during the fork. `close`, or the end of a `with`, frees
    its memory. Inputs are read in place if they are contiguous and writable, else from a copy;
    nobody may change them during a call. Tensors of other libraries are exchanged by DLPack, also
    as arrays for results. For a GPU, tensors may be on the GPU: where all of a call's are, the call
    does not wait for the end of the run, which is ordered by the caller's stream.

    interfaces: one for each shape that it was built for. inputs, outputs: those of the first.
    batches: other batches or lengths that it takes; None where there are none. threads: those of a
    call; 0 for those of its preset, else as many as the target has cores. code: the number of the
    code that runs, where it has code for several targets; None for the best. manifest: with the
    fields of that code. called: the interface of its first function, which differs from the
    model's where there is a context. context: what it keeps between steps, or None.
    """

    def __init__(
        self, path: Path, manifest: dict[str, Any], threads: int = 0, code: int | None = None
    ) -> None:
        self.interfaces, called = interfaces(manifest), declared(manifest)
        self.batches = ranges(manifest, called)
        self.inputs, self.outputs = self.interfaces[0].inputs, self.interfaces[0].outputs
        several = manifest.get("codes")
        wanted = threads or (0 if several else threads_of(manifest))
        super().__init__(path, partial(into_functions, path, len(called), wanted, code))
        self.manifest = {**manifest, **(several[self.code] if several else {})}
        self.threads = threads or threads_of(self.manifest)
        self._declared, self.called, self.context = called, called[0], called[0].context
        in_parts = self.context or self.batches
        self._on_gpu = ON_GPU if self.manifest["target"].get("gpu") and not in_parts else None
        self._steps = self._new_steps() if self.context else None

    def __repr__(self) -> str:
        shapes = (f"{one.takes} -> {one.gives}" for one in self.interfaces)
        return f"<{self.path}: {'; '.join(shapes)}>"

    def __call__(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Run once, in the inputs' shapes; the results belong to the caller.

        Where a run decides the size of a result, the result has that size. UsageError where the
        library does not take these shapes, or an index in the inputs is out of range.
        """
        arrays = in_place(inputs, self._on_gpu)
        if isinstance(self.batches, Lengths) and not self.context and self._batch(arrays):
            return self.batches.results(partial(self._run_parts, arrays))
        if (found := self._in_steps_or_parts(arrays)) is None:
            chosen = choose(self.path, self.interfaces, arrays, self.batches)
            found = self._whole(chosen, arrays)
        return of_true_size(self.outputs, found)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: None = None,
    ) -> list[np.ndarray]:
        """Like ONNX Runtime's `InferenceSession.run`: a call that returns a list of results.

        output_names: the wanted outputs; all, in the model's order, if empty. input_feed: the
        inputs of a call; lists count as arrays, and an array of one element as a scalar. UsageError
        where the model has no such output, and for any options.
        """
        if run_options is not None:
            raise UsageError("a library has no options of a run", "leave out run_options")
        names = session.wanted(output_names, [info.name for info in self.get_outputs()])
        outputs = self(**session.fed(self.inputs, input_feed))
        return [outputs[name] for name in names]

    def get_inputs(self) -> list[session.NodeArg]:
        """Like ONNX Runtime's: each input with `name`, `shape` and `type`, in the model's order."""
        return [session.NodeArg.of(info) for info in self.inputs]

    def get_outputs(self) -> list[session.NodeArg]:
        """Like ONNX Runtime's, without outputs that hold `lengths`."""
        inner = {name for info in self.outputs for _, name in info.lengths}
        return [session.NodeArg.of(info) for info in self.outputs if info.name not in inner]

    def whole(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Call the model; outputs are not cut to their `lengths`, and these are outputs, too."""
        arrays = in_place(inputs)
        if (found := self._in_steps_or_parts(arrays)) is not None:
            return found
        return self._whole(choose(self.path, self.interfaces, arrays, self.batches), arrays)

    def _in_steps_or_parts(self, inputs: Arrays) -> dict[str, np.ndarray] | None:
        """The outputs of a step with a context, or of a batch in parts; None in other cases."""
        if self.context:
            self._fitting(inputs)
            return self._new_steps().grown(inputs)
        if one := self._batch(inputs):
            self._run_parts(inputs, outputs := room_for(one.outputs))
            return outputs
        return None

    def _whole(self, chosen: int, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = room_for(self.interfaces[chosen].outputs)
        self._run(chosen, inputs, outputs)
        return outputs

    def run_into(self, outputs: Mapping[str, Any], /, **inputs: Any) -> None:
        """Run once, and write all outputs to the caller's arrays, which are given by name.

        They are written in place; an input that shares memory with one is copied first. Each array
        has the full room of its output; the outputs of its `lengths` hold how much of it counts.
        UsageError as in a call, and where an array does not fit an output.
        """
        if self.context:
            raise UsageError(
                "it keeps its caches itself, and cannot write to others", _DECODE, self.path
            )
        arrays, places = (in_place(some, self._on_gpu) for some in (inputs, outputs))
        batch = self._batch(arrays)
        chosen = 0 if batch else choose(self.path, self.interfaces, arrays, self.batches)
        check_outputs(self.path, (batch or self.interfaces[chosen]).outputs, places)
        moved = {name: apart(one, places.values()) for name, one in arrays.items()}
        if batch:
            self._run_parts(moved, places)
        else:
            self._run(chosen, moved, places)

    def _batch(self, inputs: Mapping[str, np.ndarray]) -> Interface | None:
        """The interface of inputs that are run in parts; None for other inputs."""
        if self.batches and (one := self.batches.of(inputs)):
            choose(self.path, [one], inputs, self.batches)
            return one
        return None

    def _run_parts(self, inputs: Arrays, outputs: Arrays) -> None:
        for chosen, given, made in self.batches.parts(inputs, outputs) if self.batches else ():
            self._run(chosen, given, made)

    def _run(self, chosen: int, inputs: Arrays, outputs: Arrays) -> None:
        one = self._declared[chosen]
        given = [inputs[info.name] for info in one.inputs]
        self._call(chosen, given, [outputs[info.name] for info in one.outputs])

    def _call(self, chosen: int, given: Sequence[np.ndarray], made: Sequence[np.ndarray]) -> None:
        try:
            self._in_turn(chosen, given, made)
        except IndexError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UsageError(reason, RANGE_HINT, self.path) from error

    def decode(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Run a step of a library with a context. It keeps its own caches, which grow by the step.

        inputs: all inputs but the caches; inputs that grow with the caches have the model's length:
        the rows that count, and the new ones. UsageError where they do not fit, where the context
        is full, and for a library without a context.
        """
        steps, context = self._kept()
        if steps.length + context.tokens > context.rows:
            full = f"its context is full: {steps.length} of {context.rows} rows count"
            hint = "let fewer count (`truncate`), or build it with more: --context ROWS"
            raise UsageError(f"{full}, and a step adds {context.tokens}", hint, self.path)
        arrays = in_place(inputs)
        choose(self.path, [steps.takes], arrays)
        return steps.step(arrays)

    @property
    def length(self) -> int:
        """How many rows of the caches count."""
        return self._kept()[0].length

    def truncate(self, length: int = 0) -> None:
        """Forget all rows of the caches but the first `length`."""
        steps, _ = self._kept()
        if not 0 <= length <= steps.length:
            raise UsageError(f"it cannot keep {length} rows: {steps.length} count", _DECODE)
        steps.truncate(length)

    def caches(self) -> dict[str, np.ndarray]:
        """Copies of the rows of its caches that count, by the names of the model's inputs."""
        steps, context = self._kept()
        return {cache.input: steps.rows(cache) for cache in context.caches}

    def resume(self, /, **caches: np.ndarray) -> None:
        """Replace the caches, for example by those of another `Model` of the same library."""
        steps, context = self._kept()
        here = context.grown(self.called, context.length_of(caches))
        inner = {cache.input for cache in context.caches}
        wanted = replace(here, inputs=tuple(one for one in here.inputs if one.name in inner))
        choose(self.path, [wanted], caches)
        steps.load(caches)

    def _new_steps(self) -> Steps:
        return Steps(self.called, partial(self._call, 0))

    def _kept(self) -> tuple[Steps, Context]:
        if self._steps is None or self.context is None:
            raise UsageError("it has no context", "build it with one: --context ROWS", self.path)
        return self._steps, self.context

    def arguments(self, inputs: Mapping[str, np.ndarray]) -> tuple[int, list[np.ndarray]]:
        """The position of the function that takes a call's inputs, and the function's arguments."""
        if self.context:
            steps = self._new_steps()
            steps.load(inputs)
            return 0, steps.arguments(inputs)
        if isinstance(self.batches, Lengths):
            self._fitting(inputs)
            at, given, _ = next(self.batches.parts(inputs, {}))
        else:
            at, given = choose(self.path, self.interfaces, inputs), inputs
        return at, [given[info.name] for info in self._declared[at].inputs]

    def _fitting(self, inputs: Mapping[str, np.ndarray]) -> Interface:
        """The interface that inputs fit; with a context, at the length of the caches in them."""
        known = self.interfaces
        if self.context:
            known = [self.context.grown(self.called, self.context.length_of(inputs))]
        return fitting(self.path, known, inputs, self.batches)

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Wall-clock seconds of each of `runs` runs; with a context, each run is a step."""
        self._fitting(inputs)
        seconds, steps = [], self._new_steps() if self.context else None
        if steps:
            steps.load(inputs)
        for _ in range(runs):
            began = time.perf_counter()
            if steps is None:
                self(**inputs)
            else:
                steps.step(inputs)
            seconds.append(time.perf_counter() - began)
            if steps and self.context:
                steps.truncate(steps.length - self.context.tokens)
        return seconds


def load(path: str | Path, threads: int = 0, code: int | None = None) -> Model:
    """Load a library with the manifest beside it; AnsorError if either is missing or damaged.

    threads: how many a call takes of those that all libraries of a process share; 0 for those of
    its preset (`build --for`), else as many as the target has cores. code: as in `Model`.
    DeviceError if it was built for another architecture than this machine's, or the processor lacks
    features that its code needs.
    """
    path = Path(path)
    manifest = read_json(path)
    check_architecture(path, manifest)
    return Model(path, manifest, threads, code)


def check_architecture(path: Path, manifest: Mapping[str, Any]) -> None:
    """DeviceError where a library was built for another architecture than this machine's."""
    if architecture(triple := manifest["target"]["triple"]) != architecture():
        raise DeviceError(
            f"{path} is built for {triple}, and this machine is {architecture()}",
            "copy it and its manifest to a machine of that kind; or let this tool run it on one "
            "that SSH reaches: ansor-deploy devices add USER@HOST",
        )
