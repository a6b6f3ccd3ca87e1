"""Lower programs for a GPU, to launches for the host and source for the device.

The passes are TVM's own for CUDA, in its order, and our passes for edge values and indices, as for
CPUs.
"""

import re
from typing import Any

from ..._tvm import tirx, tvm
from ..passes.edge_values import edge_values, from_infinity
from ..passes.flattening import flattened
from .single_thread import by_single_thread, from_beginning

# The source's includes are removed, since their headers are another package. The few names that it
# needs from them are defined below.
_INCLUDED = re.compile(
    r"^#ifdef __CUDACC_RTC__.*?^#endif\n|^ *#include .*?\n", re.DOTALL | re.MULTILINE
)
_NAMES = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_INF __longlong_as_double(0x7ff0000000000000ULL)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000ULL)
"""


def split(mod: Any) -> Any:
    """A module with the host's part and the device's kernels of a module's scheduled function."""
    t, s = tirx.transform, tvm.s_tir.transform
    passes = [
        from_beginning,
        s.CanonicalizeLoop(),
        s.LowerCrossThreadReduction(),  # it knows no reduction whose initial value is an infinity
        from_infinity,
        s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(),
        s.ConvertBlocksToOpaque(),
        s.LiftThreadBinding(),
        s.CompactBufferAllocation(),
        s.UnifyThreadBinding(),
        s.LowerMatchBuffer(),
        s.StmtSimplify(),
        s.LowerOpaqueBlock(),
        flattened,
        t.BF16ComputeLegalize(),
        t.NarrowDataType(32),
        by_single_thread,
        s.LoopPartition(),
        t.VectorizeLoop(),
        s.InjectVirtualThread(),
        t.StorageRewrite(),
        s.HoistIfThenElse(),
        t.UnrollLoop(),
        s.RenormalizeSplitPattern(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        s.RewriteUnsafeSelect(),
        t.CommonSubexprElim(),
        t.FP8ComputeLegalize(),
        t.VerifyMemory(),
        t.AnnotateEntryFunc(),
        s.ThreadSync("shared"),
        s.ThreadSync("warp"),
        s.LowerThreadAllreduce(),
        s.MergeSharedMemoryAllocations(),
        t.SplitHostDevice(),
    ]
    return tvm.transform.Sequential(passes)(mod)


def device_code(functions: dict[Any, Any]) -> str:
    """The CUDA C++ source, without includes, of functions for the device."""
    if not functions:
        return ""
    t = tirx.transform
    passes = [
        t.MakePackedAPI(),
        t.FP8StorageLegalize(),
        t.BF16StorageLegalize(),
        edge_values,
        t.LowerWarpMemory(),
        t.StmtSimplify(),
        t.LowerIntrin(),
    ]
    mod = tvm.transform.Sequential(passes)(tvm.IRModule(functions))
    one = next(iter(mod.functions.values()))
    build = tvm.get_global_func("target.build.cuda")
    source = build(mod, one.attrs["target"]).inspect_source()
    return _NAMES + _INCLUDED.sub("", source)
