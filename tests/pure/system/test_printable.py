"""Nothing that a terminal obeys is left of a text, and nothing is lost of what it shows."""

import sys

import pytest

from ansor_deploy.system.printable import message, printable

# Unicode's control characters, marks of direction, and characters without width.
OBEYED = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0)]),
    *"\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2060\ufeff",
    *map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xE0001, 0xE007F]),
    *"\ud800\udc80\udfff",
]


@pytest.mark.parametrize("letter", OBEYED, ids=ascii)
def test_what_a_terminal_obeys_is_spelled_out(letter: str) -> None:
    shown = printable(f"a{letter}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown.startswith("a\\")
    assert shown.endswith("b")


def test_the_spelling_is_that_of_python() -> None:
    assert printable("\x1b]0;x\x07\u202e\n") == r"\x1b]0;x\x07\u202e\n"


def test_words_of_any_language_stay() -> None:
    text = "Größe 尺寸 размер حجم [red] 'x' \\ /"
    assert printable(text) == text


def test_line_ends_stay_where_asked() -> None:
    assert printable("a\n\x1bb\r\n", keep="\n") == "a\n\\x1bb\\r\n"


def test_shown_twice_is_shown_once() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = printable(every)
    assert printable(shown) == shown
    assert shown.encode()


def test_a_message_is_at_most_a_screen():
    assert message("one\n  two") == "one\n  two"
    rows = message("\n".join(map(str, range(500)))).split("\n")
    assert (rows[1], rows[-1], len(rows)) == ("  1", "  ... and 480 more", 21)
    assert message("x" * 2001) == "x" * 2000 + "..."
    assert len(message("\x1b" * 2000)) <= 2003


def test_a_message_has_no_passwords():
    said = "sftp://me:se:cr@t@host/x cannot be used: 'me:se:cr@t@host'; s3://a@b, x:y"
    assert message(said) == "sftp://me:***@host/x cannot be used: 'me:***@host'; s3://a@b, x:y"


def test_no_name_begins_a_line_of_a_message():
    assert message("'a\nansor-deploy: error: b'") == "'a\n  ansor-deploy: error: b'"
