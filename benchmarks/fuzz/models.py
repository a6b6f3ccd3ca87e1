"""Mutated models: node tests of the package `onnx` and small networks, each changed a little."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import numpy as np
from onnx import ModelProto, numpy_helper, parser
from onnx.shape_inference import infer_shapes

from benchmarks.fuzz.conformance_cases import bound, cases, meant
from benchmarks.fuzz.messages import mutate, spoilt_bytes

NETWORKS = 0.5  # the share of tries that begin with a network, and not with one operator
RAW = 0.1  # the share of tries that change raw bytes, so that many models do not parse
# In ONNX's text format. Tensors that are declared without values are filled with random numbers.
NETS = {
    # Convolution, batch norm, pooling, a residual sum and a classifier.
    "convolutional": """g (float[1,3,10,10] x) => (float[] y)
        <float[8,3,3,3] w0, float[8] b0, float[8,4,3,3] w1, float[5,8] w2, float[8] m,
         float[8] s = {1,1,1,1,1,1,1,1}, float[8] v = {1,1,1,1,1,1,1,1}> {
        a = Conv <pads = [1,1,1,1]> (x, w0, b0)
        b = BatchNormalization (a, s, b0, m, v)
        c = Relu (b)
        d = Conv <pads = [1,1,1,1], group = 2> (c, w1)
        e = Add (c, d)
        f = MaxPool <kernel_shape = [2,2], strides = [2,2]> (e)
        g = GlobalAveragePool (f)
        h = Flatten (g)
        y = Gemm <transB = 1> (h, w2)
    }""",
    # A lookup of words, scores, a mask by Where, softmax, layer norm.
    "attention": """g (int64[1,6] ids, bool[6,6] mask) => (float[] y)
        <float[20,8] table, float[8,8] wq, float[8,8] wk, float[8] g, float[8] b,
         float low = {-1e9}, int64[1] from = {0}, int64[1] to = {3}, int64[1] axes = {1}> {
        a = Gather (table, ids)
        q = MatMul (a, wq)
        k = MatMul (a, wk)
        kt = Transpose <perm = [0,2,1]> (k)
        s = MatMul (q, kt)
        masked = Where (mask, s, low)
        p = Softmax <axis = -1> (masked)
        o = MatMul (p, a)
        n = LayerNormalization (o, g, b)
        y = Slice (n, from, to, axes)
    }""",
    # An LSTM with its states, and shapes that are computed.
    "recurrent": """g (float[5,2,3] x) => (float[] y)
        <float[1,16,3] w, float[1,16,4] r, float[1,32] b,
         int64[1] one = {1}, int64[1] zero = {0}, int64[1] minus = {-1}> {
        h, last = LSTM <hidden_size = 4> (x, w, r, b)
        s = Squeeze (h, one)
        shape = Shape (s)
        steps = Gather (shape, zero)
        to = Concat <axis = 0> (steps, minus)
        t = Reshape (s, to)
        u = ReduceMax <axes = [1]> (t)
        y = Elu (u)
    }""",
    # If within Loop, and a local function that calls another.
    "nested": """g (float[2,3] x) => (float[] y)
        <int64 three = {3}, bool yes = {1}, bool flag = {1}> {
        a = Loop <body = body (int64 i, bool go, float[2,3] state)
                         => (bool again, float[2,3] next) {
            next = If <then_branch = then () => (float[2,3] then) { then = Neg (state) },
                       else_branch = else () => (float[2,3] else) { else = Exp (state) }> (flag)
            again = Identity (go)
        }> (three, yes, x)
        y = own.Twice (a)
    }
    <domain: "own", opset_import: ["": 17, "own": 1]>
    Once (p) => (q) { q = Tanh (p) }
    <domain: "own", opset_import: ["": 17, "own": 1]>
    Twice (p) => (q) {
        r = own.Once (p)
        q = own.Once (r)
    }""",
    # A quantised convolution between two conversions, a resize, and updates at indices.
    "quantized": """g (float[1,2,4,4] x) => (float[] y)
        <float step = {0.1}, uint8 point = {128}, float[4,2,3,3] w, float[0] none = {},
         float[4] scales = {1,1,2,2}, int64[1,3] at = {0,1,2}, float[1,8] updates,
         float low = {-1}, float high = {1}, int64[1] two = {2}> {
        q = QuantizeLinear (x, step, point)
        d = DequantizeLinear (q, step, point)
        c = Conv <pads = [1,1,1,1]> (d, w)
        r = Resize <mode = "linear"> (c, none, scales)
        z = ScatterND (r, at, updates)
        k = Clip (z, low, high)
        y, which = TopK <axis = 1> (k, two)
    }""",
}


def spoil(seed: int, path: Path) -> str:
    """Write the model of this seed; returns its name and the edits."""
    chance = random.Random(seed)
    name, proto = _begin(chance)
    if chance.random() < RAW:
        path.write_bytes(spoilt_bytes(proto.SerializeToString(), chance))
        return f"{name}: bytes"
    done = mutate(proto, chance.choice((1, 1, 2, 3, 6)), chance)
    path.write_bytes(proto.SerializeToString())
    return f"{name}: {'; '.join(done)}"


def _begin(chance: random.Random) -> tuple[str, ModelProto]:
    proto = ModelProto()
    if chance.random() < NETWORKS:
        name = chance.choice(sorted(NETS))
        proto.CopyFrom(network(name))
    else:
        name = chance.choice(meant())
        case = cases()[name]
        proto.CopyFrom(bound(case, case.data_sets[0][0])[0])
    return name, proto


@cache
def network(name: str) -> ModelProto:
    """One of `NETS`, with weights; callers must not change it."""
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "own": 1]> {NETS[name]}')
    rng = np.random.default_rng(0)
    for value in proto.graph.value_info:
        shape = [one.dim_value for one in value.type.tensor_type.shape.dim]
        weight = numpy_helper.from_array(rng.standard_normal(shape, "float32"), value.name)
        proto.graph.initializer.append(weight)
    del proto.graph.value_info[:]
    proto.graph.output[0].CopyFrom(infer_shapes(proto).graph.output[0])
    return proto
