"""Where each library that the loader does not find can come from: the wheel, another distribution, the build host.

Pure: the build host answers through ``Find`` alone. The names that a tag promises, that a policy, an exclusion
or a given distribution holds, a GPU driver's libraries and libpython never become grafts.
"""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from wheelfix.model.elf import ElfFacts
from wheelfix.policy.drivers import is_driver_library, is_libpython


@dataclass(frozen=True, slots=True)
class HostLibrary:
    """A library of the build host. ``path`` is its real path, ``folders`` those under which it was found."""

    path: str
    sha256: str  # hexadecimal, of the whole file
    facts: ElfFacts
    folders: tuple[str, ...] = ()
    size: int = 0
    mode: int = 0o755


class Asker(NamedTuple):
    """An object that looks for a library on the build host; ``folders`` say what ``$ORIGIN`` is there.

    A member of the wheel has none: its ``$ORIGIN`` entries lead into the wheel.
    """

    facts: ElfFacts
    folders: tuple[str, ...] = ()


class Find(Protocol):
    """The search of the build host; ``askers`` are the requester and its loaders, nearest first."""

    def __call__(self, name: str, askers: Sequence[Asker]) -> HostLibrary | None: ...


class Place(NamedTuple):
    """A file that an installed wheel brings: the folder (a location of the virtual file system) and the file's name."""

    folder: str
    file: str


Kind = Literal["left", "wheel", "given", "graft", "missing"]


@dataclass(frozen=True, slots=True)
class Supply:
    """What serves one name: nothing to do, a place, a library of the build host, or nobody and why."""

    kind: Kind
    place: Place | None = None
    library: HostLibrary | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that can serve a name, apart from the loader's own search."""

    promised: frozenset[str]
    wheel: Mapping[str, tuple[Place, ...]]  # by file name and by SONAME
    given: Mapping[str, tuple[Place, ...]]
    left: Callable[[str], bool]  # --exclude or a provider rule names it
    find: Find


def is_loader(name: str) -> bool:
    """The program interpreter, which every machine has."""
    return name.startswith(("ld-linux", "ld-musl", "ld64.so", "ld.so."))


def supply(name: str, folder: str, askers: Sequence[Asker], sources: Sources) -> Supply:
    """Who serves ``name`` for an object in ``folder`` whose own search does not find it."""
    base = posixpath.basename(name)
    if "/" not in name:
        if is_loader(name) or name in sources.promised or is_libpython(name) or is_driver_library(name):
            return Supply("left")
        if sources.left(name):
            return Supply("left")
    for kind, places in (("wheel", sources.wheel), ("given", sources.given)):
        if base in places:
            return Supply("wheel" if kind == "wheel" else "given", place=_nearest(folder, base, places[base]))
    library = sources.find(name, askers)
    if library is None:
        return Supply(
            "missing",
            reason="which is neither in the wheel nor where this machine looks; name its folder by LD_LIBRARY_PATH or --ldpaths",
        )
    if needs_private_libc(library.facts):
        return Supply(
            "missing",
            reason=f"but {library.path} uses private symbols of this machine's C library and would load nowhere else",
        )
    return Supply("graft", library=library)


def needs_private_libc(facts: ElfFacts) -> bool:
    """A part of glibc itself (libnss_*, libthread_db, ...): it fits only the libc that it was built with."""
    return any(v.name == "GLIBC_PRIVATE" for need in facts.verneed for v in need.versions)


def _nearest(folder: str, base: str, places: Iterable[Place]) -> Place:
    """A file of that very name before one of that SONAME, then the fewest steps away, then by name."""

    def distance(place: Place) -> tuple[bool, int, str, str]:
        steps = posixpath.relpath(place.folder, folder).split("/")
        return (place.file != base, len(steps), place.folder, place.file)

    return min(places, key=distance)


@dataclass(slots=True)
class Grafts:
    """The libraries of the build host that go along, by content, with the names that must be kept."""

    libraries: dict[str, HostLibrary] = field(default_factory=dict)
    requested: dict[str, list[str]] = field(default_factory=dict)  # content -> names asked for
    kept: dict[str, list[str]] = field(default_factory=dict)  # content -> names that code opens by string
    supplies: dict[tuple[str, str], Supply] = field(default_factory=dict)  # (content, name) -> who serves it
    reasons: dict[str, str] = field(default_factory=dict)  # content -> who asked first
    absent: list[tuple[str, str]] = field(default_factory=list)  # (real path, name that it may open)


class Want(NamedTuple):
    """A library that an object of the wheel asks the build host for."""

    library: HostLibrary
    name: str
    keep: bool  # the name stands in code or in DT_FILTER and cannot be changed
    asker: str
    askers: tuple[Asker, ...]


def closure(wants: Iterable[Want], folder: str, sources: Sources) -> Grafts:
    """The grafts and, breadth first, what they need themselves.

    Beside DT_NEEDED a graft brings its DT_FILTER and DT_AUXILIARY targets and, where it imports dlopen, the libraries
    whose names stand in it: the first two the loader opens, the last ones the code may open.
    """
    found = Grafts()
    waiting = deque(wants)
    while waiting:
        want = waiting.popleft()
        key = want.library.sha256
        known = key in found.libraries
        _note(found, want)
        if known:
            continue
        here = (Asker(want.library.facts, want.library.folders), *want.askers)
        facts = want.library.facts
        asked = [
            *((n, False, True) for n in facts.needed),
            *((n, True, True) for n in (*facts.filters, *facts.auxiliaries)),
            *((n, True, False) for n in facts.library_names),
        ]
        for name, keep, must in asked:
            if (key, name) in found.supplies or name == facts.soname:
                continue
            served = supply(name, folder, here, sources)
            if not must and not _opens(name, served):
                if served.kind == "missing":
                    found.absent.append((want.library.path, name))
                continue
            if name in facts.auxiliaries and served.kind == "missing":
                continue  # dl-deps.c: the object works without its auxiliary filtee
            found.supplies[key, name] = served
            if served.library is not None:
                waiting.append(Want(served.library, name, keep, posixpath.basename(want.library.path), here))
    return found


def _opens(name: str, served: Supply) -> bool:
    """Whether a file of that very name can be put where dlopen looks: code cannot be told another name."""
    if served.kind == "graft":
        return True
    return served.kind == "wheel" and served.place is not None and served.place.file == name


def _note(found: Grafts, want: Want) -> None:
    key = want.library.sha256
    found.libraries.setdefault(key, want.library)
    found.reasons.setdefault(key, want.asker)
    names = found.requested.setdefault(key, [])
    if want.name not in names:
        names.append(want.name)
    if want.keep:
        kept = found.kept.setdefault(key, [])
        if want.name not in kept:
            kept.append(want.name)
