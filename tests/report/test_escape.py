from __future__ import annotations

import pytest

from wheelfix.report.escape import plain


@pytest.mark.parametrize("name", ["pkg/_ext.so", "a b", "größe/模块.so", ""])
def test_a_readable_name_is_left_alone(name: str) -> None:
    assert plain(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("a\x00b\x7fc\x9b", r"a\x00b\x7fc\x9b"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("a\u2028b\u00a0c", r"a\u2028b\xa0c"),
        ("a\udcffb", r"a\udcffb"),
    ],
)
def test_what_steers_a_terminal_or_a_reader_is_an_escape(name: str, shown: str) -> None:
    assert plain(name) == shown
