"""The wheel as it will be, in facts: what the loader simulation judges before a byte changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wheelfix.model.elf import ElfFacts, NameTable, Section
from wheelfix.model.finding import Fault, Finding
from wheelfix.model.plan import ElfChange, Plan
from wheelfix.model.wheel import Member, WheelFacts

# What writing the archive anew puts right: RECORD is made from the members.
_REWRITTEN = frozenset({"record-missing", "record-path"})
# sh_type of the sections that strip takes away: SHT_SYMTAB and the string table that goes with it.
_SHT_SYMTAB, _SHT_STRTAB, _SHF_ALLOC = 2, 3, 2


def changed(facts: ElfFacts, change: ElfChange) -> ElfFacts:
    """The facts of an object after ``change``; verneed, DT_FILTER and DT_AUXILIARY follow a renamed DT_NEEDED."""
    names = dict(change.rename_needed)
    gone = frozenset(change.remove_needed)
    result = replace(
        facts,
        needed=tuple(names.get(n, n) for n in facts.needed if n not in gone),
        filters=tuple(names.get(n, n) for n in facts.filters),
        auxiliaries=tuple(names.get(n, n) for n in facts.auxiliaries),
        soname=facts.soname if change.soname is None else change.soname,
    )
    if any(need.file in names for need in facts.verneed):
        result = replace(
            result,
            verneed=tuple(need._replace(file=names.get(need.file, need.file)) for need in facts.verneed),
            symbols=tuple(
                s._replace(version_file=names[s.version_file]) if s.version_file in names else s
                for s in facts.symbols
            ),
        )
    if change.path is not None:
        path = change.path or None
        runpath = change.path_kind == "runpath"
        result = replace(result, runpath=path if runpath else None, rpath=None if runpath else path)
    if change.strip:
        result = replace(
            result, local_names=NameTable(), sections=tuple(s for s in facts.sections if not _stripped(s))
        )
    return result


def _stripped(section: Section) -> bool:
    if section.kind == _SHT_STRTAB:
        return section.name == ".strtab"
    return section.kind == _SHT_SYMTAB or (
        section.name.startswith(".debug_") and not section.flags & _SHF_ALLOC
    )


def planned_wheel(wheel: WheelFacts, plan: Plan, grafted: Mapping[str, ElfFacts]) -> WheelFacts:
    """The facts of the wheel that ``plan`` makes; ``grafted`` holds the facts of each graft by its content's hash."""
    changes = {c.member: c.change for c in plan.changes}
    modes = {m.member: m.mode for m in plan.modes}
    moves = {s.script: s for s in plan.shims}
    members: list[Member] = []
    for member in wheel.members:
        if member.name in moves and member.elf is not None:
            shim = moves[member.name]
            members.append(replace(member, elf=None, content="text", sha256=""))
            member = replace(member, name=shim.program, path=shim.location, scheme="platlib")
        change = changes.get(member.name)
        if change is not None and member.elf is not None:
            member = replace(
                member, elf=changed(member.elf, change), sha256=_planned_hash(member.sha256, change)
            )
        if member.name in modes:
            member = replace(member, mode=modes[member.name])
        members.append(member)
    for graft in plan.grafts:
        facts = grafted[graft.sha256]
        change = changes.get(graft.member)
        members.append(
            Member(
                name=graft.member,
                path=graft.member,
                size=graft.size,
                sha256=_planned_hash(graft.sha256, change),
                mode=graft.mode,
                content="elf",
                elf=changed(facts, change) if change is not None else facts,
            )
        )
    members += [Member(name=f.member, path=f.member, mode=0o644, content="text") for f in plan.files]
    result = replace(
        wheel,
        members=tuple(members),
        faults=tuple(f for f in wheel.faults if f.rule not in _REWRITTEN),
    )
    if plan.retag is not None:
        result = replace(
            result,
            filename=plan.retag.filename,
            tags=plan.retag.new,
            wheel_tags=plan.retag.new,
            root_is_purelib=wheel.root_is_purelib and not plan.retag.platlib,
            members=tuple(_in_platlib(m) for m in members) if plan.retag.platlib else result.members,
            faults=tuple(f for f in result.faults if not _is_tag_mismatch(f)),
        )
    return result


def _is_tag_mismatch(fault: Fault) -> bool:
    """WHEEL and the file name disagree in their tags: of the faults of one rule, the one that a retag mends."""
    return fault.rule == "metadata-mismatch" and "only-in-WHEEL" in fault.evidence


def _in_platlib(member: Member) -> Member:
    """A member of the wheel's root once WHEEL says that the root is platlib."""
    moved = member.scheme == "purelib" and "/purelib/" not in member.name
    return replace(member, scheme="platlib") if moved else member


def _planned_hash(before: str, change: ElfChange | None) -> str:
    """What stands for the hash of bytes that do not exist yet: equal for equal objects with equal changes."""
    return f"{before}+{change}" if change is not None else before


def outcome(findings: tuple[Finding, ...]) -> frozenset[tuple[str, str, str | None, str | None, str | None]]:
    """What prediction and result must agree on: every error and warning, by rule, member, library and symbol."""
    return frozenset(
        (f.rule, f.severity, f.member, f.library, f.symbol) for f in findings if f.severity != "info"
    )
