"""Text that somebody else wrote, as it may be shown on a terminal, in a log or in a file."""


def printable(text: str, keep: str = "") -> str:
    r"""The text with whatever a terminal would obey, reorder or hide spelled out, as `\x1b`.

    That is all that `str.isprintable` refuses: control and format characters (among them escape
    sequences, marks that turn the direction of writing, and spaces without width), separators other
    than the space, and what no encoding takes, such as half of a surrogate pair.

    keep: of these, the characters that stay, such as line ends in a text of several lines.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
