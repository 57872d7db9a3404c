"""Where this machine, the build host, holds a library that must go into a wheel.

Not the loader's resolver: that one answers for a machine that nobody has seen, this one for the machine on which
the wheel was linked. The order is ld.so(8)'s; the absolute RPATH and RUNPATH of the object itself count
here, and only here. Files of another architecture or for another C library are passed over, as ld.so does;
so are the variants in ``glibc-hwcaps`` folders, which need a newer processor than the tag promises.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wheelfix.model.elf import ElfFacts
from wheelfix.repair import runpath
from wheelfix.repair.supply import Asker, HostLibrary

Libc = Literal["glibc", "musl"]


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Where to look, in order: folders before the requester's RUNPATH, the loader's cache by name, folders after it."""

    before: tuple[str, ...] = ()  # AUDITWHEEL_LD_LIBRARY_PATH, LD_LIBRARY_PATH
    cache: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: tuple[str, ...] = ()


@dataclass(slots=True)
class HostSearch:
    """The search of this machine; holds what it read, so that no file is read twice.

    ``read`` gives the facts of an ELF object, None for anything else.
    """

    paths: HostPaths
    read: Callable[[Path], ElfFacts | None]
    arch: str = "x86_64"
    libc: Libc = "glibc"
    lib_token: str = "lib64"
    _seen: dict[str, HostLibrary | None] = field(default_factory=dict)

    def __call__(self, name: str, askers: Sequence[Asker]) -> HostLibrary | None:
        """The first file that serves; a name with a slash is a path of its own, then a name like any other."""
        for place in dict.fromkeys(self._places(name, askers)):
            found = self._look(place)
            if found is not None:
                return found
        return None

    def _places(self, name: str, askers: Sequence[Asker]) -> Iterator[str]:
        base = os.path.basename(name)
        if "/" in name and os.path.isabs(name):
            yield name
        first = askers[0].facts if askers else None
        if first is None or first.runpath is None:
            for asker in askers:
                if asker.facts.runpath is None:
                    yield from (f"{d}/{base}" for d in self._own(asker))
        yield from (f"{d}/{base}" for d in self.paths.before)
        if askers and first is not None and first.runpath is not None:
            yield from (f"{d}/{base}" for d in self._own(askers[0]))
        yield from (p for p in self.paths.cache.get(base, ()) if "/glibc-hwcaps/" not in p)
        yield from (f"{d}/{base}" for d in self.paths.after)
        # What the link editor was told stands in the RUNPATH of the loaders (ld's -rpath-link falls back on it).
        for asker in askers[1:]:
            yield from (f"{d}/{base}" for d in self._own(asker))

    def _own(self, asker: Asker) -> Iterator[str]:
        """The absolute folders that an object's own path names on this machine."""
        for entry in runpath.entries(asker.facts):
            if runpath.has_origin(entry):
                for folder in asker.folders:
                    location = runpath.leads_to(entry, folder, self.lib_token, self.arch)
                    if location is not None:
                        yield location
            elif entry.startswith("/"):
                location = runpath.leads_to(entry, "/", self.lib_token, self.arch)
                if location is not None:
                    yield location

    def _look(self, place: str) -> HostLibrary | None:
        if place not in self._seen:
            self._seen[place] = self._open(place)
        return self._seen[place]

    def _open(self, place: str) -> HostLibrary | None:
        try:
            if not stat.S_ISREG(os.stat(place).st_mode):
                return None
            facts = self.read(Path(place))
            if facts is None or not facts.dynamic or facts.arch != self.arch or not self._same_libc(facts):
                return None
            sha256, status = _hash(place), os.stat(place)
        except OSError:
            return None
        real = os.path.realpath(place)
        folders = dict.fromkeys((os.path.dirname(place), os.path.dirname(real)))
        return HostLibrary(
            path=real,
            sha256=sha256,
            facts=facts,
            folders=tuple(folders),
            size=status.st_size,
            mode=stat.S_IMODE(status.st_mode),
        )

    def _same_libc(self, facts: ElfFacts) -> bool:
        others = ("libc.so.6", "ld-linux") if self.libc == "musl" else ("libc.musl-", "ld-musl-")
        return not any(n.startswith(others) for n in facts.needed)


def _hash(place: str) -> str:
    digest = hashlib.sha256()
    with open(place, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def host_paths(
    environ: Mapping[str, str],
    ldpaths: str | None,
    cache: Callable[[], Mapping[str, tuple[str, ...]]],
    folders: Callable[[], Iterable[str]],
) -> HostPaths:
    """The places of this machine, from the environment and ``--ldpaths``.

    ``--ldpaths`` takes the place of LD_LIBRARY_PATH, the cache and the configured folders; AUDITWHEEL_LD_LIBRARY_PATH
    adds to either.
    """
    own = _split(environ.get("AUDITWHEEL_LD_LIBRARY_PATH", ""))
    if ldpaths is not None:
        return HostPaths(before=own, after=_split(ldpaths))
    return HostPaths(
        before=(*own, *_split(environ.get("LD_LIBRARY_PATH", ""))),
        cache=cache(),
        after=tuple(folders()),
    )


def _split(text: str) -> tuple[str, ...]:
    """The folders of a colon-separated (ld.so(8): or semicolon-separated) list; empty ones mean the working directory."""
    if not text:
        return ()
    return tuple(str(Path(p or ".").absolute()) for p in text.replace(";", ":").split(":"))
