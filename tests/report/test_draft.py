"""A drafted policy: valid TOML whatever the names, globs that fit the file and its later builds."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfix.model.elf import ElfFacts, Symbol
from wheelfix.model.wheel import Member
from wheelfix.policy.globs import matches_path
from wheelfix.report.draft import Entry, as_toml, backend_strings, path_glob

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)


@given(name=NAMES, value=NAMES, seen=NAMES, left=NAMES)
def test_text_from_a_wheel_stays_inside_its_string_or_comment(
    name: str, value: str, seen: str, left: str
) -> None:
    entry = Entry("deny", (("object", value), ("library", (value, "x"))), seen)  # type: ignore[arg-type]
    data = tomllib.loads(as_toml(name, ("manylinux",), [entry], seen, left_out=[left]))
    assert data == {
        "schema": 1,
        "name": name,
        "extends": ["manylinux"],
        "deny": [{"object": value, "library": [value, "x"]}],
    }


@given(name=NAMES.filter(lambda n: "/" not in n))
def test_a_glob_fits_its_own_file(name: str) -> None:
    path = f"pkg/{name}"
    assert matches_path(path, path_glob(path))


@pytest.mark.parametrize(
    ("path", "later", "other"),
    [
        (
            "pkg/_e.cpython-311-x86_64-linux-gnu.so",
            "pkg/_e.cpython-314t-x86_64-linux-gnu.so",
            "pkg/_f.cpython-311-x86_64-linux-gnu.so",
        ),
        ("pkg/_e.abi3.so", "pkg/_e.cpython-312-x86_64-linux-gnu.so", "pkg/sub/_e.abi3.so"),
        ("x.libs/libz-1a2b3c4d.so.1", "x.libs/libz-99999999.so.1", "x.libs/libz-99999999.so.2"),
        ("pkg/a[b]*.so", "pkg/a[b]*.so", "pkg/ab1.so"),
    ],
)
def test_a_glob_fits_a_later_build_and_nothing_else(path: str, later: str, other: str) -> None:
    assert matches_path(later, path_glob(path))
    assert not matches_path(other, path_glob(path))


def test_registrations_are_strings_of_an_object_that_registers() -> None:
    data = b"\0CudaBackend\0xCpuBackend\0NotABackendHere\0TensorRTBackend\0"
    registering = Member("a.so", "a.so", elf=ElfFacts(symbols=(Symbol("_ZN2et16register_backendE"),)))
    assert backend_strings(registering, data) == ("CudaBackend", "TensorRTBackend")
    assert backend_strings(Member("b.so", "b.so", elf=ElfFacts()), data) == ()
