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
_STRING = "strings are not compiled"

REASONS = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"), _RANDOM
    ),
    "RandomUniformLike": _RANDOM,
    "MatMulFpQ4": _FOUR_BITS,
    **dict.fromkeys(("MoE", "QMoE"), _EXPERTS),
    **dict.fromkeys(("CastMap", "DictVectorizer", "ZipMap"), _MAP),
    "CategoryMapper": _STRING,
    "SequenceMap": _SEQUENCE,
    "ImageDecoder": _DATA,
    **dict.fromkeys(
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"),
        _STRING,
    ),
}

_LAYOUT = "the file is laid out for one processor: save it with ORT_ENABLE_EXTENDED, not ALL"
DOMAINS = {"com.microsoft.nchwc": _LAYOUT, "com.ms.internal.nhwc": _LAYOUT}
