"""DT_NEEDED entries that nothing uses: they make an import fail, or a graft large, for no symbol at all."""

from __future__ import annotations

from collections.abc import Mapping

from wheelfix.checks.subject import Subject
from wheelfix.model.elf import ElfFacts
from wheelfix.model.resolution import Binding, Load
from wheelfix.repair.plan import Draft

# crtbegin's frame_dummy is in every DT_INIT_ARRAY; more means code that runs when the library is loaded.
_OWN_CONSTRUCTORS = 1
_SETTLED = frozenset({"bound", "weak-unbound", "unreferenced"})
# What GCC's crtstuff.c and glibc's crti (gmon-start.c) refer to in every object, weakly, and call where it is there:
# libraries of the toolchain alone define it, and code that needs those refers to more of them.
_HOOKS = frozenset(
    {"__gmon_start__", "_Jv_RegisterClasses", "__register_frame_info", "__deregister_frame_info"}
) | {f"_ITM_{action}TMCloneTable" for action in ("register", "deregister")}


def unused_needs(draft: Draft, subject: Subject) -> frozenset[tuple[str, str]]:
    """The (object, library) pairs of the wheel that can be dropped; ``subject`` is the planned wheel's.

    A missing library is unused where every symbol of the processes that load the object binds without it, the
    toolchain's hooks excepted. A graft is unused where nothing outside of what it brings along binds to it, and
    where loading it runs no code.
    """
    by_path = {m.path: m.elf for m in subject.wheel.elves}
    members = {g.member for g in draft.plan.grafts}
    found: set[tuple[str, str]] = set()
    for path, name in draft.unserved:
        if _settled_without(path, name, by_path.get(path), subject):
            found.add((path, name))
    for (path, name), member in draft.direct.items():
        elf = by_path.get(member)
        if elf is None or elf.constructors > _OWN_CONSTRUCTORS:
            continue
        group = _brought(member, by_path, members) - _reached(draft.direct, (path, name), by_path, members)
        if member in group and not _used(group, subject):
            found.add((path, name))
    return frozenset(found)


def _settled_without(path: str, name: str, elf: ElfFacts | None, subject: Subject) -> bool:
    if elf is None or name in elf.filters or any(need.file == name for need in elf.verneed):
        return False
    loads = {load.root.path for s in subject.scenes for load in s.loads if _holds(load, path)}
    bound = (one for s in subject.scenes for one in s.bound if one.root in loads)
    return bool(loads) and all(_settled(b) for one in bound for b in one.bindings)


def _settled(binding: Binding) -> bool:
    return binding.status in _SETTLED or (binding.weak and binding.symbol in _HOOKS)


def _holds(load: Load, path: str) -> bool:
    return any(n.path == path for n in load.scope)


def _brought(member: str, by_path: Mapping[str, ElfFacts | None], members: set[str]) -> set[str]:
    """A graft and the grafts that it loads or may open, which lie beside it."""
    seen: set[str] = set()
    waiting = [member]
    while waiting:
        here = waiting.pop()
        elf = by_path.get(here)
        if here in seen or elf is None:
            continue
        seen.add(here)
        folder = here.rpartition("/")[0]
        names = (*elf.needed, *elf.filters, *elf.auxiliaries, *elf.library_names)
        waiting += [f"{folder}/{n}" for n in names if f"{folder}/{n}" in members]
    return seen


def _reached(
    direct: Mapping[tuple[str, str], str],
    apart: tuple[str, str],
    by_path: Mapping[str, ElfFacts | None],
    members: set[str],
) -> set[str]:
    """The grafts that other objects of the wheel bring along as well."""
    others = {m for pair, m in direct.items() if pair != apart and m != direct[apart]}
    return set().union(*(_brought(m, by_path, members) for m in others)) if others else set()


def _used(group: set[str], subject: Subject) -> bool:
    for scene in subject.scenes:
        for binding in scene.outcomes:
            if binding.object in group:
                continue
            if binding.provider in group or binding.also in group:
                return True
            if not _settled(binding):
                return True  # what nobody is known to supply may come from there
    return False
