"""Device code is read as cuobjdump reads it; what is damaged is passed over, never an exception."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelfix.elf.fatbin import NVIDIA_SECTIONS, merged, nvidia_code
from wheelfix.elf.read import read
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


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_object_has_what_all_its_sections_of_device_code_hold(name: str) -> None:
    facts = read((FOLDER / f"{name}.so").read_bytes()).facts
    assert facts is not None
    assert {f"{r.kind} {r.architecture}": r.entries for r in facts.device_code} == EXPECTED[name]


@pytest.mark.parametrize(("name", "packed"), [("zstd", True), ("lz4", True), ("ptx", True), ("plain", False)])
def test_compressed_ptx_is_told_from_plain(name: str, packed: bool) -> None:
    rows = merged(*(nvidia_code(memoryview(s)) for s in sections(name)))
    assert [r.compressed for r in rows if r.kind == "ptx"] == [packed]


def test_sizes_never_exceed_the_section() -> None:
    for name in EXPECTED:
        blobs = sections(name)
        rows = merged(*(nvidia_code(memoryview(s)) for s in blobs))
        assert 0 < sum(r.size for r in rows) < sum(map(len, blobs))


def entry(kind: int, arch: int, flags: int = 0x11, size: int = 8, length: int = 64) -> bytes:
    head = struct.pack("<HHIQ12xI8xQ16x", kind, 0x101, length, size, arch, flags)
    return head + bytes(8)


def fat_binary(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.mark.parametrize(
    ("kind", "name", "architecture"),
    # What cuobjdump 13.5 calls them: cubin, relocatable ptx, tile ir, <unknown kind>.
    [(4, "cubin", "sm_90"), (64, "ptx", "compute_90"), (128, "tile", "sm_90"), (77, "other", "sm_90")],
)
def test_kinds_that_the_compiler_does_not_make_are_named_as_cuobjdump_names_them(
    kind: int, name: str, architecture: str
) -> None:
    blob = fat_binary(entry(kind, 90), entry(2, 80))
    assert {(r.kind, r.architecture) for r in nvidia_code(blob)} == {(name, architecture), ("cubin", "sm_80")}


@pytest.mark.parametrize("flag", [0x1000, 0x2000, 0x4000, 0x8000])
def test_every_flag_that_cuobjdump_inflates_for_is_compression(flag: int) -> None:
    assert nvidia_code(fat_binary(entry(2, 90, 0x11 | flag))) == (DeviceCode("cubin", "sm_90", 1, 8, True),)


@pytest.mark.parametrize(
    "broken",
    [entry(2, 75, size=1 << 40), entry(2, 75, size=(1 << 64) - 1), entry(2, 75, length=8), entry(2, 75)[:60]],
)
def test_an_entry_that_cannot_be_hides_no_other_fat_binary(broken: bytes) -> None:
    blob = fat_binary(entry(2, 80), broken) + fat_binary(entry(2, 90))
    assert [r.architecture for r in nvidia_code(blob)] == ["sm_80", "sm_90"]


def test_a_payload_that_is_cut_off_is_not_counted() -> None:
    blob = fat_binary(entry(2, 80), entry(2, 90))
    assert [r.architecture for r in nvidia_code(blob[:-1])] == ["sm_80"]


def test_what_is_no_fat_binary_ends_the_walk() -> None:
    # cuobjdump: "Invalid fatbin header".
    blob = fat_binary(entry(2, 80)) + b"12345678" + fat_binary(entry(2, 90))
    assert [r.architecture for r in nvidia_code(blob)] == ["sm_80"]


def test_padding_between_fat_binaries_is_passed_over() -> None:
    blob = bytes(8) + fat_binary(entry(2, 80)) + bytes(24) + fat_binary(entry(2, 90)) + bytes(40)
    assert [r.architecture for r in nvidia_code(blob)] == ["sm_80", "sm_90"]


def test_a_section_made_to_keep_readers_busy_is_left_after_a_while() -> None:
    class Endless:  # a terabyte of fat binaries without entries
        asked = 0

        def __len__(self) -> int:
            return 1 << 40

        def __getitem__(self, where: slice) -> bytes:
            self.asked += 1
            return fat_binary()

    section = Endless()
    assert nvidia_code(section) == ()
    assert section.asked < 3_000_000


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 4000), st.binary(min_size=1, max_size=16), st.integers(0, 8000))
def test_damaged_sections_never_raise(at: int, junk: bytes, cut: int) -> None:
    blob = bytearray(sections("several")[0])
    blob[at : at + len(junk)] = junk
    for row in nvidia_code(memoryview(bytes(blob[: max(cut, 1)]))):
        assert row.entries >= 1
