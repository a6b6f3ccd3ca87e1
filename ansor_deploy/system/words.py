"""Words of messages that depend on a number."""


def count(number: int, noun: str) -> str:
    """A number of things, such as "1 task" or "3 tasks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
