"""The libraries of the machine that a platform tag promises, with what they export.

The data are tables made from Debian's packages (``policies/baseline``, made by its build.py). Of each architecture's
releases the oldest is taken whose glibc is new enough for the tag: bullseye (glibc 2.31, from before libpthread,
libdl and librt became part of libc) below manylinux_2_34, trixie and sid above. What is newer than the
versions that the policy promises is cut off. What remains is taken to be there on the older machine as well: glibc
and libstdc++ give a new name a new version.

How far the answers reach:

* A library that the policy promises and that no table describes has facts that are not ``complete``: whatever is
  looked up in it is undecided.
* Libraries without versions (libX11, libglib, libGL, libexpat) cannot be cut. They are taken as Debian has them.
* Where a machine may be newer than the data (a plain ``linux_*`` tag, a policy for a glibc that is newer than the
  newest table), the facts are ``open_ended``: a version that they lack is undecided, not missing.
* musl has no versions. Its names are those of the oldest musl that Debian had for the architecture (1.2.2 in
  bullseye): no older musl has more, so that what is missing there is missing on every older one. A function that musl got
  between the version of the tag and that of the table is taken to be there.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from wheelfix.model.elf import MACHINES, ElfFacts
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.resolution import Node
from wheelfix.policy.data import data_folder
from wheelfix.policy.exports import RELEASES, Exports, columns_of, names_of, parse
from wheelfix.policy.interpreters import MUSL, interpreters_of, is_musl, musl_names

_Value = TypeVar("_Value")

#: The C++ runtimes: GCC's, its unwinder, and LLVM's.
CXX_RUNTIMES = ("libstdc++.so.6", "libgcc_s.so.1", "libc++.so.1", "libc++abi.so.1")

#: The libraries of glibc, without the ones that no longer are part of it.
GLIBC = (
    "libc.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libanl.so.1",
    "libresolv.so.2",
)


def host_libraries(platform: PlatformPolicy) -> Mapping[str, Node]:
    """The libraries of the promised machine, by the name in DT_NEEDED.

    Those that the policy promises, and the program interpreter. Nodes are made when they are first asked for. Of what
    the libraries need themselves only the promised ones are named: what else a machine's libGL needs is
    its own business.
    """
    return _Lazy(_names(platform), lambda name: _node(platform, name))


@cache
def cxx_runtime_symbols(arch: str) -> Mapping[str, frozenset[str]]:
    """What a C++ runtime symbol is: for each runtime library the names that any release of it exports.

    Template instantiations are among them, which a module's own code may hold as well: a name in here is a runtime's
    when it is *wanted*. For what is *defined*, see ``cxx_runtime_internals``. Empty for an architecture without data.
    """
    held = _members(arch)
    return _Lazy(
        tuple(name for name in CXX_RUNTIMES if name in held),
        lambda name: frozenset(symbol for symbol, _ in names_of(_table(arch, name))),
    )


@cache
def cxx_runtime_internals(arch: str) -> frozenset[str]:
    """Names that only the C++ runtime's own source files define, so that who exports one has a copy of the runtime.

    The strong symbols of libstdc++.so.6 and libgcc_s.so.1. Their weak and unique ones are inline functions and template
    instantiations, which the compiler puts into whatever object uses them, and a name that any release
    exports as weak is not in the set.
    """
    strong: set[str] = set()
    weak: set[str] = set()
    for library in CXX_RUNTIMES[:2]:
        if library in _members(arch):
            for name, code in names_of(_table(arch, library)):
                (strong if code[0].isupper() and code[0] != "U" else weak).add(name)
    return frozenset(strong - weak)


@cache
def glibc_symbols(arch: str) -> frozenset[str]:
    """Every name that a library of glibc exports in any release; empty for an architecture without data."""
    held = [library for library in GLIBC if library in _members(arch)]
    return frozenset(symbol for library in held for symbol, _ in names_of(_table(arch, library)))


@lru_cache(maxsize=256)
def exports(arch: str, library: str, column: str) -> Exports:
    """One library as one release has it. Raises ``KeyError`` where the data have no such table or column."""
    return parse(_table(arch, library), column)


def cut(whole: Exports, platform: PlatformPolicy) -> Exports:
    """A library without what is newer than the policy's versions, or denied by it.

    Where the default version of a name goes, the newest that remains is the default: ``memcpy@GLIBC_2.2.5`` is hidden
    since glibc 2.14 brought another memcpy. A name that has no default at all is one that may no longer be linked with.
    """
    denied = platform.denied_symbols.get(whole.soname, frozenset())
    verdef = tuple(d for d in whole.verdef if d.base or _promised(d.name, platform))
    if len(verdef) == len(whole.verdef):
        kept = [s for s in whole.symbols if s.name not in denied] if denied else whole.symbols
        return Exports(whole.soname, whole.needed, verdef, tuple(kept))
    nodes = {d.name for d in verdef}
    remaining = []
    lost: set[str] = set()  # names whose default is newer than the machine
    for symbol in whole.symbols:
        if symbol.version is not None and symbol.version not in nodes:
            if not symbol.hidden:
                lost.add(symbol.name)
        elif symbol.name not in denied:
            remaining.append(symbol)
    newest: dict[str, int] = {}
    for symbol in remaining:
        if symbol.name in lost:
            newest[symbol.name] = max(symbol.version_index, newest.get(symbol.name, 0))
    symbols = tuple(
        s._replace(hidden=False) if s.name in lost and newest[s.name] == s.version_index else s
        for s in remaining
    )
    return Exports(whole.soname, whole.needed, verdef, symbols)


def _promised(node: str, platform: PlatformPolicy) -> bool:
    """Whether the machine has a version node; private ones come and go, and another rule speaks of them."""
    prefix, _, version = node.partition("_")
    if not platform.capped or prefix not in platform.versions or version == "PRIVATE":
        return True
    return version in platform.versions[prefix]


def _names(platform: PlatformPolicy) -> tuple[str, ...]:
    own = musl_names(platform.arch) if platform.libc == "musl" else interpreters_of(platform.arch)
    return tuple(sorted(platform.libraries.union(own)))


def _node(platform: PlatformPolicy, name: str) -> Node:
    musl = platform.libc == "musl"
    # However it is asked for, musl's C library is one file, and the loader itself.
    name = musl_names(platform.arch)[-2] if musl and is_musl(name) else name
    machine, bits, big_endian = MACHINES.get(platform.arch, (0, 64, False))
    library = MUSL if musl and is_musl(name) else name
    column = _column(platform, library)
    known = Exports(name) if column is None else exports(platform.arch, library, column)
    if not musl:
        known = cut(known, platform)
    promised = _names(platform)
    location = f"/host/{name}"
    facts = ElfFacts(
        machine=machine,
        bits=bits,
        big_endian=big_endian,
        soname=name,
        needed=tuple(n for n in known.needed if n in promised) if not musl else (),
        symbols=known.symbols,
        verdef=known.verdef if not musl else (),
        versioned=bool(known.verdef) and not musl,
        # Another distribution's build of a library, where the C library is musl: what it has, that one has too.
        complete=column is not None and (not musl or library == MUSL),
        open_ended=not musl and _beyond(platform, column),
    )
    return Node(f"host:{name}", location, facts, "host", None, location)


def _column(platform: PlatformPolicy, library: str) -> str | None:
    """The release from which a library is taken, None where there is none."""
    if library not in _members(platform.arch):
        return None
    having = columns_of(_table(platform.arch, library))
    if platform.libc == "musl":
        return having[0]
    releases = _releases(platform.arch)
    new_enough = [r for r, glibc in releases.items() if platform.capped and glibc >= platform.libc_version]
    return next((r for r in (*new_enough, *reversed(list(releases))) if r in having), None)


def _beyond(platform: PlatformPolicy, column: str | None) -> bool:
    """The machine may be newer than the release that the data are of."""
    version = _releases(platform.arch).get(column or "")
    return version is not None and (not platform.capped or version < platform.libc_version)


@cache
def _releases(arch: str) -> Mapping[str, tuple[int, int]]:
    """The releases that the data have for an architecture, oldest first, with the newest glibc each can stand for."""
    found = {}
    for line in _table(arch, RELEASES).splitlines() if RELEASES in _members(arch) else ():
        release, glibc = line.split("\t")
        major, minor = glibc.split(".")[:2]
        found[release] = (int(major), int(minor))
    return found


def _path(arch: str) -> Path:
    return data_folder() / "baseline" / f"{arch}.zip"


@cache
def _members(arch: str) -> frozenset[str]:
    if not _path(arch).is_file():
        return frozenset()
    with zipfile.ZipFile(_path(arch)) as archive:
        return frozenset(archive.namelist())


@lru_cache(maxsize=8)
def _table(arch: str, library: str) -> str:
    # Opened for each table: forked workers would share the position of a file that stays open.
    with zipfile.ZipFile(_path(arch)) as archive:
        return archive.read(library).decode()


class _Lazy(Mapping[str, _Value]):
    """A mapping with known keys, whose values are made once, when they are first asked for."""

    def __init__(self, names: tuple[str, ...], make: Callable[[str], _Value]) -> None:
        self._make = make
        self._made: dict[str, _Value | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> _Value:
        value = self._made[name]
        if value is None:
            value = self._made[name] = self._make(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
