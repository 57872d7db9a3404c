"""What a check may look at: one wheel, the machines that its tags promise, and what the loader does there."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from wheelfix.loader.together import bind_all, every
from wheelfix.model.elf import ElfFacts
from wheelfix.model.policy import PlatformPolicy, Policy
from wheelfix.model.resolution import Binding, Bound, Load, World
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.stages import stage


@dataclass(frozen=True)
class Scene:
    """One machine and what its loader does with the wheel: the oldest glibc that the tags promise, or musl.

    ``platform`` is the strictest policy of that C library among the tags; not slotted, for the cache.
    """

    platform: PlatformPolicy
    world: World
    loads: tuple[Load, ...]  # one for each root of the wheel
    #: The paths of the objects whose bindings are told here, where processes share the work; None: of all.
    share: frozenset[str] | None = None

    @cached_property
    @stage("bindings")
    def bound(self) -> tuple[Bound, ...]:
        """The bindings of every object (of ``share``) under every root; computed when a check first asks."""
        return bind_all(self.world, self.loads, self.share)

    @property
    def outcomes(self) -> Iterator[Binding]:
        """Every binding once for all roots under which it is the same, with the first of them; few come twice."""
        return (b for one in self.bound for b in one.fresh)

    @property
    def bindings(self) -> Iterator[Binding]:
        """Every binding of every root: a hundred times as many as outcomes where modules share large libraries."""
        return every(self.bound)


@dataclass(frozen=True)
class Subject:
    """Everything that the checks judge by. Checks read it and yield findings; they change nothing."""

    wheel: WheelFacts
    platforms: tuple[PlatformPolicy, ...]  # every tag judged, in the order of the file name
    scenes: tuple[Scene, ...]
    policy: Policy
    given: tuple[WheelFacts, ...] = ()  # --with wheels
    given_distributions: frozenset[str] = frozenset()  # normalised names of --with and --env
    #: Distributions that installing the wheel brings, itself included: Requires-Dist, and that of given wheels
    #: in turn. None where one of them was not given, so that what it brings is not known.
    required_distributions: frozenset[str] | None = None
    exclude: tuple[str, ...] = ()
    baseline: Literal["tag", "host"] = "tag"
    today: datetime.date = field(default_factory=datetime.date.today)
    system_library: Callable[[str], str | None] = lambda name: None  # SONAME -> distribution's package
    cxx_runtime_symbols: Mapping[str, frozenset[str]] = field(default_factory=dict)  # library -> names

    @cached_property
    def holders(self) -> Mapping[str, Sequence[tuple[Member, ElfFacts]]]:
        """The objects of the wheel, then of each given one, by their file name and then by another SONAME."""
        found: dict[str, list[tuple[Member, ElfFacts]]] = {}
        for wheel in (self.wheel, *self.given):
            objects = [(m.path.rpartition("/")[2], m, elf) for m, elf in wheel.objects]
            for base, member, elf in objects:
                found.setdefault(base, []).append((member, elf))
            for base, member, elf in objects:
                if elf.soname is not None and elf.soname != base:
                    found.setdefault(elf.soname, []).append((member, elf))
        return found

    @cached_property
    def member_at(self) -> Mapping[str, Member]:
        """The ELF members by their installed path."""
        return {m.path: m for m in self.wheel.elves}
