"""Random graphs of operators that move elements, with widths that are no multiple of a vector.

They are like window attention, rolls, heads and channel shuffles: tensors are transposed, reshaped,
sliced, padded, gathered, split and concatenated, with some arithmetic in between, so that some
tensors come from kernels that are worth fusing, and some concatenations are written in place.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
from onnx import ModelProto, helper, numpy_helper

MOST = 1 << 14  # elements of a tensor, at most
WIDEST = 200  # the largest random extent
RANK = 6  # the most axes
OUTPUTS = 3  # the most outputs of a graph
DTYPES = ("float32",) * 8 + ("float16", "float64", "int8", "uint8", "int64", "bool")
_OPSET = 18


class Graph:
    """A graph that grows. shapes: of its tensors, by name. exact: whether it only moves elements.

    dtype: of all its tensors. read: names of tensors that a node reads.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.dtype = self.chance.choice(DTYPES)
        self.exact = True
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.nodes: list[helper.NodeProto] = []
        self.inputs: dict[str, tuple[int, ...]] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.read: set[str] = set()

    def add(
        self,
        op: str,
        inputs: list[str],
        shape: tuple[int, ...],
        *others: tuple[int, ...],
        **how: object,
    ) -> str:
        """Add a node with outputs of these shapes; returns the first output's name."""
        names = [f"t{len(self.shapes) + at}" for at in range(1 + len(others))]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], **how))
        self.shapes |= dict(zip(names, (shape, *others), strict=True))
        self.read |= set(inputs)
        return names[0]

    def constant(self, values: object, dtype: str = "int64") -> str:
        """Add a constant; returns its name."""
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def weights(self, *shape: int) -> str:
        """Add random weights, scaled so that results stay in range."""
        values = np.random.default_rng(len(self.constants)).standard_normal(shape)
        return self.constant(values / math.sqrt(max(1, math.prod(shape[1:]))), self.dtype)

    def reshaped(self, x: str, shape: tuple[int, ...]) -> str:
        """The tensor in another shape."""
        return self.add("Reshape", [x, self.constant(shape)], shape)

    def transposed(self, x: str, order: list[int]) -> str:
        """The tensor with its axes in this order."""
        shape = self.shapes[x]
        return self.add("Transpose", [x], tuple(shape[at] for at in order), perm=order)

    def sliced(self, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        """A slice along an axis; with a negative step, an end of -1 is before the first element."""
        shape = list(self.shapes[x])
        shape[axis] = len(range(begin, end, step))
        end = end if end >= 0 else -(1 << 40)
        ranges = [self.constant([one]) for one in (begin, end, axis, step)]
        return self.add("Slice", [x, *ranges], tuple(shape))

    def joined(self, parts: list[str], axis: int) -> str:
        """The concatenation of tensors along an axis."""
        shape = list(self.shapes[parts[0]])
        shape[axis] = sum(self.shapes[one][axis] for one in parts)
        return self.add("Concat", parts, tuple(shape), axis=axis)

    def axis(self, x: str, least: int = 2) -> int | None:
        """A random axis of at least so many elements; None if there is none."""
        found = [at for at, extent in enumerate(self.shapes[x]) if extent >= least]
        return self.chance.choice(found) if found else None


def graph(seed: int) -> tuple[ModelProto, bool]:
    """The graph of a seed, and whether it only moves elements."""
    made = Graph(seed)
    chance = made.chance
    for number in range(chance.choice((1, 1, 1, 2))):
        shape = _shape(chance) if not number or chance.random() < 0.5 else made.inputs["x0"]
        made.inputs[f"x{number}"] = made.shapes[f"x{number}"] = shape
    newest = "x0"
    for _ in range(chance.randint(2, 12)):
        source = newest if chance.random() < 0.85 else chance.choice(list(made.shapes))
        step = chance.choice(_STEPS)
        newest = step(made, source) or newest
    return _model(made), made.exact


def beginning(proto: ModelProto, count: int) -> ModelProto:
    """The graph of a model's first nodes; tensors that none of them reads are its outputs."""
    made = ModelProto()
    made.CopyFrom(proto)
    del made.graph.node[count:], made.graph.output[:]
    read = {name for node in made.graph.node for name in node.input}
    left = [name for node in made.graph.node for name in node.output if name not in read]
    known = {value.name: value for value in (*proto.graph.value_info, *proto.graph.output)}
    made.graph.output.extend(known[name] for name in left)
    return made


def _shape(chance: random.Random) -> tuple[int, ...]:
    """A random shape: an image with channels last or first, rows, or anything else."""
    width = chance.choice(
        (chance.randint(1, 24), chance.randint(1, WIDEST), 4 * chance.randint(1, 50))
    )
    side, other = chance.choice((4, 6, 8, 8, 9, 12, 16)), chance.choice((4, 6, 7, 8, 12))
    shape = chance.choice(
        [
            (1, side, side, width),
            (side, side, width),
            (1, width, side, other),
            (2, side * side, width),
            (side * other, width),
            (width, side),
            (chance.randint(1, 3), chance.randint(1, 5), side, chance.randint(1, 9), other),
        ]
    )
    while math.prod(shape) > MOST:
        shape = tuple(max(1, extent // 2) for extent in shape)
    return shape


def _model(made: Graph) -> ModelProto:
    if not made.nodes:
        made.reshaped("x0", (math.prod(made.shapes["x0"]),))
    left = [name for name in made.shapes if name not in made.read and name not in made.inputs]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(made.dtype))
    described = helper.make_tensor_value_info
    proto = helper.make_graph(
        made.nodes,
        "layouts",
        [described(name, kind, shape) for name, shape in made.inputs.items()],
        [described(name, kind, made.shapes[name]) for name in left[-OUTPUTS:]],
        [numpy_helper.from_array(value, name) for name, value in made.constants.items()],
        value_info=[described(name, kind, shape) for name, shape in made.shapes.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=9)


def _transpose(made: Graph, x: str) -> str | None:
    order = list(range(len(made.shapes[x])))
    return made.transposed(x, made.chance.sample(order, len(order)))


def _swap(made: Graph, x: str) -> str | None:
    order = list(range(len(made.shapes[x])))
    at = made.chance.randrange(len(order))
    order[at], order[-1] = order[-1], order[at]
    return made.transposed(x, order)


def _reshape(made: Graph, x: str) -> str | None:
    """Merge two axes, or split one."""
    shape, chance = list(made.shapes[x]), made.chance
    at = chance.randrange(len(shape))
    if at + 1 < len(shape) and chance.random() < 0.5:
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif len(shape) < RANK:
        by = chance.choice([n for n in range(1, shape[at] + 1) if shape[at] % n == 0])
        shape[at : at + 1] = [shape[at] // by, by]
    return made.reshaped(x, tuple(shape))


def _rows(made: Graph, x: str) -> str | None:
    """Merge all axes but the last, and sometimes split the last."""
    *outer, last = made.shapes[x]
    split = _divided(made.chance, last) if made.chance.random() < 0.3 else (last,)
    return made.reshaped(x, (math.prod(outer), *split))


def _slice(made: Graph, x: str) -> str | None:
    if (axis := made.axis(x)) is None:
        return None
    extent = made.shapes[x][axis]
    begin = made.chance.randrange(extent)
    end = made.chance.randint(begin + 1, extent)
    step = made.chance.choice((1, 1, 1, 2, 3))
    if made.chance.random() < 0.15:
        return made.sliced(x, axis, end - 1, begin - 1, -step)
    return made.sliced(x, axis, begin, end, step)


def _shifted(made: Graph, x: str) -> str | None:
    """Windows of an image that is rolled before or afterwards, sometimes merged to rows."""
    first, then = made.chance.choice(((_roll, _windows), (_windows, _roll), (_slice, _windows)))
    moved = first(made, x) or x
    moved = then(made, moved) or moved
    return _rows(made, moved) if made.chance.random() < 0.6 else moved


def _roll(made: Graph, x: str) -> str | None:
    """A tensor rolled along an axis, or along two adjacent ones."""
    if (axis := made.axis(x)) is None:
        return None
    for at in range(axis, min(axis + made.chance.randint(1, 2), len(made.shapes[x]))):
        extent = made.shapes[x][at]
        if extent > 1:
            cut = made.chance.randrange(1, extent)
            x = made.joined([made.sliced(x, at, cut, extent), made.sliced(x, at, 0, cut)], at)
    return x


def _windows(made: Graph, x: str) -> str | None:
    """Cut two axes into windows: one axis of windows, one of elements in a window."""
    shape, chance = made.shapes[x], made.chance
    if len(shape) < 2 or len(shape) + 2 > RANK:
        return None
    at = chance.randrange(len(shape) - 1)
    (a, c), (b, d) = (_divided(chance, extent) for extent in shape[at : at + 2])
    split = made.reshaped(x, (*shape[:at], a, c, b, d, *shape[at + 2 :]))
    order = list(range(len(made.shapes[split])))
    order[at + 1], order[at + 2] = at + 2, at + 1
    turned = made.transposed(split, order)
    return made.reshaped(turned, (*shape[:at], a * b, c * d, *shape[at + 2 :]))


def _divided(chance: random.Random, extent: int) -> tuple[int, int]:
    by = chance.choice([n for n in range(1, extent + 1) if extent % n == 0])
    return extent // by, by


def _concat(made: Graph, x: str) -> str | None:
    """Concatenate a tensor with random ones of matching shapes, itself among them."""
    chance, shape = made.chance, made.shapes[x]
    axis = chance.randrange(len(shape))

    def fits(other: tuple[int, ...]) -> bool:
        return (*other[:axis], *other[axis + 1 :]) == (*shape[:axis], *shape[axis + 1 :])

    others = [name for name, one in made.shapes.items() if len(one) == len(shape) and fits(one)]
    parts = [x, *(chance.choice(others) for _ in range(chance.randint(1, 3)))]
    if made.dtype == "float32" and chance.random() < 0.5:
        parts = [made.add("Relu", [one], made.shapes[one]) for one in parts]
    chance.shuffle(parts)
    return made.joined(parts, axis) if _total(made, parts) <= MOST else None


def _total(made: Graph, parts: list[str]) -> int:
    return sum(math.prod(made.shapes[one]) for one in parts)


def _split(made: Graph, x: str) -> str | None:
    if (axis := made.axis(x)) is None:
        return None
    shape = made.shapes[x]
    cuts = sorted(made.chance.sample(range(1, shape[axis]), min(2, shape[axis] - 1)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, shape[axis]], strict=True)]
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    return made.add("Split", [x, made.constant(sizes)], *shapes, axis=axis)


def _pad(made: Graph, x: str) -> str | None:
    shape, chance = made.shapes[x], made.chance
    before, after = ([0] * len(shape) for _ in range(2))
    axis = chance.randrange(len(shape))
    most = min(3, shape[axis] - 1)
    mode = chance.choice(("constant", "constant", "reflect", "edge")) if most > 0 else "constant"
    if made.dtype in {"bool", "float16"}:
        mode = "constant"
    most = 5 if mode == "constant" else most
    before[axis], after[axis] = chance.randint(0, most), chance.randint(0, most)
    padded = tuple(a + n + b for a, n, b in zip(before, shape, after, strict=True))
    if math.prod(padded) > MOST:
        return None
    return made.add("Pad", [x, made.constant([*before, *after])], padded, mode=mode)


def _gather(made: Graph, x: str) -> str | None:
    shape, chance = made.shapes[x], made.chance
    axis = chance.randrange(len(shape))
    many = chance.randint(1, min(shape[axis] + 3, 40))
    indices = [chance.randrange(-shape[axis], shape[axis]) for _ in range(many)]
    taken = (*shape[:axis], many, *shape[axis + 1 :])
    if math.prod(taken) > MOST:
        return None
    return made.add("Gather", [x, made.constant(indices)], taken, axis=axis)


def _tile(made: Graph, x: str) -> str | None:
    shape = made.shapes[x]
    times = [1] * len(shape)
    axis = made.chance.randrange(len(shape))
    times[axis] = made.chance.randint(2, 3)
    tiled = tuple(a * b for a, b in zip(shape, times, strict=True))
    if math.prod(tiled) > MOST:
        return None
    op = "Expand" if shape[axis] == 1 and made.chance.random() < 0.5 else "Tile"
    return made.add(op, [x, made.constant(tiled if op == "Expand" else times)], tiled)


def _shuffle(made: Graph, x: str) -> str | None:
    """Move channels of an image to blocks of pixels, or back."""
    shape = made.shapes[x]
    if len(shape) != 4 or made.dtype not in ("float32", "float64"):
        return None
    n, c, h, w = shape
    if c % 4 == 0 and made.chance.random() < 0.6:
        mode = made.chance.choice(("DCR", "CRD"))
        return made.add("DepthToSpace", [x], (n, c // 4, 2 * h, 2 * w), blocksize=2, mode=mode)
    if h % 2 == w % 2 == 0:
        return made.add("SpaceToDepth", [x], (n, 4 * c, h // 2, w // 2), blocksize=2)
    return None


def _elementwise(made: Graph, x: str) -> str | None:
    if made.dtype != "float32":
        return None
    shape, chance = made.shapes[x], made.chance
    same = [name for name, other in made.shapes.items() if other == shape]
    kind = chance.choice(("Relu", "Neg", "Add", "Mul"))
    if kind in ("Relu", "Neg"):
        return made.add(kind, [x], shape)
    # Powers of two are exact: one rounding or two in a multiply-add give the same result.
    powers = 2.0 ** np.random.default_rng(len(made.constants)).integers(-3, 4, shape[-1])
    other = made.constant(powers, made.dtype) if kind == "Mul" else chance.choice(same)
    return made.add(kind, [x, other], shape)


def _arithmetic(made: Graph, x: str) -> str | None:
    """A matmul, a convolution, a softmax or a layer norm."""
    if made.dtype != "float32":
        return None
    shape, wide = made.shapes[x], made.chance.randint(1, 40)
    made.exact = False
    if len(shape) == 4 and made.chance.random() < 0.5:
        side = made.chance.choice((1, 3))
        weights, made_shape = made.weights(wide, shape[1], side, side), (shape[0], wide, *shape[2:])
        return made.add("Conv", [x, weights], made_shape, pads=[side // 2] * 4)
    if made.chance.random() < 0.5:
        return made.add("MatMul", [x, made.weights(shape[-1], wide)], (*shape[:-1], wide))
    if made.chance.random() < 0.5:
        return made.add("Softmax", [x], shape, axis=-1)
    scale = made.weights(shape[-1])
    # With the default epsilon, rows of equal numbers would scale rounding errors 300-fold.
    return made.add("LayerNormalization", [x, scale], shape, axis=-1, epsilon=1.0)


Step = Callable[[Graph, str], str | None]
_STEPS: tuple[Step, ...] = (
    *(_transpose, _swap, _reshape, _reshape, _slice, _slice, _roll, _roll, _windows, _windows),
    *(_shifted, _shifted, _shifted, _rows, _rows),
    *(_concat, _concat, _split, _pad, _gather, _tile, _shuffle, _elementwise, _arithmetic),
)
