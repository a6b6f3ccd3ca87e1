"""Ctrl-C that nothing swallows.

Python raises KeyboardInterrupt wherever the main thread happens to be. Where that is a callback of
a C++ library, the library may make an error of its own of it, or print and drop it. So that it was
raised is noted, and asked for between two steps.
"""

_noted: list[type[KeyboardInterrupt]] = []


def interrupt(kind: type[KeyboardInterrupt] = KeyboardInterrupt) -> None:
    """Raise it, now or at the next `check`."""
    _noted.append(kind)
    raise kind


def check() -> None:
    """Raise what was noted and has not come through."""
    if _noted:
        raise _noted[-1]


def forget() -> None:
    """Drop what was noted: it has come through."""
    _noted.clear()
