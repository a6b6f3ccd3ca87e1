"""Marks of loops, by which a schedule asks lowering for what no primitive does (`codegen/`)."""

# TVM's: the last iteration of the loop is cut short, and becomes code of its own.
PARTITION = "pragma_loop_partition_hint"
# Of a reduction: so many registers hold a partial result in each lane, such as "4x16".
PARTIAL_LANES = "ansor.partial_lanes"
# Of a loop over tiles of rows: the next panel is fetched meanwhile, of so many elements; or the
# next tile's rows.
PREFETCH, PREFETCH_ROWS = "ansor.prefetch", "ansor.prefetch_rows"
# Of the innermost loop over tiles: what a tile's results are added to is fetched before it.
ADDED = "ansor.added"
# Of steps of a reduction that are written out: what they multiply vectors by is read as vectors.
ROW_VECTORS = "ansor.row_vectors"
# Of two innermost loops over a square tile, the outer one: it is read along this, written along the
# other, and turned in registers.
TURNED = "ansor.turned"
