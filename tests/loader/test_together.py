"""What one root's libraries bind to is taken over for the next root only where nothing differs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loader.test_binding import gives, node, opened, wants, world
from wheelfix.loader.binding import bind
from wheelfix.loader.together import bind_all, every
from wheelfix.model.elf import (
    ET_DYN,
    ET_EXEC,
    LOOKUP_COPY,
    LOOKUP_DATA,
    LOOKUP_PLT,
    STB_GNU_UNIQUE,
    STB_WEAK,
    VersionNeed,
    VersionRef,
)
from wheelfix.model.resolution import Load, Node

NAMES = ("f", "g", "h", "Py_g")


def test_a_root_that_defines_what_its_library_wants_gets_bindings_of_its_own() -> None:
    library = node("lib.so", wants("f"))
    last = node("last.so", gives("f"))
    plain, thief = node("plain.so"), node("thief.so", gives("f"))
    found = every(bind_all(world(), [opened(plain, library, last), opened(thief, library, last)]))
    assert [(b.root, b.provider) for b in found] == [("plain.so", "last.so"), ("thief.so", "thief.so")]


def test_a_root_without_the_supplier_misses_the_symbol() -> None:
    library = node("lib.so", wants("f"))
    last = node("last.so", gives("f"))
    found = every(bind_all(world(), [opened(node("a.so"), library, last), opened(node("b.so"), library)]))
    assert [b.status for b in found] == ["bound", "missing"]


def test_a_library_that_is_missing_under_one_root_leaves_open_there_alone() -> None:
    library = node("lib.so", wants("f"))
    loads = [opened(node("a.so"), library), opened(node("b.so"), library, missing=["libx.so"])]
    found = every(bind_all(world(), loads))
    assert [(b.status, b.unless) for b in found] == [("missing", ()), ("undecided", ("libx.so",))]


@st.composite
def _nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    found = []
    for number in range(draw(st.integers(2, 6))):
        symbols = []
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
            version = draw(st.sampled_from((None, "V1", "V2")))
            if draw(st.booleans()):
                bind_kind = draw(st.sampled_from((1, STB_WEAK, STB_GNU_UNIQUE)))
                index = 1 if version is None else int(version[1:]) + 2
                lookups = draw(st.sampled_from((0, LOOKUP_DATA)))
                symbols.append(gives(name, version, index, bind=bind_kind, lookups=lookups))
            else:
                file = None if version is None else f"n{draw(st.integers(0, 5))}.so"
                lookups = draw(
                    st.sampled_from((0, LOOKUP_PLT, LOOKUP_DATA, LOOKUP_PLT | LOOKUP_DATA, LOOKUP_COPY))
                )
                bind_kind = draw(st.sampled_from((1, STB_WEAK)))
                symbols.append(wants(name, version, file, bind=bind_kind, lookups=lookups))
        files = sorted({(s.version_file, s.version) for s in symbols if s.version_file and s.version})
        needs = tuple(VersionNeed(f, (VersionRef(v, int(v[1:]) + 2),)) for f, v in files)
        found.append(
            node(
                f"n{number}.so",
                *symbols,
                verneed=needs,
                versioned=draw(st.booleans()),
                symbolic=draw(st.booleans()),
                type=draw(st.sampled_from((ET_DYN, ET_DYN, ET_DYN, ET_EXEC))),
                complete=draw(st.sampled_from((True, True, True, False))),
                open_ended=draw(st.sampled_from((False, False, False, True))),
            )
        )
    if draw(st.booleans()):  # the same facts at another place
        found.append(replace(found[0], path="copy.so", location="/copy.so", identity="/copy.so"))
    return tuple(found)


@st.composite
def _loads(draw: st.DrawFn) -> list[Load]:
    nodes = draw(_nodes())
    loads = []
    for root in draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=6, unique_by=lambda n: n.path)):
        # Mostly the same libraries, in nearly the same order: what real modules have.
        rest = [n for n in nodes if n is not root]
        if draw(st.booleans()):
            rest = draw(st.permutations(rest))
        scope = [n for n in rest if draw(st.integers(0, 3))]
        loads.append(opened(root, *scope, missing=draw(st.sampled_from(((), (), ("libgone.so",))))))
    return loads


INTERPRETERS = {
    "none": (),
    "the C API alone": (node("interpreter", gives("f"), owner="interpreter", complete=False),),
    "a real one": (node("python", gives("Py_g"), wants("g")), node("libc.so", gives("h"))),
}


@pytest.mark.parametrize("libc", [("glibc", (2, 17)), ("glibc", (2, 36)), ("musl", (1, 2))])
@pytest.mark.parametrize("interpreter", INTERPRETERS)
@settings(max_examples=400, deadline=None)
@given(loads=_loads())
def test_every_root_binds_as_if_it_were_the_only_one(
    libc: tuple[str, tuple[int, int]], interpreter: str, loads: list[Load]
) -> None:
    around = replace(world(*INTERPRETERS[interpreter]), libc=libc[0], libc_version=libc[1])
    alone = [b for load in loads for b in bind(around, load)]
    together = bind_all(around, loads)
    assert list(every(together)) == alone
    outcomes = [b for one in together for b in one.fresh]
    assert {b[1:] for b in outcomes} == {b[1:] for b in alone}
    assert set(outcomes) <= set(alone)
