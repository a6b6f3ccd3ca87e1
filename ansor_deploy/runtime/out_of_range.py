"""The message by which a library reports an index out of range (`model/operators/indices.py`)."""

import re

OUT_OF_RANGE = re.compile(r"\w+: [a-z ]+ is not in -?\d+ \.\. -?\d+.*$")
RANGE_HINT = "give only indices within the range that the operator named above takes"
