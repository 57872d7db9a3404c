"""Who supplies each symbol: relocation as the loader does it, object by object.

glibc: ``elf/dl-lookup.c`` (``_dl_lookup_symbol_x``), ``elf/dl-reloc.c``, ``elf/dl-open.c``. musl:
``ldso/dynlink.c`` (``do_relocs``, ``find_sym``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from wheelfix.loader.lookup import Index, accepted, accepted_by_musl, index, plain_name
from wheelfix.loader.versions import loaded_by_name
from wheelfix.model.elf import (
    LOOKUP_COPY,
    LOOKUP_DATA,
    LOOKUP_PLT,
    STB_GNU_UNIQUE,
    STV_DEFAULT,
    STV_PROTECTED,
    ElfFacts,
    Symbol,
)
from wheelfix.model.resolution import Binding, BindStatus, Load, Node, World


class Learnt:
    """What was learnt about one object; each answer is made when it is asked for, and once.

    ``holders`` are those of ``Indexes``: what depends on them is asked when all objects are indexed.
    """

    def __init__(self, elf: ElfFacts, offers: Index, holders: Mapping[str, Sequence[int]]) -> None:
        self.elf = elf
        self.offers = offers
        self._holders = holders

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """For each name that the object wants the places in ``Index.wants`` at which it does."""
        found: dict[str, list[int]] = {}
        for place, symbol in enumerate(self.offers.wants):
            found.setdefault(symbol.name, []).append(place)
        return found

    @cached_property
    def versions(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """For each file and version that versioned wants name the places in ``Index.wants`` of these."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, symbol in enumerate(self.offers.wants):
            if symbol.version is not None:
                found.setdefault((symbol.version_file or "", symbol.version), []).append(place)
        return found

    @cached_property
    def copies(self) -> Sequence[int]:
        """The places in ``Index.wants`` at which a COPY relocation takes what it finds."""
        return [p for p, s in enumerate(self.offers.wants) if s.lookups & LOOKUP_COPY]

    @cached_property
    def looked(self) -> Mapping[str, Sequence[Symbol]]:
        """The symbols of the object that a relocation names, defined ones too, by name."""
        found: dict[str, list[Symbol]] = {}
        for symbol in self.elf.symbols:
            if symbol.lookups:
                found.setdefault(symbol.name, []).append(symbol)
        return found

    @cached_property
    def concern(self) -> Mapping[int, Sequence[int]]:
        """The objects that have anything of what this one wants, by identity, with the places of it in ``Index.wants``."""
        found: dict[int, list[int]] = {}
        for name, places in self.places.items():
            for holder in self._holders.get(name, ()):
                found.setdefault(holder, []).extend(places)
        return found

    @cached_property
    def contested(self) -> set[int]:
        """The places in ``Index.wants`` of what several objects have."""
        wanted = self.places.items()
        return {p for n, places in wanted if len(self._holders.get(n, ())) > 1 for p in places}


class Indexes:
    """What was learnt about objects, by the identity of their facts, which are held so that it stays theirs.

    ``holders`` tells for each name which objects define it or have a PLT entry for it: of the dozens in a
    scope, one or two.
    """

    def __init__(self) -> None:
        self.holders: dict[str, list[int]] = {}
        self._known: dict[int, Learnt] = {}

    def of(self, elf: ElfFacts, absolute_zero: bool) -> Index:
        """The index of one object; ``absolute_zero`` as in ``lookup.index``."""
        key = id(elf)
        if key not in self._known:
            made = index(elf, absolute_zero=absolute_zero)
            self._known[key] = Learnt(elf, made, self.holders)
            for name in made.definitions.keys() | made.entries.keys():
                self.holders.setdefault(name, []).append(key)
        return self._known[key].offers

    def learnt(self, elf: ElfFacts) -> Learnt:
        """What was learnt about an object that was indexed."""
        return self._known[id(elf)]


# The relocation classes that differ in what they accept, in the order in which their providers are told, for each set.
_CLASSES = tuple(
    tuple(kind for kind in (LOOKUP_COPY, LOOKUP_PLT, LOOKUP_DATA) if lookups & kind) for lookups in range(8)
)


class _Member(NamedTuple):
    """One object of the scope with what it offers."""

    node: Node
    offers: Index
    executable: bool = False  # the program that the process runs
    python: bool = False  # stands for the interpreter: an incomplete one can only hold the C API


class _Found(NamedTuple):
    """The outcome of one look-up; ``unless`` holds the incomplete objects that were passed on the way."""

    node: Node | None = None
    unless: tuple[str, ...] = ()
    failed: bool = False  # the loader stops, also where the reference is weak


_NOTHING = _Found()


@dataclass(frozen=True, slots=True)
class Process:
    """One process in which one root was opened, as far as look-ups depend on it."""

    root: str
    musl: bool
    opened: tuple[Node, ...]  # what is relocated now
    members: Mapping[str, _Member]  # by location, in the order of look-up
    scope: Sequence[_Member]  # the same
    places: Mapping[int, tuple[int, ...]]  # identity of an object's facts -> its positions in the scope
    #: For each position, and the end: the incomplete objects before it, without and with those that can only hold the
    #: C API. They may supply what is found there.
    excuses: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]
    holders: Mapping[str, Sequence[int]]  # name -> identities of the facts that have it, in the scope or not
    absent: tuple[str, ...]  # names in DT_NEEDED that nothing was found for
    named: Mapping[str, str]  # name of a file, as verneed has it -> location of the object that goes by it
    stops: bool  # a versioned look-up ends at the file that verneed names
    unique: Mapping[str, Node]  # who keeps each contested STB_GNU_UNIQUE symbol


def bind(world: World, load: Load, indexes: Indexes | None = None) -> tuple[Binding, ...]:
    """Who supplies each symbol that the objects of one load want.

    One binding for each undefined symbol (and each COPY relocation) of each object in ``load.scope`` that
    the process had not relocated before, in the order of the scope and of the symbol tables. ``indexes``
    carries what was learnt about objects from one call to the next.
    """
    process = process_of(world, load, Indexes() if indexes is None else indexes)
    return tuple(b for node in process.opened for b in bindings_of(process, node))


def process_of(world: World, load: Load, indexes: Indexes) -> Process:
    """The process in which one root is opened, with every object of its scope indexed."""
    program = load.root.elf is not None and load.root.elf.is_program
    interpreter = () if program else world.interpreter
    before = {n.location for n in interpreter}
    # Absolute symbols of value zero are definitions since glibc 2.28.
    absolute_zero = world.libc != "musl" and world.libc_version >= (2, 28)
    members: dict[str, _Member] = {}
    for position, node in enumerate((*interpreter, *load.scope)):
        if node.elf is not None and node.location not in members:
            first = position == 0 and (program or bool(interpreter))
            offers = indexes.of(node.elf, absolute_zero)
            members[node.location] = _Member(node, offers, first, first and not program)
    scope = tuple(members.values())
    places: dict[int, tuple[int, ...]] = {}
    for position, member in enumerate(scope):
        places[id(member.node.elf)] = (*places.get(id(member.node.elf), ()), position)
    process = Process(
        root=load.root.path,
        musl=world.libc == "musl",
        opened=tuple(n for n in load.scope if n.location not in before),
        members=members,
        scope=scope,
        places=places,
        excuses=_excuses(scope),
        holders=indexes.holders,
        absent=tuple(dict.fromkeys(e.needed for e in load.edges if e.status == "missing")),
        named={name: node.location for name, node in loaded_by_name(world, load).items()},
        # Until bug 24741 was closed. Libraries that are known from data are those of a newer glibc, which has
        # moved symbols out of libpthread and librt; they stop nothing (``Index.measured``).
        stops=world.libc != "musl" and world.libc_version < (2, 30),
        unique={},
    )
    return replace(process, unique=_kept_unique(process, load, indexes))


def bindings_of(process: Process, node: Node) -> Iterator[Binding]:
    """The bindings of one object of the scope."""
    if node.elf is None:
        return
    own = own_first(process, node)
    for symbol in process.members[node.location].offers.wants:
        yield binding_of(process, node, own, symbol)


def binding_of(process: Process, node: Node, own: int | None, symbol: Symbol) -> Binding:
    """Who supplies one symbol that an object wants; ``own`` as ``own_first`` has it."""
    lookups = symbol.lookups
    status: BindStatus = "bound"
    first, also = _NOTHING, None
    if not lookups or symbol.visibility not in (STV_DEFAULT, STV_PROTECTED):
        # RESOLVE_MAP (elf/dl-reloc.c) takes hidden and internal symbols from the object itself.
        status = "unreferenced"
    else:
        first, *others = [_find(process, own, symbol, kind) for kind in _CLASSES[lookups & 7]]
        if first.node is None:
            status = "missing" if first.failed else unbound(bool(first.unless), symbol.weak)
        if others:
            also = next(
                (o.node.path for o in others if o.node is not None and o.node is not first.node), None
            )
    provider = first.node.path if first.node is not None else None
    return Binding(
        process.root,
        node.path,
        symbol.name,
        symbol.version,
        symbol.weak,
        status,
        provider,
        first.unless,
        also,
    )


def unbound(excused: bool, weak: bool) -> BindStatus:
    """What a look-up that finds nothing comes to; ``excused`` where an incomplete or absent object may supply it."""
    if excused:
        return "undecided"
    return "weak-unbound" if weak else "missing"


def own_first(process: Process, node: Node) -> int | None:
    """The position of a symbolic object, whose symbols are looked up in itself before the scope; else None.

    The program itself never is (``elf/dl-load.c``, ``_dl_map_object_from_fd``); musl knows no DT_SYMBOLIC.
    """
    if node.elf is None or not node.elf.symbolic or process.musl or node.elf.is_program:
        return None
    places = process.places[id(node.elf)]  # several where copies share the facts
    return next(p for p in places if process.scope[p].node.location == node.location)


def _excuses(scope: Sequence[_Member]) -> Sequence[tuple[tuple[str, ...], tuple[str, ...]]]:
    others: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    found = [(others, python)]
    for member in scope:
        if not member.offers.complete:
            python = (*python, member.node.path)
            if not member.python:
                others = (*others, member.node.path)
        found.append((others, python))
    return found


def _find(process: Process, own: int | None, symbol: Symbol, kind: int) -> _Found:
    """One look-up of one relocation class; ``own`` is the position that comes before the scope.

    An object that does not have the name and is not the file that verneed names changes nothing of what is found:
    only the others are looked at, in the order of the scope. Those of which not all is known may supply it instead.
    """
    name, version = symbol.name, symbol.version
    stop = process.named.get(symbol.version_file or "") if version is not None else None
    python = name.startswith(("Py", "_Py"))
    newer: int | None = None
    for position in _worth_a_look(process, own, name, stop, version):
        node, offers, executable, _ = process.scope[position]
        if executable and kind == LOOKUP_COPY:
            continue
        before = 0 if position == own else position
        candidates = offers.definitions.get(name, ())
        if kind == LOOKUP_DATA and offers.entries:
            candidates += offers.entries.get(name, ())
        if candidates:
            if process.musl:
                definition = accepted_by_musl(candidates)
            else:
                definition = accepted(candidates, version, offers.versioned)
                if version is not None and not offers.versioned and node.location == stop and offers.complete:
                    return _Found(failed=True)  # ld.so aborts: an assertion of check_match
            if definition is not None:
                unique = definition.bind == STB_GNU_UNIQUE and kind != LOOKUP_COPY
                unless = _excuse(process, before, kind, python, newer)
                return _Found(process.unique.get(name, node) if unique else node, unless)
        if node.location == stop and version is not None and offers.complete:
            if _may_be_newer(node, version):
                newer = position
            elif process.stops and offers.measured:
                unless = _excuse(process, before, kind, python, newer)
                return _Found(unless=unless, failed=not unless)
    unless = _excuse(process, len(process.scope), kind, python, newer)
    if process.musl and (found := _large_file_name(process, name)):
        return _Found(found, unless)
    return _Found(unless=(*unless, *process.absent))


def _excuse(process: Process, before: int, kind: int, python: bool, newer: int | None) -> tuple[str, ...]:
    """Who may supply what is found at a position, in the order of look-up; ``newer`` is the place of one more."""
    if newer is None and kind != LOOKUP_COPY:
        return process.excuses[before][python]
    return tuple(
        m.node.path
        for position, m in enumerate(process.scope[:before])
        if position == newer
        or not (m.offers.complete or (m.python and not python) or (m.executable and kind == LOOKUP_COPY))
    )


def _worth_a_look(
    process: Process, own: int | None, name: str, stop: str | None, version: str | None
) -> Sequence[int]:
    """Positions in the order of the look-up: who has the name, and the file that verneed names where it has a say."""
    found: tuple[int, ...] = ()
    for identity in process.holders.get(name, ()):
        found += process.places.get(identity, ())
    if stop is not None and version is not None and may_stop(process, stop, version):
        found += process.places[id(process.members[stop].node.elf)]
    if own is not None:
        return (own, *sorted(set(found)))
    return sorted(set(found)) if len(found) > 1 else found


def may_stop(process: Process, location: str, version: str) -> bool:
    """Whether the file that verneed names has a say of its own, beside what it defines, in a versioned look-up."""
    member = process.members.get(location)
    if member is None:
        return False
    return process.stops or not member.offers.versioned or _may_be_newer(member.node, version)


def _may_be_newer(node: Node, version: str) -> bool:
    """A version that the data of the machine's library do not reach: the machine may have it."""
    elf = node.elf
    return elf is not None and elf.open_ended and version not in {d.name for d in elf.verdef}


def _large_file_name(process: Process, name: str) -> Node | None:
    """musl's own answer for the names of the large file interface."""
    plain = plain_name(name)
    if plain is None:
        return None
    holders = (m.node for m in process.members.values() if plain in m.offers.definitions)
    return next((n for n in holders if n.owner in ("host", "interpreter")), None)


def _kept_unique(process: Process, load: Load, indexes: Indexes) -> Mapping[str, Node]:
    """Which definition of each STB_GNU_UNIQUE symbol the process keeps: that of the first look-up.

    Only a name that two objects define can differ from what the scope says.
    """
    seen: set[str] = set()
    contested: set[str] = set()
    kept: dict[str, Node] = {}
    if process.musl:
        return kept
    for member in process.members.values():
        contested |= seen & member.offers.unique
        seen |= member.offers.unique
    opened = {n.location for n in process.opened}
    for node in relocation_order(load) if contested else ():
        if node.elf is None or node.location not in opened:
            continue
        own = own_first(process, node)
        looked = indexes.learnt(node.elf).looked
        for name in contested - kept.keys():
            for symbol in looked.get(name, ()):
                found = _find(process, own, symbol, symbol.lookups & LOOKUP_PLT or LOOKUP_DATA).node
                if found is not None and name in process.members[found.location].offers.unique:
                    kept[name] = found
                    break
    return kept


def relocation_order(load: Load) -> tuple[Node, ...]:
    """The objects of a load in the order in which they are relocated: dependencies first.

    glibc sorts with a depth-first walk from the last object of the scope to the first and relocates
    from the end (``elf/dl-sort-maps.c``, since 2.35; earlier ones differ where no dependency decides).
    """
    by_path = {n.path: n for n in load.scope}
    children: dict[str, list[str]] = {}
    for edge in load.edges:
        if edge.path in by_path:
            children.setdefault(edge.object, []).append(edge.path)
    order: dict[str, Node] = {}
    entered: set[str] = set()
    for top in reversed(load.scope):
        stack = [(top.path, iter(children.get(top.path, ())))] if top.path not in entered else []
        entered.add(top.path)
        while stack:
            path, rest = stack[-1]
            child = next((c for c in rest if c not in entered), None)
            if child is None:
                order[path] = by_path[path]
                stack.pop()
            else:
                entered.add(child)
                stack.append((child, iter(children.get(child, ()))))
    return tuple(order.values())
