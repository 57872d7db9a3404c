"""What a written wheel holds, read from its bytes: the second half of prediction and proof.

A member whose compressed bytes, CRC and size are those of the source is the member that was read before;
comparing is many times as fast as inflating. Every other member is inflated, hashed and inspected anew, and so
are RECORD, WHEEL and METADATA.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from wheelfix.archive.directory import Entry, read_directory
from wheelfix.archive.limits import Limits
from wheelfix.archive.metadata import (
    disagreements,
    dist_info_folders,
    parse_file_name,
    parse_metadata,
)
from wheelfix.archive.reader import Inspect, Inspected, read_member
from wheelfix.archive.record import Digest, compare, encoded, parse_record
from wheelfix.model.finding import Fault
from wheelfix.model.wheel import Member, WheelFacts

_PIECE = 1 << 20


def written_facts(
    written: Path,
    source: Path,
    directory: Sequence[Entry],
    before: WheelFacts,
    planned: WheelFacts,
    inspect: Inspect,
) -> WheelFacts:
    """The facts of ``written``, made from ``source``, whose facts are ``before``; ``planned`` says where members install.

    ``directory`` is the source's.

    The faults are those of ``planned`` and whatever is wrong with the written bytes beside them. Raises ``OSError``
    where one of the two cannot be read.
    """
    limits = Limits()
    known = {m.name: m for m in before.members}
    places = {m.name: m for m in planned.members}
    members: list[Member] = []
    with written.open("rb") as new, source.open("rb") as old:
        entries, directory_faults = read_directory(new, limits)
        originals = {e.name: e for e in directory}
        faults = [*planned.faults, *directory_faults]
        texts: dict[str, str] = {}
        digests: dict[str, Digest | None] = {}
        for entry in entries:
            place = places.get(entry.name) or Member(entry.name, entry.name)
            original = originals.get(entry.name)
            if original is not None and entry.name in known and _same(new, entry, old, original):
                member = replace(known[entry.name], path=place.path, scheme=place.scheme)
            else:
                member, own = _inspected(new, entry, place, inspect, limits)
                faults += own
            members.append(replace(member, mode=entry.mode, compressed=entry.compressed))
            if not entry.is_folder:
                digests[entry.name] = Digest(entry.size, {"sha256": member.sha256}) if member.sha256 else None
            folder, _, file = entry.name.rpartition("/")
            if folder == planned.dist_info and file in ("METADATA", "WHEEL", "RECORD"):
                texts[file] = (read_member(new, entry, limits) or b"").decode("utf-8", "replace")
        size = new.seek(0, 2)
    file_name = parse_file_name(written.name)
    metadata = parse_metadata(texts.get("METADATA"), texts.get("WHEEL"))
    rows, row_faults = parse_record(texts.get("RECORD", ""))
    names = [e.name for e in entries]
    held = [n.partition("/")[2] for n in names if n.startswith(f"{planned.dist_info}/")]
    faults += disagreements(file_name, dist_info_folders(names), held, metadata)
    faults += [*row_faults, *compare(rows, digests, planned.dist_info or "")]
    return replace(
        planned,
        filename=written.name,
        tags=file_name.tags,
        wheel_tags=metadata.tags,
        root_is_purelib=metadata.root_is_purelib,
        members=tuple(members),
        faults=tuple(faults),
        file_size=size,
    )


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


def _inspected(
    file: BinaryIO, entry: Entry, place: Member, inspect: Inspect, limits: Limits
) -> tuple[Member, list[Fault]]:
    """A member from its bytes, and what is wrong with it."""
    data = read_member(file, entry, limits)
    if data is None:
        broken = Fault("zip-crc", f"{entry.name} cannot be inflated", place.path)
        return replace(place, elf=None, content="other", sha256="", size=entry.size), [broken]
    seen = inspect(entry.name, data) or Inspected()
    faults = [f if f.member is not None else replace(f, member=place.path) for f in seen.faults]
    return (
        replace(
            place,
            elf=seen.elf,
            content="directory" if entry.is_folder else seen.content,
            sha256=encoded(hashlib.sha256(data).digest()),
            size=len(data),
        ),
        faults,
    )


def inspector(strings: frozenset[str]) -> Inspect:
    """Inspects ELF objects for these registration strings, as the audit does."""
    from wheelfix.elf.read import read

    def inspect(name: str, data: bytes) -> Inspected:
        seen = read(data, name=name, strings=strings)
        return Inspected(seen.content, seen.facts, seen.faults)

    return inspect
