"""Files of this machine as the loader's world sees them, read when they are first met."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from wheelfix.elf.read import read
from wheelfix.host.ldcache import cached_libraries
from wheelfix.model.elf import MACHINES, ElfFacts
from wheelfix.model.resolution import Node, Owner


@lru_cache(maxsize=1024)
def _facts(path: str, changed: int) -> ElfFacts | None:
    return read(Path(path)).facts


def real_node(location: str, path: str, owner: Owner, distribution: str | None = None) -> Node | None:
    """A file of this machine as a node: ``location`` is its real place. None where there is no such file."""
    try:
        status = os.stat(location)
        if not os.path.isfile(location):
            return None
        facts = _facts(os.path.realpath(location), status.st_mtime_ns)
    except (OSError, ValueError):
        return None
    return Node(path, location, facts, owner, distribution, f"{status.st_dev}:{status.st_ino}")


class CachedLibraries(Mapping[str, Node]):
    """What the loader finds by name alone: its cache, then the folders that it searches by itself.

    Folders of ld.so.conf count only as far as ldconfig has put what they hold into the cache.
    """

    def __init__(self, arch: str) -> None:
        from wheelfix.host import machine  # which reads nodes by this module

        best = machine.subfolders()
        self._cache = cached_libraries(arch, subfolders=best)
        self._folders = tuple(f"{f}/{s}".rstrip("/") for f in machine.system_folders() for s in (*best, ""))
        self._machine = MACHINES.get(arch)

    def __getitem__(self, name: str) -> Node:
        for place in (*self._cache.get(name, ()), *(f"{f}/{name}" for f in self._folders)):
            node = real_node(place, f"host:{name}", "host")
            if node is not None and node.elf is not None and self._fits(node.elf):
                return node
        raise KeyError(name)

    def _fits(self, elf: ElfFacts) -> bool:
        return self._machine in (None, (elf.machine, elf.bits, elf.big_endian))

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._cache)

    def __len__(self) -> int:
        return len(self._cache)


class RealFiles(Mapping[str, Node]):
    """The files below one real folder, seen at another place of the virtual file system.

    ``real`` and ``seen`` are absolute; equal for files that stay where they are.
    """

    def __init__(self, real: Path | str, seen: str, owner: Owner, distribution: str | None = None) -> None:
        self._real, self._seen = str(real).rstrip("/"), seen.rstrip("/")
        self._owner, self._distribution = owner, distribution

    def real(self, location: str) -> str | None:
        """The real path of a virtual location, None for one outside."""
        if location != self._seen and not location.startswith(self._seen + "/"):
            return None
        return self._real + location[len(self._seen) :]

    def seen(self, place: str) -> str:
        """The virtual location of a real path; one outside is seen nowhere else."""
        inside = place == self._real or place.startswith(self._real + "/")
        return self._seen + place[len(self._real) :] if inside else place

    def __getitem__(self, location: str) -> Node:
        place = self.real(location)
        node = None
        if place is not None:
            shown = location[len(self._seen) + 1 :] if self._seen else location
            node = real_node(place, shown, self._owner, self._distribution)
        if node is None:
            raise KeyError(location)
        return node if self._real == self._seen else _at(node, location)

    def __iter__(self) -> Iterator[str]:
        return iter(())  # looked up, never walked

    def __len__(self) -> int:
        return 0


class RealFolders:
    """Which folders exist below a real folder that is seen elsewhere."""

    def __init__(self, files: RealFiles) -> None:
        self._files = files

    def __contains__(self, location: object) -> bool:
        place = self._files.real(location) if isinstance(location, str) else None
        return place is not None and os.path.isdir(place or "/")


class RealLinks(Mapping[str, str]):
    """The folders below a real folder that symbolic links lead to, and where they really are."""

    def __init__(self, files: RealFiles) -> None:
        self._files = files

    def __getitem__(self, location: str) -> str:
        place = self._files.real(location)
        real = os.path.realpath(place) if place else place
        if real is None or real == place:
            raise KeyError(location)
        return self._files.seen(real)

    def __iter__(self) -> Iterator[str]:
        return iter(())  # looked up, never walked

    def __len__(self) -> int:
        return 0


def _at(node: Node, location: str) -> Node:
    return Node(node.path, location, node.elf, node.owner, node.distribution, node.identity)
