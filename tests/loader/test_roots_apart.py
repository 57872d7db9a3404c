"""One library under two roots that differ in one thing: what it binds to under each, and under the first again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.loader.test_binding import UNKNOWN, VERSIONED, gives, node, opened, wants, world
from wheelfix.loader.binding import bind
from wheelfix.loader.together import bind_all, every
from wheelfix.model.elf import (
    ET_EXEC,
    LOOKUP_COPY,
    LOOKUP_DATA,
    STB_GNU_UNIQUE,
    STB_WEAK,
    ElfFacts,
    Symbol,
    VersionNeed,
    VersionRef,
)
from wheelfix.model.resolution import Edge, Load, Node, World

UNIQUE = {"bind": STB_GNU_UNIQUE, "lookups": LOOKUP_DATA}
ONE, TWO = node("one.so"), node("two.so")


class _Says(NamedTuple):
    """What becomes of one want: status, provider, and who may supply in its stead."""

    status: str
    provider: str | None = None
    unless: tuple[str, ...] = ()


def _bound(provider: str, *unless: str) -> _Says:
    return _Says("bound", provider, unless)


def _lead(load: Load, *steps: tuple[str, str]) -> Load:
    """The same load with edges between its libraries, which the order of relocation follows."""
    return replace(load, edges=(*load.edges, *(Edge(load.root.path, a, b, "found", b) for a, b in steps)))


def told(around: World, loads: Sequence[Load], library: str) -> list[list[_Says]]:
    """For each root what the wants of one library came to, after it was held against each root by itself."""
    together = bind_all(around, loads)
    found = list(every(together))
    assert found == [b for load in loads for b in bind(around, load)]
    fresh = [b for one in together for b in one.fresh]
    assert len({b[1:] for b in fresh}) == len({b[1:] for b in found})
    return [
        [
            _Says(b.status, b.provider, b.unless)
            for b in found
            if (b.root, b.object) == (load.root.path, library)
        ]
        for load in loads
    ]


def apart(
    library: Node,
    first: Sequence[Node],
    second: Sequence[Node],
    around: World | None = None,
    missing: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> tuple[list[_Says], list[_Says]]:
    """What the library comes to under a root with the first rest of the scope, and under one with the second."""
    loads = [
        opened(ONE, library, *first, missing=missing[0]),
        opened(TWO, library, *second, missing=missing[1]),
        opened(node("three.so"), library, *first, missing=missing[0]),
    ]
    found = told(around or world(), loads, library.path)
    assert found[0] == found[2]
    return found[0], found[1]


F = node("f.so", gives("f"))
G = node("g.so", gives("g"))
F_TOO = node("f2.so", gives("f"))


def test_another_order_of_the_suppliers() -> None:
    library = node("lib.so", wants("f"), wants("g"))
    assert apart(library, (F, G, F_TOO), (F_TOO, G, F)) == (
        [_bound("f.so"), _bound("g.so")],
        [_bound("f2.so"), _bound("g.so")],
    )


def test_a_supplier_before_the_known_one_and_one_behind_it() -> None:
    library = node("lib.so", wants("f"))
    assert apart(library, (F,), (F_TOO, F)) == ([_bound("f.so")], [_bound("f2.so")])
    assert apart(library, (F,), (F, F_TOO)) == ([_bound("f.so")], [_bound("f.so")])


def test_objects_that_supply_nothing_change_nothing() -> None:
    library = node("lib.so", wants("f"))
    assert apart(library, (F,), (G, F, node("h.so"))) == ([_bound("f.so")], [_bound("f.so")])


def test_an_incomplete_object_before_the_supplier_and_behind_it() -> None:
    library = node("lib.so", wants("f"), wants("nowhere"))
    before, behind = apart(library, (UNKNOWN, F), (F, UNKNOWN))
    assert before == [_bound("f.so", "libx.so"), _Says("undecided", None, ("libx.so",))]
    assert behind == [_bound("f.so"), _Says("undecided", None, ("libx.so",))]


def test_an_incomplete_object_under_one_root_alone() -> None:
    library = node("lib.so", wants("f"), wants("nowhere"), wants("weak", bind=STB_WEAK))
    assert apart(library, (F,), (UNKNOWN, F)) == (
        [_bound("f.so"), _Says("missing"), _Says("weak-unbound")],
        [_bound("f.so", "libx.so"), *[_Says("undecided", None, ("libx.so",))] * 2],
    )


def test_a_supplier_that_is_incomplete_itself() -> None:
    library = node("lib.so", wants("f"), wants("nowhere"))
    half = node("half.so", gives("f"), complete=False)
    assert apart(library, (half,), (F, half)) == (
        [_bound("half.so"), _Says("undecided", None, ("half.so",))],
        [_bound("f.so"), _Says("undecided", None, ("half.so",))],
    )


def test_libraries_that_are_missing_under_one_root_or_under_both() -> None:
    library = node("lib.so", wants("f"), wants("nowhere"))
    assert apart(library, (F,), (F,), missing=((), ("gone.so",))) == (
        [_bound("f.so"), _Says("missing")],
        [_bound("f.so"), _Says("undecided", None, ("gone.so",))],
    )
    assert apart(library, (F,), (F,), missing=(("a.so", "b.so"), ("b.so",))) == (
        [_bound("f.so"), _Says("undecided", None, ("a.so", "b.so"))],
        [_bound("f.so"), _Says("undecided", None, ("b.so",))],
    )


def test_an_unknown_interpreter_counts_for_its_own_names_alone() -> None:
    python = Node("interpreter", "/python", ElfFacts(complete=False), "interpreter")
    library = node("lib.so", wants("Py_f"), wants("nowhere"), wants("f"))
    first, second = apart(library, (F,), (UNKNOWN, F), world(python))
    assert first == [_Says("undecided", None, ("interpreter",)), _Says("missing"), _bound("f.so")]
    assert second == [
        _Says("undecided", None, ("interpreter", "libx.so")),
        _Says("undecided", None, ("libx.so",)),
        _bound("f.so", "libx.so"),
    ]


def test_a_symbolic_library_takes_its_own_whatever_comes_before_it() -> None:
    library = node("lib.so", wants("f", lookups=0), gives("f", lookups=0), wants("g"), symbolic=True)
    assert apart(library, (G,), (UNKNOWN, G)) == (
        [_Says("unreferenced"), _bound("g.so")],
        [_Says("unreferenced"), _bound("g.so", "libx.so")],
    )


def test_the_kept_definition_of_a_unique_symbol_follows_the_order_of_relocation() -> None:
    library = node("lib.so", wants("u", lookups=LOOKUP_DATA), wants("f"))
    first = node("a.so", gives("u", **UNIQUE))
    symbolic = node("b.so", gives("u", **UNIQUE), symbolic=True)
    rest = library, first, symbolic, F
    # b.so is relocated first where a.so leads to it: its own definition is then the one that is kept.
    loads = [
        _lead(opened(ONE, *rest), ("a.so", "b.so")),
        _lead(opened(TWO, *rest), ("b.so", "a.so")),
        _lead(opened(node("three.so"), *rest), ("a.so", "b.so")),
    ]
    assert told(world(), loads, "lib.so") == [
        [_bound("b.so"), _bound("f.so")],
        [_bound("a.so"), _bound("f.so")],
        [_bound("b.so"), _bound("f.so")],
    ]


def test_a_unique_symbol_that_is_contested_under_one_root_alone() -> None:
    library = node("lib.so", wants("u", lookups=LOOKUP_DATA))
    first, symbolic = node("a.so", gives("u", **UNIQUE)), node("b.so", gives("u", **UNIQUE), symbolic=True)
    assert apart(library, (first,), (first, symbolic)) == ([_bound("a.so")], [_bound("b.so")])


def needs(file: str, *versions: str) -> dict[str, object]:
    return {"verneed": (VersionNeed(file, tuple(VersionRef(v, 2) for v in versions)),)}


V1 = gives("f", "V1", 2)


def test_another_file_that_goes_by_the_name_that_verneed_has() -> None:
    library = node("lib.so", wants("f", "V1", "named.so"), **needs("named.so", "V1"))
    plain = node("x/named.so", gives("f"))  # no versions at all: the process stops
    other = node("y/named.so", V1, **VERSIONED)
    assert apart(library, (plain,), (other,)) == ([_Says("missing")], [_bound("y/named.so")])
    last = node("last.so", V1, **VERSIONED)
    assert apart(library, (plain, last), (last,)) == ([_Says("missing")], [_bound("last.so")])


@pytest.mark.parametrize(("libc", "provider"), [((2, 29), None), ((2, 30), "last.so")])
def test_the_file_that_verneed_names_before_the_supplier_and_behind_it(
    libc: tuple[int, int], provider: str | None
) -> None:
    library = node("lib.so", wants("f", "V1", "named.so"), **needs("named.so", "V1"))
    named, last = node("named.so", **VERSIONED), node("last.so", V1, **VERSIONED)
    around = replace(world(), libc_version=libc)
    stopped = [_bound(provider)] if provider else [_Says("missing")]
    assert apart(library, (named, last), (last, named), around) == (stopped, [_bound("last.so")])


def test_data_that_may_be_older_than_the_machine_before_the_supplier_and_behind_it() -> None:
    library = node("lib.so", wants("f", "V9", "named.so"), **needs("named.so", "V9"))
    named = node("named.so", open_ended=True, **VERSIONED)
    last = node("last.so", gives("f", "V9", 2), **VERSIONED)
    assert apart(library, (named, last), (last, named)) == (
        [_bound("last.so", "named.so")],
        [_bound("last.so")],
    )


def test_a_program_and_a_module_with_one_library() -> None:
    library = node("lib.so", wants("f", lookups=LOOKUP_DATA), wants("Py_f"))
    python = node("python", gives("Py_f"), owner="interpreter")
    entry = node("tool", Symbol("f", value=0x401000), type=ET_EXEC)
    loads = [opened(ONE, library, F), opened(entry, library, F), opened(TWO, library, F)]
    assert told(world(python), loads, "lib.so") == [
        [_bound("f.so"), _bound("python")],
        [_bound("tool"), _Says("missing")],
        [_bound("f.so"), _bound("python")],
    ]


def test_a_program_that_is_loaded_as_a_library_copies_from_behind_itself_when_it_runs() -> None:
    data = gives("data", lookups=LOOKUP_COPY | LOOKUP_DATA)
    tool, supplier = node("tool", data, type=ET_EXEC), node("a.so", gives("data"))
    loads = [opened(tool, supplier), opened(ONE, tool, supplier)]
    assert told(world(), loads, "tool") == [[_bound("a.so")], [_bound("tool")]]


def test_musl_binds_every_root_by_itself() -> None:
    library = node("lib.so", wants("f"))
    assert apart(library, (F, F_TOO), (F_TOO, F), world(libc="musl")) == ([_bound("f.so")], [_bound("f2.so")])


def test_two_copies_of_one_content_are_two_objects() -> None:
    library = node("lib.so", wants("f"))
    copy = Node("copy/f.so", "/copy/f.so", F.elf)
    assert apart(library, (F, copy), (copy, F)) == ([_bound("f.so")], [_bound("copy/f.so")])


def test_what_came_out_before_is_not_told_again() -> None:
    library = node("lib.so", wants("f"), wants("g"))
    loads = [opened(node(f"{i}.so"), library, *rest, G) for i, rest in enumerate([(F,), (F_TOO,), (F,), ()])]
    fresh = [[b.provider for b in one.fresh if b.object == "lib.so"] for one in bind_all(world(), loads)]
    assert [f for f in fresh if f] == [["f.so", "g.so"], ["f2.so"], [None]]
