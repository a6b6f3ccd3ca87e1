"""The benchmarks as one command line; each is imported when its name is asked for."""

from __future__ import annotations

from importlib import import_module

import click

# For each name: the module below benchmarks/, and the line in the list of benchmarks.
NAMES = {
    "networks": ("networks.whole", "Whole networks beside ONNX Runtime and OpenVINO."),
    "int8": ("networks.int8", "Quantised networks beside ONNX Runtime and float32."),
    "side-by-side": ("networks.side_by_side", "Built libraries beside other engines on one model."),
    "decode": ("networks.decoding", "Steps of a decoder beside ONNX Runtime's."),
    "tokens": ("networks.tokens", "What a token takes of decoders, by rows and threads."),
    "decoder": ("networks.decoders", "Write a decoder of random weights, of 4 to 16 bits."),
    "lengths": ("networks.lengths", "One library for any length beside one for each."),
    "recurrent": ("networks.recurrent", "Recurrent layers beside ONNX Runtime and their limit."),
    "launches": ("machine.launches", "What it costs to start a kernel, alone and by threads."),
    "alone": ("networks.alone", "A network's kernels as candidates and in the network."),
    "races": ("networks.races", "How often a race of two libraries is wrong."),
    "zoo": ("networks.zoo", "Write one of the networks as an ONNX file."),
    "paper": ("search.paper", "The Ansor paper: beside MetaSchedule, and without its parts."),
    "reuse": ("search.reuse", "What a registry of four networks is worth to a fifth."),
    "gpu": ("gpu.command", "Networks beside PyTorch, on a machine with a GPU."),
    "peak": ("machine.peak", "This machine's FMA peak and memory bandwidth."),
    "hot-loops": ("machine.hot_loops", "The inner loops of kernels that go to the stack."),
    "a53": ("machine.a53", "Instructions on an emulated Cortex-A53 beside ONNX Runtime."),
    "boards": ("machine.boards", "How much faster several boards measure than one."),
    "base": ("registry.base", "Records to ship: of networks, each better than its default."),
    "registry": ("registry.large", "How fast a large registry answers what builds ask."),
    "team": ("registry.team", "What ten thousand records of a team cost a build."),
    "noop": ("registry.noop", "Unchanged builds, and frozen ones anew."),
    "fuzz": ("fuzz.tries", "Mutated models, odd inputs, layouts, hostile files, kills."),
    "conformance": ("fuzz.conformance", "The node tests of the onnx package, by operator."),
}


class Benchmarks(click.Group):
    """The benchmarks by their names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all benchmarks."""
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, with its module's docstring as help."""
        if cmd_name not in NAMES:
            return None
        module = import_module(f"benchmarks.{NAMES[cmd_name][0]}")
        command: click.Command = module.command
        about = str(module.__doc__).split("\n\n")
        command.help = "\n\n".join(f"\b\n{part}" for part in about)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each benchmark, without importing any."""
        with formatter.section("Benchmarks"):
            formatter.write_dl([(name, line) for name, (_, line) in NAMES.items()])


@click.group(cls=Benchmarks)
def main() -> None:
    """Print the figures of docs/benchmarks.md, one benchmark a name."""


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
