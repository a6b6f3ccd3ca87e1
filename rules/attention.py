"""Attention: scores, softmax and their product with values, a block of query rows at a time.

for q, k: for d: s[q, k] += query[q, d] * key[d, k]
for q, k: p[q, k] = softmax(mask(s[q, k]))
for q, d: for k: y[q, d] += p[q, k] * value[k, d]
-->
parallel q / Q:
    for k / K, Q / R: s[R, K] = mask(query[R, :] * key[:, K])      in registers
    for Q: p[k] = softmax(s[k])
    for d / D, Q / R: y[R, D] = p[R, :] * value[:, D]              in registers

The scores of a block stay in a core's cache.
"""

from ansor_deploy.space import ApplyAndSkipRest, Attention, Pass, tile_attention

NAME = "attention"
KINDS = ("llvm",)


def applies(state, block, target):
    view = state.view(block)
    if not view.is_contraction or Attention.of(view) is None:
        return Pass("it weighs nothing by a softmax of products")
    return ApplyAndSkipRest()


def apply(state, block, target):
    tile_attention(state, Attention.of(state.view(block)), target)
    return [state]
