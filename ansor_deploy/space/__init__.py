"""The space of programs, and the names that the author of a rule imports.

    from ansor_deploy.space import ApplyAndSkipRest, Pass, fused, parallel

A name's module is imported when the name is first used, so listing rules or reading a question
needs no TVM.
"""

from functools import cache
from importlib import import_module
from typing import Any

_OF_THIS_ROOM = {
    "rule": "Pass Apply ApplyAndSkipRest",
    "block_view": "BlockView SPATIAL REDUCE blocks divisions factor sums_products",
    "loops": "bound extent finish_levels fused inline_producers is_marked lanes multi_level_tile "
    "parallel parallel_map reduced_in_lanes split_lanes split_levels tiled unrolled vector_width "
    "vectorized written_out",
    "tiles": "divisors",
    "groups": "columns_apart",
    "tile_sizes": "FEW_TAPS register_tiles takes_lanes tiles_within",
    "fitting": "first_that_fits",
    "matrices": "groups_of_steps matrix_sizes sums_matrices",
    "packing": "pack_operands panel_bytes sums_pairs",
    "wide_weights": "widen_once",
    "micro_kernel": "cut_columns is_mostly_padding split_tiles write_out_tile",
    "register_tile": "tile_reduction unrolled_innermost",
    "thread_tile": "hardly_reuses tile_over_threads",
    "window": "Window",
    "attention": "query_blocks",
    "block_tile": "block_sums tile_block_sums",
    "cores": "WORTH_A_CORE keeps_busy worth_cores",
    "shares": "share_counts shared_axis split_shares tile_count",
    "winograd": "Convolution",
}
# TVM's names, handed on by `_tvm.py`, for what a rule does that no verb does.
TVM_NAMES = ("tvm", "tirx", "collect", "structural_map")


@cache
def rule_names() -> dict[str, str]:
    """The names that a rule may import, each with the module that defines it."""
    from ..marks import marks  # an unchanged build needs only the digests of rules

    named = {f"{__name__}.{module}": names.split() for module, names in _OF_THIS_ROOM.items()}
    named |= {module: list(mark.verbs) for module, mark in marks().items()}
    named["ansor_deploy._tvm"] = ["uses", *TVM_NAMES]
    return {name: module for module, names in named.items() for name in names}


def __getattr__(name: str) -> Any:
    """A name that a rule may import, from the module that defines it."""
    if name not in rule_names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(rule_names()[name]), name)
