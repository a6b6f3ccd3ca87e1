"""Each convolution and matrix multiplication of a network beside ONNX Runtime's node for it.

    python -m benchmarks.kernels NETWORK ... [--target T] [--threads N] [--effort E] [--json FILE]

NETWORK: a name of `zoo.py`, a light model of the package onnx ("light_inception_v2"; it gets random
weights), or an ONNX file. Without --effort nothing is tuned: the kernels have default schedules.

Both are timed in the network, in turns, in one process and on the same cores: our kernels one after
another with the tensors that the running library calls them with, ONNX Runtime's nodes by its
own profile. A node counts with the activation behind it where our kernel computes that, too.
With --alone each task is also measured as a candidate is while tuning, in turns with the network;
the sum of these times, by the calls of each, is printed as a share of the network's. Figures are
means of the middle half of the runs. Share: of what the cores can do at best in the target's
instructions. The last line of a table has the sum of all kernels of the network, others too, beside
the whole network as a library runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ansor_deploy.runtime.native import array, use_cores
from ansor_deploy.runtime.profile import Replay
from benchmarks import light, zoo
from benchmarks.contractions import Contraction, Node, match, of_task
from benchmarks.in_network import OnnxRuntime, Timed, block, in_turns
from benchmarks.side_by_side import compare

HEADER = (
    f"{'task':34}{'computes':34}{'calls':>6}{'ours us':>10}{'ORT us':>10}{'ratio':>7}"
    f"{'GFLOP/s':>9}{'share':>7}"
)


@dataclass(frozen=True)
class Row:
    """A task. Microseconds of one call; onnxruntime_us: None where no node was found for it."""

    task: str
    key: str
    computes: str
    calls: int
    ours_us: float
    onnxruntime_us: float | None
    gflops: float
    share: float
    nodes: tuple[str, ...]
    alone_us: float | None = None

    @property
    def ratio(self) -> float | None:
        """Our time over ONNX Runtime's, below one is faster."""
        return None if self.onnxruntime_us is None else self.ours_us / self.onnxruntime_us

    def __str__(self) -> str:
        theirs = (
            f"{self.onnxruntime_us:10.1f}{self.ratio:7.2f}" if self.ratio else f"{'-':>10}{'-':>7}"
        )
        alone = f"{self.alone_us:10.1f} alone" if self.alone_us else ""
        return (
            f"{self.task[:33]:34}{self.computes[:33]:34}{self.calls:6d}{self.ours_us:10.1f}{theirs}"
            f"{self.gflops:9.1f}{self.share:7.0%}{alone}"
        )


@dataclass(frozen=True)
class Table:
    """A network. kernels_us: the sum of all its kernels; ours_us: a run of the whole library.

    alone: the sum as a share of a run, where they were measured as candidates.
    """

    network: str
    rows: tuple[Row, ...]
    kernels_us: float
    ours_us: float
    onnxruntime_us: float
    unmatched: tuple[str, ...]
    alone: float | None = None

    @property
    def ratios(self) -> list[float]:
        """Of the tasks that have one."""
        return [row.ratio for row in self.rows if row.ratio]

    def __str__(self) -> str:
        lines = [f"## {self.network}", HEADER, *map(str, self.rows), self._sums()]
        lines += [f"no task of ours found for ONNX Runtime's {name}" for name in self.unmatched]
        return "\n".join(lines)

    def _sums(self) -> str:
        mean, worst = statistics.geometric_mean(self.ratios), max(self.ratios)
        of_ours, of_theirs = self.kernels_us / self.ours_us, self.ours_us / self.onnxruntime_us
        alone = f"alone {self.alone:.3f}, " if self.alone else ""
        return (
            f"geometric mean {mean:.3f}, worst {worst:.2f}; all kernels {self.kernels_us:.0f} us, "
            f"{alone}{of_ours:.3f} of the network's {self.ours_us:.0f} us, "
            f"{of_theirs:.3f} of ONNX Runtime's {self.onnxruntime_us:.0f} us"
        )


def main() -> None:
    """Build and time every network; print a table each, then the sums of all."""
    args = _arguments()
    target = _target(args)
    # TVM reads it when it is loaded; left alone it takes half the cores of an x86 machine.
    os.environ["TVM_NUM_THREADS"] = str(target.cores)
    from ansor_deploy._tvm import tvm_target
    from benchmarks import peak

    gflops = peak.fma_gflops(tvm_target(target), target.cores)
    print(f"{target.cores} threads, {gflops:.0f} GFLOP/s at best for {args.target}")
    tables = []
    for name in args.networks:
        tables.append(_network(name, target, gflops, args))
        print(tables[-1], flush=True)
    ratios = [ratio for table in tables for ratio in table.ratios]
    print(f"all: {len(ratios)} tasks, geometric mean {statistics.geometric_mean(ratios):.3f}, "
          f"worst {max(ratios):.2f}, {sum(ratio > 1 for ratio in ratios)} above 1")  # fmt: skip
    if args.json:
        found = {"threads": target.cores, "gflops": gflops, "networks": list(map(asdict, tables))}
        args.json.write_text(json.dumps(found, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="+", metavar="NETWORK", type=_known)
    parser.add_argument("--target", default="host")
    parser.add_argument("--threads", type=int, default=1, help="default 1")
    parser.add_argument("--effort", choices=("quick", "normal", "thorough"), help="tune before")
    parser.add_argument("--alone", action="store_true", help="measure the tasks as candidates, too")
    parser.add_argument("--registry", type=Path, help="default: registry.db in --out")
    parser.add_argument("--out", type=Path, default=Path("out/kernels"), help="work folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def _known(text: str) -> str:
    if text in zoo.NETWORKS or text in light.NAMES or Path(text).is_file():
        return text
    names = ", ".join((*zoo.NETWORKS, *light.NAMES))
    raise argparse.ArgumentTypeError(f"{text} is no file, and none of {names}")


def _target(args: argparse.Namespace) -> Any:
    from ansor_deploy.project import Project
    from ansor_deploy.target import load_target

    target = load_target(args.target, Project.find().target_path())
    width = len(os.sched_getaffinity(0))
    if args.threads > width:
        sys.exit(f"kernels.py: {args.threads} threads asked for, and {width} processors allowed")
    return replace(target, cores=args.threads)


def _network(name: str, target: Any, gflops: float, args: argparse.Namespace) -> Table:
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{Path(name).stem}.onnx"
    onnx.save(_load(name), path)
    records = _tuned(path, target, args) if args.effort else {}
    values, library, tasks = _build(path, target, records)
    theirs = OnnxRuntime(path, values, target.cores)
    compare(name, _outputs(library), theirs.outputs())
    timed = in_turns(library, theirs, target.cores)
    called = [tasks[call.symbol] for call in library.calls]
    table = _table(path.stem, called, timed, gflops)
    if args.alone:
        return _with_alone(table, called, timed, _alone(called, library, records, target))
    return table


def _outputs(library: Replay) -> list[np.ndarray]:
    """What a run gives."""
    result = library.result()
    return [array(one) for one in ([result] if hasattr(result, "shape") else result)]


def _load(name: str) -> onnx.ModelProto:
    """The network with a name for every node, by which ONNX Runtime's profile knows them."""
    from benchmarks.searching import network

    model = network(name)
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    return model


def _build(
    path: Path, target: Any, records: dict[Any, Any]
) -> tuple[dict[str, np.ndarray], Replay, dict[str, Any]]:
    """Inputs by name, the library, and the task of each kernel's symbol, if it has one."""
    from ansor_deploy.build.draws import seeded_inputs
    from ansor_deploy.codegen.model import compile_model
    from ansor_deploy.model.prepare import prepare

    prepared = prepare(path, target)
    compiled = compile_model(prepared.imported, prepared.by_function, records, target)
    library = path.with_suffix(".so")
    library.unlink(missing_ok=True)
    compiled.export(library, target)
    use_cores(target.cores)
    values = seeded_inputs(prepared.imported.inputs, seed=0, upper=2)
    by_key = {task.key.workload: task for task in prepared.tasks}
    found = {s: by_key[min(keys)] if keys else None for s, keys in compiled.tasks.items()}
    return values, Replay(library, values.values()), found


def _tuned(path: Path, target: Any, args: argparse.Namespace) -> dict[Any, Any]:
    """The best records after tuning."""
    from ansor_deploy.model.prepare import prepare
    from ansor_deploy.pipeline import tune
    from ansor_deploy.registry.store import Registry
    from ansor_deploy.report.choose import report_on_stderr
    from ansor_deploy.request import EFFORTS, Request
    from ansor_deploy.tune.ledger import Ledger

    file = args.registry or args.out / "registry.db"
    request = Request(target=target, registry=file, budget=EFFORTS[args.effort])
    with report_on_stderr(plain=True) as report:
        tune([path], request, report)
    with Registry.open(file, write=False) as registry:
        return Ledger(registry, request).best(task.key for task in prepare(path, target).tasks)


def _with_alone(
    table: Table, called: Sequence[Any], timed: Timed, alone: dict[Any, tuple[float, float]]
) -> Table:
    """The table with times as candidates; kernels that are no task's count as in the network."""
    others = [middle(times) * 1e6 / table.ours_us for times in zip(*timed.kernels, strict=True)]
    shares = {key: seconds / whole for key, (seconds, whole) in alone.items()}
    pairs = zip(called, others, strict=True)
    total = sum(shares[task.key] if task else share for task, share in pairs)
    named = {str(key): seconds * 1e6 for key, (seconds, _) in alone.items()}
    rows = tuple(replace(row, alone_us=named[row.key]) for row in table.rows)
    return replace(table, rows=rows, alone=total)


def _alone(
    tasks: Sequence[Any], library: Replay, records: dict[Any, Any], target: Any
) -> dict[Any, tuple[float, float]]:
    """Seconds of each task as a candidate, and of a run of the library just before and after."""
    from ansor_deploy.measure.measurer import Measurer
    from ansor_deploy.space.sketch import default_schedule
    from ansor_deploy.space.trace import dump

    found = {}
    with Measurer(target) as measurer:
        for task in {task.key: task for task in tasks if task}.values():
            known = records.get(task.key)
            trace = known.trace if known else dump(default_schedule(task.mod, target).trace)
            before = block(library.whole)
            (outcome,) = measurer.measure(task, [trace])
            found[task.key] = outcome.latency, middle(before + block(library.whole))
    return found


def _table(name: str, tasks: Sequence[Any], timed: Timed, gflops: float) -> Table:
    """tasks: of each call, None where its kernel is no task's."""
    seconds = [middle(times) for times in zip(*timed.kernels, strict=True)]
    nodes = {node: middle(times) for node, times in timed.nodes.items()}
    found = {task.key: of_task(task.mod, task.workload.op) for task in tasks if task}
    known = {key: one for key, one in found.items() if one is not None}
    places = [at for at, task in enumerate(tasks) if task and task.key in known]
    pairs = match([known[tasks[at].key] for at in places], timed.contractions)
    partners = {places[i]: timed.contractions[j] for i, j in pairs.items()}
    rows = []
    for key in dict.fromkeys(tasks[at].key for at in places):
        calls = [at for at in places if tasks[at].key == key]
        theirs = [partners[at] for at in calls if at in partners]
        times = [seconds[at] for at in calls]
        rows.append(_row(tasks[calls[0]], known[key], times, theirs, nodes, gflops))
    rest = {node.name for node in timed.contractions} - {one.name for one in partners.values()}
    return Table(
        network=name,
        rows=tuple(rows),
        kernels_us=sum(seconds) * 1e6,
        ours_us=middle(timed.ours) * 1e6,
        onnxruntime_us=middle(timed.theirs) * 1e6,
        unmatched=tuple(sorted(rest)),
    )


def _row(
    task: Any,
    known: Contraction,
    seconds: Sequence[float],
    found: Sequence[Node],
    nodes: dict[str, float],
    gflops: float,
) -> Row:
    ours = statistics.mean(seconds)
    names = [one.computed_by(task.name) for one in found]
    theirs = [sum(nodes[name] for name in each) * 1e6 for each in names]
    # Ours may compute padding, and the zeros between phases: the model did not ask for that.
    flops = min(known.flops, *(one.contraction.flops for one in found)) if found else known.flops
    stride = f" /{found[0].stride}" if found and found[0].stride > 1 else ""
    return Row(
        task=task.name,
        key=str(task.key),
        computes=f"{known}{stride}",
        calls=len(seconds),
        ours_us=ours * 1e6,
        onnxruntime_us=statistics.mean(theirs) if theirs else None,
        gflops=flops / ours / 1e9,
        share=flops / ours / 1e9 / gflops,
        nodes=tuple(name for each in names for name in each),
    )


def middle(times: Sequence[float]) -> float:
    """The mean of the middle half: it has more digits than a median of whole microseconds."""
    ordered = sorted(times)
    cut = len(ordered) // 4
    return statistics.mean(ordered[cut : len(ordered) - cut])


if __name__ == "__main__":
    main()
