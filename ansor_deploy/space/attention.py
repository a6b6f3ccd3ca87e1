"""Blocks of an attention's query rows: how many rows each has, and whether they pay.

The rule that computes them (`rules/attention.py`) and the model, which makes an attention one task
where they pay, must be of one mind. A number of rows divides all, so that blocks are alike. The
more rows a block has, the less often keys and values are read.
"""

import math
from collections.abc import Sequence

from ..target import Target
from .cores import keeps_busy
from .tiles import divisors

# Of the second cache, what the scores of a block may take: once as they are, once as weights.
SHARE = 0.4
# Rows of a block from which its scores are more to read than keys and values, of some 64 elements
# a row; and the most rows.
ENOUGH, MOST_ROWS = 32, 640


def attention_pays(scores: Sequence[int], target: Target) -> bool:
    """Whether to compute an attention by blocks of rows, of scores (.., queries, keys) of float32.

    Where those of a head fit the first cache, kernels for all heads, one after the other, are as
    fast. Where blocks leave cores idle, such as rows that nothing divides, they are faster.
    """
    *batch, rows, keys = scores
    options, best = query_blocks(scores, target)
    tasks = math.prod(batch) * rows // options[best]
    large = 4 * rows * keys > target.l1_bytes
    return large and options[best] >= min(ENOUGH, rows) and keeps_busy(tasks, target.cores)


def query_blocks(scores: Sequence[int], target: Target) -> tuple[list[int], int]:
    """How many rows of an attention a block may have, and the index of the best number.

    scores: their shape (.., queries, keys), of float32. The best is as many as fit the cache, but
    enough, and so that all cores are busy.
    """
    *batch, rows, keys = scores
    options = [size for size in divisors(rows) if size <= MOST_ROWS]
    enough = [size for size in options if size >= min(ENOUGH, rows)] or options[-1:]
    room = SHARE * target.l2_bytes / (2 * 4 * keys)
    fit = [size for size in enough if size <= room] or enough[:1]
    fair = [size for size in fit if keeps_busy(math.prod(batch) * rows // size, target.cores)]
    return options, options.index(max(fair or fit[:1]))
