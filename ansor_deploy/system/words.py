"""Words for numbers in messages: counts and sizes."""


def count(number: int, noun: str) -> str:
    """A number of things, such as "1 task" or "3 tasks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size_text(size: int) -> str:
    """A size in bytes, such as "512 B", "1.5 kB" or "23.4 MB"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B"
