"""The innermost loops of a network's kernels, and which of them access the stack in each iteration.

NETWORK: a name of `zoo`, a light model of the package onnx, or an ONNX file. Nothing runs: the
assembly of default schedules is read, so any target will do. A register tile that accesses the
stack in each step of its reduction has more accumulators than registers, and takes 1.5 times as
long. This prints the loops that do; with --all, every loop of multiply-adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ansor_deploy.codegen.kernels.lowering import compiled
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.target import Target
from benchmarks.options import networks_argument, target
from benchmarks.search import searching

# A loop with so many vector multiply-adds is a tile, and not the rest of a row.
FEW = 8
INSTRUCTION = re.compile(r"\s+[a-z]")
LABEL = re.compile(r"(\.L\w+):")
JUMP = re.compile(r"\s+(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s.*?(\.L\w+)$")
MULTIPLY_ADD = re.compile(r"\s+(?:vfn?madd\w+|fml[as])\s")
STACK = re.compile(r"\(%rsp|\[sp")


@dataclass(frozen=True)
class Loop:
    """An innermost loop.

    multiply_adds, stack: how many of its instructions are vector multiply-adds, or access the
    stack.
    """

    label: str
    instructions: int
    multiply_adds: int
    stack: int


@click.command
@networks_argument
@click.option("--target", "name", default="cortex-a53", show_default=True)
@click.option("--all", "every", is_flag=True, help="Print every loop of multiply-adds.")
def command(networks: Sequence[str], name: str, every: bool) -> None:
    """Print the loops of each network, and their number."""
    chosen = target(name)
    print(f"{'task':40}{'loop':12}{'instructions':>14}{'multiply-adds':>14}{'stack':>7}")
    for network in networks:
        tasks = searching.network_tasks(network, chosen)
        found = [(task, loop) for task in tasks for loop in of_kernel(task.mod, chosen)]
        for task, loop in found:
            if loop.stack or every:
                counts = f"{loop.instructions:14d}{loop.multiply_adds:14d}{loop.stack:7d}"
                print(f"{task.name[:39]:40}{loop.label:12}{counts}")
        spilling = sum(loop.stack > 0 for _, loop in found)
        print(f"{network}: {spilling} of {len(found)} loops go to the stack")


def of_kernel(mod: Any, target: Target) -> list[Loop]:
    """The loops of multiply-adds in a program (`tvm.IRModule`) with its default schedule."""
    kernel = {"main": default_schedule(mod, target).mod["main"]}
    lines = compiled(kernel, target).inspect_source("asm").splitlines()
    loops = [_loop(label, body) for label, body in innermost(lines)]
    return [loop for loop in loops if loop.multiply_adds >= FEW]


def _loop(label: str, body: list[str]) -> Loop:
    matches = (INSTRUCTION.match, MULTIPLY_ADD.match, STACK.search)
    return Loop(label, *(sum(match(line) is not None for line in body) for match in matches))


def innermost(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each loop that is a single run of instructions from a label to a jump back to it."""
    begun: dict[str, int] = {}
    for at, line in enumerate(lines):
        if label := LABEL.match(line):
            begun[label[1]] = at
        elif (jump := JUMP.match(line)) and jump[1] in begun:
            body = lines[begun[jump[1]] + 1 : at + 1]
            if not any(LABEL.match(inside) for inside in body):
                yield jump[1], body
