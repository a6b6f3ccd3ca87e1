"""Run ONNX Runtime's quantiser in a process of its own, since it imports and prints a lot."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
from msgspec import to_builtins

from ..errors import AnsorError, ModelError, blaming
from ..model.onnx.class_labels import keep_labels
from ..model.onnx.file import load
from ..system.child import ask, describe
from ..system.machine_fault import raise_if_fault
from .distances import Compared, Progress
from .graph import inputs_of, ready
from .samples import read_samples

if TYPE_CHECKING:
    from .graph import Ready
    from .samples import Sample


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The facts from `quantise`, or its error in a form that the parent can raise again."""
    try:
        return {"found": quantise(asked, lambda *step: ask(step))}
    except AnsorError as error:
        file = str(error.file) if error.file else None
        return {"refused": [type(error).__name__, error.text, error.hint, file]}


def quantise(asked: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Write the quantised model that is asked for; returns the facts about it.

    progress: called with a name, what is done, and the total, such as ("layers", 3, 12).
    """
    model, samples = Path(asked["model"]), Path(asked["samples"])
    source = load(model)
    with blaming(model):
        shapes = {name: tuple(shape) for name, shape in asked["shapes"].items()}
        inputs = inputs_of(source.proto, shapes)
    taken = read_samples(samples, inputs)
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder, blaming(model):
        with _named("ONNX Runtime cannot prepare it"):
            prepared = ready(source.proto, Path(folder))
        path = _quantised(prepared, taken, asked["keep_float"], Path(folder), progress)
        made = onnx.load(path)
        if not any(node.op_type == "QuantizeLinear" for node in made.graph.node):
            raise ModelError("it has no layer that can be quantised", "build it as it is")
        with _named("the quantised model cannot be compared with it"):
            compared = Compared(prepared, made)
            number, distances = compared.distances(taken)
            layers = compared.layers(taken, progress)
        keep_labels(made, source.labels)
        Path(asked["output"]).write_bytes(made.SerializeToString(deterministic=True))
    return {
        "external": [str(one.relative_to(model.parent)) for one in source.external],
        "digest": source.digest,
        "float_bytes": source.proto.ByteSize(),
        "samples": len(taken),
        "compared": number,
        "outputs": to_builtins(distances),
        "layers": to_builtins(layers),
    }


def _quantised(
    prepared: Ready,
    samples: Sequence[Sample],
    keep_float: Sequence[str],
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> Path:
    """The file of the quantised model: conversions around float operators, weights per channel.

    Activations are unsigned and weights signed, as processors multiply them.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    made = folder / "made.onnx"
    left_out = prepared.left_out(keep_float)
    with _named("ONNX Runtime cannot quantise it"):
        quantize_static(
            str(prepared.path),
            str(made),
            _Reader(samples, progress),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=prepared.kinds([*QDQRegistry, *QLinearOpsRegistry]),
            nodes_to_exclude=left_out,
        )
    return made


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Raise any unexpected error of a step as a ModelError. what: what the step cannot do."""
    try:
        yield
    except AnsorError:
        raise
    except Exception as error:
        raise_if_fault(error)
        hint = "correct the model or the samples; --keep-float LAYER leaves a layer as it is"
        raise ModelError(f"{what}: {describe(error)}", hint) from error


class _Reader:
    """Samples for the quantiser, which asks for the next one as often as it likes."""

    def __init__(self, samples: Sequence[Sample], progress: Progress) -> None:
        self._samples, self._progress, self._at = samples, progress, 0

    def get_next(self) -> Sample | None:
        """The next sample; None after the last one."""
        self._progress("samples", self._at, len(self._samples))
        self._at += 1
        return self._samples[self._at - 1] if self._at <= len(self._samples) else None
