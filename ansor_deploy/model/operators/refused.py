"""Why some operators of ONNX are not compiled, for the message that refuses them."""

_DATA = "the shape of its result depends on the input's values"
_RANDOM = "its results are random"
_SEQUENCE = "sequences are not compiled"
_STRING = "strings are not compiled"

REASONS = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"), _RANDOM
    ),
    "RandomUniformLike": _RANDOM,
    "SequenceMap": _SEQUENCE,
    **dict.fromkeys(("ImageDecoder", "NonMaxSuppression"), _DATA),
    **dict.fromkeys(
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"),
        _STRING,
    ),
}
