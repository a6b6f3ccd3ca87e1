"""The space of programs, and what the author of a rule imports.

    from ansor_deploy.space import ApplyAndSkipRest, Pass, fused, parallel

A name is looked up in the module that has it when it is asked for: listing rules, or reading a
question, needs no TVM.
"""

from importlib import import_module
from typing import Any

from ..marks import marks

_OF_THIS_ROOM = {
    "rule": "Pass Apply ApplyAndSkipRest",
    "block_view": "BlockView SPATIAL REDUCE blocks divisions",
    "loops": "bound extent finish_levels fused inline_producers lane_partials lanes "
    "multi_level_tile parallel parallel_map reduced_in_lanes split_lanes "
    "split_levels tiled unrolled vector_width vectorize_partials vectorized written_out",
    "tiles": "divisors",
    "axes": "split_axis",
    "read_order": "follow_reads",
    "register_tile": "tile_reduction",
    "thread_tile": "hardly_reuses reads_along_results tile_over_threads",
    "attention": "Attention tile_attention",
    "cores": "WORTH_A_CORE worth_cores",
    "shares": "share_counts shared_axis split_shares tile_count",
    "winograd": "Convolution",
    "strip_tile": "Strips strips_pay tile_strips",
}
# What a rule may import, by the module that has it.
RULE_NAMES = {
    **{f"{__name__}.{module}": names for module, names in _OF_THIS_ROOM.items()},
    **{module: " ".join(mark.verbs) for module, mark in marks().items()},
    "ansor_deploy._tvm": "uses",
}
_HOME = {name: module for module, names in RULE_NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """What a rule may import, from the module that has it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
