"""RECORD: what is written is read back the same, by us and by the csv module as installers use it."""

from __future__ import annotations

import csv
import io

from hypothesis import example, given, settings
from hypothesis import strategies as st

from wheelfix.archive.record import Row, encoded, format_record, parse_record

# Any text but NUL, which no ZIP name can hold for an installer, and what cannot be encoded.
_NAMES = st.text(
    st.one_of(st.sampled_from(",\"'\n\r\t ;éß漢\u2028"), st.characters(exclude_categories=["Cs"])), min_size=1
).filter(lambda name: "\0" not in name)
_DIGESTS = st.binary(min_size=32, max_size=32).map(encoded)
_ROWS = st.lists(
    st.one_of(
        st.builds(Row, _NAMES),
        st.builds(Row, _NAMES, st.sampled_from(("sha256", "sha512")), _DIGESTS, st.integers(0, 1 << 40)),
    ),
    max_size=8,
)


@settings(max_examples=500)
@given(_ROWS)
@example([Row("a\rb.py"), Row("a\r\nb.py"), Row('"'), Row('a,"b"\n.py'), Row(" x ")])
def test_what_is_written_is_read_back(rows: list[Row]) -> None:
    text = format_record(rows)
    assert parse_record(text) == (tuple(rows), ())
    cells = list(csv.reader(io.StringIO(text, newline="")))
    assert [c[0] for c in cells] == [r.path for r in rows]
    assert all(len(c) == 3 for c in cells)


@settings(max_examples=300)
@given(_ROWS)
def test_line_ends_of_other_systems_change_nothing(rows: list[Row]) -> None:
    plain = [r for r in rows if "\n" not in r.path and "\r" not in r.path]
    assert parse_record(format_record(plain).replace("\n", "\r\n")) == (tuple(plain), ())


@settings(max_examples=500)
@given(st.text(st.one_of(st.sampled_from(',"\n\r='), st.characters(exclude_categories=["Cs"]))))
def test_any_text_gives_rows_and_faults_and_never_raises(text: str) -> None:
    rows, faults = parse_record(text)
    assert all(r.size is None or r.size >= 0 for r in rows)
    assert all(f.message for f in faults)
