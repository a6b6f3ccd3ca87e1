"""The space of programs, and what the author of a rule imports.

    from ansor_deploy.space import ApplyAndSkipRest, Pass, fused, parallel

A name is looked up in the module that has it when it is asked for: listing rules, or reading a
question, needs no TVM.
"""

from importlib import import_module
from typing import Any

RULE_NAMES = {
    "rule": "Pass Apply ApplyAndSkipRest",
    "block_view": "BlockView SPATIAL REDUCE blocks divisions uses",
    "loops": "SIDE bound extent finish_levels fused inline_producers lane_partials lanes "
    "multi_level_tile parallel parallel_map partition_bounded reduced_in_lanes split_lanes "
    "split_levels tiled turned unrolled vector_width vectorize_partials vectorized written_out",
    "tiles": "divisors",
    "register_tile": "tile_reduction",
    "thread_tile": "hardly_reuses reads_along_results tile_over_threads",
    "attention": "Attention tile_attention",
    "cores": "WORTH_A_CORE worth_cores",
    "shares": "share_counts shared_axis split_shares tile_count",
    "winograd": "Convolution",
    "strip_tile": "Strips strips_pay tile_strips",
}
# What a rule's own mechanism is made of, where no verb does it: TVM's names, by the one door.
TVM_NAMES = ("tvm", "tirx", "collect", "structural_map")
_HOME = {name: f".{module}" for module, names in RULE_NAMES.items() for name in names.split()}
_HOME |= dict.fromkeys(TVM_NAMES, ".._tvm")


def __getattr__(name: str) -> Any:
    """What a rule may import, from the module that has it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)
