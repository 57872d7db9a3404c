"""Where the loader finds one library: glibc's elf/dl-load.c and musl's ldso/dynlink.c as pure functions.

The resolver of "what would ld.so do". Where repair takes a missing library from on the build host is
another question, answered in ``wheelfix.repair``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wheelfix.loader.paths import folders_of, needed_name, readable, resolved
from wheelfix.model.elf import DF_1_NODEFLIB, ET_DYN, ET_EXEC, ElfFacts
from wheelfix.model.resolution import EdgeRule, EdgeStatus, Node, World

# musl ldso/dynlink.c, load_library: these names, up to the dot, are the loader itself.
_MUSL_SELF = re.compile(r"lib(?:c|pthread|rt|m|dl|util|xnet)\.")
# The folders that the builds of glibc search by default (elf/dl-load.c, system_dirs), and what lies below them.
_DEFAULT_FOLDERS = re.compile(r"(?:/usr)?/lib(?:32|64|x32)?/")


@dataclass(frozen=True, slots=True)
class Hit:
    """The outcome of one search; the fields are those of ``Edge``. ``node`` is None where nothing was found."""

    status: EdgeStatus
    node: Node | None = None
    rule: EdgeRule | None = None
    via: Node | None = None
    entry: str | None = None
    tried: tuple[str, ...] = ()
    detail: str | None = None


#: What searches came to: by the name, the location of an object that looks alone, and whether the chain ends in a program.
Searched = dict[tuple[str, str, bool], Hit]


def search(world: World, name: str, chain: Sequence[Node]) -> Hit:
    """Where the loader finds ``name`` for the object ``chain[0]``, which ``chain[1]`` loaded, and so on.

    Objects that are loaded already are the caller's business. The order is the loader's: DT_RPATH up the chain,
    LD_LIBRARY_PATH, DT_RUNPATH of the requester, cache and default folders (glibc); LD_LIBRARY_PATH, the
    paths of the whole chain, default folders (musl). Then what an import has loaded before, and last the
    libraries that only an absent distribution can hold.
    """
    written, name = name, needed_name(name, chain[0].location, world)
    if "/" in name:
        return _by_path(world, written, name)
    if world.libc == "musl" and _MUSL_SELF.match(name):
        own = world.host.get(name) or next((n for k, n in world.host.items() if _MUSL_SELF.match(k)), None)
        if own is not None:
            return Hit("host", own, "default")
    tried: list[str] = []
    detail: str | None = None
    for rule, via, entry, folder in _folders(world, chain):
        for candidate in _candidates(folder, name, world):
            tried.append(readable(candidate))
            node = world.files.get(candidate)
            if node is None and candidate not in world.folders:
                continue
            reason, fatal = unfit(world, node) if node is not None else ("is a folder", True)
            if reason is None:
                return Hit("found", node, rule, via, entry, tuple(tried))
            detail = f"{node.path if node is not None else readable(candidate)} {reason}"
            if fatal:
                return Hit("missing", None, rule, via, entry, tuple(tried), detail)
    tried.append("the host's cache and default folders")
    if name in world.host and not _forbidden(world, chain[0], world.host[name]):
        return Hit("host", world.host[name], "default", tried=tuple(tried), detail=detail)
    root = chain[-1].elf
    if name in world.preloaded and not (
        root is not None and root.is_program
    ):  # no import comes before a program
        return Hit(
            "already-loaded", world.preloaded[name], "soname-loaded", tried=tuple(tried), detail=detail
        )
    if name in world.externals:
        return Hit("external", world.externals[name], tried=tuple(tried), detail=detail)
    return Hit("missing", tried=tuple(tried), detail=detail)


def unfit(world: World, node: Node) -> tuple[str | None, bool]:
    """Why the loader does not map a file that it found, and whether that ends the search.

    glibc's open_verify passes over another class or machine and stops at what is no ELF file; musl opens the
    first file of the name and stops at whatever is wrong with it.
    """
    elf = node.elf
    if elf is None:
        return "is no ELF object (invalid ELF header)", True
    if not elf.complete:
        return None, False
    if elf.bits != world.bits or elf.machine != world.machine:
        return f"is for another machine ({_named(elf)})", world.libc == "musl"
    if elf.big_endian != world.big_endian:
        return "has the other byte order", True
    if elf.type not in (ET_DYN, ET_EXEC):
        return "is no shared object (only ET_DYN and ET_EXEC can be loaded)", True
    return None, False


def _forbidden(world: World, requester: Node, found: Node) -> bool:
    """DF_1_NODEFLIB closes the default folders, also where the cache leads there; musl does not know it.

    A promised machine's libraries (``/host/...``) are those of its default folders.
    """
    if world.libc == "musl" or requester.elf is None or not requester.elf.flags_1 & DF_1_NODEFLIB:
        return False
    return found.location.startswith("/host/") or _DEFAULT_FOLDERS.match(found.location) is not None


def looks_alone(world: World, requester: Node) -> bool:
    """Whether nothing above an object has a say in where the loader looks for what it needs.

    A DT_RUNPATH closes the DT_RPATH of the objects above (elf/dl-load.c, _dl_map_object); musl takes the paths of all.
    """
    return world.libc == "glibc" and requester.elf is not None and requester.elf.runpath is not None


def searched(world: World, name: str, chain: Sequence[Node], known: Searched) -> Hit:
    """As ``search``, made once for all roots that load an object of which its own path alone decides."""
    if not looks_alone(world, chain[0]):
        return search(world, name, chain)
    root = chain[-1].elf
    key = name, chain[0].location, root is not None and root.is_program
    if key not in known:
        known[key] = search(world, name, chain)
    return known[key]


def found_by_itself(world: World, name: str, chain: Sequence[Node], known: Searched | None = None) -> bool:
    """Whether the requester's own path or an inherited RPATH leads to the library, loaded already or not.

    ``known`` carries what searches came to from one call to the next.
    """
    return searched(world, name, chain, {} if known is None else known).status in ("found", "host")


def _named(elf: ElfFacts) -> str:
    return elf.arch or f"e_machine {elf.machine}"


def _by_path(world: World, name: str, path: str) -> Hit:
    """A name with a slash is opened as it is, ``path`` (tokens expanded); a relative one depends on the working directory."""
    at = resolved(path, world.folders, world.links) if path.startswith("/") else None
    node = world.files.get(at) if at is not None else None
    if node is None:
        return Hit("missing", tried=(name,))
    reason, _ = unfit(world, node)
    if reason is not None:
        return Hit("missing", tried=(name,), detail=f"{node.path} {reason}")
    return Hit("found", node, tried=(name,))


def _folders(world: World, chain: Sequence[Node]) -> Iterator[tuple[EdgeRule, Node | None, str, str]]:
    """The folders in the order of search: rule, the object whose entry it is, the entry, the folder."""
    if world.libc == "musl":
        yield from _library_path(world)
        for node in chain:
            yield from _of(world, node, "runpath" if node.elf and node.elf.runpath is not None else "rpath")
        return
    requester = chain[0]
    if not looks_alone(world, requester):
        for node in chain:
            # elf/get-dynamic-info.h drops DT_RPATH where the object has DT_RUNPATH.
            if node.elf is not None and node.elf.runpath is None:
                yield from _of(world, node, "rpath")
    yield from _library_path(world)
    yield from _of(world, requester, "runpath")


def _library_path(world: World) -> Iterator[tuple[EdgeRule, Node | None, str, str]]:
    for folder in world.library_path:
        yield "ld-library-path", None, readable(folder), folder


def _of(world: World, node: Node, rule: EdgeRule) -> Iterator[tuple[EdgeRule, Node | None, str, str]]:
    if node.elf is None:
        return
    path = node.elf.runpath if rule == "runpath" else node.elf.rpath
    for entry, folder in folders_of(path, posixpath.dirname(node.location), world):
        yield rule, node, entry, folder


def _candidates(folder: str, name: str, world: World) -> Iterator[str]:
    """The files tried in one folder: glibc-hwcaps (and legacy) subfolders first."""
    base = resolved(folder + "/.", world.folders, world.links)
    if base is None or base not in world.folders:
        return
    for sub in world.subfolders:
        if f"{base}/{sub}".rstrip("/") in world.folders:
            yield posixpath.join(base, sub, name)
    yield posixpath.join(base, name)
