"""What the loader does with a world of files: who loads whom, and who supplies each symbol."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from wheelfix.model.elf import ElfFacts

EdgeStatus = Literal["found", "already-loaded", "host", "external", "missing"]
EdgeRule = Literal["rpath", "runpath", "ld-library-path", "default", "soname-loaded"]
BindStatus = Literal["bound", "undecided", "missing", "weak-unbound", "unreferenced"]
Owner = Literal["wheel", "given", "host", "interpreter", "external"]

#: Where the wheel under judgement is installed, in the virtual file system that the loader searches.
#: The depth is that of a virtual environment; members of other schemes land beside it.
PREFIX = "/prefix"
SITE = "/prefix/lib/python3/site-packages"
SCRIPTS = "/prefix/bin"


@dataclass(frozen=True, slots=True)
class Node:
    """A file that the loader can see.

    ``location`` is its absolute place in the virtual file system (or on the real one, for files of this
    machine); ``path`` is what people read: relative to site-packages, ``scripts:``/``data:`` before the
    other schemes, ``host:libc.so.6`` for the machine's own libraries, ``interpreter``. ``identity`` tells
    two names of one file from two files (device and inode on a real file system, else the location).
    """

    path: str
    location: str
    elf: ElfFacts | None  # None: a file that is no ELF object (a linker script, text)
    owner: Owner = "wheel"
    distribution: str | None = None  # normalised name of the distribution that installs it
    identity: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """Everything that decides what the loader does, and nothing else.

    ``files`` maps a normalised absolute location to a node, ``folders`` knows which folders exist (the
    kernel resolves ``missing/..`` to nothing), ``links`` where a folder really is that symbolic links lead to:
    ``link/..`` is the folder above that one. All may be lazy views of a real file system.
    ``host`` answers the loader's last step (cache and default folders) by the name in DT_NEEDED.
    ``externals`` answers for libraries that only a distribution that was not given can hold: they are
    found where nothing else finds them, with facts that are not ``complete``. ``preloaded`` holds, by name and
    SONAME, what importing a required distribution has loaded before the wheel's own objects are opened.
    """

    files: Mapping[str, Node]
    folders: Container[str]
    host: Mapping[str, Node] = field(default_factory=dict)
    externals: Mapping[str, Node] = field(default_factory=dict)
    preloaded: Mapping[str, Node] = field(default_factory=dict)
    interpreter: tuple[Node, ...] = ()  # the interpreter and its closure, in scope order
    libc: Literal["glibc", "musl"] = "glibc"
    libc_version: tuple[int, int] = (2, 17)
    machine: int = 62
    bits: int = 64
    big_endian: bool = False
    library_path: tuple[str, ...] = ()  # LD_LIBRARY_PATH, absolute locations
    lib_token: str = "lib64"  # $LIB
    platform_token: str = "x86_64"  # $PLATFORM
    subfolders: tuple[str, ...] = ()  # glibc-hwcaps/... (and legacy ones), tried in each folder, in order
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Edge:
    """One DT_NEEDED (or DT_FILTER/DT_AUXILIARY) of one object under one root, and what became of it.

    ``via`` is the object whose RPATH/RUNPATH entry matched; ``tried`` the places looked at, in order, as
    people read them.
    """

    root: str
    object: str
    needed: str
    status: EdgeStatus
    path: str | None = None
    rule: EdgeRule | None = None
    via: str | None = None
    tried: tuple[str, ...] = ()
    entry: str | None = None  # the RPATH/RUNPATH/LD_LIBRARY_PATH element that matched, as written
    detail: str | None = None  # why a file that stands there does not serve (wrong machine, text, ...)


@dataclass(frozen=True, slots=True)
class Load:
    """What opening one root loads: the scope in the order in which symbols are looked up, the root first."""

    root: Node
    scope: tuple[Node, ...]
    edges: tuple[Edge, ...]


class Binding(NamedTuple):
    """Who supplies one undefined symbol of one object under one root.

    ``unless`` names libraries that were not given and stand earlier in the scope; ``also`` is a second
    provider (the data relocations of a symbol whose calls bind elsewhere: DESIGN rule 6).
    """

    root: str
    object: str
    symbol: str
    version: str | None
    weak: bool
    status: BindStatus
    provider: str | None = None
    unless: tuple[str, ...] = ()
    also: str | None = None


class Bound(NamedTuple):
    """The bindings of one object under one root, in the order of its symbol table.

    ``bindings`` are shared where nothing differs and may bear the name of another root; ``fresh`` are those whose
    outcome was not told under a root before.
    """

    root: str
    bindings: tuple[Binding, ...]
    fresh: tuple[Binding, ...]
