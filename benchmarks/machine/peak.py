"""This machine's limits: float32 FMAs, and bytes from memory, on all its cores.

The FMA kernel keeps as many independent accumulators as there are vector registers, less four for
operands, and touches memory once, so only the FMA units limit it. The memory kernel is STREAM's
triad on arrays far larger than any cache; it counts two reads and a write.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.options import cores, json_option, python, save

ROUNDS = 30  # of each kernel, of which the fastest counts
FMA_STEPS = 2_000_000  # some ten milliseconds: of many short rounds, some avoid other processes
TRIAD_ELEMENTS = 1 << 25  # 128 MiB an array


@dataclass(frozen=True)
class Peak:
    """Measured limits of the cores that this process may use."""

    cores: int
    vector_bits: int
    gflops: float
    gbytes: float


def measure(width: int) -> Peak:
    """The best of several rounds on so many cores: noise can only slow a kernel down."""
    # TVM reads this when it is loaded; by default it uses half the cores of an x86 machine.
    os.environ["TVM_NUM_THREADS"] = str(width)
    target = _host_target()
    bits, accumulators = _vector_file(target)
    arrays = [np.ones(TRIAD_ELEMENTS, "float32") for _ in range(3)]
    seconds = _best(_triad_kernel(width), target, *arrays)
    gbytes = sum(one.nbytes for one in arrays) / seconds / 1e9
    lanes = bits // 32
    sums = np.zeros((width, accumulators, lanes), "float32")
    factors = np.full((2, lanes), 0.5, "float32")
    seconds = _best(_fma_kernel(width, accumulators, lanes), target, factors, sums)
    return Peak(width, bits, 2.0 * FMA_STEPS * sums.size / seconds / 1e9, gbytes)


def measured_apart() -> Peak:
    """This machine's limits, measured in a process of its own.

    TVM's threads would otherwise stay in this process.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "peak.json"
        python("-m", "benchmarks", "peak", "--json", str(found))
        return Peak(**json.loads(found.read_text()))


def _host_target() -> Any:
    import tvm
    import tvm_ffi

    cpu = tvm_ffi.get_global_func("target.llvm_get_system_cpu")()
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu})


def _vector_file(target: Any) -> tuple[int, int]:
    """The vector width in bits, and the number of accumulators that fit beside the operands."""
    import tvm_ffi

    has = tvm_ffi.get_global_func("target.target_has_feature")
    if has("avx512f", target):
        return 512, 28
    if has("avx2", target):
        return 256, 12
    return 128, 28  # Advanced SIMD


def _fma_kernel(cores: int, accumulators: int, lanes: int) -> Any:
    from tvm.script import tirx as T  # noqa: N812 - TVM's own name for it

    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle) -> None:
        # With noalias, LLVM keeps all sums in registers during the serial loop.
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        factors = T.match_buffer(a, (2, lanes))
        sums = T.match_buffer(b, (cores, accumulators, lanes))
        for core in T.parallel(cores):
            for _ in T.serial(FMA_STEPS):
                for j in T.unroll(accumulators):
                    for v in T.vectorized(lanes):
                        sums[core, j, v] = sums[core, j, v] * factors[0, v] + factors[1, v]

    return main


def _triad_kernel(cores: int) -> Any:
    from tvm.script import tirx as T  # noqa: N812 - TVM's own name for it

    lanes, size = 64, TRIAD_ELEMENTS
    chunk = size // lanes // cores

    @T.prim_func(s_tir=True)
    def main(x: T.handle, y: T.handle, z: T.handle) -> None:
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        a = T.match_buffer(x, (size,))
        b = T.match_buffer(y, (size,))
        c = T.match_buffer(z, (size,))
        for core in T.parallel(cores):
            for i in T.serial(chunk):
                for v in T.vectorized(lanes):
                    c[(core * chunk + i) * lanes + v] = (
                        a[(core * chunk + i) * lanes + v] * T.float32(3)
                        + b[(core * chunk + i) * lanes + v]
                    )

    return main


def _best(kernel: Any, target: Any, *arrays: np.ndarray) -> float:
    """The least seconds of a call."""
    import tvm

    call = tvm.compile(tvm.IRModule({"main": kernel}), target=target)["main"]
    tensors, times = [tvm.runtime.tensor(one) for one in arrays], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call(*tensors)
        times.append(time.perf_counter() - start)
    return min(times)


@click.command
@json_option
def command(file: Path | None) -> None:
    """Measure and print, and write with --json."""
    peak = measure(cores())
    print(f"cores                    {peak.cores:10d}")
    print(f"vector width             {peak.vector_bits:10d} bit")
    print(f"float32 FMA, all cores   {peak.gflops:10.1f} GFLOP/s")
    print(f"float32 FMA, per core    {peak.gflops / peak.cores:10.1f} GFLOP/s")
    print(f"memory (triad)           {peak.gbytes:10.1f} GB/s")
    save(asdict(peak), file)
