"""Why some operators are not compiled, for the message that refuses them."""

_DATA = "the shape of its result depends on the input's values"
_FOUR_BITS = "weights of this form are not compiled: quantise them to MatMulNBits"
_EXPERTS = "experts that are chosen at run time are not compiled: choose a dense model"
_RANDOM = (
    "random numbers are drawn from opset 11 on, in tensors of known types: export the model again "
    "with such an opset"
)
_SEQUENCE = "sequences are not compiled"
_MAP = "maps are not compiled, but a ZipMap that makes an output: make tensors the outputs"
_OF_GPUS = "ONNX Runtime has it for GPUs alone: optimise the exported file without options for GPUs"
_SEARCH = "searches are not compiled: build the decoder that it calls, and search in your program"
_STRING = "strings are not compiled"

REASONS = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"), _RANDOM
    ),
    "RandomUniformLike": _RANDOM,
    "MatMulFpQ4": _FOUR_BITS,
    **dict.fromkeys(("MoE", "QMoE"), _EXPERTS),
    **dict.fromkeys(("CastMap", "DictVectorizer", "ZipMap"), _MAP),
    **dict.fromkeys(
        (
            "BiasAdd",
            "BiasSplitGelu",
            "DecoderAttention",
            "GatedRelativePositionBias",
            "GroupNorm",
            "LongformerAttention",
            "NhwcConv",
            "PackedAttention",
            "PackedMultiHeadAttention",
            "RelativePositionBias",
            "RemovePadding",
            "RestorePadding",
            "SkipGroupNorm",
        ),
        _OF_GPUS,
    ),
    **dict.fromkeys(("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"), _SEARCH),
    "CategoryMapper": _STRING,
    "Tokenizer": _STRING,
    "SequenceMap": _SEQUENCE,
    "ImageDecoder": _DATA,
    **dict.fromkeys(
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"),
        _STRING,
    ),
}

_LAYOUT = "the file is laid out for one processor: save it with ORT_ENABLE_EXTENDED, not ALL"
DOMAINS = {"com.microsoft.nchwc": _LAYOUT, "com.ms.internal.nhwc": _LAYOUT}
