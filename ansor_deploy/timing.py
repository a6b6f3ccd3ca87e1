"""How fast a finished library is: by itself, beside other engines, and kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .devices.library import opened
from .errors import UsageError
from .system.digest import file_sha256

if TYPE_CHECKING:
    from .build.beside import Beside
    from .build.verify import Library
    from .report import Report
    from .runtime.model import Interface
    from .runtime.profile import Profile


def bench(
    artifact: Path, seconds: float, threads: int, devices: Sequence[str] | None, report: Report
) -> list[tuple[Interface, list[float]]]:
    """Run times of an artifact on seeded inputs, in each of its shapes: seconds, one entry a run.

    threads: that a run takes; 0 for as many as the artifact was built for.
    devices: the first that can be used runs it; () for this machine, None for its target's.
    """
    with opened(artifact, devices, report, threads) as library:
        share = seconds / len(library.interfaces)
        return [(one, _run_times(library, one, share)) for one in library.interfaces]


def beside(
    artifact: Path, model: Path | None, engines: Sequence[str], seconds: float, threads: int
) -> list[tuple[Interface, Beside]]:
    """An artifact on this machine beside other engines, in each of its shapes.

    model: it was built from; None where that lies in this folder or beside the artifact. seconds:
    for each engine. threads: as of `bench`, of both. UsageError where the model is another one.
    """
    from .build.beside import race
    from .build.draws import inputs_that_run
    from .build.peers import open_peer
    from .model.bind import bind_shapes
    from .model.onnx_file import load as read
    from .runtime.model import load

    library = load(artifact, threads)
    proto = read(_model_of(artifact, library.manifest["model"], model)).proto
    share = seconds / len(library.interfaces)
    found = []
    for one in library.interfaces:
        shapes = {info.name: info.shape for info in one.inputs}
        shaped = bind_shapes(proto, shapes).SerializeToString()
        feeds = [inputs_that_run(library, one, seed=0)]
        for engine in engines:
            peer = open_peer(engine, shaped, library.threads)
            found.append((one, race(library, peer, feeds, share)))
    return found


def _model_of(artifact: Path, known: dict[str, Any], given: Path | None) -> Path:
    """The file that a library was built from. known: what its manifest says of it."""
    places = [given] if given else [Path(known["name"]), artifact.with_name(known["name"])]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        hint = f"name it: ansor-deploy bench {artifact} {known['name']} --beside onnxruntime"
        raise UsageError(f"the model {known['name']} is not here", hint)
    if file_sha256(found) != known["sha256"]:
        hint = f"build it anew: ansor-deploy build {found} -o {artifact}"
        raise UsageError(f"{artifact} was not built from {found} as it is now", hint)
    return found


def profile(artifact: Path, threads: int, seconds: float) -> list[tuple[Interface, Profile]]:
    """Times of an artifact's kernels in place, on this machine and seeded inputs, a shape each.

    threads: as of `bench`.
    """
    from .build.draws import inputs_that_run
    from .runtime.model import load
    from .runtime.profile import profile

    model = load(artifact, threads)
    share = seconds / len(model.interfaces)
    feeds = {one: inputs_that_run(model, one, seed=0) for one in model.interfaces}
    return [(one, profile(model, inputs, share)) for one, inputs in feeds.items()]


def _run_times(library: Library, interface: Interface, seconds: float) -> list[float]:
    from .build.draws import inputs_that_run

    inputs = inputs_that_run(library, interface, seed=0)
    (warm,) = library.times(inputs, 1)
    runs = max(3, int(seconds / max(warm, 1e-6)))
    return library.times(inputs, min(runs, 100_000))
