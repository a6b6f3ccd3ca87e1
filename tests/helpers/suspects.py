"""Faulty libraries, sent the way of every candidate. Only this module uses the measurer's parts.

A suspect is a program's text, or a library written in C, that is built and run as if it were a
schedule of a task.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tvm_ffi

from ansor_deploy.measure.builder import BuildJob, Built
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.model.tasks import Task
from ansor_deploy.space.canonical_text import parse
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

TARGET = load_target("host", [shipped("targets")])
COMPUTE = {"function": "compute", "arguments": [["task", 0], ["task", 1]], "makes": []}

# The beginning of every library in C; the task is y = 2 * x, with 64 * 64 floats.
PRELUDE = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tvm/ffi/c_api.h>
#define N 4096
#define EXPORTED __attribute__((visibility("default"))) int
#define PARAMETERS void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result
static float *data(const TVMFFIAny *any) {
  if (any->type_index == kTVMFFIDLTensorPtr) return ((DLTensor *)any->v_ptr)->data;
  return ((DLTensor *)((char *)any->v_obj + sizeof(TVMFFIObject)))->data;
}
static int calls = 0;
static int fail(void) { TVMFFIErrorSetRaisedFromCStr("ValueError", "gives up"); return -1; }
static void doubled(const float *x, float *y) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }
"""


class Suspects:
    """A measurer, and ways to give it candidates that no trace leads to."""

    def __init__(self, measurer: Measurer, folder: Path) -> None:
        self.measurer, self._folder = measurer, folder
        self._names = itertools.count()
        self._runner = measurer._lent._runner(measurer.sites[0])
        self._doubling = task(DOUBLING)

    def right(self, of: Task | None = None) -> Outcome:
        """The outcome of the default schedule, for doubling unless another task is given."""
        of = of or self._doubling
        trace = dump(default_schedule(of.mod, TARGET).trace)
        return self.measurer.measure(of, [trace])[0]

    def program(self, of: Task, text: str) -> Outcome:
        """The outcome of a program in place of a schedule of the task."""
        (built,) = self.measurer.builder.build([BuildJob(text, "plain")])
        assert isinstance(built, Built), built
        return self._runner.run(of, built, "", best=1.0)

    def library(self, body: str, *steps: dict[str, Any], best: float = 0.01) -> Outcome:
        """The outcome of a library in place of doubling. body: C code after `PRELUDE`.

        best: seconds; the library is given up after sixty times as long, and at least five seconds.
        """
        path = compiled(PRELUDE + body, self._folder / f"suspect-{next(self._names)}.so")
        return self._runner.run(self._doubling, Built(path, steps or (COMPUTE,)), "", best)

    def processes(self) -> list[int]:
        """Process ids of the workers."""
        workers = [self.measurer.sites[0]._worker, *self.measurer.builder._here.workers]
        return [worker._process.pid for worker in workers]


@contextmanager
def suspects(folder: Path) -> Iterator[Suspects]:
    """Suspects with a measurer of this machine, which is closed at the end."""
    with Measurer(TARGET) as measurer:
        yield Suspects(measurer, folder)


def compute(body: str) -> str:
    """C code of a library whose `compute` has this body, with x and y as its tensors."""
    return (
        "EXPORTED __tvm_ffi_compute(PARAMETERS) {\n"
        "  float *x = data(args), *y = data(args + 1); calls++; result->type_index = 0;\n"
        f"  {body}\n  return 0;\n}}\n"
    )


def compiled(source: str, path: Path) -> Path:
    """Compile C code to a shared library."""
    include = Path(tvm_ffi.__file__).parent / "include"
    places = [f"-I{include}", f"-I{include.parent / '3rdparty/dlpack/include'}"]
    command = ["cc", "-O1", "-fPIC", "-shared", "-pthread", *places, "-x", "c", "-", "-o", path]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def task(text: str, name: str = "fused_suspect") -> Task:
    """The task of a program's text."""
    return task_of(parse(text)["main"], name, TARGET)


DOUBLING = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(64, 64):
        with T.sblock("double"):
            r, c = T.axis.remap("SS", [i, j])
            y[r, c] = x[r, c] * T.float32(2)
"""
