"""What opening one object loads, breadth-first: glibc's elf/dl-deps.c, musl's load_deps."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import Literal

from wheelfix.loader.paths import needed_name
from wheelfix.loader.search import Hit, Searched, searched
from wheelfix.model.elf import DF_1_NOOPEN, DF_1_PIE, ET_EXEC, ElfFacts
from wheelfix.model.resolution import Edge, Load, Node, World

_Kind = Literal["needed", "filter", "auxiliary"]


def load(world: World, root: Node, known: Searched | None = None) -> Load:
    """The scope that opening ``root`` makes, in the order in which symbols are looked up, and every edge.

    An extension module or a library is opened in a process of the world's interpreter, whose closure is
    loaded already; a program starts a process of its own. Where a dependency is missing the real loader
    gives up; here the walk goes on, so that all that is wrong is told at once. ``known`` carries what was found
    from one root of a world to the next.
    """
    known = {} if known is None else known
    program = root.elf is not None and root.elf.is_program
    loaded = _Loaded(world, _started(world, root) if program else world.interpreter)
    if not program:
        loaded.add(root, None)
    # dl-load.c, _dl_map_object: what dlopen opens has no loader, but the program's own DT_RPATH counts for all.
    above = () if program else world.interpreter[:1]
    scope = [root]
    members = {root.location}
    walked: set[str] = set()
    loader_of: dict[str, Node] = {}
    edges: list[Edge] = []
    at = 0
    while at < len(scope):
        requester = scope[at]
        if requester.location in walked:
            at += 1
            continue
        walked.add(requester.location)
        elf = requester.elf
        if elf is None or not elf.complete:
            continue
        chain = (*_chain(requester, loader_of), *above)
        here = at  # where the requester stands: each filtee goes right before it, and is walked next
        for name, kind in _wanted(elf, world):
            asked = needed_name(name, requester.location, world)
            hit = loaded.by_name(asked) or searched(world, name, chain, known)
            node = hit.node
            if node is not None:
                again = loaded.same_file(node)
                reason = _refused(node, world, program) if again is None else None
                if reason is not None:
                    hit, node = Hit("missing", tried=hit.tried, detail=f"{node.path} {reason}"), None
                else:
                    node = again or node
            if node is None and kind == "auxiliary":
                continue  # dl-deps.c: an auxiliary filtee that is not there is no error
            edges.append(_edge(root, requester, name, hit, node))
            if node is None:
                continue
            loaded.add(node, asked)
            if node.location not in members:
                members.add(node.location)
                loader_of[node.location] = requester
                scope.append(node)
            if kind != "needed" and _moved_before(scope, node, here):
                here += 1
    return Load(root, tuple(scope), _each_once(edges))


def _started(world: World, program: Node) -> tuple[Node, ...]:
    """What the kernel has mapped before a program's libraries are loaded: the program and its interpreter."""
    name = posixpath.basename(program.elf.interpreter or "") if program.elf is not None else ""
    return (program, world.host[name]) if name in world.host else (program,)


def _wanted(elf: ElfFacts, world: World) -> Iterator[tuple[str, _Kind]]:
    """The names that an object asks for, in the order in which linkers write them; musl knows DT_NEEDED alone."""
    yield from ((name, "needed") for name in dict.fromkeys(elf.needed))
    if world.libc == "glibc":
        yield from ((name, "filter") for name in elf.filters)
        yield from ((name, "auxiliary") for name in elf.auxiliaries)


def _each_once(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """The first edge of each object and name: one that is DT_NEEDED and DT_FILTER at once is one edge."""
    once: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        once.setdefault((edge.object, edge.needed), edge)
    return tuple(once.values())


def loads(world: World, nodes: Iterable[Node]) -> tuple[Load, ...]:
    """The loads of every root among ``nodes``, ordered by path.

    Roots are the Python extension modules, the programs, and each shared object that no root reaches
    (something opens it with dlopen or ctypes). Of libraries that only reach each other the first counts.
    """
    ordered = sorted((n for n in nodes if n.elf is not None), key=lambda n: n.path)
    known: Searched = {}
    found: dict[str, Load] = {}
    reached: set[str] = set()
    rest: list[Node] = []
    for node in ordered:
        if node.elf is not None and (node.elf.is_program or node.elf.python_modules):
            found[node.location] = load(world, node, known)
            reached.update(n.location for n in found[node.location].scope)
        else:
            rest.append(node)
    others = {n.location: load(world, n, known) for n in rest if n.location not in reached}
    needed = {n.location for o in others.values() for n in o.scope if n.location != o.root.location}
    # First those that nothing needs, then one of each circle.
    for location in sorted(others, key=lambda at: (at in needed, others[at].root.path)):
        if location not in reached:
            found[location] = others[location]
            reached.update(n.location for n in others[location].scope)
    return tuple(sorted(found.values(), key=lambda one: one.root.path))


def roots(world: World, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The objects among ``nodes`` whose opening sets a scope; see ``loads``."""
    return tuple(one.root for one in loads(world, nodes))


class _Loaded:
    """The objects of a process by every name under which the loader knows them again.

    glibc (dl-load.c, _dl_map_object): the names under which an object was asked for, its SONAME, and the path that it
    was opened by (l_name; one that is written otherwise leads to the same file). musl: the name under which a search
    found it, never the SONAME. Both: the same file.
    """

    def __init__(self, world: World, before: Iterable[Node]) -> None:
        self._glibc = world.libc == "glibc"
        self._names: dict[str, Node] = {}
        self._files: dict[str, Node] = {}
        self._named: set[str] = set()  # musl: the files that have a name
        for index, node in enumerate(before):
            if index == 0:
                # The kernel mapped the program: the loader does not know which file it is, only its SONAME.
                if self._glibc and node.elf is not None and node.elf.soname is not None:
                    self._names[node.elf.soname] = node
            else:  # found by searching for its name
                self.add(node, posixpath.basename(node.location))

    def by_name(self, name: str) -> Hit | None:
        node = self._names.get(name)
        if node is None:
            return None
        if node.owner in ("host", "interpreter"):
            return Hit("host", node, "soname-loaded")
        if node.owner == "external":
            return Hit("external", node)
        return Hit("already-loaded", node, "soname-loaded")

    def same_file(self, node: Node) -> Node | None:
        return self._files.get(node.identity or node.location)

    def add(self, node: Node, name: str | None) -> None:
        """The object is loaded; ``name`` is what it was asked for by, None where it was opened by its path."""
        file = node.identity or node.location
        first = file not in self._files
        self._files.setdefault(file, node)
        if self._glibc:
            soname = node.elf.soname if node.elf is not None else None
            for known in (name, soname, node.location):
                if known is not None:
                    self._names.setdefault(known, node)
        elif name is not None and "/" not in name and file not in self._named:
            # load_library: the name of the search that found it; of one that was opened by a path, the file's own.
            self._named.add(file)
            self._names.setdefault(name if first else posixpath.basename(node.location), node)


def _chain(node: Node, loader_of: dict[str, Node]) -> list[Node]:
    """The object, the one that loaded it, and so on up to the root."""
    chain = [node]
    while (above := loader_of.get(chain[-1].location)) is not None:
        chain.append(above)
    return chain


def _refused(node: Node, world: World, program: bool) -> str | None:
    """Why the loader does not map a file that its search found (dl-load.c, _dl_map_object_from_fd).

    musl knows none of the flags, and takes a position-independent program for a library.
    """
    elf = node.elf
    if elf is None or not elf.complete:
        return None
    if elf.type == ET_EXEC:
        return "is a program, which the loader does not load as a library"
    if not elf.dynamic:
        return "has no dynamic section"
    if world.libc == "musl":
        return None
    if elf.flags_1 & DF_1_PIE:
        return "is a position-independent program, which the loader does not load as a library"
    if elf.flags_1 & DF_1_NOOPEN and not program:
        return "forbids being opened at run time (DF_1_NOOPEN)"
    return None


def _edge(root: Node, requester: Node, name: str, hit: Hit, node: Node | None) -> Edge:
    return Edge(
        root=root.path,
        object=requester.path,
        needed=name,
        status=hit.status,
        path=node.path if node is not None else None,
        rule=hit.rule,
        via=hit.via.path if hit.via is not None else None,
        tried=hit.tried,
        entry=hit.entry,
        detail=hit.detail,
    )


def _moved_before(scope: list[Node], filtee: Node, filter_at: int) -> bool:
    """Move a filtee right before its filter, unless it stands before it already (dl-deps.c)."""
    at = next(i for i, node in enumerate(scope) if node.location == filtee.location)
    if at <= filter_at:
        return False
    scope.insert(filter_at, scope.pop(at))
    return True


def chain_of(done: Load, path: str) -> tuple[Node, ...]:
    """The object at ``path`` and the objects that loaded it, up to the root, as the search walks them."""
    nodes = {n.path: n for n in done.scope}
    loader: dict[str, str] = {}
    for edge in done.edges:
        if edge.path is not None and edge.path != done.root.path:
            loader.setdefault(edge.path, edge.object)
    chain = [nodes[path]]
    while (above := loader.get(chain[-1].path)) is not None and len(chain) <= len(nodes):
        chain.append(nodes[above])
    return tuple(chain)
