"""The nearest thing to a symbol that is missing: what somebody meant to supply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from wheelfix.checks.demangle import demangled
from wheelfix.model.elf import Symbol
from wheelfix.model.resolution import Load, Node, World

Kind = Literal["version", "string-abi", "local", "outside-scope"]

# std::string in a mangled name: of the old ABI (a substitution of its own) and of the new one.
_OLD, _NEW = "Ss", "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#: Where the two manglings of a function part: at the first std::string, or at the mark of a function that returns one.
_PARTING = re.compile("Ss|NSt7__cxx11|B5cxx11")
#: The new std::string as the demangler writes it; the old one is std::string.
_NEW_IN_WORDS = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>"


class Nearest(NamedTuple):
    """A near match: of which kind, where, and what to say of it."""

    kind: Kind
    path: str
    symbol: str
    sentence: str
    remedy: str


def nearest(world: World, load: Load, symbol: Symbol) -> Nearest | None:
    """The best explanation of a missing symbol that the world offers, None where there is none.

    In this order: the scope has the name in another version; the same function with the other std::string; a
    library of the scope keeps the name local; a file of the wheel or of what was given exports it, and
    is not loaded; and the latter two for the other std::string and local names outside the scope.
    """
    inside = {n.location for n in load.scope}
    outside = [n for n in _values(world) if n.location not in inside and n.owner in ("wheel", "given")]
    for one in (
        _version(load.scope, symbol),
        _string_abi(load.scope, symbol),
        _local(load.scope, symbol),
        _elsewhere(outside, symbol),
        _string_abi(outside, symbol),
        _local(outside, symbol),
    ):
        if one is not None:
            return one
    return None


def _values(world: World) -> Iterable[Node]:
    """The files of the wheel and of what was given; a view of a real file system lists none."""
    return (world.files[location] for location in world.files)


def _version(nodes: Iterable[Node], symbol: Symbol) -> Nearest | None:
    for node, other in _exports(nodes, symbol.name):
        wanted = f"version {symbol.version}" if symbol.version else "without a version"
        return Nearest(
            "version",
            node.path,
            other.name,
            f"{node.path} has it in version {other.version}, it is wanted {'in ' if symbol.version else ''}{wanted}",
            "Link against the build of the library that is shipped.",
        )
    return None


def _local(nodes: Iterable[Node], symbol: Symbol) -> Nearest | None:
    for node in nodes:
        if node.elf is not None and node.elf.hides(symbol.name):
            return Nearest(
                "local",
                node.path,
                symbol.name,
                f"{node.path} contains it but does not export it (a local symbol)",
                "Export the symbol: take it into the version script of the library, or give it default visibility.",
            )
    return None


def _elsewhere(nodes: Iterable[Node], symbol: Symbol) -> Nearest | None:
    for node, _ in _exports(nodes, symbol.name):
        return Nearest(
            "outside-scope",
            node.path,
            symbol.name,
            f"{node.path} exports it and is not among the libraries that are loaded",
            f"Link against {node.path}, so that it stands in DT_NEEDED, with a RUNPATH that leads there.",
        )
    return None


def _string_abi(nodes: Iterable[Node], symbol: Symbol) -> Nearest | None:
    name = symbol.name
    parting = _PARTING.search(name) if name.startswith("_Z") else None
    if parting is None or parting.start() < 4:
        return None
    prefix = name[: parting.start()]
    old, other = (False, _OLD) if "cxx11" in name else (True, "cxx11")
    meaning = _meaning(name)
    for node in nodes:
        for candidate in node.elf.symbols if node.elf is not None else ():
            if (
                candidate.name.startswith(prefix)
                and other in candidate.name
                and candidate.exported
                and (
                    _meaning(candidate.name) == meaning
                    or candidate.name.replace(_NEW, _OLD) == name.replace(_NEW, _OLD)
                )
            ):
                ours, theirs = ("old", "new") if old else ("new", "old")
                return Nearest(
                    "string-abi",
                    node.path,
                    candidate.name,
                    f"{node.path} exports {candidate.name}, the same with the {theirs} std::string; the object was "
                    f"compiled for the {ours} one",
                    f"Compile both sides alike: -D_GLIBCXX_USE_CXX11_ABI={0 if theirs == 'old' else 1} for the object "
                    "(torch.compiled_with_cxx11_abi() tells what torch uses).",
                )
    return None


def _meaning(name: str) -> str:
    """The demangled name with one spelling for std::string of either ABI."""
    return demangled(name).replace(_NEW_IN_WORDS, "std::string").replace("[abi:cxx11]", "")


def _exports(nodes: Iterable[Node], name: str) -> Iterator[tuple[Node, Symbol]]:
    for node in nodes:
        for symbol in node.elf.symbols if node.elf is not None else ():
            if symbol.name == name and symbol.exported:
                yield node, symbol
