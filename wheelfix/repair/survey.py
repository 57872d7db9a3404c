"""What the loader simulation says of a wheel, arranged for the planner: who finds what, who loads whom."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelfix.model.resolution import SITE, EdgeStatus
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.policy.drivers import is_driver_library
from wheelfix.repair.supply import Place
from wheelfix.world import distribution_of, location_of

if TYPE_CHECKING:
    from wheelfix.checks.subject import Subject


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything about one wheel that a plan depends on, whatever the tag. Objects go by their installed path."""

    wheel: WheelFacts
    objects: Mapping[str, Member]  # those that the machine of the tags can load
    statuses: Mapping[tuple[str, str], frozenset[EdgeStatus]]  # (object, name in its dynamic section)
    loaders: Mapping[str, tuple[str, ...]]  # object -> those that load it, nearest first
    embedded: frozenset[str]  # objects that a program is or loads
    outward: frozenset[str]  # objects whose path may serve a library of an absent distribution
    places: Mapping[str, tuple[Place, ...]]  # file name or SONAME -> where the wheel holds it
    given: Mapping[str, tuple[Place, ...]]
    alive: frozenset[str]  # folders in which the wheel or a given distribution has a file
    lib_token: str
    platform_token: str

    def folder(self, path: str) -> str:
        """The location of an object's folder once the wheel is installed."""
        return posixpath.dirname(location_of(path))


def survey(subject: Subject) -> Survey:
    """Run the loader's answers together over all roots of all scenes."""
    own = distribution_of(subject.wheel)
    statuses: dict[tuple[str, str], set[EdgeStatus]] = {}
    loaders: dict[str, dict[str, None]] = {}
    embedded: set[str] = set()
    outward: set[str] = set()
    objects: dict[str, Member] = {}
    alive = _alive([subject.wheel, *subject.given])
    for scene in subject.scenes:
        machine = (scene.world.machine, scene.world.bits, scene.world.big_endian)
        for member in subject.wheel.elves:
            elf = member.elf
            if elf is not None and (elf.machine, elf.bits, elf.big_endian) == machine:
                objects[member.path] = member
        for load in scene.loads:
            # Where the loader found a file of an installed environment, too.
            alive.update(posixpath.dirname(n.location) for n in load.scope if n.owner == "given")
            elf = load.root.elf
            if elf is not None and elf.is_program:
                embedded.update(n.path for n in load.scope)
            for edge in load.edges:
                statuses.setdefault((edge.object, edge.needed), set()).add(edge.status)
                if edge.path is not None and edge.status in ("found", "already-loaded"):
                    loaders.setdefault(edge.path, {})[edge.object] = None
                if edge.status == "external" and not is_driver_library(edge.needed):
                    # An RPATH of any loader up the chain may be the one that leads there.
                    outward.update(n.path for n in load.scope if n.owner == "wheel")
    world = subject.scenes[0].world if subject.scenes else None
    return Survey(
        wheel=subject.wheel,
        objects=objects,
        statuses=alike({k: frozenset(v) for k, v in statuses.items()}, objects),
        loaders={k: _upwards(k, loaders) for k in loaders},
        embedded=frozenset(embedded),
        outward=frozenset(outward),
        places=_places(m for m in subject.wheel.elves if m.path in objects),
        given=_places(m for w in subject.given if distribution_of(w) != own for m in w.elves),
        alive=frozenset(alive),
        lib_token=world.lib_token if world else "lib64",
        platform_token=world.platform_token if world else "x86_64",
    )


def alike(
    statuses: Mapping[tuple[str, str], frozenset[EdgeStatus]], objects: Mapping[str, Member]
) -> Mapping[tuple[str, str], frozenset[EdgeStatus]]:
    """The statuses with those of all copies of one object in one folder for each of them.

    A library under several names (archives hold no symbolic links) is to change in all or in none: copies that differ
    are two libraries of one SONAME.
    """
    copies: dict[tuple[str, str], list[str]] = {}
    for path, member in objects.items():
        copies.setdefault((posixpath.dirname(path), member.sha256), []).append(path)
    groups = {path: tuple(paths) for paths in copies.values() if len(paths) > 1 for path in paths}
    return {
        (path, name): status.union(*(statuses.get((p, name), ()) for p in groups.get(path, ())))
        for (path, name), status in statuses.items()
    }


def _upwards(path: str, loaders: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The loaders of an object, their loaders, and so on."""
    seen: dict[str, None] = {}
    level = [path]
    while level:
        level = [up for p in level for up in loaders.get(p, ()) if up not in seen and up != path]
        seen.update(dict.fromkeys(level))
        level = list(dict.fromkeys(level))
    return tuple(seen)


def _places(members: Iterable[Member]) -> Mapping[str, tuple[Place, ...]]:
    found: dict[str, dict[Place, None]] = {}
    for member in members:
        folder, file = posixpath.split(location_of(member.path))
        for name in {file, member.elf.soname if member.elf is not None and member.elf.soname else file}:
            found.setdefault(name, {})[Place(folder, file)] = None
    return {name: tuple(places) for name, places in found.items()}


def _alive(wheels: Iterable[WheelFacts]) -> set[str]:
    """Folders with a file of their own; the loader also looks into glibc-hwcaps below each."""
    found: set[str] = set()
    for wheel in wheels:
        for member in wheel.members:
            if member.content != "directory":
                folder = posixpath.dirname(location_of(member.path))
                found.add(folder)
                found.add(folder.split("/glibc-hwcaps", 1)[0])
    return found


def inside_site(location: str) -> bool:
    """Whether a location lies in site-packages, where every distribution installs."""
    return location == SITE or location.startswith(SITE + "/")
