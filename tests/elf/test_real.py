"""Every ELF object of the real wheels is read without a fault, and as pyelftools reads it."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from wheelfix.elf.read import read

CACHE = Path(os.environ.get("WHEELFIX_TEST_CACHE", Path.home() / ".cache" / "wheelfix-tests")) / "wheels"
LARGEST = 60_000_000  # bytes; pyelftools needs minutes for more


def objects() -> Iterator[tuple[str, bytes]]:
    for path in sorted(CACHE.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            for item in wheel.infolist():
                if 4 <= item.file_size <= LARGEST:
                    with wheel.open(item) as file:
                        if file.read(4) != b"\x7fELF":
                            continue
                    yield f"{path.name}: {item.filename}", wheel.read(item)


@pytest.mark.real
def test_real_objects_have_no_faults_and_the_names_that_pyelftools_reads() -> None:
    count = 0
    for name, data in objects():
        found = read(data, name=name)
        assert found.faults == (), name
        assert found.facts is not None, name
        elf = ELFFile(io.BytesIO(data))
        segment = next((s for s in elf.iter_segments() if s.header.p_type == "PT_DYNAMIC"), None)
        tags = list(segment.iter_tags()) if segment else []
        assert found.facts.needed == tuple(t.needed for t in tags if t.entry.d_tag == "DT_NEEDED"), name
        assert found.facts.soname == next((t.soname for t in tags if t.entry.d_tag == "DT_SONAME"), None), (
            name
        )
        assert found.facts.rpath == next((t.rpath for t in tags if t.entry.d_tag == "DT_RPATH"), None), name
        assert found.facts.runpath == next(
            (t.runpath for t in tags if t.entry.d_tag == "DT_RUNPATH"), None
        ), name
        table = elf.get_section_by_name(".dynsym")
        if table is not None:
            assert [s.name for s in found.facts.symbols] == [s.name for s in table.iter_symbols()][1:], name
        count += 1
    assert count > 0, f"no wheels in {CACHE}"
