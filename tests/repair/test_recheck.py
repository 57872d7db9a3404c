"""Facts of a written wheel through its source are the facts that a full read of it gives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from wheelfix.archive.directory import read_directory
from wheelfix.audit import Options, prepare, read
from wheelfix.model.limits import Limits
from wheelfix.model.wheel import WheelFacts
from wheelfix.repair.recheck import copies

SETTING = prepare(Options())


def full(wheel: Path) -> WheelFacts:
    return read(wheel, SETTING)


@pytest.fixture
def pair(forge: Any) -> tuple[Path, Path]:
    """A wheel and what repair makes of it: one member changed, some new, the rest copied."""
    library = forge.library("ext/libbig.so.5", "big", "41")
    extension = forge.module(f"_e{forge.suffix}", "big()", str(library))
    members = {f"pkg/_e{forge.suffix}": extension, "pkg/__init__.py": "", "pkg/data.txt": "d" * 5000}
    source = forge.wheel("x", members)
    return source, forge.repaired(source, away="ext")


def through(source: Path, written: Path) -> WheelFacts:
    with source.open("rb") as file:
        directory, _ = read_directory(file, Limits())
    return read(written, SETTING, copies(written, source, directory, full(source)))


def test_facts_are_those_of_a_full_read(pair: tuple[Path, Path]) -> None:
    source, written = pair
    assert through(source, written) == full(written)


def test_a_member_that_is_not_the_sources_is_read_and_judged(pair: tuple[Path, Path]) -> None:
    source, written = pair
    changed = written.parent.parent / written.name
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry, b"e" * 5000 if entry.filename == "pkg/data.txt" else old.read(entry))
    found = through(source, changed)
    assert any(f.rule == "record-hash" and f.member == "pkg/data.txt" for f in found.faults)
    assert found.members == full(changed).members


def test_a_damaged_copy_is_no_copy(pair: tuple[Path, Path]) -> None:
    source, written = pair
    with zipfile.ZipFile(written) as archive:
        entry = archive.getinfo("pkg/data.txt")
    data = bytearray(written.read_bytes())
    data[entry.header_offset + 30 + len(entry.filename) + 3] ^= 0xFF
    written.write_bytes(data)
    assert any(f.rule == "zip-crc" for f in through(source, written).faults)


def test_a_foreign_member_is_not_overlooked(pair: tuple[Path, Path]) -> None:
    source, written = pair
    with zipfile.ZipFile(written, "a") as archive:
        archive.writestr("pkg/extra.py", "x = 1")
    assert any(f.rule == "record-missing" for f in through(source, written).faults)
