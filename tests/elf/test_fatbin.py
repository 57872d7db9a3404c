"""Device code is read as cuobjdump reads it; what is damaged is passed over, never an exception."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelfix.elf.fatbin import NVIDIA_SECTIONS, amd_code, merged, nvidia_code
from wheelfix.model.elf import DeviceCode

FOLDER = Path(__file__).parent / "device_code"
EXPECTED: dict[str, dict[str, int]] = json.loads((FOLDER / "expected.json").read_text())


def sections(name: str) -> list[bytes]:
    with open(FOLDER / f"{name}.so", "rb") as file:
        elf = ELFFile(file)
        found = (elf.get_section_by_name(n) for n in NVIDIA_SECTIONS)
        return [s.data() for s in found if s is not None]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_entry_that_cuobjdump_lists_is_counted_once(name: str) -> None:
    rows = merged(*(nvidia_code(memoryview(s)) for s in sections(name)))
    assert {f"{r.kind} {r.architecture}": r.entries for r in rows} == EXPECTED[name]


@pytest.mark.parametrize(("name", "packed"), [("zstd", True), ("lz4", True), ("plain", False)])
def test_compressed_ptx_is_told_from_plain(name: str, packed: bool) -> None:
    rows = merged(*(nvidia_code(memoryview(s)) for s in sections(name)))
    assert [r.compressed for r in rows if r.kind == "ptx"] == [packed]


def test_sizes_never_exceed_the_section() -> None:
    for name in EXPECTED:
        blobs = sections(name)
        rows = merged(*(nvidia_code(memoryview(s)) for s in blobs))
        assert 0 < sum(r.size for r in rows) < sum(map(len, blobs))


def test_entries_of_an_unknown_kind_are_passed_over() -> None:
    def entry(kind: int, arch: int) -> bytes:
        head = struct.pack("<HHIQIIIIIIQ", kind, 0x101, 64, 8, 0, 0, 0, arch, 0, 0, 0x11).ljust(64, b"\0")
        return head + bytes(8)

    body = entry(77, 90) + entry(2, 90)
    blob = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    assert nvidia_code(memoryview(blob)) == (DeviceCode("cubin", "sm_90", 1, 8),)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 4000), st.binary(min_size=1, max_size=16), st.integers(0, 8000))
def test_damaged_sections_never_raise(at: int, junk: bytes, cut: int) -> None:
    blob = bytearray(sections("several")[0])
    blob[at : at + len(junk)] = junk
    for row in nvidia_code(memoryview(bytes(blob[: max(cut, 1)]))):
        assert row.entries >= 1


def test_amd_bundles_name_their_targets() -> None:
    def bundle(*targets: bytes) -> bytes:
        rows = b"".join(struct.pack("<QQQ", 0, 100, len(t)) + t for t in targets)
        return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(targets)) + rows

    blob = bundle(b"host-x86_64-unknown-linux--", b"hipv4-amdgcn-amd-amdhsa--gfx942:xnack-")
    assert amd_code(memoryview(blob)) == (DeviceCode("hip", "gfx942:xnack-", 1, 100),)
    assert amd_code(memoryview(blob[:40])) == ()
    assert amd_code(memoryview(b"CCOB" + bytes(20))) == (DeviceCode("hip", "unknown", 1, 0, True),)
