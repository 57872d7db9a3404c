"""A version that the machine's data do not reach is undecided, never missing."""

from __future__ import annotations

import pytest

from wheelfix.loader.binding import bind
from wheelfix.loader.versions import version_errors
from wheelfix.model.elf import LOOKUP_PLT, ElfFacts, Symbol, VersionDef, VersionNeed, VersionRef
from wheelfix.model.resolution import Edge, Load, Node, World


def load(*, open_ended: bool, name: str = "new", between: tuple[Node, ...] = ()) -> Load:
    wanted = Symbol(name, version="GLIBC_9.9", version_file="libc.so.6", version_index=2, lookups=LOOKUP_PLT)
    root = ElfFacts(
        needed=("libc.so.6",),
        versioned=True,
        verneed=(VersionNeed("libc.so.6", (VersionRef("GLIBC_9.9"),)),),
        symbols=(wanted,),
    )
    libc = ElfFacts(
        soname="libc.so.6",
        versioned=True,
        verdef=(VersionDef("GLIBC_2.2.5", 2),),
        symbols=(Symbol("old", section=1, version="GLIBC_2.2.5", version_index=2),),
        open_ended=open_ended,
    )
    nodes = Node("x.so", "/x.so", root), *between, Node("host:libc.so.6", "/host/libc.so.6", libc, "host")
    return Load(nodes[0], nodes, (Edge("x.so", "x.so", "libc.so.6", "host", "host:libc.so.6"),))


@pytest.mark.parametrize(("open_ended", "status"), [(True, "undecided"), (False, "missing")])
def test_a_version_beyond_the_data(open_ended: bool, status: str) -> None:
    world = World({}, frozenset(), libc_version=(2, 41))
    (binding,) = bind(world, load(open_ended=open_ended))
    assert binding.status == status
    assert binding.unless == (("host:libc.so.6",) if open_ended else ())
    assert bool(version_errors(world, load(open_ended=open_ended))) is not open_ended


@pytest.mark.parametrize(
    ("name", "unless"),
    [
        ("new", ("unknown.so", "host:libc.so.6")),
        ("Py_New", ("interpreter", "unknown.so", "host:libc.so.6")),
    ],
)
def test_a_newer_library_stands_among_the_unknown_ones_in_the_order_of_the_scope(
    name: str, unless: tuple[str, ...]
) -> None:
    """An interpreter of which only the C API is unknown can supply nothing else."""
    python = Node("interpreter", "/python", ElfFacts(complete=False), "interpreter")
    unknown = Node("unknown.so", "/unknown.so", ElfFacts(complete=False), "external")
    world = World({}, frozenset(), interpreter=(python,), libc_version=(2, 41))
    (binding,) = bind(world, load(open_ended=True, name=name, between=(unknown,)))
    assert (binding.status, binding.unless) == ("undecided", unless)
