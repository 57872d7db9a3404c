"""Differences between wheelfix and another reader, and the table that explains each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("differences.toml")
READERS = frozenset({"pyelftools", "readelf", "auditwheel"})
RIGHT = READERS | {"wheelfix", "both"}

#: What one reader says of one object: the name of a fact -> a value, a tuple of values in the file's order, or a
#: frozenset of them where order says nothing.
Facts = Mapping[str, object]


class Difference(NamedTuple):
    """One fact on which two readers differ. ``member`` is empty where it is a fact of the whole wheel."""

    reader: str
    member: str
    fact: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Row:
    """An explanation. ``wheels`` are globs of file names, and each wheel that they match must show the difference;
    ``member``, ``ours`` and ``theirs`` are globs too."""

    reader: str
    wheels: tuple[str, ...]
    fact: str
    ours: str
    theirs: str
    right: str
    why: str
    member: str = "*"

    def of(self, file: str) -> bool:
        return any(fnmatchcase(file, pattern) for pattern in self.wheels)

    def explains(self, found: Difference) -> bool:
        return (
            (self.reader, self.fact) == (found.reader, found.fact)
            and fnmatchcase(found.member, self.member)
            and fnmatchcase(found.ours, self.ours)
            and fnmatchcase(found.theirs, self.theirs)
        )


def rows(table: Path = TABLE) -> tuple[Row, ...]:
    """The table; a key that a row lacks or that no row has is a ``TypeError``."""
    found = tomllib.loads(table.read_text("utf-8"))["difference"]
    return tuple(Row(**{**entry, "wheels": tuple(entry["wheels"])}) for entry in found)


def differences(reader: str, member: str, ours: Facts, theirs: Facts) -> Iterator[Difference]:
    """Every fact that the other reader tells and wheelfix does not tell likewise; each member of a tuple or set apart."""
    for fact, other in theirs.items():
        own = ours[fact]
        if own == other:
            continue
        if isinstance(own, tuple) and isinstance(other, tuple):
            for a, b in zip_longest(own, other, fillvalue="nothing"):
                if a != b:
                    yield Difference(reader, member, fact, str(a), str(b))
        elif isinstance(own, frozenset) and isinstance(other, frozenset):
            for item in sorted(own ^ other):
                told = (str(item), "nothing")
                yield Difference(reader, member, fact, *(told if item in own else reversed(told)))
        else:
            yield Difference(reader, member, fact, str(own), str(other))


def unexplained(found: Iterable[Difference], file: str, table: Iterable[Row]) -> list[Difference]:
    """The differences of one wheel that no row explains."""
    mine = [row for row in table if row.of(file)]
    return [d for d in found if not any(row.explains(d) for row in mine)]


def outlived(
    found: Iterable[Difference], file: str, readers: Iterable[str], table: Iterable[Row]
) -> list[Row]:
    """The rows on one wheel, of the readers that were asked, that explain nothing any more."""
    seen = list(found)
    asked = frozenset(readers)
    return [
        row
        for row in table
        if row.reader in asked and row.of(file) and not any(row.explains(d) for d in seen)
    ]
