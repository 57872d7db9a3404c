"""The tables of ``policies/baseline``: what one library exports in each of several releases of a distribution.

A table is text. One header line for each column (a release, or a Python):

    #bullseye<TAB>libdl.so.2<TAB>libc.so.6 ld-linux-x86-64.so.2<TAB>1:libdl.so.2 2:GLIBC_2.2.5 ...

that is its name, the SONAME, DT_NEEDED, and verdef as index and name (index 1 is the file's own entry). Then one
line for each symbol, version and kind, sorted by name and by the index of the version:

    dlopen<TAB>GLIBC_2.2.5<TAB>F<TAB>@-

The third field is the type, in lower case for weak symbols, with the size of data objects behind it; ``U`` is
STB_GNU_UNIQUE. The last field has one character for each column: ``@`` the symbol is there, ``-`` it is there and
hidden (not the default version), ``.`` it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wheelfix.model.elf import (
    STB_GLOBAL,
    STB_GNU_UNIQUE,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_TLS,
    STV_DEFAULT,
    ElfFacts,
    Symbol,
    VersionDef,
)

#: The member of an architecture's archive that lists its columns, oldest first, each with the newest glibc that it can
#: stand for.
RELEASES = "releases"

_KINDS = {"F": STT_FUNC, "O": STT_OBJECT, "T": STT_TLS, "I": STT_GNU_IFUNC, "N": STT_NOTYPE}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}
_VERSION_1 = 1  # verdef's entry for the file itself
_DEFINED = 1  # a section index and an address that say "defined", and nothing else


@dataclass(frozen=True, slots=True)
class Exports:
    """What one library exports in one column. Symbols have neither a real address nor a real section."""

    soname: str
    needed: tuple[str, ...] = ()
    verdef: tuple[VersionDef, ...] = ()
    symbols: tuple[Symbol, ...] = ()


def exports_of(facts: ElfFacts, *, soname: str | None = None) -> Exports:
    """What an object that was read exports, without the absolute symbols that stand for its version nodes."""
    nodes = {d.name for d in facts.verdef}
    return Exports(
        soname or facts.soname or "",
        tuple(dict.fromkeys(facts.needed)),
        tuple(d._replace(weak=False) for d in facts.verdef),
        tuple(
            Symbol(
                s.name,
                bind=s.bind,
                kind=s.kind if s.kind in _LETTERS else STT_OBJECT,
                section=_DEFINED,
                value=_DEFINED,
                size=s.size if s.kind == STT_OBJECT else 0,
                version=s.version,
                version_index=s.version_index,
                hidden=s.hidden,
            )
            for s in facts.symbols
            if s.exported and s.name not in nodes
        ),
    )


def render(columns: Mapping[str, Exports]) -> str:
    """The table of one library, from what it exports in each column, in the order of the mapping."""
    lines = []
    rows: dict[tuple[str, int, str, str], list[str]] = {}
    for position, (column, exports) in enumerate(columns.items()):
        nodes = " ".join(f"{d.index}:{d.name}" for d in exports.verdef)
        lines.append(f"#{column}\t{exports.soname}\t{' '.join(exports.needed)}\t{nodes}\n")
        for s in exports.symbols:
            letter = "U" if s.bind == STB_GNU_UNIQUE else _LETTERS[s.kind]
            code = (letter.lower() if s.bind == STB_WEAK else letter) + (str(s.size) if s.size else "")
            key = (s.name, s.version_index, s.version or "", code)
            rows.setdefault(key, ["."] * len(columns))[position] = "-" if s.hidden else "@"
    merged: dict[tuple[str, str, str], list[str]] = {}
    for (name, _, version, code), marks in sorted(rows.items()):
        # The index of one node may differ between releases; the row is the same.
        row = merged.setdefault((name, version, code), ["."] * len(columns))
        for position, mark in enumerate(marks):
            if mark != ".":
                row[position] = mark
    lines += (f"{n}\t{v}\t{c}\t{''.join(marks)}\n" for (n, v, c), marks in merged.items())
    return "".join(lines)


def columns_of(text: str) -> tuple[str, ...]:
    """The names of a table's columns."""
    return tuple(line[1 : line.index("\t")] for line in _header(text))


def names_of(text: str) -> Iterator[tuple[str, str]]:
    """Name and kind code of every row, over all columns."""
    for line in text.splitlines()[len(_header(text)) :]:
        name, _, code, _ = line.split("\t")
        yield name, code


def parse(text: str, column: str) -> Exports:
    """One column of a table. Raises ``KeyError`` for a column that the table lacks."""
    header = [line[1:].split("\t") for line in _header(text)]
    position = next((i for i, line in enumerate(header) if line[0] == column), None)
    if position is None:
        raise KeyError(column)
    _, soname, needed, nodes = header[position]
    verdef = tuple(
        VersionDef(node, int(index), base=int(index) == _VERSION_1)
        for index, _, node in (n.partition(":") for n in nodes.split())
    )
    indexes = {d.name: d.index for d in verdef if not d.base}
    codes: dict[str, tuple[int, int, int]] = {}
    symbols = []
    for line in text.splitlines()[len(header) :]:
        name, version, code, marks = line.split("\t")
        mark = marks[position]
        if mark == ".":
            continue
        decoded = codes.get(code)
        if decoded is None:
            decoded = codes[code] = _decoded(code)
        bind, kind, size = decoded
        index = indexes.get(version, 1)
        # By position: there are thousands of them, and keywords take twice as long.
        symbols.append(
            Symbol(
                name,
                bind,
                kind,
                STV_DEFAULT,
                _DEFINED,
                _DEFINED,
                size,
                version or None,
                None,
                index,
                mark == "-",
            )
        )
    return Exports(soname, tuple(needed.split()), verdef, tuple(symbols))


def _header(text: str) -> Sequence[str]:
    match = re.match(r"(?:#.*\n)+", text)
    return match[0].splitlines() if match else ()


def _decoded(code: str) -> tuple[int, int, int]:
    """Binding, type and size."""
    letter, size = code[0], int(code[1:] or 0)
    if letter == "U":
        return STB_GNU_UNIQUE, STT_OBJECT, size
    return STB_WEAK if letter.islower() else STB_GLOBAL, _KINDS[letter.upper()], size
