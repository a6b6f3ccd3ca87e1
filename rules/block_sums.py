"""Block sums: a product with blockwise weights, of integers in a block and floats across blocks.

for r, c: for b: for k: sums[r, b, c] += q[r, b, k] * weight[b, k, c]
                 out[r, c] += float(sums[r, b, c]) * scale[r, b, c]
-->
parallel c / C, r / R:
    for b: for k / 4: sums[R, C] += four products          in registers
           acc[R, C] += float(sums[R, C]) * scale[R, C]

Weights are packed in this order, as 32-bit words, when the model is built. The bytes or half bytes
of a word are unpacked in registers.
"""

from ansor_deploy.space import ApplyAndSkipRest, Pass, block_sums, tile_block_sums

NAME = "block-sums"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if not view.is_contraction or block_sums(view) is None:
        return Pass("it adds up no sums of blocks")
    return view.lacks_epilogue() or ApplyAndSkipRest()


def apply(state, block, target):
    tile_block_sums(state, state.view(block), target)
    return [state]
