"""The bindings of all roots of a world: what one root's libraries bind to holds for the next, where nothing differs.

The answers are those of ``binding.bind`` for each root by itself; a wheel of plugins has hundreds of roots that load the
same large libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wheelfix.loader.binding import Indexes, Process, binding_of, bindings_of, own_first, process_of
from wheelfix.model.elf import ElfFacts
from wheelfix.model.resolution import Binding, Bound, Load, Node, World


class _Near(NamedTuple):
    """One object of a scope as the wants of another one see it."""

    location: str
    path: str
    identity: int  # of its facts
    executable: bool
    python: bool
    complete: bool


class _Circumstances(NamedTuple):
    """What the bindings of one object depend on beside itself.

    ``around`` are the objects of the scope that matter, in the order of look-up: who has anything that is wanted, who
    is incomplete, whom verneed names. ``files`` are the locations that verneed's files go by,
    ``unique`` who keeps each wanted STB_GNU_UNIQUE name that is contested, ``absent`` the names in DT_NEEDED that
    nothing was found for.
    """

    around: tuple[_Near, ...]
    files: Mapping[str, str | None]
    unique: Mapping[str, str]
    absent: tuple[str, ...]


#: The last circumstances and bindings of each object, by location.
_Settled = dict[str, tuple[_Circumstances, tuple[Binding, ...]]]


def bind_all(world: World, loads: Iterable[Load]) -> tuple[Bound, ...]:
    """The bindings of several roots of one world, one after the other; each object is indexed once."""
    indexes = Indexes()
    processes = [process_of(world, load, indexes) for load in loads]
    settled: _Settled = {}
    return tuple(_bound(p, n, indexes, settled) for p in processes for n in p.opened if n.elf is not None)


def every(bound: Iterable[Bound]) -> Iterator[Binding]:
    """The bindings one by one, each with its own root."""
    return (b if b.root == one.root else Binding(one.root, *b[1:]) for one in bound for b in one.bindings)


def _bound(process: Process, node: Node, indexes: Indexes, settled: _Settled) -> Bound:
    """The bindings of one object, taken from another root's but for those that depend on what differs.

    Roots are many and their libraries the same; an extension module defines little of what its libraries want.
    """
    if node.elf is None or process.musl:
        bindings = tuple(bindings_of(process, node))
        return Bound(process.root, bindings, bindings)
    now = _circumstances(process, node.elf, indexes)
    if node.location in settled:
        then, known = settled[node.location]
        again = _differing(node.elf, then, now, known, indexes)
        bindings, fresh = _mended(process, node, known, again)
    else:
        bindings = fresh = tuple(bindings_of(process, node))
    settled[node.location] = now, bindings
    return Bound(process.root, bindings, fresh)


def _circumstances(process: Process, elf: ElfFacts, indexes: Indexes) -> _Circumstances:
    holders, names = indexes.concern(elf), indexes.places(elf)
    files = {need.file: process.named.get(need.file) for need in elf.verneed}
    named = set(files.values())
    around = tuple(
        _Near(m.node.location, m.node.path, id(m.node.elf), m.executable, m.python, m.offers.complete)
        for m in process.scope
        if id(m.node.elf) in holders or not m.offers.complete or m.node.location in named
    )
    unique = {n: kept.location for n, kept in process.unique.items() if n in names}
    return _Circumstances(around, files, unique, process.absent)


def _differing(
    elf: ElfFacts,
    then: _Circumstances,
    now: _Circumstances,
    known: Sequence[Binding],
    indexes: Indexes,
) -> set[int]:
    """The places of the wants whose outcome may have become another one."""
    found: set[int] = set()
    if now.files != then.files:
        other = {f for f in now.files.keys() | then.files.keys() if now.files.get(f) != then.files.get(f)}
        found.update(p for p, s in enumerate(indexes.wants(elf)) if s.version_file in other)
    if now.around != then.around:
        found |= _moved(elf, then, now, known, indexes)
    if now.unique != then.unique:
        names = indexes.places(elf)
        for name in now.unique.keys() | then.unique.keys():
            if now.unique.get(name) != then.unique.get(name):
                found.update(names[name])
    if now.absent != then.absent:
        found.update(place for place, binding in enumerate(known) if binding.provider is None)
    return found


def _moved(
    elf: ElfFacts, then: _Circumstances, now: _Circumstances, known: Sequence[Binding], indexes: Indexes
) -> set[int]:
    """The places of the wants that objects decide which came, went or changed places."""
    holders, wants = indexes.concern(elf), indexes.wants(elf)
    here, there = set(now.around), set(then.around)
    order = [near for near in now.around if near in there]
    before = [near for near in then.around if near in here]
    kept = next((i for i, (a, b) in enumerate(zip(order, before, strict=True)) if a != b), len(order))
    order, before = order[kept:], before[kept:]
    found: set[int] = set()
    for near in here ^ there:
        found.update(holders.get(near.identity, ()))
    if order:
        new = {near.location: position for position, near in enumerate(order)}
        old = {near.location: position for position, near in enumerate(before)}
        decide: dict[int, set[str]] = {}
        for near in order:
            for place in holders.get(near.identity, ()):
                decide.setdefault(place, set()).add(near.location)
        for place, locations in decide.items():
            stop = now.files.get(wants[place].version_file or "")
            several = [*locations, stop] if stop is not None and stop in new else [*locations]
            if sorted(several, key=new.__getitem__) != sorted(several, key=old.__getitem__):
                found.add(place)
    # An incomplete object may supply what is found behind it, or not at all.
    positions = {near.path: position for position, near in enumerate(now.around)}
    for near in {*(here ^ there), *order}:
        if not near.complete:
            first = positions.get(near.path, len(positions))
            found.update(
                place
                for place, b in enumerate(known)
                if (not near.python or b.symbol.startswith(("Py", "_Py")))
                and (near.path in b.unless or b.provider is None or positions.get(b.provider, -1) > first)
            )
    return found


def _mended(
    process: Process, node: Node, known: tuple[Binding, ...], again: set[int]
) -> tuple[tuple[Binding, ...], tuple[Binding, ...]]:
    """The known bindings with those at some places looked up again, and of these the ones that came out differently."""
    if not again:
        return known, ()
    bindings, fresh = list(known), []
    own, wants = own_first(process, node), process.members[node.location].offers.wants
    for place in sorted(again):
        binding = binding_of(process, node, own, wants[place])
        if binding[1:] != known[place][1:]:
            bindings[place] = binding
            fresh.append(binding)
    return tuple(bindings), tuple(fresh)
