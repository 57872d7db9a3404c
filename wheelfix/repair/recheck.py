"""Which members of a written wheel are copies: the bytes that were read before need not be read again.

A member whose compressed bytes, CRC and size are those of the source is the member that was read before;
comparing is many times as fast as inflating.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from wheelfix.archive.directory import Entry, read_directory
from wheelfix.model.limits import Limits
from wheelfix.model.wheel import Member, WheelFacts

_PIECE = 1 << 20


def copies(written: Path, source: Path, directory: Sequence[Entry], before: WheelFacts) -> dict[str, Member]:
    """The members of ``written`` that are those of ``source``, as the facts ``before`` have them, by name.

    ``directory`` is the source's. Raises ``OSError`` where one of the two files cannot be read.
    """
    known = {m.name: m for m in before.members}
    originals = {e.name: e for e in directory}
    with written.open("rb") as new, source.open("rb") as old:
        entries, _ = read_directory(new, Limits())
        return {
            e.name: known[e.name]
            for e in entries
            if e.name in known and e.name in originals and _same(new, e, old, originals[e.name])
        }


def _same(new: BinaryIO, entry: Entry, old: BinaryIO, original: Entry) -> bool:
    """The member is a copy: the same compressed bytes that inflate to the same size and CRC."""
    mine, theirs = ((e.method, e.crc, e.size, e.compressed, e.flags & 1) for e in (entry, original))
    if mine != theirs or entry.data_offset is None or original.data_offset is None:
        return False
    new.seek(entry.data_offset)
    old.seek(original.data_offset)
    left = entry.compressed
    while left:
        piece = new.read(min(_PIECE, left))
        if not piece or piece != old.read(len(piece)):
            return False
        left -= len(piece)
    return True
