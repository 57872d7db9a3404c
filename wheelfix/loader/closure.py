"""What opening one object loads, breadth-first: glibc's elf/dl-deps.c, musl's load_deps."""

from __future__ import annotations

from collections.abc import Iterable

from wheelfix.loader.search import Hit, search
from wheelfix.model.elf import DF_1_NOOPEN, DF_1_PIE, ET_EXEC
from wheelfix.model.resolution import Edge, Load, Node, World


def load(world: World, root: Node) -> Load:
    """The scope that opening ``root`` makes, in the order in which symbols are looked up, and every edge.

    An extension module or a library is opened in a process of the world's interpreter, whose closure is
    loaded already; a program starts a process of its own. Where a dependency is missing the real loader
    gives up; here the walk goes on, so that all that is wrong is told at once.
    """
    program = root.elf is not None and root.elf.is_program
    loaded = _Loaded(world, () if program else world.interpreter)
    loaded.add(root, root.location)
    above = () if program or not world.interpreter else world.interpreter[:1]
    scope, walk = [root], [root]
    members = {root.location}
    loader_of: dict[str, Node] = {}
    edges: list[Edge] = []
    for requester in walk:  # grows as it goes
        elf = requester.elf
        if elf is None or not elf.complete:
            continue
        chain = (*_chain(requester, loader_of), *above)
        filtees = {*elf.filters, *elf.auxiliaries}
        for name in dict.fromkeys((*elf.needed, *elf.filters, *elf.auxiliaries)):
            hit = loaded.by_name(name) or search(world, name, chain)
            node = loaded.same_file(hit.node) if hit.node is not None else None
            if node is not None and (reason := _refused(node, program)) is not None:
                hit, node = Hit("missing", tried=hit.tried, detail=f"{node.path} {reason}"), None
            if node is None and name in elf.auxiliaries and name not in elf.needed:
                continue  # dl-deps.c: an auxiliary filtee that is not there is no error
            edges.append(_edge(root, requester, name, hit, node))
            if node is None:
                continue
            loaded.add(node, name)
            if node.location not in members:
                members.add(node.location)
                loader_of[node.location] = requester
                scope.append(node)
                walk.append(node)
            if name in filtees and node is not requester:
                _before(scope, node, requester)
    return Load(root, tuple(scope), tuple(edges))


def loads(world: World, nodes: Iterable[Node]) -> tuple[Load, ...]:
    """The loads of every root among ``nodes``, ordered by path.

    Roots are the Python extension modules, the programs, and each shared object that no root reaches
    (something opens it with dlopen or ctypes). Of libraries that only reach each other the first counts.
    """
    ordered = sorted((n for n in nodes if n.elf is not None), key=lambda n: n.path)
    found: dict[str, Load] = {}
    reached: set[str] = set()
    rest: list[Node] = []
    for node in ordered:
        if node.elf is not None and (node.elf.is_program or node.elf.python_modules):
            found[node.location] = load(world, node)
            reached.update(n.location for n in found[node.location].scope)
        else:
            rest.append(node)
    others = {n.location: load(world, n) for n in rest if n.location not in reached}
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

    glibc (dl-load.c, _dl_map_object): the names under which an object was asked for, and its SONAME. musl: the
    name under which a search found it, never the SONAME. Both: the same file.
    """

    def __init__(self, world: World, before: Iterable[Node]) -> None:
        self._glibc = world.libc == "glibc"
        self._names: dict[str, Node] = {}
        self._files: dict[str, Node] = {}
        for node in before:
            self.add(node, None)

    def by_name(self, name: str) -> Hit | None:
        node = self._names.get(name)
        if node is None:
            return None
        if node.owner in ("host", "interpreter"):
            return Hit("host", node, "soname-loaded")
        if node.owner == "external":
            return Hit("external", node)
        return Hit("already-loaded", node, "soname-loaded")

    def same_file(self, node: Node) -> Node:
        return self._files.get(node.identity or node.location, node)

    def add(self, node: Node, name: str | None) -> None:
        self._files.setdefault(node.identity or node.location, node)
        if name is not None:
            self._names.setdefault(name, node)
        if self._glibc and node.elf is not None and node.elf.soname is not None:
            self._names.setdefault(node.elf.soname, node)


def _chain(node: Node, loader_of: dict[str, Node]) -> list[Node]:
    """The object, the one that loaded it, and so on up to the root."""
    chain = [node]
    while (above := loader_of.get(chain[-1].location)) is not None:
        chain.append(above)
    return chain


def _refused(node: Node, program: bool) -> str | None:
    """Why a process that is running already may not load the object (dl-load.c, _dl_map_object_from_fd)."""
    elf = node.elf
    if elf is None or not elf.complete:
        return None
    if elf.type == ET_EXEC:
        return "is a program, which the loader does not load as a library"
    if program:
        return None
    if elf.flags_1 & DF_1_NOOPEN:
        return "forbids being opened at run time (DF_1_NOOPEN)"
    if elf.flags_1 & DF_1_PIE:
        return "is a position-independent program, which the loader does not load as a library"
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


def _before(scope: list[Node], filtee: Node, filter_: Node) -> None:
    """Move a filtee right before its filter, whose symbols it supplies (dl-deps.c)."""
    at, target = scope.index(filtee), scope.index(filter_)
    if at > target:
        scope.insert(target, scope.pop(at))


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
