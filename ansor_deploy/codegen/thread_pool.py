"""The thread pool of a library (`thread_pool.c`) as an object file, for any target."""

from pathlib import Path

from ..target import Target
from .kept_object import kept_object

SOURCE = Path(__file__).with_name("thread_pool.c")
TEXT = SOURCE.with_suffix(".ll")
# The number of threads that run a library's loops, until the caller sets another.
_THREADS = "@own_threads = internal global i32 "


def thread_pool(target: Target) -> bytes:
    """The object file, for as many threads as the target has cores."""
    text = TEXT.read_text().replace(f"{_THREADS}1,", f"{_THREADS}{target.cores},")
    return kept_object("thread_pool", text, target)
