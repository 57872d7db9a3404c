"""Our answer for a root on this machine, held against what the real loader did with it.

The world is read from the disk by the few lines here, apart from the package's own view of a machine, so
that the loader's rules are judged alone.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

from tests.oracle.observe import Key, Observation
from wheelfix.elf.read import read
from wheelfix.loader.binding import Indexes, bind
from wheelfix.loader.closure import load
from wheelfix.loader.versions import version_errors
from wheelfix.model.elf import ElfFacts
from wheelfix.model.resolution import Binding, Load, Node, World

HOST = tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2])


@lru_cache(maxsize=512)
def facts_at(path: str, _changed: int) -> ElfFacts | None:
    return read(Path(path)).facts


def node_at(location: str) -> Node:
    """A file of this machine; people read its real path."""
    real = os.path.realpath(location)
    return Node(real, location, facts_at(real, os.stat(real).st_mtime_ns), "host", None, real)


class Disk(Mapping[str, Node]):
    """The files of this machine by location."""

    def __getitem__(self, location: str) -> Node:
        if not os.path.isfile(location):
            raise KeyError(location)
        return node_at(location)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Folders:
    def __contains__(self, location: object) -> bool:
        return os.path.isdir(str(location))


class Links(Mapping[str, str]):
    def __getitem__(self, location: str) -> str:
        return os.path.realpath(location)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@cache
def cached_libraries() -> dict[str, str]:
    """What ld.so.cache holds for x86-64, as ldconfig prints it: name -> location, the first of each name."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found: dict[str, str] = {}
    for line in said.splitlines():
        name, _, rest = line.strip().partition(" (")
        kind, _, location = rest.partition(") => ")
        if kind.startswith("libc6,x86-64"):
            found.setdefault(name, location)
    return found


class Cache(Mapping[str, Node]):
    """The libraries that the loader finds without any path."""

    def __getitem__(self, name: str) -> Node:
        return node_at(cached_libraries()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(cached_libraries())

    def __len__(self) -> int:
        return len(cached_libraries())


def world_of(seen: Observation) -> World:
    """This machine, and the interpreter with its closure as the observed process has them."""
    interpreter = tuple(node_at(p) for p in seen.process)
    return World(
        files=Disk(),
        folders=Folders(),  # type: ignore[arg-type]
        links=Links(),
        host=Cache(),
        interpreter=interpreter,
        libc_version=HOST,  # type: ignore[arg-type]
    )


def load_of(seen: Observation) -> Load:
    """Our load of the root; its location is the one that the loader was given."""
    return load(world_of(seen), node_at(seen.given))


def differences(seen: Observation, loaded: Load, bindings: tuple[Binding, ...], fails: bool) -> list[str]:
    """Every point at which our answer and the real loader's differ, as sentences.

    Where the root does not load the loader stops at the first failure, so that only what it printed can be
    compared. Undefined weak symbols that nobody supplies are not printed. What the process had loaded before
    may bind lazily now.
    """
    problems = []
    scope = tuple(n.path for n in loaded.scope)
    if seen.scope and scope != seen.scope:
        problems.append(f"{seen.root}: scope {scope}, the loader has {seen.scope}")
    if fails == seen.loads:
        problems.append(f"{seen.root}: loads {seen.loads} ({seen.error}), we say {not fails}")
    told: dict[Key, Binding] = {(b.object, b.symbol, b.version): b for b in bindings}
    for key, ours in told.items():
        providers = {p for p in (ours.provider, ours.also) if p}
        theirs = set(seen.bindings.get(key, ()))
        if providers != theirs and (theirs or seen.loads):
            problems.append(f"{key}: {ours.status} {sorted(providers)}, the loader took {sorted(theirs)}")
    undefined = {
        (n.path, s.name, s.version)
        for n in loaded.scope
        for s in (n.elf.symbols if n.elf is not None else ())
        if not s.defined and n.path not in seen.process
    }
    problems += [
        f"{key}: the loader looked it up, we did not"
        for key in seen.bindings
        if key in undefined and key not in told
    ]
    return problems


def compare(seen: Observation, indexes: Indexes | None = None) -> tuple[int, list[str]]:
    """How many bindings the real loader made of undefined symbols of this root, and what differs."""
    world, loaded = world_of(seen), load_of(seen)
    bindings = bind(world, loaded, indexes)
    fails = (
        any(e.status == "missing" for e in loaded.edges)
        or bool(version_errors(world, loaded))
        or any(b.status == "missing" for b in bindings)
    )
    compared = sum((b.object, b.symbol, b.version) in seen.bindings for b in bindings)
    return compared, differences(seen, loaded, bindings, fails)
