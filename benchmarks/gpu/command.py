"""Networks on a GPU beside PyTorch: a folder to take to the GPU's machine, and the result of it.

    python -m benchmarks gpu --make out/gpu                  here; 64 MiB at most
    python3 run.py result.json                               there, in the folder, within 9 minutes
    python -m benchmarks gpu --read result.json              the table

The folder has libraries of both batches for each target, and ONNX Runtime's outputs on seeded
inputs. With --trials it also has packs of candidates; --into brings their results back to where
`tune --pack` takes them in. Weights repeat some thousand seeded numbers, so that they compress
well.
"""

from __future__ import annotations

import json
import lzma
import math
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from onnx import numpy_helper

from ansor_deploy import api
from ansor_deploy.errors import UsageError
from ansor_deploy.ship.package.package import package
from ansor_deploy.views import Report
from benchmarks.gpu import there
from benchmarks.networks import filled, zoo
from benchmarks.options import Listed, number, progress, python

MOST_BYTES = 64 << 20  # of the folder
# Weights repeat a pool of numbers; its size is prime, so that no tensor's extent is a multiple of
# it.
_POOL = 4093
_MANY = 4096  # elements from which on a weight repeats them
_PARTS = ("libraries", "expected", "packs")
NETWORKS = ["resnet50", "mobilenet_v2", "dcgan", "resnet3d18", "bert_small", "vit_tiny"]


@click.command
@click.option("--make", "folder", type=Path, help="Write the folder.")
@click.option("--networks", type=Listed(), default=NETWORKS, help="Names of the zoo, ONNX files.")
@click.option("--targets", type=Listed(), default=["h100", "v100"])
@click.option("--batches", type=Listed(int), default=[1, 16])
@number("--trials", 0, "Candidates of each network in its pack.")
@click.option("--read", "result", type=Path, help="Print what came back.")
@click.option("--into", type=Path, help="The folder that was made, for the results of packs.")
def command(
    folder: Path | None,
    networks: list[str],
    targets: list[str],
    batches: list[int],
    trials: int,
    result: Path | None,
    into: Path | None,
) -> None:
    """Make the folder, or print the table of a result."""
    if folder:
        make(folder, networks, targets, batches, trials)
    if result:
        found = json.loads(result.read_text(encoding="utf-8"))
        print("\n".join(table(found)))
        if into:
            bring_back(found, into)


def make(
    folder: Path,
    networks: Sequence[str],
    targets: Sequence[str],
    batches: Sequence[int],
    trials: int,
) -> None:
    """Write the folder; UsageError where it is larger than may be carried."""
    work = folder.with_name(f"{folder.name}.work")
    for path in (work, *(folder / part for part in _PARTS)):
        path.mkdir(parents=True, exist_ok=True)
    items = []
    for one in networks:
        model = _model(one, work)
        _expect(model, batches, folder / "expected")
        for target in targets:
            name = f"{model.stem}-{target}"
            progress(f"build {name}")
            _library(model, name, target, batches, work, folder)
            items += [f"{kind} {name} {batch}" for kind in ("right", "race") for batch in batches]
            if trials:
                _pack(model, name, target, trials, work, folder / "packs" / name)
                items.append(f"pack {name}")
    items.sort(key=lambda item: ("right", "race", "pack").index(item.partition(" ")[0]))
    (folder / there.PLAN).write_text(json.dumps({"items": items}), encoding="utf-8")
    here = Path(there.__file__)
    shutil.copyfile(here, folder / "run.py")
    shutil.copyfile(here.with_name("torch_peers.py"), folder / "torch_peers.py")
    _check_size(folder)


def _model(network: str, work: Path) -> Path:
    """Write the network, with repeated weights, to a file; return its path."""
    path = work / f"{Path(network).stem}.onnx"
    proto = filled.load(Path(network)) if Path(network).is_file() else zoo.network(network)
    onnx.save(with_repeated_weights(proto), path)
    return path


def with_repeated_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A model whose large weights repeat the same seeded numbers, with their own mean and spread.

    The scales of a batch norm become a single number, so that weights into which they are folded
    still repeat.
    """
    pool = np.random.default_rng(0).standard_normal(_POOL).astype(np.float32)
    norms = [node.input for node in proto.graph.node if node.op_type == "BatchNormalization"]
    scales = {name for names in norms for name in (names[1], names[4])}
    for one in proto.graph.initializer:
        values = numpy_helper.to_array(one)
        if values.dtype == np.float32 and (values.size >= _MANY or one.name in scales):
            made = np.full(values.shape, values.mean(), np.float32)
            if one.name not in scales:
                made += np.resize(pool, values.shape) * values.std()
            one.CopyFrom(numpy_helper.from_array(made, one.name))
    return proto


def _expect(model: Path, batches: Sequence[int], folder: Path) -> None:
    """Write ONNX Runtime's outputs, with each sample of a batch computed alone."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    for batch in batches:
        kinds = {one.name: ((batch, *one.shape[1:]), _dtype(one)) for one in session.get_inputs()}
        values = there.inputs(kinds)
        parts = [
            session.run(None, {name: some[at : at + 1] for name, some in values.items()})
            for at in range(batch)
        ]
        outputs = map(np.concatenate, zip(*parts, strict=True))
        found: dict[str, Any] = dict(zip(names, outputs, strict=True))
        np.savez_compressed(folder / f"{model.stem}_{batch}.npz", **found)


def _dtype(info: Any) -> str:
    return "float32" if info.type == "tensor(float)" else "int64"


def _library(
    model: Path, name: str, target: str, batches: Sequence[int], work: Path, folder: Path
) -> None:
    library = work / f"{name}.so"
    api.build(
        model,
        library,
        target=target,
        trials=0,
        verify=False,  # the outputs are compared on the GPU's machine
        devices=(),
        registry=work / "registry.db",
        input_shapes=_shapes(model, batches),
    )
    if not (folder / "ansor_deploy_runtime").exists():
        _runtime(library, work, folder)
    kept = folder / "libraries" / library.name
    kept.with_suffix(".so.xz").write_bytes(lzma.compress(library.read_bytes(), preset=1))
    shutil.copyfile(library.with_suffix(".json"), kept.with_suffix(".json"))


def _shapes(model: Path, batches: Sequence[int]) -> dict[str, list[tuple[int, ...]]]:
    """For each input, the shapes that a library is built for."""
    graph = onnx.load(model, load_external_data=False).graph
    constants = {one.name for one in graph.initializer}
    given = [one for one in graph.input if one.name not in constants]
    extents = {one.name: [d.dim_value for d in one.type.tensor_type.shape.dim] for one in given}
    return {name: [(batch, *rest) for batch in batches] for name, (_, *rest) in extents.items()}


def _runtime(library: Path, work: Path, folder: Path) -> None:
    """Put the Python package that loads libraries into the folder, as users get it."""
    archive = work / "runtime.tar.gz"
    package(library, archive, "python", Report())
    shutil.unpack_archive(archive, work, filter="data")
    shutil.copytree(work / "runtime" / "ansor_deploy_runtime", folder / "ansor_deploy_runtime")


def _pack(model: Path, name: str, target: str, trials: int, work: Path, folder: Path) -> None:
    words = ["--target", target, "--registry", str(work / f"{name}.db"), "--trials", str(trials)]
    python("-m", "ansor_deploy", "tune", str(model), "--pack", str(folder), "--quiet", *words)


def _check_size(folder: Path) -> None:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    progress(f"{folder}: {size / 2**20:.1f} MiB")
    if size > MOST_BYTES:
        raise UsageError(f"{folder} is larger than 64 MiB", "take fewer networks, or trials")


def table(found: dict[str, Any]) -> list[str]:
    """Errors, and medians over turns in milliseconds, from host memory to host memory.

    The ratio is to PyTorch's CUDA graph; below 1 the library is faster.
    """
    lines = [
        f"{'library':32} {'batch':>5} {'off by':>8} {'ours':>9} {'eager':>9} {'graph':>9} ratio"
    ]
    ratios = []
    for name in [one for one in found if one.startswith("right ")]:
        _, library, batch = name.split()
        times = dict(there.sides(found.get(f"race {library} {batch}", {})))
        ms = {side: statistics.median(some) * 1e3 for side, some in times.items()}
        cells = " ".join(f"{ms.get(side, math.nan):9.3f}" for side in ("ours", "eager", "graph"))
        ratio = ms.get("ours", math.nan) / ms.get("graph", math.nan)
        ratios += [] if math.isnan(ratio) else [ratio]
        off = found[name].get("off", math.nan)
        lines.append(f"{library:32} {batch:>5} {off:8.1e} {cells} {ratio:5.2f}")
    if ratios:
        lines.append(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")
    unwell = {name: one for name, one in found.items() if one.get("ended") != "well"}
    lines += [
        f"{name}: {one.get('ended', 'killed')}: {one.get('message', '')}"
        for name, one in unwell.items()
    ]
    return lines


def bring_back(found: dict[str, Any], folder: Path) -> None:
    """Write the results of packs into the packs' folders."""
    for name, one in found.items():
        if "results" in one:
            path = folder / "packs" / name.split()[1] / "results.json"
            path.write_text(json.dumps(one["results"]), encoding="utf-8")
