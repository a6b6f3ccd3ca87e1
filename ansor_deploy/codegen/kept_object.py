"""Object files of parts written in C, from the cache where an earlier build has compiled them."""

from ..target import Target
from .kernels.object_cache import ObjectCache
from .llvm_text import object_of_text


def kept_object(name: str, text: str, target: Target) -> bytes:
    """As `object_of_text`. name: that of the object file."""
    cache = ObjectCache(target, lambda message: None)  # where it warns, kernels have warned already
    if (code := cache.get(name, text)) is None:
        code = object_of_text(text, target)
        cache.put(name, text, code)
    return code
