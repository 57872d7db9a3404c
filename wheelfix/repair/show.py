"""A plan as people read it and as programs do (``wheelfix/plan/1``). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wheelfix import __version__
from wheelfix.model.plan import Blocked, Plan

SCHEMA = "wheelfix/plan/1"
# A screen has 24 lines; what a wheel changes beyond these is counted, and listed with -v.
_LINES = 14


def actions(plan: Plan) -> Iterator[Mapping[str, Any]]:
    """Every step of the plan in the order in which it is done, as plain JSON values."""
    for graft in plan.grafts:
        yield {
            "action": "graft",
            "member": graft.member,
            "source": graft.source,
            "sha256": graft.sha256,
            "size": graft.size,
            "requested": list(graft.requested),
            "why": graft.why,
        }
    for move in plan.shims:
        yield {
            "action": "move-script",
            "member": move.script,
            "program": move.program,
            "why": move.why,
        }
    for change in plan.changes:
        why = "; ".join(change.why)
        edit = change.change
        if edit.strip:
            yield {"action": "strip", "member": change.member, "why": why}
        if edit.soname is not None:
            yield {"action": "set-soname", "member": change.member, "soname": edit.soname, "why": why}
        for old, new in edit.rename_needed:
            yield {"action": "rename-needed", "member": change.member, "old": old, "new": new, "why": why}
        for name in edit.remove_needed:
            yield {"action": "remove-needed", "member": change.member, "library": name, "why": why}
        if edit.path is not None:
            yield {
                "action": "set-rpath",
                "member": change.member,
                "kind": edit.path_kind,
                "path": edit.path,
                "why": why,
            }
    for mode in plan.modes:
        yield {"action": "set-mode", "member": mode.member, "mode": f"{mode.mode:04o}", "why": mode.why}
    for file in plan.files:
        yield {"action": "add-file", "member": file.member, "source": file.source, "why": file.why}
    if plan.retag is not None:
        retag = plan.retag
        yield {
            "action": "retag",
            "old": list(retag.old),
            "new": list(retag.new),
            "platlib": retag.platlib,
            "why": retag.why,
        }


def as_json(outcomes: Sequence[tuple[str, Plan | Blocked]]) -> dict[str, Any]:
    """The plans of one run, by the path of each wheel as it was given."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "wheelfix", "version": __version__},
        "wheels": [_wheel(path, outcome) for path, outcome in outcomes],
    }


def _wheel(path: str, outcome: Plan | Blocked) -> dict[str, Any]:
    if isinstance(outcome, Blocked):
        return {"path": path, "status": "blocked", "reasons": list(outcome.reasons), "actions": []}
    return {
        "path": path,
        "status": "unchanged" if outcome.empty else "planned",
        "output": outcome.filename,
        "platform": outcome.platform,
        "actions": list(actions(outcome)),
        "notes": list(outcome.notes),
    }


def as_text(plan: Plan, *, verbose: bool = False) -> list[str]:
    """The plan in lines that fit a screen, one for each graft and each changed object."""
    lines = [_graft_line(g.member, g.source, g.size) for g in plan.grafts]
    lines += [f"move    {s.script} -> {s.program}, a script in its place" for s in plan.shims]
    grafted = {g.member for g in plan.grafts}
    for change in plan.changes:
        if change.member in grafted and not verbose:
            continue
        edit = change.change
        parts = [f"needs {new} for {old}" for old, new in edit.rename_needed]
        parts += [f"needs {name} no more" for name in edit.remove_needed]
        if edit.path is not None:
            parts.append(f"{edit.path_kind.upper()} {edit.path or '(none)'}")
        if edit.soname is not None:
            parts.append(f"SONAME {edit.soname}")
        if edit.strip:
            parts.append("stripped")
        lines.append(f"change  {change.member}: {', '.join(parts)}")
        lines += [f"          because {why}" for why in change.why] if verbose else []
    lines += [f"mode    {m.member}: {m.mode:04o}, {m.why}" for m in plan.modes]
    if not verbose and len(lines) > _LINES:
        rest = len(lines) - _LINES + 1
        lines = [*lines[: _LINES - 1], f"... and {rest} more (-v lists them, --dry-run --json has all)"]
    if plan.retag is not None:
        old = ".".join(dict.fromkeys(t.rsplit("-", 1)[1] for t in plan.retag.old))
        new = ".".join(dict.fromkeys(t.rsplit("-", 1)[1] for t in plan.retag.new))
        lines.append(f"retag   {old} -> {new}: {plan.retag.why}")
    if plan.files:
        lines.append(f"add     {_files(plan)}")
    lines += [f"note    {note}" for note in (plan.notes if verbose else plan.notes[:4])]
    if not verbose and len(plan.notes) > 4:
        lines.append(f"note    and {len(plan.notes) - 4} more (-v)")
    return lines


def _graft_line(member: str, source: str, size: int) -> str:
    return f"graft   {member} from {source} ({megabytes(size)})"


def _files(plan: Plan) -> str:
    licences = sum(1 for f in plan.files if f.source is not None)
    rest = [f.member for f in plan.files if f.source is None]
    return ", ".join([*rest, *([f"{licences} licence texts"] if licences else [])])


def megabytes(size: int) -> str:
    """A size for people: decimal megabytes, as the package index counts."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"
