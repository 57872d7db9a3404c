"""What two wheels have in common is left out; what a loader would notice is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wheelfix.model.elf import LOOKUP_PLT, DeviceCode, ElfFacts, Symbol
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.report.diff import as_json, as_markdown, as_text
from wheelfix.report.difference import Row, difference, identity
from wheelfix.report.show import Object, Shown

EXPORT = Symbol("f", section=7, value=16, version="V1")
IMPORT = Symbol("g", lookups=LOOKUP_PLT)
PLAIN = ElfFacts(
    soname="libx.so.1",
    needed=("liba.so.1", "libb-1a2b3c4d.so.2"),
    runpath="$ORIGIN",
    symbols=(EXPORT, IMPORT),
)


def shown(
    *objects: tuple[str, ElfFacts], version: str = "1.0", files: tuple[str, ...] = (), **more: object
) -> Shown:
    members = [Member(p, p, size=100, elf=e, content="elf") for p, e in objects]
    rest = [Member(p, p, size=1) for p in files]
    wheel = WheelFacts(f"x-{version}.whl", "x", version, members=(*members, *rest), file_size=1000, **more)  # type: ignore[arg-type]
    return Shown(
        f"x-{version}.whl",
        wheel,
        tuple(Object(m, m.elf, ("GLIBC_2.17",), "shared") for m in members if m.elf),
    )


def rows(old: ElfFacts, new: ElfFacts) -> dict[str, Row]:
    found = difference(shown(("pkg/libx.so.1", old)), shown(("pkg/libx.so.1", new)))
    return {r.aspect: r for c in found.changed for r in c.rows}


@pytest.mark.parametrize(
    ("change", "aspect", "removed", "added"),
    [
        ({"needed": ("liba.so.1",)}, "NEEDED", ("libb-1a2b3c4d.so.2",), ()),
        (
            {"needed": ("libb-1a2b3c4d.so.2", "liba.so.1")},
            "NEEDED in order",
            PLAIN.needed,
            PLAIN.needed[::-1],
        ),
        ({"soname": "libx.so.2"}, "SONAME", ("libx.so.1",), ("libx.so.2",)),
        ({"soname": None}, "SONAME", ("libx.so.1",), ()),
        ({"runpath": None}, "RUNPATH", ("$ORIGIN",), ()),
        ({"rpath": "/a"}, "RPATH", (), ("/a",)),
        ({"machine": 183}, "machine", ("x86_64",), ("aarch64",)),
        ({"symbols": (IMPORT,)}, "exports", ("f@V1",), ()),
        ({"symbols": (EXPORT, IMPORT._replace(version="V9"))}, "imports", ("g",), ("g@V9",)),
        ({"device_code": (DeviceCode("cubin", "sm_90", 1, 8),)}, "device code", (), ("cubin sm_90",)),
        ({"constructors": 2}, "constructors", ("0",), ("2",)),
    ],
)
def test_each_aspect(
    change: dict[str, object], aspect: str, removed: tuple[str, ...], added: tuple[str, ...]
) -> None:
    found = rows(PLAIN, replace(PLAIN, **change))  # type: ignore[arg-type]
    assert list(found) == [aspect]
    assert (found[aspect].removed, found[aspect].added) == (removed, added)


def test_a_symbol_that_no_relocation_names_is_no_import() -> None:
    assert rows(PLAIN, replace(PLAIN, symbols=(*PLAIN.symbols, Symbol("unused")))) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pkg/_e.cpython-311-x86_64-linux-gnu.so", "pkg/_e.cpython-312-x86_64-linux-gnu.so"),
        ("pkg/_e.cpython-311-x86_64-linux-gnu.so", "pkg/_e.abi3.so"),
        ("x.libs/libz-1a2b3c4d.so.1.2", "x.libs/libz-99887766.so.1.2"),
        ("x.libs/libz-1a2b3c4d-11223344.so.1", "x.libs/libz-99887766.so.1"),
    ],
)
def test_a_rebuild_renames_the_same_object(old: str, new: str) -> None:
    assert identity(old) == identity(new)
    found = difference(shown((old, PLAIN)), shown((new, PLAIN)))
    assert [(c.old, c.new, c.rows) for c in found.changed] == [(old, new, ())]
    assert f"(was {old})" in as_text(found)


@pytest.mark.parametrize(
    ("old", "new"), [("libz.so.1", "libz.so.2"), ("a/libz.so", "b/libz.so"), ("lib-abc.so", "lib-abd.so")]
)
def test_other_names_are_other_objects(old: str, new: str) -> None:
    found = difference(shown((old, PLAIN)), shown((new, PLAIN)))
    assert (found.removed, found.added) == ((old,), (new,))


def test_the_hash_of_a_graft_is_no_other_need() -> None:
    assert rows(PLAIN, replace(PLAIN, needed=("liba.so.1", "libb-ffffffff.so.2"))) == {}


def test_two_objects_of_one_identity_are_both_compared() -> None:
    both = (("libz-1a2b3c4d.so", PLAIN), ("libz-99887766.so", PLAIN))
    found = difference(shown(*both), shown(both[0], (both[1][0], replace(PLAIN, runpath=None))))
    assert [(c.new, [r.aspect for r in c.rows]) for c in found.changed] == [("libz-99887766.so", ["RUNPATH"])]


def test_equal_wheels_say_so() -> None:
    one = shown(("pkg/x.so", PLAIN))
    found = difference(one, one)
    assert found.nothing
    assert "nothing that a loader could see" in as_text(found)
    assert "Nothing that a loader could see" in as_markdown(found)


def test_files_and_objects_that_came_and_went() -> None:
    found = difference(
        shown(("a.so", PLAIN), files=("old.py", "x-1.0.dist-info/METADATA")),
        shown(("b.so", PLAIN), files=("new.py",), version="2"),
    )
    assert (found.files_removed, found.files_added) == (("old.py",), ("new.py",))
    text = as_text(found)
    assert "- a.so" in text
    assert "+ b.so" in text


def test_text_fits_80_columns_and_says_how_much_is_left_out() -> None:
    many = tuple(Symbol(f"function_with_a_name_{i}", section=7, value=16) for i in range(40))
    text = as_text(difference(shown(("pkg/x.so", PLAIN)), shown(("pkg/x.so", replace(PLAIN, symbols=many)))))
    assert max(map(len, text.splitlines())) <= 80
    assert "... and 32 more (--json lists them)" in text


def test_names_from_wheels_are_no_markup_and_no_escape() -> None:
    evil = "pkg/|<img src=x>\x1b[31m.so"
    found = difference(shown((evil, PLAIN)), shown((evil, replace(PLAIN, runpath="`@all`"))))
    assert "\x1b" not in as_text(found) + as_markdown(found)
    assert "\\<img" in as_markdown(found)
    assert "|<img" not in as_markdown(found)
    assert "<img" in as_json(found)
