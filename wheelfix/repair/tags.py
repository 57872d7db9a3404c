"""Which platform tags are true for a set of objects, and what the file is called then. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from wheelfix.model.elf import ElfFacts
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.wheel import WheelFacts

# glibc 2.36 is the first whose loader handles DT_RELR; binutils mark it with GLIBC_ABI_DT_RELR, lld may not.
_RELR_SINCE = (2, 36)


def too_new(facts: ElfFacts, platform: PlatformPolicy, hosts: Container[str]) -> Iterator[tuple[str, str]]:
    """The versions (file, version) that the object needs of the host and the tag's oldest machine lacks.

    ``hosts`` are the libraries that the host supplies: a library of the wheel may have any version.
    """
    if not platform.capped:
        return
    for need in facts.verneed:
        if need.file not in hosts:
            continue
        for version in need.versions:
            prefix, _, rest = version.name.partition("_")
            if prefix in platform.versions and rest not in platform.versions[prefix]:
                yield need.file, version.name
    if facts.relr and platform.libc == "glibc" and platform.libc_version < _RELR_SINCE:
        yield "libc.so.6", "GLIBC_ABI_DT_RELR"


def fits(objects: Iterable[ElfFacts], platform: PlatformPolicy) -> bool:
    """Whether every version that the objects need of the host is one that the tag promises."""
    return not any(True for facts in objects for _ in too_new(facts, platform, platform.libraries))


def platform_tags(
    wheel: WheelFacts, chosen: Sequence[PlatformPolicy], still_true: Container[str]
) -> tuple[str, ...]:
    """The platform parts of the repaired wheel's tags.

    ``chosen`` come first with all their aliases; of the old ones those stay that are ``still_true``. The order is
    that of the file name where nothing changes, else by name, as other tools write it.
    """
    named = [t for p in chosen for t in (p.tag, *p.aliases)]
    kept = [t for t in wheel.platforms if t in still_true and t not in named]
    if set(named) | set(kept) == set(wheel.platforms):
        return wheel.platforms
    return tuple(sorted({*named, *kept}))


def filename_for(wheel: WheelFacts, platforms: Sequence[str]) -> str:
    """The file name with new platform tags (binary distribution format: the last part before ``.whl``)."""
    head = wheel.filename.removesuffix(".whl").rsplit("-", 1)[0]
    return f"{head}-{'.'.join(platforms)}.whl"


def tags_for(wheel: WheelFacts, platforms: Sequence[str]) -> tuple[str, ...]:
    """All tags of the wheel with new platform parts: each Python and ABI of the old ones with each platform."""
    stems = dict.fromkeys(t.rsplit("-", 1)[0] for t in wheel.tags)
    return tuple(f"{stem}-{p}" for stem in stems for p in platforms)
