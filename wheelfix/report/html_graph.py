"""Who loads whom, as the nodes and edges of a picture. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wheelfix.model.elf import ElfFacts
from wheelfix.model.resolution import Edge, Load, Node
from wheelfix.model.wheel import Member
from wheelfix.report.escape import plain
from wheelfix.report.show import kind_of
from wheelfix.report.tree import told

#: One edge without its root: what is told once, however many roots lead to it.
_Way = tuple[str, str, str, str | None, str | None, str | None, str | None]


def graph(loads: Sequence[Load], unloaded: Iterable[Member] = ()) -> dict[str, Any]:
    """The nodes, and an edge for each two of them that stand beside each other in some load.

    An edge has every way in which it comes about; the gravest one gives it its colour. What is missing is a node
    too. ``unloaded`` are objects that no load of this machine can hold, such as those of another architecture.
    """
    nodes: dict[str, dict[str, Any]] = {}
    for load in loads:
        for node in load.scope:
            nodes.setdefault(node.path, _node(node))
        nodes[load.root.path]["root"] = True
    for member in unloaded:
        if member.elf is not None:
            nodes.setdefault(member.path, _object(member.path, "wheel", member.elf))
    ways: dict[_Way, tuple[Edge, list[str]]] = {}
    for load in loads:
        for edge in load.edges:
            ways.setdefault(_way(edge), (edge, []))[1].append(load.root.path)
    edges: dict[tuple[str, str], list[tuple[Edge, list[str]]]] = {}
    for edge, roots in ways.values():
        target = edge.path or f"missing:{edge.needed}"
        if edge.path is None:
            nodes.setdefault(target, _absent(edge))
        edges.setdefault((edge.object, target), []).append((edge, roots))
    places = {path: place for place, path in enumerate(nodes)}
    return {
        "nodes": list(nodes.values()),
        "edges": [
            {"from": places[a], "to": places[b], "how": _colour(e for e, _ in found), "ways": _ways(found)}
            for (a, b), found in edges.items()
            if a in places and b in places
        ],
    }


def how(edge: Edge) -> str:
    """What an edge is coloured by: the rule by which it was found, or that it was not."""
    if edge.status in ("missing", "external", "host"):
        return edge.status
    return edge.rule or ("soname-loaded" if edge.status == "already-loaded" else "path")


def _colour(edges: Iterable[Edge]) -> str:
    """The gravest; of edges that were found the first."""
    kinds = [how(e) for e in edges]
    return next((k for k in ("missing", "external") if k in kinds), kinds[0])


def _way(edge: Edge) -> _Way:
    return (edge.object, edge.needed, edge.status, edge.path, edge.rule, edge.via, edge.entry)


def _ways(found: Iterable[tuple[Edge, list[str]]]) -> list[dict[str, Any]]:
    return [
        {"how": how(edge), "told": plain(told(edge)), "roots": [plain(r) for r in roots]}
        for edge, roots in found
    ]


def _node(node: Node) -> dict[str, Any]:
    if node.elf is None:
        return {"path": plain(node.path), "owner": node.owner, "kind": "no ELF object"}
    described = _object(node.path, node.owner, node.elf)
    if node.distribution is not None and node.owner != "wheel":
        described["distribution"] = plain(node.distribution)
    return described


def _object(path: str, owner: str, facts: ElfFacts) -> dict[str, Any]:
    described: dict[str, Any] = {"path": plain(path), "owner": owner}
    if owner != "wheel" and not facts.complete:
        return described | {"kind": "known by name alone"}
    described["kind"] = kind_of(facts) if owner in ("wheel", "given") else "library"
    if facts.size:
        described["size"] = facts.size
    told_of = {"soname": facts.soname, "rpath": facts.rpath, "runpath": facts.runpath, "arch": facts.arch}
    return described | {key: plain(value) for key, value in told_of.items() if value is not None}


def _absent(edge: Edge) -> dict[str, Any]:
    owner = "external" if edge.status == "external" else "missing"
    return {
        "path": plain(edge.needed),
        "owner": owner,
        "kind": "not given" if owner == "external" else "missing",
    }
