"""Who loads whom: drawn for people, ``wheelfix/tree/1`` for programs. Pure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wheelfix.model.resolution import Edge, Load
from wheelfix.report.escape import plain
from wheelfix.report.json import dumped

if TYPE_CHECKING:
    from rich.tree import Tree

SCHEMA = "wheelfix/tree/1"
_STYLES = {"missing": "bold red", "external": "yellow", "host": "dim"}
_WORDS = {"rpath": "RPATH", "runpath": "RUNPATH", "ld-library-path": "LD_LIBRARY_PATH"}

_INDENT = 4  # columns by which a branch stands to the right of what it hangs on

#: The machine (its platform tag) and what is loaded on it.
Scenery = Sequence[tuple[str, Sequence[Load]]]


def as_json(scenery: Scenery) -> str:
    """Every edge of every root on every machine, in the order in which the loader walks."""
    edges = [_edge(tag, e) for tag, loads in scenery for load in loads for e in load.edges]
    roots = list(dict.fromkeys(load.root.path for _, loads in scenery for load in loads))
    return dumped(SCHEMA, {"roots": roots, "edges": edges})


def as_text(scenery: Scenery, *, width: int = 80, colour: bool = False) -> str:
    """A tree for each root, with the reason at each edge; what stands in the tree already is not drawn twice.

    Branches that would stand further right than half the width are drawn below, in a tree of their own.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=io.StringIO(), width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    for tag, loads in scenery:
        console.print(Text(f"on {plain(tag)}", style="dim"))
        for load in loads:
            for tree in _trees(load, max(1, width // 2 // _INDENT)):
                console.print(tree)
        if not loads:
            console.print("  nothing here is loaded")
    file = console.file
    return file.getvalue() if isinstance(file, io.StringIO) else ""


def _edge(tag: str, edge: Edge) -> dict[str, Any]:
    return {
        "root": edge.root,
        "object": edge.object,
        "needed": edge.needed,
        "status": edge.status,
        "path": edge.path,
        "rule": edge.rule,
        "via": edge.via,
        "tried": list(edge.tried),
        "entry": edge.entry,
        "detail": edge.detail,
        "platform": tag,
    }


def _trees(load: Load, deepest: int) -> list[Tree]:
    """Hang every edge under the object that asks, walking without recursion: closures can be deep.

    A branch at ``deepest`` starts a tree of its own, which follows.
    """
    from rich.text import Text
    from rich.tree import Tree

    def headed(path: str) -> Tree:
        return Tree(Text(plain(path), style="bold", overflow="fold"))

    by_object: dict[str, list[Edge]] = {}
    for edge in load.edges:
        by_object.setdefault(edge.object, []).append(edge)
    drawn = {load.root.path}
    trees = [headed(load.root.path)]
    waiting = [(load.root.path, trees[0], 0)]
    for path, branch, depth in waiting:  # grows as it goes, breadth-first like the loader
        for edge in by_object.get(path, ()):
            text = Text(plain(told(edge)), style=_STYLES.get(edge.status, ""), overflow="fold")
            leaf = branch.add(text)
            if edge.path is None or edge.path in drawn:
                continue
            drawn.add(edge.path)
            if depth + 1 < deepest:
                waiting.append((edge.path, leaf, depth + 1))
            elif edge.path in by_object:
                text.append(" ... below")
                trees.append(headed(edge.path))
                waiting.append((edge.path, trees[-1], 0))
    return trees


def told(edge: Edge) -> str:
    """One edge in words: what is asked for, where it is found and by which rule, or where it was looked for."""
    if edge.status == "missing":
        places = f"; looked in {', '.join(edge.tried)}" if edge.tried else ""
        return f"{edge.needed}: missing{f' ({edge.detail})' if edge.detail else ''}{places}"
    if edge.status == "external":
        return f"{edge.needed}: left to a distribution that was not given"
    if edge.status == "host":
        return f"{edge.needed}: the machine's own"
    where = edge.path or "?"
    if edge.status == "already-loaded":
        return f"{edge.needed} -> {where} (already loaded)"
    if edge.rule in _WORDS:
        entry = f" {edge.entry}" if edge.entry else ""
        of = f" of {edge.via}" if edge.via and edge.via != edge.object else ""
        return f"{edge.needed} -> {where} ({_WORDS[edge.rule]}{entry}{of})"
    return f"{edge.needed} -> {where}"
