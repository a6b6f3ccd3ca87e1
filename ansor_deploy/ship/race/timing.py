"""Time a finished library: alone, in races with other engines, and kernel by kernel."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ...devices.machine import runs_here
from ...errors import UsageError
from ...system.digest import file_sha256
from ...target import built_for
from ..library import opened
from ..manifest import read_manifest
from ..verify.draws import inputs_that_run
from .beside import race_engine, race_libraries
from .changes import Changes, changes
from .node_groups import Group, groups

if TYPE_CHECKING:
    import onnx

    from ...devices.remote_model import RemoteModel
    from ...runtime.interface import Interface
    from ...runtime.model import Model
    from ...runtime.profile import Profile
    from ...views import Report
    from ..manifest import Race
    from ..verify.verify import Library


@dataclass(frozen=True)
class Timing:
    """The times of a library in a shape. seconds: of each run. beside: races with other engines."""

    interface: Interface
    seconds: list[float]
    beside: list[Race]


MOST_RUNS = 100_000
CALL_SECONDS = 0.5  # runs between two checks of the clock take so long
ENGINE_SHARE = 4.0  # time for the race with an engine, relative to the time for runs alone


def bench(
    artifact: Path,
    seconds: float,
    threads: int,
    devices: Sequence[str] | None,
    report: Report,
    engines: Sequence[str] = (),
    model: Path | None = None,
) -> list[Timing]:
    """Run times of an artifact on seeded inputs, in each of its shapes.

    seconds: for everything, after loading; but at least one run is made in each shape, and one turn
    with each engine. threads: those of a run; 0 for as many as the artifact was built for. devices:
    the first that can be used runs it; () for this machine, None for its target's. engines: those
    to race with, on this machine. model: the file that it was built from; None where that lies in
    this folder or beside the artifact.
    """
    with opened(artifact, devices, report, threads) as library:
        proto = _model_of(artifact, model) if engines else None
        end = time.monotonic() + seconds
        shapes = range(len(library.interfaces))
        ends = _ends(end, [1.0, *[ENGINE_SHARE] * len(engines)] * len(shapes))
        timings = []
        for shape in shapes:
            times = _run_times(library, library.interfaces[shape], next(ends))
            raced = [_race(library, shape, engine, proto, next(ends)) for engine in engines]
            beside = [race.at(median(times) * 1e3) for race in raced]
            timings.append(Timing(library.interfaces[shape], times, beside))
        return timings


def split_of(artifact: Path, threads: int, streams: int) -> tuple[int, int]:
    """Threads of a run, and copies side by side, from the user's wishes and an artifact's preset.

    threads: those that all copies share; 0 for as many as the target has cores. streams: 0 for one.
    Where no threads are given, an artifact's preset decides: both numbers, or the threads of a
    single copy.
    """
    manifest = read_manifest(artifact)
    preset, copies = manifest.preset, streams or 1
    if preset and not threads and streams < 2:
        return preset.threads, streams or preset.streams
    return max(1, (threads or manifest.target.cores) // copies), copies


def bench_streams(artifact: Path, seconds: float, threads: int, streams: int) -> list[Timing]:
    """Run times of `streams` copies of an artifact side by side on this machine, for each shape.

    seconds: for all shapes, without the time to start the copies. threads: those of a run.
    """
    from ...runtime.model import load
    from .streams import open_streams

    library = load(artifact, threads)
    share = seconds / len(library.interfaces)
    timings = []
    for at, one in enumerate(library.interfaces):
        with open_streams(library, [at], streams) as side:
            side.prepare(streams, threads)
            times = side.times(streams, threads, time.monotonic() + share)
        timings.append(Timing(one, [*chain.from_iterable(times)], []))
    return timings


def _ends(end: float, parts: Sequence[float]) -> Iterator[float]:
    """When each part has to end, by `time.monotonic`; each part starts when its end is asked for.

    parts: the relative lengths. The time that is left is shared out anew for each part.
    """
    for at, part in enumerate(parts):
        now = time.monotonic()
        yield now + max(0.0, end - now) * part / sum(parts[at:])


def _race(library: Any, shape: int, engine: str, proto: Any, until: float) -> Race:
    from ...model.onnx.bind import bind_shapes

    shaped = bind_shapes(proto, library.interfaces[shape].input_shapes)
    return race_engine(library, engine, shaped, shape, 0, until)


def _model_of(artifact: Path, given: Path | None) -> onnx.ModelProto:
    """The model that a library was built from.

    given: its file; None where that lies in this folder or beside the artifact. UsageError where
    the file is missing, or is another one.
    """
    from ...model.batches import values_of
    from ...model.fixed_inputs import with_values
    from ...model.onnx.file import load

    known = read_manifest(artifact).model
    places = [given] if given else [Path(known.name), artifact.with_name(known.name)]
    file = next((path for path in places if path.is_file()), None)
    if file is None:
        hint = f"name it: ansor-deploy bench {artifact} {known.name} --beside onnxruntime"
        raise UsageError(f"the model {known.name} is not here", hint)
    if file_sha256(file) != known.sha256:
        hint = f"build it again: ansor-deploy build {file} -o {artifact}"
        raise UsageError(f"{artifact} was not built from {file} as it is now", hint)
    return with_values(load(file).proto, values_of(known.shapes[0]))


def compare(before: Path, after: Path, seconds: float, threads: int) -> Changes:
    """The changes from one library to another, which run on this machine in turns if they can.

    Two equal libraries are not timed.

    seconds: for everything: half of it for the turns, and half for the profiles. UsageError where
    the libraries take different inputs.
    """
    from ...runtime.model import load

    end = time.monotonic() + seconds
    manifests = read_manifest(before), read_manifest(after)
    if manifests[0].inputs != manifests[1].inputs:
        hint = "compare libraries of one model, or of its versions"
        raise UsageError(f"{before} and {after} take other inputs", hint)
    if file_sha256(before) == file_sha256(after):  # a race might find one faster by chance
        return replace(changes(*manifests, None), same=True)
    if not all(runs_here(manifest.target.machine) for manifest in manifests):
        return changes(*manifests, None)
    ends = _ends(end, [4.0, 1.0, 1.0, 1.0, 1.0])
    new = load(after, threads)
    old = load(before, new.threads)
    race = race_libraries(new, old, str(before), next(ends))
    inputs = inputs_that_run(new, new.interfaces[0], seed=0)
    times = [_task_times(library, inputs, next(ends)) for library in (old, new, old, new)]
    return changes(*manifests, race, (_least(times[::2]), _least(times[1::2])))


def _task_times(model: Model, inputs: dict[str, Any], until: float) -> dict[str, float]:
    """Milliseconds of all runs of each task in a run, by its key."""
    from ...runtime.profile import profile

    times: dict[str, float] = defaultdict(float)
    for kernel in profile(model, inputs, max(0.0, until - time.monotonic())).kernels:
        if kernel.task:
            times[kernel.task["key"]] += kernel.seconds * 1e3
    return times


def _least(times: Sequence[dict[str, float]]) -> dict[str, float]:
    """The least time of each task, since disturbances only make runs slower."""
    return {key: min(one[key] for one in times) for key in times[0]}


def profile(
    library: Model | RemoteModel, seconds: float, shapes: Mapping[str, Sequence[int]] | None = None
) -> list[tuple[Interface, Profile]]:
    """The profile of a library on seeded inputs, where it runs, for each of its shapes.

    For a range of lengths only the longest is profiled, unless others are asked for. Of these, the
    FLOPs and bytes of kernels are not known.

    shapes: those of inputs to profile instead; UsageError where the library does not take them.
    """
    from ...devices.remote_model import RemoteModel
    from ...runtime.lengths import Lengths
    from ...runtime.profile import profile, without_work

    ranged, known = isinstance(library.batches, Lengths), library.interfaces
    each = [_shaped(library, shapes)] if shapes else known[: 1 if ranged else None]
    profiles = []
    for interface in each:
        given = inputs_that_run(library, interface, seed=0), seconds / len(each)
        if isinstance(library, RemoteModel):
            found = library.profile(*given)
        else:
            found = profile(library, *given)
        shorter = ranged and interface.input_shapes != known[0].input_shapes
        profiles.append((interface, without_work(found) if shorter else found))
    return profiles


def _shaped(library: Model | RemoteModel, shapes: Mapping[str, Sequence[int]]) -> Interface:
    """The interface of a library where some inputs have these shapes, the others their largest."""
    import numpy as np

    from ...runtime.fit import fitting
    from ...runtime.tensors import numpy_dtype

    kinds = {info.name: numpy_dtype(info.dtype) for info in library.inputs}
    wanted = library.interfaces[0].input_shapes | {**shapes}
    arrays = {  # of which only shapes and types are looked at
        name: np.broadcast_to(np.zeros((), kinds.get(name, np.float32)), shape)
        for name, shape in wanted.items()
    }
    return fitting(library.path, library.interfaces, arrays, library.batches)


def profile_beside(
    library: Library,
    model: Path | None,
    profiles: Sequence[tuple[Interface, Profile]],
    threads: int,
    seconds: float,
) -> list[tuple[str, list[Group]]]:
    """For each profile of a library here, ONNX Runtime's name, and its nodes beside our kernels.

    model, threads: as in `bench`.
    """
    from ...model.onnx.bind import bind_shapes
    from .peers import profile_parts

    proto = _model_of(library.path, model)
    width = threads or built_for(library.manifest).cores
    compared = []
    for interface, profile in profiles:
        inputs = inputs_that_run(library, interface, seed=0)
        shaped = bind_shapes(proto, interface.input_shapes)
        name, parts = profile_parts(shaped, width, inputs, seconds / len(profiles))
        compared.append((name, groups(profile, parts)))
    return compared


def _run_times(library: Library, interface: Interface, until: float) -> list[float]:
    """Seconds of each run until then, at least of one; the search for inputs ran it before."""
    inputs = inputs_that_run(library, interface, seed=0)
    times = library.times(inputs, 1)
    while (left := until - time.monotonic()) > times[-1] and len(times) < MOST_RUNS:
        runs = int(min(left, CALL_SECONDS) / max(times[-1], 1e-6))
        times += library.times(inputs, max(1, min(runs, MOST_RUNS - len(times))))
    return times
