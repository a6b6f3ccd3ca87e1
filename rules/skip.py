"""Skip: the block keeps its loops, and is annotated at the end.

for i: b[i] = a[i]
-->
for i: b[i] = a[i]
"""

from ansor_deploy.space import Apply

NAME = "skip"
KINDS = ("llvm", "cuda")


def applies(state, block, target):
    return Apply()


def apply(state, block, target):
    return [state]
