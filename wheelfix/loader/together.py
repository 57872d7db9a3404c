"""The bindings of all roots of a world: what one root's libraries bind to holds for the next, where nothing differs.

The answers are those of ``binding.bind`` for each root by itself; a wheel of plugins has hundreds of roots that load the
same large libraries.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheelfix.loader.binding import (
    Indexes,
    Learnt,
    Process,
    binding_of,
    bindings_of,
    may_stop,
    own_first,
    process_of,
    unbound,
)
from wheelfix.model.resolution import Binding, BindStatus, Bound, Load, Node, World


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


#: For each object of a scope who may supply in its stead, and the same for names of Python's C API; None: for no one.
_Unless = Mapping[str | None, tuple[tuple[str, ...], tuple[str, ...]]]

#: What an outcome is, beside the place of the want: status, provider, unless, also.
_Outcome = tuple[BindStatus, str | None, tuple[str, ...], str | None]


@dataclass(slots=True)
class _Settled:
    """What is known of one object from the last root that loaded it, and of the outcomes under earlier ones."""

    circumstances: _Circumstances
    unless: _Unless
    bindings: tuple[Binding, ...]
    #: The places of the look-ups by what they came to: the provider, and whether the name is of Python's C API.
    groups: dict[tuple[str | None, bool], set[int]]
    told: dict[tuple[int, _Outcome], Binding]


def bind_all(world: World, loads: Iterable[Load], objects: Container[str] | None = None) -> tuple[Bound, ...]:
    """The bindings of several roots of one world, one after the other; each object is indexed once.

    ``objects`` are the paths of those whose bindings are wanted; None: of all. They do not depend on each other.
    """
    indexes = Indexes()
    processes = [process_of(world, load, indexes) for load in loads]
    settled: dict[str, _Settled] = {}
    return tuple(b for process in processes for b in _of_process(process, indexes, settled, objects))


def every(bound: Iterable[Bound]) -> Iterator[Binding]:
    """The bindings one by one, each with its own root."""
    return (b if b.root == one.root else Binding(one.root, *b[1:]) for one in bound for b in one.bindings)


def _of_process(
    process: Process, indexes: Indexes, settled: dict[str, _Settled], objects: Container[str] | None
) -> Iterator[Bound]:
    unless: dict[str | None, tuple[tuple[str, ...], tuple[str, ...]]] = {
        member.node.path: before for member, before in zip(process.scope, process.excuses, strict=False)
    }
    others, python = process.excuses[-1]
    unless[None] = (*others, *process.absent), (*python, *process.absent)
    scope = [
        _Near(m.node.location, m.node.path, id(m.node.elf), m.executable, m.python, m.offers.complete)
        for m in process.scope
    ]
    for node in process.opened:
        if node.elf is None or (objects is not None and node.path not in objects):
            continue
        if process.musl:
            bindings = tuple(bindings_of(process, node))
            yield Bound(process.root, bindings, bindings)
            continue
        learnt = indexes.learnt(node.elf)
        now = _circumstances(process, scope, learnt)
        yield _bound(process, node, learnt, now, unless, settled)


def _bound(
    process: Process,
    node: Node,
    learnt: Learnt,
    now: _Circumstances,
    unless: _Unless,
    settled: dict[str, _Settled],
) -> Bound:
    """The bindings of one object, taken from another root's but for those that depend on what differs.

    Roots are many and their libraries the same; an extension module defines little of what its libraries want.
    """
    own = own_first(process, node)
    if own is not None:  # it comes before the scope
        unless = {**unless, node.path: process.excuses[0]}
    known = settled.get(node.location)
    if known is None:
        bindings = tuple(bindings_of(process, node))
        settled[node.location] = _Settled(now, unless, bindings, _groups(bindings), {})
        return Bound(process.root, bindings, bindings)
    if now == known.circumstances:
        return Bound(process.root, known.bindings, ())
    again = _differing(process, learnt, known.circumstances, now)
    outcomes: dict[int, _Outcome] = {}
    if (now.around, now.absent) != (known.circumstances.around, known.circumstances.absent):
        again |= _decided_alone(process, learnt, now)
        for group, places in known.groups.items():
            if not places or group[0] not in unless or _of(unless, group) == _of(known.unless, group):
                continue
            for place in places - again:
                outcomes[place] = _excused(known.bindings[place], _of(unless, group))
    for place in again:
        outcomes[place] = _outcome(binding_of(process, node, own, learnt.offers.wants[place]))
    known.circumstances, known.unless = now, unless
    fresh = _take_over(known, process.root, outcomes)
    return Bound(process.root, known.bindings, fresh)


def _outcome(binding: Binding) -> _Outcome:
    return binding.status, binding.provider, binding.unless, binding.also


def _of(unless: _Unless, group: tuple[str | None, bool]) -> tuple[str, ...]:
    return unless[group[0]][group[1]]


def _groups(bindings: Sequence[Binding]) -> dict[tuple[str | None, bool], set[int]]:
    found: dict[tuple[str | None, bool], set[int]] = {}
    for place, binding in enumerate(bindings):
        if binding.status != "unreferenced":  # it never is looked up, under no root
            found.setdefault(_group(binding), set()).add(place)
    return found


def _group(binding: Binding) -> tuple[str | None, bool]:
    return binding.provider, binding.symbol.startswith(("Py", "_Py"))


def _decided_alone(process: Process, learnt: Learnt, now: _Circumstances) -> set[int]:
    """The places of the wants of which the provider alone does not tell who may supply in its stead.

    The program is passed over for a COPY relocation; a unique symbol has another provider than the look-up found; the
    file that verneed names may stop the look-up, or be newer than what is known of it.
    """
    elf = learnt.elf
    paths = {m.node.path for m in process.scope}
    if len(paths) != len(process.scope) or (elf.symbolic and not elf.complete):
        return set(range(len(learnt.offers.wants)))
    found = set(learnt.copies)
    for name in now.unique:
        found.update(learnt.places[name])
    for need in _stops(process, learnt, now):
        found.update(learnt.versions[need])
    return found


def _excused(binding: Binding, unless: tuple[str, ...]) -> _Outcome:
    """The outcome where these may supply in the provider's stead."""
    status = binding.status if binding.provider is not None else unbound(bool(unless), binding.weak)
    return status, binding.provider, unless, binding.also


def _take_over(known: _Settled, root: str, outcomes: Mapping[int, _Outcome]) -> tuple[Binding, ...]:
    """Make the outcomes at some places the known ones; gives the bindings that came out as under no root before."""
    bindings, fresh = list(known.bindings), []
    for place in sorted(outcomes):
        old, outcome = bindings[place], outcomes[place]
        before = _outcome(old)
        if outcome == before:
            continue
        known.told[place, before] = old
        new = known.told.get((place, outcome))
        if new is None:
            new = Binding(root, old.object, old.symbol, old.version, old.weak, *outcome)
            fresh.append(new)
        bindings[place] = new
        if new.provider != old.provider:
            known.groups[_group(old)].discard(place)
            known.groups.setdefault(_group(new), set()).add(place)
    known.bindings = tuple(bindings)
    return tuple(fresh)


def _circumstances(process: Process, scope: Sequence[_Near], learnt: Learnt) -> _Circumstances:
    holders, names = learnt.concern, learnt.places
    files = {need.file: process.named.get(need.file) for need in learnt.elf.verneed}
    named = set(files.values())
    around = tuple(
        near for near in scope if near.identity in holders or not near.complete or near.location in named
    )
    unique = {n: kept.location for n, kept in process.unique.items() if n in names}
    return _Circumstances(around, files, unique, process.absent)


def _differing(process: Process, learnt: Learnt, then: _Circumstances, now: _Circumstances) -> set[int]:
    """The places of the wants that may have got another provider."""
    found: set[int] = set()
    if now.files != then.files:
        other = {f for f in now.files.keys() | then.files.keys() if now.files.get(f) != then.files.get(f)}
        for (file, _), places in learnt.versions.items():
            if file in other:
                found.update(places)
    if now.around != then.around:
        found |= _moved(process, learnt, then, now)
    if now.unique != then.unique:
        names = learnt.places
        for name in now.unique.keys() | then.unique.keys():
            if now.unique.get(name) != then.unique.get(name):
                found.update(names[name])
    return found


def _moved(process: Process, learnt: Learnt, then: _Circumstances, now: _Circumstances) -> set[int]:
    """The places of the wants that objects decide which came, went or changed places."""
    holders, wants = learnt.concern, learnt.offers.wants
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
        stops = _stops(process, learnt, now)
        contested = learnt.contested.union(*(learnt.versions[need] for need in stops))
        if len({near.identity for near in order}) != len(order):  # the same facts at two places
            contested = set(range(len(wants)))
        decide: dict[int, set[str]] = {}
        for near in order:
            for place in contested.intersection(holders.get(near.identity, ())):
                decide.setdefault(place, set()).add(near.location)
        for place, locations in decide.items():
            stop = stops.get((wants[place].version_file or "", wants[place].version or ""))
            several = {*locations, stop} if stop is not None and stop in new else locations
            if sorted(several, key=new.__getitem__) != sorted(several, key=old.__getitem__):
                found.add(place)
    return found


def _stops(process: Process, learnt: Learnt, now: _Circumstances) -> Mapping[tuple[str, str], str]:
    """The files and versions of versioned wants where the file has a say of its own; with its location."""
    return {
        (file, version): location
        for file, version in learnt.versions
        if (location := now.files.get(file)) is not None and may_stop(process, location, version)
    }
