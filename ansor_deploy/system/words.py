"""Words in messages: counts, sizes, and what an error says last."""


def count(number: int, noun: str) -> str:
    """A number of things, such as "1 task" or "3 tasks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size_text(size: int) -> str:
    """A size in bytes, such as "512 B", "1.5 kB" or "23.4 MB"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B"


def last_line(error: Exception) -> str:
    """The last line of an error's text, below programs and frames; its type if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
