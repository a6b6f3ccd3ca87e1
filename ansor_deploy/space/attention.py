"""Blocks of an attention's query rows: how many rows each has, and whether blocks pay.

The rule that computes the blocks (`rules/attention.py`) and the model, which makes an attention one
task where they pay, both decide by these functions. The size of a block divides the number of rows,
so that all blocks have one shape. The more rows a block has, the less often keys and values are
read.
"""

import math
from collections.abc import Sequence

from ..target import Target
from .cores import keeps_busy
from .tiles import divisors

# Part of the second cache that a block's scores may take, before and after their softmax together.
SHARE = 0.4
# From this many rows, a block's scores are more to read than its keys and values, which have some
# 64 elements a row.
ENOUGH = 32
# Most rows of a block.
MOST_ROWS = 640


def attention_pays(scores: Sequence[int], target: Target) -> bool:
    """Whether to compute an attention by blocks of rows.

    scores: their shape (.., queries, keys), of float32. Separate kernels for scores, softmax and
    product are as fast where the scores of a head fit the first cache. They are faster where
    blocks would leave cores idle, for instance because the number of rows has no divisors.
    """
    *batch, rows, keys = scores
    options, best = query_blocks(scores, target)
    tasks = math.prod(batch) * rows // options[best]
    large = 4 * rows * keys > target.l1_bytes
    return large and options[best] >= min(ENOUGH, rows) and keeps_busy(tasks, target.cores)


def query_blocks(scores: Sequence[int], target: Target) -> tuple[list[int], int]:
    """The numbers of rows that a block may have, and the index of the best one.

    scores: their shape (.., queries, keys), of float32. The best is the largest number of at least
    ENOUGH rows that fits the cache and keeps all cores busy.
    """
    *batch, rows, keys = scores
    options = [size for size in divisors(rows) if size <= MOST_ROWS]
    enough = [size for size in options if size >= min(ENOUGH, rows)] or options[-1:]
    room = SHARE * target.l2_bytes / (2 * 4 * keys)
    fit = [size for size in enough if size <= room] or enough[:1]
    fair = [size for size in fit if keeps_busy(math.prod(batch) * rows // size, target.cores)]
    return options, options.index(max(fair or fit[:1]))
