"""Recurrent layers beside ONNX Runtime, and the time of a step beside its limit.

Each layer is built untuned, as by a user, and called in turns with ONNX Runtime, for each number of
threads. LAYER: a cell, its units, and variants: "gru:256", "lstm:128:bidirectional",
"gru:256:twice" for two layers, "gru:128:first" for a GRU that applies the reset before the product,
which is ONNX's default.

The time of a step is that of the recurrent kernels on one thread, from `ansor-deploy profile`,
without the product of all inputs. Its limit is the time to read the weights from the cache that can
hold them, or the time of the arithmetic, whichever is longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import onnx

from benchmarks.networks.onnx_net import Net
from benchmarks.networks.side_by_side import load, race
from benchmarks.options import Listed, cores, json_option, number, save, target, untuned

if TYPE_CHECKING:
    from ansor_deploy.target import Target

GATES = {"gru": 3, "lstm": 4, "rnn": 1}
KINDS = ("bidirectional", "twice", "first")
SIZES = (64, 128, 256, 512)
LAYERS = [f"{cell}:{size}" for cell in GATES for size in SIZES]
LAYERS += [f"{cell}:{size}:{kind}" for cell in ("gru", "lstm") for size in (128, 256)
           for kind in KINDS[:2]]  # fmt: skip
LAYERS += [f"gru:{size}:first" for size in SIZES]
SECONDS = 1.0  # how long a profile runs


@dataclass(frozen=True)
class Layer:
    """A benchmarked layer. kinds: some of `KINDS`."""

    cell: str
    units: int
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, name: str) -> Layer:
        """A layer from its name; BadParameter where that is not valid."""
        cell, units, *kinds = name.split(":")
        if cell not in GATES or not units.isdigit() or set(kinds) - set(KINDS):
            raise click.BadParameter(f"{name} is no layer")
        return cls(cell, int(units), tuple(kinds))

    @property
    def directions(self) -> int:
        """The number of directions in which it reads its inputs."""
        return 2 if "bidirectional" in self.kinds else 1

    @property
    def recurrences(self) -> int:
        """The number of recurrences: one for each direction of each layer."""
        return self.directions * (2 if "twice" in self.kinds else 1)

    def model(self, steps: int) -> onnx.ModelProto:
        """The layers as ONNX exporters write them, for one sequence of so many steps."""
        net = Net(self.cell, 0)
        x, width = net.input("x", (steps, 1, self.units)), self.units
        for _ in range(self.recurrences // self.directions):
            x, width = self._layer(net, x, width), self.units * self.directions
        return net.model(x, "y", (steps, 1, width))

    def _layer(self, net: Net, x: str, width: int) -> str:
        rows, deep = GATES[self.cell] * self.units, self.units**-0.5
        given = [net.random((self.directions, rows, size), deep) for size in (width, self.units)]
        given.append(net.random((self.directions, 2 * rows), deep))
        words: dict[str, Any] = {"hidden_size": self.units}
        words["direction"] = "bidirectional" if self.directions == 2 else "forward"
        if self.cell == "gru":
            words["linear_before_reset"] = int("first" not in self.kinds)
        y = net.node(self.cell.upper(), x, *given, **words)
        turned = net.node("Transpose", y, perm=(0, 2, 1, 3))
        return net.node("Reshape", turned, net.constant([0, 0, -1], "int64"))

    def limit(self, on: Target) -> float:
        """The least seconds that a step of one recurrence can take on one core."""
        from ansor_deploy.measure.peaks import bandwidths, float_gflops

        weights = GATES[self.cell] * self.units**2
        rate = next(rate for size, rate in bandwidths(on, 1) if 4 * weights <= size)
        return max(4 * weights / rate, 2 * weights / float_gflops(on) / 1e9)


@click.command
@click.argument("layers", nargs=-1)
@number("--steps", 50)
@click.option("--threads", type=Listed(int), default=sorted({1, cores()}))
@click.option("--out", type=Path, default=Path("out/recurrent"), help="Work folder.")
@json_option
def command(
    layers: tuple[str, ...], steps: int, threads: list[int], out: Path, file: Path | None
) -> None:
    """Build and time each layer; print a line for each."""
    chosen = {name: Layer.of(name) for name in layers or LAYERS}
    out.mkdir(parents=True, exist_ok=True)
    times = [f"{'us':>9}{'of ORT':>8}" for _ in threads]
    print(
        f"{'layer, and on threads ' + str(threads):34}{''.join(times)}{'us a step':>11}{'limit':>7}"
    )
    found = {}
    for name, layer in chosen.items():
        found[name] = row = _row(name, layer, steps, threads, out)
        raced = [f"{one['us']:9.1f}{one['ratio']:8.2f}" for one in row["races"]]
        share = row["limit_us"] / row["step_us"]
        print(f"{name:34}{''.join(raced)}{row['step_us']:11.2f}{share:7.0%}", flush=True)
    save(found, file)


def _row(name: str, layer: Layer, steps: int, threads: list[int], out: Path) -> dict[str, Any]:
    path = out / f"{name.replace(':', '_')}.onnx"
    onnx.save(layer.model(steps), path)
    library = untuned(path)
    races = [race(load(path, [library], ["onnxruntime"], one), one) for one in threads]
    return {
        "races": [
            {
                "threads": one.threads,
                "us": one.milliseconds(library.stem) * 1e3,
                "ratio": one.ratio(library.stem, "onnxruntime")[1],
            }
            for one in races
        ],
        "step_us": _recurring(layer.cell, library) / steps / layer.recurrences * 1e6,
        "limit_us": layer.limit(target("host")) * 1e6,
    }


def _recurring(cell: str, library: Path) -> float:
    """The seconds of all recurrent kernels in a run on one thread."""
    from ansor_deploy.runtime.model import load as opened
    from ansor_deploy.runtime.profile import profile
    from benchmarks.networks.engines import inputs

    found = profile(opened(library, 1), inputs(library), SECONDS)
    return sum(one.seconds for one in found.kernels if one.op == cell)
