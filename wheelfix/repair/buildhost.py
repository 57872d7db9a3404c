"""This machine as a build host: its search for one platform's libraries, and what ``--env`` has installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from wheelfix.elf.read import read
from wheelfix.host.ldcache import cached_libraries
from wheelfix.host.ldconf import default_folders
from wheelfix.host.libraries import RealFiles
from wheelfix.model.elf import ElfFacts
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.resolution import SITE
from wheelfix.repair.hostsearch import HostSearch, host_paths
from wheelfix.repair.supply import Place
from wheelfix.world import Surroundings

# musl's dynlink.c: the path file of the architecture, else these.
_MUSL_FOLDERS = ("/lib", "/usr/local/lib", "/usr/lib")


def finder(environ: Mapping[str, str], ldpaths: str | None) -> Callable[[PlatformPolicy], HostSearch]:
    """Makes the search of this machine for one platform, from the environment and ``--ldpaths``."""

    def search(platform: PlatformPolicy) -> HostSearch:
        musl = platform.libc == "musl"
        return HostSearch(
            paths=host_paths(
                environ,
                ldpaths,
                (dict) if musl else (lambda: cached_libraries(platform.arch)),
                (lambda: musl_folders(platform.arch)) if musl else default_folders,
            ),
            read=_facts,
            arch=platform.arch,
            libc=platform.libc,
            lib_token="lib" if musl or platform.arch in ("i686", "armv7l") else "lib64",
        )

    return search


def musl_folders(arch: str, root: Path = Path("/")) -> tuple[str, ...]:
    """The folders that musl's loader searches by itself: those of /etc/ld-musl-ARCH.path, else the built-in ones.

    Entries are separated by newlines or colons.
    """
    try:
        text = (root / f"etc/ld-musl-{arch}.path").read_text()
    except OSError:
        return _MUSL_FOLDERS
    return tuple(p.strip() for p in text.replace("\n", ":").split(":") if p.strip())


def installed(surroundings: Surroundings | None) -> Mapping[str, tuple[Place, ...]]:
    """The shared libraries of ``--env`` by file name; their SONAMEs would cost reading all of them."""
    found: dict[str, list[Place]] = {}
    if surroundings is not None and isinstance(surroundings.files, RealFiles):
        root = surroundings.files.real(SITE)
        for folder, _, files in os.walk(root or ""):
            for file in files:
                if ".so" in file:
                    place = Place(SITE + folder[len(root or "") :], file)
                    found.setdefault(file, []).append(place)
    return {name: tuple(sorted(places)) for name, places in found.items()}


def _facts(path: Path) -> ElfFacts | None:
    return read(path).facts
