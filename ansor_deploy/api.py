"""The interface for Python programs: build and tune models, run libraries, query registries.

>>> from ansor_deploy import api
>>> built = api.build("resnet18.onnx", "out/resnet18.so", trials=200)
>>> api.load(built.artifact)(data=image)["prob"]

Each function does the same as the command with its name, with the same settings of a project. It
raises `ansor_deploy.errors.AnsorError` where the command would fail. A `Report` can be given to
follow what happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from click import BadParameter

from . import pipeline
from .cli.quantising import quantised
from .cli.requests import make_request
from .cli.shapes import parse_shape
from .errors import UsageError, did_you_mean
from .registry.store import Registry
from .request import EFFORTS, Outputs, Request
from .runtime import Model, load
from .views import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .ship.build_result import BuildResult
    from .tune.plan import Plan
    from .tune.result import TuneResult

__all__ = ["Model", "Options", "Registry", "Report", "build", "load", "plan", "tune"]

File = str | PathLike[str]
Shape = str | Sequence[int]  # "1,3,320..640:32", or (1, 3, 224, 224)


class Options(TypedDict, total=False):
    """Options of all functions, the same as those of the commands, which docs/cli.md describes.

    time: seconds of tuning. input_shapes: shapes of inputs by their names; several for an input if
    the library should take several. devices: () for none; by default the devices that are
    registered for the target. calibrate: samples, for the precision "int8". context: rows of a
    decoder's caches.
    """

    target: str
    registry: File
    input_shapes: Mapping[str, Shape | Sequence[Shape]]
    rules: Sequence[File]
    effort: Literal["quick", "normal", "thorough"]
    trials: int
    time: float
    min_impact: float
    seed: int
    devices: Sequence[str]
    lock: File
    precision: Literal["default", "strict", "int8"]
    calibrate: File
    keep_float: Sequence[str]
    context: int
    reuse: Literal["exact", "near"]
    retune: Sequence[str]


def build(
    model: File,
    output: File | None = None,
    *,
    frozen: bool = False,
    require_hits: bool = False,
    read_only: bool = False,
    verify: bool = True,
    beside: Literal["", "onnxruntime", "openvino"] = "",
    header: bool = False,
    preset: Literal["", "latency", "throughput"] = "",
    report: Report | None = None,
    **options: Unpack[Options],
) -> BuildResult:
    """Tune, compile, verify and write a model's library, with its manifest beside it.

    output: the library to write; by default the model's name with .so, in the working directory.
    frozen: use only the lock's records. require_hits: raise MissingRecordError where a task that
    matters has no record. read_only: leave the registry unchanged. With either of these, nothing is
    tuned. verify: compare the library with ONNX Runtime. beside: the engine that it is timed
    beside; "" for none. header: write a C header too. preset: what the library is used for, which
    decides threads and streams.
    """
    library = Path(output) if output else Path(f"{Path(model).stem}.so")
    words = {"frozen": frozen, "verify": verify, "beside": beside, "preset": preset}
    idle = {"require_hits": require_hits, "read_only": read_only}
    request = _request(options, **words, **idle, several=True)
    return pipeline.build(Path(model), Outputs(library, header), request, report or Report())


def plan(
    models: File | Sequence[File], *, report: Report | None = None, **options: Unpack[Options]
) -> Plan:
    """The plan of what `build` or `tune` of these models would reuse, tune or skip.

    It writes nothing.
    """
    return pipeline.plan(list(_paths(models)), _request(options), report or Report())


def tune(
    models: File | Sequence[File], *, report: Report | None = None, **options: Unpack[Options]
) -> TuneResult:
    """Tune these models into the registry, without building them."""
    return pipeline.tune(list(_paths(models)), _request(options), report or Report())


def _paths(models: File | Sequence[File]) -> Iterator[Path]:
    several = [models] if isinstance(models, (str, PathLike)) else models
    return map(Path, several)


def _request(options: Options, **others: Any) -> Request:
    """The request with these options, each converted to the command line's form."""
    if unknown := next((name for name in options if name not in Options.__annotations__), ""):
        raise UsageError(
            f"there is no option {unknown!r}", did_you_mean(unknown, Options.__annotations__)
        )
    given: dict[str, Any] = {**options, **others}
    if (effort := given.get("effort", "normal")) not in EFFORTS:
        raise UsageError(f"there is no effort {effort!r}", did_you_mean(str(effort), EFFORTS))
    for name in ("registry", "lock"):
        if given.get(name) is not None:
            given[name] = Path(given[name])
    for name in ("rules", "devices", "retune"):
        if name in given:
            given[name] = tuple(map(Path, given[name]) if name == "rules" else given[name])
    if given.get("devices") == ():
        given["no_device"] = True
    shapes = given.pop("input_shapes", {})
    samples = given.pop("calibrate", None)
    words = given.pop("precision", "default"), samples and Path(samples)
    given |= quantised(*words, given.pop("keep_float", ()))
    return make_request(
        input_shapes=[one for name in shapes for one in _shapes(name, shapes[name])],
        seconds=given.pop("time", None),
        **given,
    )


def _shapes(name: str, given: Any) -> Iterator[Any]:
    """An input's shapes, each with its name; UsageError where one is not a shape."""
    one = isinstance(given, str) or all(isinstance(size, int) for size in given)
    for shape in [given] if one else given:
        text = shape if isinstance(shape, str) else ",".join(map(str, shape))
        try:
            yield parse_shape(f"{name}={text}")
        except BadParameter as error:
            raise UsageError(error.message, "a shape is (1, 3, 224, 224), or a text") from error
