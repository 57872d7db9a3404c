"""The difference of two wheels as text, JSON (wheelfix/diff/1) and Markdown. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from wheelfix.report.difference import Difference, Row
from wheelfix.report.escape import plain
from wheelfix.report.json import dumped
from wheelfix.report.markdown import cell

SCHEMA = "wheelfix/diff/1"
_BYTES = ("size", "installed")
_MOST = 8  # names of one kind that a reader is shown


def as_json(found: Difference) -> str:
    """Everything, names never shortened; sizes are bytes."""
    rows = [_row(r) for r in found.rows]
    changed = [{"old": c.old, "new": c.new, "rows": [_row(r) for r in c.rows]} for c in found.changed]
    return dumped(SCHEMA, {**asdict(found), "rows": rows, "changed": changed})


def _row(row: Row) -> dict[str, Any]:
    if row.aspect in _BYTES:
        return {"aspect": row.aspect, "removed": [*map(int, row.removed)], "added": [*map(int, row.added)]}
    return asdict(row)


def as_text(found: Difference, *, width: int = 80, colour: bool = False) -> str:
    """The wheels, then what came and went, then each object that changed."""
    lines = [f"{plain(found.old)} -> {plain(found.new)}"]
    if found.nothing:
        return f"{lines[0]}\nnothing that a loader could see is different\n"
    lines += _rows(found.rows, "  ", width, colour)
    lines += _rows(_listed(found), "  ", width, colour)
    for one in found.changed:
        renamed = "" if one.old == one.new else f" (was {plain(one.old)})"
        lines += ["", f"{plain(one.new)}{renamed}", *_rows(one.rows, "  ", width, colour)]
    lines += ["", f"{found.same} objects are as they were"] if found.same else []
    return "\n".join(lines) + "\n"


def as_markdown(found: Difference) -> str:
    """A table for the wheels and one for the objects, for a comment or a job's summary."""
    head = f"**{cell(found.old)}** → **{cell(found.new)}**"
    if found.nothing:
        return f"{head}\n\nNothing that a loader could see is different.\n"
    table = ["| where | what | went | came |", "|---|---|---|---|"]
    for row in (*found.rows, *_listed(found)):
        table.append(f"| the wheel | {row.aspect} | {_cell(row, row.removed)} | {_cell(row, row.added)} |")
    for one in found.changed:
        rows = one.rows if one.old == one.new else (Row("name", (one.old,), (one.new,)), *one.rows)
        for row in rows:
            cells = f"{_cell(row, row.removed)} | {_cell(row, row.added)}"
            table.append(f"| {cell(one.new)} | {row.aspect} | {cells} |")
    return "\n\n".join((head, "\n".join(table), f"{found.same} objects are as they were.")) + "\n"


def _listed(found: Difference) -> Iterator[Row]:
    for aspect, gone, came in (
        ("objects", found.removed, found.added),
        ("files", found.files_removed, found.files_added),
    ):
        if gone or came:
            yield Row(aspect, gone, came)


def _rows(rows: Iterator[Row] | Sequence[Row], indent: str, width: int, colour: bool) -> Iterator[str]:
    for row in rows:
        label = f"{indent}{row.aspect:<15} "
        if row.aspect in _BYTES:
            yield label + _sizes(row)
            continue
        for sign, names, code in (("-", row.removed, "31"), ("+", row.added, "32")):
            for name in _shortened(names):
                for number, line in enumerate(_wrapped(plain(name), width - len(label) - 2)):
                    text = f"{sign if not number else ' '} {line}"
                    yield label + (f"\x1b[{code}m{text}\x1b[0m" if colour else text)
                    label = " " * len(label)


def _wrapped(name: str, width: int) -> list[str]:
    return textwrap.wrap(name, max(width, 20), break_long_words=False, break_on_hyphens=False) or [name]


def _shortened(names: Sequence[str]) -> list[str]:
    if len(names) <= _MOST + 1:
        return list(names)
    return [*names[:_MOST], f"... and {len(names) - _MOST} more (--json lists them)"]


def _sizes(row: Row) -> str:
    old, new = int(row.removed[0]), int(row.added[0])
    share = f" ({100 * (new - old) / old:+.1f} %)" if old else ""
    return f"{_megabytes(old)} -> {_megabytes(new)}{share}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.2f} MB" if size >= 100_000 else f"{size:,} bytes"


def _cell(row: Row, names: Sequence[str]) -> str:
    if row.aspect in _BYTES:
        return _megabytes(int(names[0]))
    return "<br>".join(map(cell, _shortened(names)))
