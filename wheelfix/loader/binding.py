"""Who supplies each symbol: relocation as the loader does it, object by object.

glibc: ``elf/dl-lookup.c`` (``_dl_lookup_symbol_x``), ``elf/dl-reloc.c``, ``elf/dl-open.c``. musl:
``ldso/dynlink.c`` (``do_relocs``, ``find_sym``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wheelfix.loader.lookup import Index, accepted, accepted_by_musl, index, plain_name
from wheelfix.loader.versions import loaded_by_name
from wheelfix.model.elf import (
    LOOKUP_COPY,
    LOOKUP_DATA,
    LOOKUP_PLT,
    SHN_UNDEF,
    STB_GNU_UNIQUE,
    STV_DEFAULT,
    STV_PROTECTED,
    Symbol,
)
from wheelfix.model.resolution import Binding, BindStatus, Load, Node, World

#: What was indexed before, by the identity of the facts; holds the facts so that the identity stays theirs.
Indexes = dict[int, tuple[object, Index]]

# The relocation classes that differ in what they accept, in the order in which their providers are told.
_CLASSES = (LOOKUP_COPY, LOOKUP_PLT, LOOKUP_DATA)


class _Member(NamedTuple):
    """One object of the scope with its index; ``executable`` is the program that the process runs."""

    node: Node
    offers: Index
    executable: bool
    python: bool  # stands for the interpreter: an incomplete one can only hold the C API


class _Found(NamedTuple):
    """The outcome of one look-up; ``unless`` holds the incomplete objects that were passed on the way."""

    node: Node | None
    unless: tuple[str, ...] = ()
    failed: bool = False  # the loader stops, also where the reference is weak


def bind_all(world: World, loads: Iterable[Load]) -> tuple[Binding, ...]:
    """The bindings of several roots of one world, one after the other; each object is indexed once."""
    indexes: Indexes = {}
    return tuple(b for load in loads for b in bind(world, load, indexes))


def bind(world: World, load: Load, indexes: Indexes | None = None) -> tuple[Binding, ...]:
    """Who supplies each symbol that the objects of one load want.

    One binding for each undefined symbol (and each COPY relocation) of each object in ``load.scope`` that
    the process had not relocated before, in the order of the scope and of the symbol tables. ``indexes``
    carries what was learnt about objects from one call to the next.
    """
    process = _Process(world, load, {} if indexes is None else indexes)
    return tuple(b for node in process.opened for b in process.bindings_of(node))


class _Process:
    """The scopes of one process in which one root was opened."""

    def __init__(self, world: World, load: Load, indexes: Indexes) -> None:
        self._root = load.root.path
        self._musl = world.libc == "musl"
        self._libc_version = world.libc_version
        self._indexes = indexes
        elf = load.root.elf
        program = elf is not None and elf.is_program
        interpreter = () if program else world.interpreter
        before = {n.location for n in interpreter}
        self.opened = tuple(n for n in load.scope if n.location not in before)
        scope: dict[str, _Member] = {}
        for position, node in enumerate((*interpreter, *load.scope)):
            if node.elf is not None:
                first = position == 0 and (program or bool(interpreter))
                scope.setdefault(
                    node.location, _Member(node, self._index(node), first, first and not program)
                )
        self._scope = tuple(scope.values())
        self._absent = tuple(
            dict.fromkeys(e.needed for e in load.edges if e.status == "missing" and e.needed)
        )
        # glibc < 2.30 stops a versioned look-up at the file that verneed names (bug 24741). Libraries that are
        # known from data are those of a newer one, which has moved symbols out of libpthread and librt.
        names = loaded_by_name(world, load)
        self._named = {name: node.location for name, node in names.items()}
        self._stops = not self._musl and self._libc_version < (2, 30)
        self._unique = self._relocate_unique(load)

    def _index(self, node: Node) -> Index:
        key = id(node.elf)
        if key not in self._indexes and node.elf is not None:
            zero = not self._musl and self._libc_version >= (2, 28)
            self._indexes[key] = (node.elf, index(node.elf, absolute_zero=zero))
        return self._indexes[key][1]

    def bindings_of(self, node: Node) -> Iterator[Binding]:
        """The bindings of one object of the scope."""
        if node.elf is None:
            return
        scope = self._scope_of(node)
        for symbol in node.elf.symbols:
            if symbol.section != SHN_UNDEF and not symbol.lookups & LOOKUP_COPY:
                continue
            if not symbol.lookups or symbol.visibility not in (STV_DEFAULT, STV_PROTECTED):
                # RESOLVE_MAP (elf/dl-reloc.c) takes hidden and internal symbols from the object itself.
                yield self._binding(node, symbol, "unreferenced")
                continue
            found = [self._find(scope, symbol, kind) for kind in _CLASSES if symbol.lookups & kind]
            first = found[0]
            status: BindStatus = "bound"
            if first.node is None:
                status = (
                    "missing"
                    if first.failed
                    else "undecided"
                    if first.unless
                    else "weak-unbound"
                    if symbol.weak
                    else "missing"
                )
            others = (o.node.path for o in found[1:] if o.node is not None and o.node is not first.node)
            also = next(others, None)
            yield self._binding(node, symbol, status, first, also)

    def _binding(
        self,
        node: Node,
        symbol: Symbol,
        status: BindStatus,
        found: _Found = _Found(None),  # noqa: B008 (immutable)
        also: str | None = None,
    ) -> Binding:
        return Binding(
            self._root,
            node.path,
            symbol.name,
            symbol.version,
            symbol.weak,
            status,
            found.node.path if found.node is not None else None,
            found.unless,
            also,
        )

    def _scope_of(self, node: Node) -> Sequence[_Member]:
        """The scope in which an object's symbols are looked up: its own first where it is symbolic.

        The program itself never is (``elf/dl-load.c``, ``_dl_map_object_from_fd``); musl knows no DT_SYMBOLIC.
        """
        if node.elf is None or not node.elf.symbolic or self._musl or node.elf.is_program:
            return self._scope
        return (_Member(node, self._index(node), False, False), *self._scope)

    def _find(self, scope: Sequence[_Member], symbol: Symbol, kind: int) -> _Found:
        """One look-up of one relocation class."""
        name = symbol.name
        version = symbol.version
        stop = self._named.get(symbol.version_file or "") if version is not None else None
        unless: list[str] = []
        for member in scope:
            if member.executable and kind == LOOKUP_COPY:
                continue
            node, known = member.node, member.offers
            candidates = known.definitions.get(name, ())
            if kind == LOOKUP_DATA and known.entries:
                candidates += known.entries.get(name, ())
            if candidates:
                if self._musl:
                    definition = accepted_by_musl(candidates)
                else:
                    definition = accepted(candidates, version, known.versioned)
                    if (
                        version is not None
                        and not known.versioned
                        and node.location == stop
                        and known.complete
                    ):
                        return _Found(None, (), True)  # ld.so aborts: an assertion of check_match
                if definition is not None:
                    if definition.bind == STB_GNU_UNIQUE and not self._musl and kind != LOOKUP_COPY:
                        node = self._unique.get(name, node)
                    return _Found(node, tuple(unless))
            if not known.complete:
                if not member.python or name.startswith(("Py", "_Py")):
                    unless.append(node.path)
            elif self._stops and node.location == stop and known.measured:
                return _Found(None, tuple(unless), not unless)
        if self._musl and (found := self._large_file_name(name)):
            return _Found(found, tuple(unless))
        return _Found(None, (*unless, *self._absent))

    def _large_file_name(self, name: str) -> Node | None:
        """musl's own answer for the names of the large file interface."""
        plain = plain_name(name)
        if plain is None:
            return None
        return next(
            (
                m.node
                for m in self._scope
                if plain in m.offers.definitions and m.node.owner in ("host", "interpreter")
            ),
            None,
        )

    def _relocate_unique(self, load: Load) -> dict[str, Node]:
        """Which definition of each STB_GNU_UNIQUE symbol the process keeps: that of the first look-up.

        Only a name that two objects define can differ from what the scope says.
        """
        seen: set[str] = set()
        contested: set[str] = set()
        if not self._musl:
            for member in self._scope:
                contested |= seen & member.offers.unique
                seen |= member.offers.unique
        kept: dict[str, Node] = {}
        self._unique = kept
        if not contested:
            return kept
        for node in relocation_order(load):
            scope = self._scope_of(node)
            for symbol in node.elf.symbols if node.elf is not None else ():
                if symbol.name in contested and symbol.lookups and symbol.name not in kept:
                    found = self._find(scope, symbol, symbol.lookups & LOOKUP_PLT or LOOKUP_DATA).node
                    if found is not None and symbol.name in self._index(found).unique:
                        kept[symbol.name] = found
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
