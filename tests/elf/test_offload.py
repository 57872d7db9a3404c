"""AMD's device code, in bundles written as LLVM's OffloadBundle.cpp lays them out."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelfix.elf.offload import amd_code
from wheelfix.model.elf import DeviceCode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HOST = ("host-x86_64-unknown-linux-gnu-", 0)
GFX90A = ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", 1000)
GFX942 = ("hipv4-amdgcn-amd-amdhsa--gfx942", 3000)


def bundle(*entries: tuple[str, int]) -> bytes:
    table = 32 + sum(24 + len(name) for name, _ in entries)
    head, code, at = b"", b"", table
    for name, size in entries:
        head += struct.pack("<QQQ", at, size, len(name)) + name.encode()
        code += b"\xab" * size
        at += size
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + head + code


def packed(
    whole: bytes, version: int, method: int = 1, compress: Callable[[bytes], bytes] = zstd.compress
) -> bytes:
    body = compress(whole)
    if version == 1:
        return b"CCOB" + struct.pack("<HHIQ", 1, method, len(whole), 7) + body
    form = "<HHIIQ" if version == 2 else "<HHQQQ"
    size = 4 + struct.calcsize(form) + len(body)
    return b"CCOB" + struct.pack(form, version, method, size, len(whole), 7) + body


def test_a_bundle_names_its_targets_and_the_host_is_none() -> None:
    assert amd_code(bundle(HOST, GFX90A, GFX942)) == (
        DeviceCode("hip", "gfx90a:xnack-", 1, 1000),
        DeviceCode("hip", "gfx942", 1, 3000),
    )


@pytest.mark.parametrize(
    "name",
    [
        "hipv4-amdgcn-amd-amdhsa--gfx942",
        "hip-amdgcn-amd-amdhsa--gfx942",
        "hip-amdgcn-amd-amdhsa-gfx942",  # before LLVM 13
        "hip-amdgcn-amd-amdhsa-unknown-gfx942",
    ],
)
def test_a_target_stands_behind_a_triple_of_three_or_four_parts(name: str) -> None:
    assert [r.architecture for r in amd_code(bundle((name, 10)))] == ["gfx942"]


def test_device_code_of_openmp_is_not_hip() -> None:
    assert amd_code(bundle(("openmp-amdgcn-amd-amdhsa--gfx942", 10))) == ()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("method", "compress"), [(0, zlib.compress), (1, zstd.compress)])
def test_compressed_bundles_name_their_targets_and_share_their_size(
    version: int, method: int, compress: Callable[[bytes], bytes]
) -> None:
    whole = bundle(HOST, GFX90A, GFX942)
    size = len(compress(whole))
    assert amd_code(packed(whole, version, method, compress)) == (
        DeviceCode("hip", "gfx90a:xnack-", 1, size * 1000 // 4000, True),
        DeviceCode("hip", "gfx942", 1, size * 3000 // 4000, True),
    )


def test_bundles_are_aligned_to_pages_and_code_that_looks_like_one_is_none() -> None:
    code = bundle(GFX942).replace(b"\xab" * 16, b"CCOB\1\0\1\0" + b"\xab" * 8, 1)
    pages = b"".join(b.ljust(8192, b"\0") for b in (code, packed(bundle(GFX90A), 3), bundle(GFX942)))
    assert [(r.architecture, r.entries) for r in amd_code(pages)] == [("gfx90a:xnack-", 1), ("gfx942", 2)]


@pytest.mark.parametrize("blob", [packed(bundle(GFX942), 9), packed(bundle(GFX942), 3, method=5)])
def test_what_nobody_can_inflate_has_an_unknown_target(blob: bytes) -> None:
    assert [(r.architecture, r.compressed) for r in amd_code(blob)] == [("unknown", True)]


def test_what_is_cut_off_is_not_counted() -> None:
    assert [r.architecture for r in amd_code(bundle(GFX90A, GFX942)[:-1])] == ["gfx90a:xnack-"]
    assert amd_code(packed(bundle(GFX942), 3)[:-1]) == ()


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([bundle(HOST, GFX942), packed(bundle(GFX942), 2), packed(bundle(GFX942), 3)]),
    st.integers(0, 200),
    st.binary(min_size=1, max_size=16),
    st.integers(1, 4000),
)
def test_damaged_bundles_never_raise(blob: bytes, at: int, junk: bytes, cut: int) -> None:
    damaged = bytearray(blob)
    damaged[at : at + len(junk)] = junk
    rows = amd_code(bytes(damaged[:cut]))
    assert sum(r.size for r in rows) <= max(len(damaged), 1 << 64)
