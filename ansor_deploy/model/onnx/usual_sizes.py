"""The usual sizes of an input's axes, by place, name, and what the graph shows."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from math import isqrt, prod

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from .bind import declared_shape, model_inputs
from .skeleton import attribute, nodes

Sizes = tuple[int, ...]
_IMAGE = (224, 256, 320, 384, 512, 299, 128, 32)  # sides of images
_LARGE_IMAGE = (640, 512, 320, 384, 224)  # for networks that enlarge their features again
_MAP = (64, 32, 96, 128)  # sides of a latent image, or of a volume
_SOUND = (16000, 512, 32000, 48000)  # samples in a second, or in a frame
_FRAME = (512, 16000)  # samples of sound that is streamed, with a state as another input
_SPEAKERS = {1, 2}  # numbers of channels of sound
_TOKENS = 128  # of a text
_UNREAD = 2  # rows of a table of positions that are never read, as in RoBERTa's
_MEMBERS = 1024  # nodes of a graph, or points of a cloud
_PAST = 127  # tokens before that of a step; 128 with it
_PASTS = (_PAST, 31, 7, 1)  # shorter ones for models with fewer positions
_ROWS = 2  # the axis of rows in a cache (batch, heads, rows, width)
_HEAD = (64, 128, 32, 96)  # widths of attention heads
_ROTARY_TABLE = {"GroupQueryAttention": 7, "RotaryEmbedding": 2}  # the input that is one
UNNAMED = ("?", "unk__")  # begin the names of axes to which a file or tf2onnx gave none
_LARGEST = 1 << 14  # the largest side of an image that is believed in a file's metadata
_COLOURS = (1, 3)  # numbers of colour channels
_PLACES = (2, 4)  # numbers that make a point or a box
_OF_IMAGES = (4, 5)  # ranks of tensors of images or volumes
_OF_ONE = 3  # the rank of an image without a batch
_PIXELS = ("image", "channel", "row", "column")  # the axes of a tensor of images
_MOVES = ("Cast", "Identity", "Reshape", "Transpose")  # keep all elements of a constant
# Operators that keep the channels of an image, or of a signal.
_SCALING = ("Add", "Cast", "Div", "Identity", "InstanceNormalization", "Mul", "Sub")
_FRAMES = (16, 8, 4, 2)  # images of a video
_LINE = 64  # the largest height in pixels of a line of text
_LONG = 20  # a line is this many times as wide as high
_LINES = (320, 160, 128, 100)  # widths of lines that networks are exported with
_LINE_HEIGHTS = (48, 32, 64)  # heights where both sides of a line are open
_BATCHES = ("batch", "graphs")  # words in the names of batch axes
_BATCH_LETTERS = ("b", "bs")  # names of batch axes
_TIME_LETTERS = ("t", "l")  # names of axes of time
_SIDES = ("height", "width", "rows", "cols", "columns", "h", "w")  # names of sides of images
_STATES = ("state", "hidden", "cell")  # words in the names of recurrent states
_SETS = ("node", "edge", "point", "patch")  # words in the names of axes of sets
# Words in the names of axes of sequences and sets.
_TIMES = ("past", "seq", "len", "time", "token", "frame", *_SETS)


def rotary_tables(proto: ModelProto) -> list[TensorProto]:
    """The constant tables of angles that attentions read: (positions, half of a head's width)."""
    read = ((n.input, _ROTARY_TABLE.get(n.op_type, len(n.input))) for n in nodes(proto.graph))
    tables = {names[place] for names, place in read if place < len(names)}
    return [tensor for tensor in proto.graph.initializer if tensor.name in tables]


class Usual:
    """The usual sizes of a model's axes. names: of the open axes."""

    def __init__(self, proto: ModelProto, names: Collection[str]) -> None:
        self._proto = proto
        given = [value.name.lower() for value in model_inputs(proto)]
        self._has_past = any("past" in name for name in (*names, *given))
        floats = [value for value in model_inputs(proto) if not _is_integer(value)]
        self._has_state = len(floats) > 1
        self._has_batch = any(map(_has_batch, model_inputs(proto)))
        self._firsts = [(declared_shape(one) or ("",))[0] for one in model_inputs(proto)]
        self._nodes = list(nodes(proto.graph))
        self._tables = sorted({t.dims[-2] for t in proto.graph.initializer if _is_table(t)})[:4]
        self._maps = sorted(set(_maps(proto, self._nodes)))[:4]
        self._has_image = any(map(is_of_image, model_inputs(proto)))

    def sizes(self, value: ValueInfoProto, at: int, name: str) -> Sizes:
        """The sizes that an open axis of an input may have, the likeliest first."""
        of_time, of_image = is_of_time(name), is_of_image(value)
        shape = declared_shape(value) or ()
        is_one_image = of_image and len(shape) == _OF_ONE
        listed = of_time or is_one_image or is_list(shape, self._firsts)
        is_first = at == 0 and len(shape) > 1 and not listed
        if is_of_batch(name) or is_first or (_is_batch_of_state(value, at) and not of_time):
            return (1,)
        if "past" in value.name.lower() and len(shape) == 4:
            of_encoder = at == _ROWS and "encoder" in value.name.lower()
            return self._length(value, name) if of_encoder else self._cache(at)
        if of_image and not of_time:
            return self._image(value, at)
        if at == 1 and (channels := self._of_signal(value)):
            return channels
        one = (1,) if len(shape) == 1 and self._has_batch and not of_time else ()
        if self._is_sound(value, at):
            return (*one, *(_FRAME if self._has_state else _SOUND))
        return (*one, *self._length(value, name))

    def _cache(self, at: int) -> Sizes:
        """Sizes of keys and values (batch, heads, past, width); rotary tables have half a width."""
        if at != 3:
            return _PASTS
        known = {2 * table.dims[-1] for table in rotary_tables(self._proto)}
        return (*sorted(known), *_HEAD)

    def _image(self, value: ValueInfoProto, at: int) -> Sizes:
        shape = declared_shape(value) or ()
        colours = colours_at(shape)
        first = colours + 1 if colours < len(shape) - 1 else min(1, len(shape) - _OF_ONE)
        read = [shape[colours], *_channels(self._proto, self._nodes, value.name)]
        channels = tuple(size for size in read if isinstance(size, int))[:1] or _COLOURS[::-1]
        if at == colours:
            return channels
        if at < first - 1:
            return _FRAMES
        if is_line(shape):
            return (_LONG * int(shape[2]), *_LINES, int(shape[2]))
        other = [size for size in shape[first : first + 2] if isinstance(size, int)]
        if (len(shape) == 5 and colours < 2) or channels[0] not in _COLOURS:
            return (*other, *_MAP)
        large = any(node.op_type in ("Resize", "Upsample") for node in self._nodes)
        known = (*self._told()[at - first : at - first + 1], *other, *self._of_patches())
        lines = _LINE_HEIGHTS if at == first else [_LONG * height for height in _LINE_HEIGHTS]
        return (*known, *(_LARGE_IMAGE if large else (*_IMAGE, *lines)))

    def _of_signal(self, value: ValueInfoProto) -> Sizes:
        """The number of channels (N, C, T) that a convolution reads; nothing for other inputs."""
        if len(declared_shape(value) or ()) != _OF_ONE or _is_integer(value):
            return ()
        return tuple(_channels(self._proto, self._nodes, value.name))[:1]

    def _told(self) -> list[int]:
        """Height and width if the exporter writes them into the file, as ultralytics does."""
        metadata = {entry.key: entry.value for entry in self._proto.metadata_props}
        with suppress(ValueError, RecursionError):
            sizes = json.loads(metadata.get("imgsz", "[]"))
            sizes = sizes if isinstance(sizes, list) else [sizes, sizes]
            return [size for size in sizes if type(size) is int and 0 < size <= _LARGEST]
        return []

    def _of_patches(self) -> Iterator[int]:
        """Sides of a square of patches with one position each, plus up to two for class tokens."""
        step = side_of_patch(self._nodes)
        for rows in (*self._maps, *self._tables):
            if step > 1 and rows - isqrt(rows) ** 2 <= 2:
                yield isqrt(rows) * step

    def _is_sound(self, value: ValueInfoProto, at: int) -> bool:
        """Whether it is an axis of samples, which 1-D convolutions or an STFT shorten."""
        shape = declared_shape(value) or ()
        channels = {*shape[1:2], *self._of_signal(value)}
        plain = len(shape) < 3 or (len(shape) == 3 and _SPEAKERS & channels)
        if not plain or at != len(shape) - 1 or _is_integer(value):
            return False
        steps = (attribute(n, "strides", []) for n in self._nodes if n.op_type == "Conv")
        strided = any(len(step) == 1 and step[0] > 1 for step in steps)
        return strided or any(n.op_type == "STFT" for n in self._nodes)

    def _length(self, value: ValueInfoProto, name: str) -> Sizes:
        names = f"{value.name} {name}".lower()
        if self._has_past and "past" in name:
            return (_PAST,)
        if self._has_past and _is_integer(value) and "mask" not in names and "encoder" not in names:
            return (1,)
        if any(word in name.lower() for word in _SETS):
            return (_MEMBERS, _TOKENS, 1)
        tables = [rows for rows in self._tables if not self._is_of_pixels(rows)]
        counted = (rows - _UNREAD for rows in tables if rows > _UNREAD)
        # What an encoder has read stays as long while shorter pasts are tried.
        first = (_TOKENS,) * len(_PASTS[1:]) if self._has_past and "encoder" in names else ()
        return (*first, _TOKENS, *tables, *counted, *(2 * rows for rows in tables), 1)

    def _is_of_pixels(self, rows: int) -> bool:
        """Whether a table beside images has places for a square of them, and not for a text."""
        return self._has_image and rows > _TOKENS and isqrt(rows) ** 2 == rows


def side_of_patch(every: Iterable[NodeProto]) -> int:
    """The side of the patches that the first convolution makes of an image; 1 if it makes none.

    Patches do not overlap: other networks may have tables of queries, whose number says nothing.
    """
    first = next((node for node in every if node.op_type == "Conv"), None)
    sides = (attribute(first, "strides") or [1]) if first else [1]
    apart = first is None or attribute(first, "kernel_shape", sides) == sides
    return int(sides[-1]) if apart else 1


def _maps(proto: ModelProto, every: Sequence[NodeProto]) -> Iterator[int]:
    """Positions in each constant that is resized, as position embeddings are for other images."""
    sizes = {tensor.name: tensor.dims for tensor in proto.graph.initializer}
    made = {node.output[0]: node for node in every if node.op_type in _MOVES}
    for node in every:
        name = node.input[0] if node.op_type == "Resize" else ""
        while name in made:
            name = made.pop(name).input[0]
        if name in sizes and len(dims := sizes[name]) > 1:
            yield prod(dims[-2:]) if len(dims) == len(_PIXELS) else dims[-2]


def _channels(proto: ModelProto, every: Sequence[NodeProto], image: str) -> Iterator[int]:
    """The number of input channels of each convolution of an input."""
    sizes = {tensor.name: tensor.dims for tensor in proto.graph.initializer}
    names = {image}
    for node in every:
        if not node.input or node.input[0] not in names:
            continue
        if node.op_type in _SCALING:
            names.add(node.output[0])
        elif node.op_type == "Conv" and len(dims := sizes.get(node.input[1], ())) > 1:
            yield dims[1] * (attribute(node, "group") or 1)


def is_of_time(name: str) -> bool:
    """Whether the name of an axis says that it is a sequence or a set."""
    return name.lower() in _TIME_LETTERS or any(word in name.lower() for word in _TIMES)


def is_of_batch(name: str) -> bool:
    """Whether the name of an axis says that it is a batch."""
    return name.lower() in _BATCH_LETTERS or any(word in name.lower() for word in _BATCHES)


def is_of_image(value: ValueInfoProto) -> bool:
    """Whether an input has the rank of images or volumes, or is one image by its axes' names."""
    shape = declared_shape(value) or ()
    if shape and shape[-1] in _PLACES and isinstance(shape[-2], str):
        return False  # points or boxes, as many as are asked for
    return len(shape) in _OF_IMAGES or (len(shape) == _OF_ONE and _is_one_image(shape))


def is_list(shape: Sequence[int | str], firsts: Iterable[int | str]) -> bool:
    """Whether an input is of rows of its own, such as places, where other inputs share a batch.

    firsts: the first axis of each input.
    """
    shared = {name for name, count in Counter(firsts).items() if count > 1}
    if len(shape) != 2 or not shared or isinstance(shape[1], str):
        return False
    name = shape[0]
    return isinstance(name, str) and not name.startswith(UNNAMED) and name not in shared


def _is_one_image(shape: Sequence[int | str]) -> bool:
    sides = [at for at, size in enumerate(shape) if str(size).lower() in _SIDES]
    return (sides, shape[2] in _COLOURS) == ([0, 1], True) or (
        (sides, shape[0] in _COLOURS) == ([1, 2], True)
    )


def colours_at(shape: Sequence[int | str]) -> int:
    """The axis of the colours or channels of images; behind that of the frames of a video."""
    first = len(shape) - _OF_ONE and 1
    if _is_video(shape):
        return first + 1
    last = shape[-1] in _COLOURS and shape[first] not in _COLOURS
    return len(shape) - 1 if last else first


def _is_video(shape: Sequence[int | str]) -> bool:
    """Whether it is a tensor of several images each (N, T, C, H, W), such as pairs to compare."""
    return len(shape) == len(_PIXELS) + 1 and shape[2] == _COLOURS[-1] != shape[1]


def is_line(shape: tuple[int | str, ...]) -> bool:
    """Whether images are lines of text: of a small fixed height, and an open width."""
    if len(shape) != 4 or shape[1] not in _COLOURS or isinstance(shape[3], int):
        return False
    return isinstance(shape[2], int) and shape[2] <= _LINE


def _has_batch(value: ValueInfoProto) -> bool:
    """Whether the first of several axes is open and is not one of time."""
    shape = declared_shape(value) or ()
    return len(shape) > 1 and isinstance(shape[0], str) and not is_of_time(shape[0])


def _is_batch_of_state(value: ValueInfoProto, at: int) -> bool:
    """Whether it is the batch of a recurrent layer's state (layers, batch, width)."""
    layers, width = (*(declared_shape(value) or ()), "", "")[:3:2]
    if len(declared_shape(value) or ()) != 3 or at != 1 or isinstance(width, str):
        return False
    named = any(word in value.name.lower() for word in _STATES)
    return isinstance(layers, int) and (layers > 1 or named)


def _is_integer(value: ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in (TensorProto.INT64, TensorProto.INT32)


def _is_table(tensor: TensorProto) -> bool:
    """Whether a constant is a table of positions, judged by its name and rank."""
    return "pos" in tensor.name.lower() and len(tensor.dims) in (2, 3) and tensor.dims[-2] > 1
