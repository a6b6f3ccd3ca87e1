"""The message by which a library reports an index out of range (`model/operators/indices.py`)."""

import re

OUT_OF_RANGE = re.compile(r"\w+: [a-z ]+ is not in -?\d+ \.\. -?\d+.*$")
COMPUTED = "a size that the model computes"  # in this message, where a run needs more room
RANGE_HINT = "give only indices within the range that the operator named above takes"
