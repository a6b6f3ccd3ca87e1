"""Make untrusted text safe to show on a terminal, in a log or in a file."""

import re

# The most lines and characters of a message: about a screen, however long a model's names are.
_LINES = 20
_CHARACTERS = 2000
_PASSWORD = re.compile(r"://[^\s/@:]*:([^\s/]*)@")  # in a URL


def printable(text: str, keep: str = "") -> str:
    r"""The text with characters that a terminal obeys, reorders or hides spelled out, as `\x1b`.

    These are all that `str.isprintable` refuses: control and format characters (among them escape
    sequences, marks that turn the direction of writing, and spaces without width), separators other
    than the space, and code points that cannot be encoded, such as half of a surrogate pair.

    keep: exceptions that stay as they are, such as line ends in a text of several lines.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def without_passwords(text: str) -> str:
    """The text with `***` for the passwords in its URLs, also where these come without a scheme."""
    for password in _PASSWORD.findall(text):
        text = text.replace(f":{password}@", ":***@")
    return text


def message(text: str) -> str:
    """A text for a message: printable, without passwords, and at most a screen long.

    Lines after the first are indented, so that a name with a line end cannot fake another message.
    """
    first, *rest = without_passwords(text).split("\n")
    lines = [first, *(line if line.startswith("  ") else f"  {line}" for line in rest)]
    screen = printable("\n".join(lines[:_LINES])[: _CHARACTERS + 1], keep="\n")
    cut = "..." if len(screen) > _CHARACTERS else ""
    more = f"\n  ... and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return screen[:_CHARACTERS] + cut + more
