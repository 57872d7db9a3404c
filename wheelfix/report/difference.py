"""What is different between two wheels as a loader sees them: facts in, rows out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from wheelfix.model.elf import ElfFacts
from wheelfix.model.wheel import WheelFacts
from wheelfix.report.show import Object, Shown

# What a build changes in a file's name without making it another object: the interpreter's suffix, and the hash
# that repair tools put into the names of grafted libraries.
_SUFFIX = re.compile(r"\.(?:cpython-\d+\w*|abi3|pypy\d+\w*)(?:-[\w-]+)?(?=\.so$)")
_HASH = re.compile(r"-[0-9a-f]{8,}(?=[.-])")


@dataclass(frozen=True, slots=True)
class Row:
    """One aspect of an object, or of a wheel, with what went and what came."""

    aspect: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """One object of both wheels that is not the same; ``old`` and ``new`` are its paths."""

    old: str
    new: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Two wheels held against each other."""

    old: str
    new: str
    rows: tuple[Row, ...]  # of the wheels as a whole
    added: tuple[str, ...]  # objects
    removed: tuple[str, ...]
    changed: tuple[Changed, ...]
    same: int  # objects that a loader cannot tell apart
    files_added: tuple[str, ...]  # members that are no objects
    files_removed: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        files = self.files_added or self.files_removed
        return not (self.rows or self.added or self.removed or self.changed or files)


def difference(old: Shown, new: Shown) -> Difference:
    """Both wheels must be readable (``Shown.wheel`` is there)."""
    before, after = _by_identity(old.objects), _by_identity(new.objects)
    changed, same = [], 0
    for key in before.keys() & after.keys():
        rows = tuple(_object(before[key], after[key]))
        paths = before[key].member.path, after[key].member.path
        if rows or paths[0] != paths[1]:
            changed.append(Changed(*paths, rows))
        else:
            same += 1
    assert old.wheel is not None
    assert new.wheel is not None
    gone, came = _apart(_files(old.wheel), _files(new.wheel))
    return Difference(
        old=old.path,
        new=new.path,
        rows=tuple(_wheel(old.wheel, new.wheel)),
        added=tuple(sorted(after[k].member.path for k in after.keys() - before.keys())),
        removed=tuple(sorted(before[k].member.path for k in before.keys() - after.keys())),
        changed=tuple(sorted(changed, key=lambda c: c.new)),
        same=same,
        files_added=came,
        files_removed=gone,
    )


def identity(name: str) -> str:
    """A path or library name without what a rebuild changes in it."""
    return _HASH.sub("", _SUFFIX.sub("", name))


def _by_identity(objects: Iterable[Object]) -> dict[str, Object]:
    """Objects by their identity; where two share one, by their paths."""
    found: dict[str, Object] = {}
    for one in objects:
        key = identity(one.member.path)
        found[key if key not in found else one.member.path] = one
    return found


def _files(wheel: WheelFacts) -> Iterator[str]:
    """Members that are no objects, without the metadata, whose folder is named after the version."""
    for member in wheel.members:
        if member.elf is None and member.content != "directory" and ".dist-info/" not in member.path:
            yield member.path


def _wheel(old: WheelFacts, new: WheelFacts) -> Iterator[Row]:
    yield from _one("name", old.name, new.name)
    yield from _one("version", old.version, new.version)
    yield from _many("tags", old.tags, new.tags)
    yield from _many("Requires-Dist", old.requires_dist, new.requires_dist)
    yield from _one("size", str(old.file_size), str(new.file_size))
    sizes = [str(sum(m.size for m in w.members)) for w in (old, new)]
    yield from _one("installed", *sizes)


def _object(old: Object, new: Object) -> Iterator[Row]:
    a, b = old.facts, new.facts
    if identity(a.soname or "") != identity(b.soname or ""):
        yield from _one("SONAME", a.soname, b.soname)
    yield from _libraries("NEEDED", a.needed, b.needed)
    before, after = ([*map(identity, e.needed)] for e in (a, b))
    if before != after and set(before) == set(after):
        yield Row("NEEDED in order", a.needed, b.needed)
    yield from _one("RPATH", a.rpath, b.rpath)
    yield from _one("RUNPATH", a.runpath, b.runpath)
    yield from _one("machine", *(e.arch or f"e_machine {e.machine}" for e in (a, b)))
    yield from _many("version floor", old.floor, new.floor)
    yield from _one("C++ runtime", old.runtime, new.runtime)
    yield from _many("exports", _exports(a), _exports(b))
    yield from _many("imports", _imports(a), _imports(b))
    yield from _many("device code", _device_code(a), _device_code(b))
    yield from _one("constructors", str(a.constructors), str(b.constructors))
    yield from _one("size", str(old.member.size), str(new.member.size))


def _exports(facts: ElfFacts) -> Iterator[str]:
    return (_named(s.name, s.version) for s in facts.symbols if s.exported)


def _imports(facts: ElfFacts) -> Iterator[str]:
    """What the loader looks up in other objects."""
    return (_named(s.name, s.version) for s in facts.symbols if not s.defined and s.name and s.lookups)


def _named(name: str, version: str | None) -> str:
    return name if version is None else f"{name}@{version}"


def _device_code(facts: ElfFacts) -> Iterator[str]:
    return (f"{row.kind} {row.architecture}" for row in facts.device_code)


def _libraries(aspect: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Row]:
    """Library names, of which the hash of a graft says nothing."""
    before: Mapping[str, str] = {identity(n): n for n in old}
    after: Mapping[str, str] = {identity(n): n for n in new}
    gone, came = _apart(before, after)
    if gone or came:
        yield Row(aspect, tuple(before[n] for n in gone), tuple(after[n] for n in came))


def _one(aspect: str, old: str | None, new: str | None) -> Iterator[Row]:
    if old != new:
        yield Row(aspect, () if old is None else (old,), () if new is None else (new,))


def _many(aspect: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Row]:
    gone, came = _apart(old, new)
    if gone or came:
        yield Row(aspect, gone, came)


def _apart(old: Iterable[str], new: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What only the one has, and what only the other."""
    before, after = set(old), set(new)
    return tuple(sorted(before - after)), tuple(sorted(after - before))
