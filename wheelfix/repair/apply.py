"""A plan becomes a wheel: the only writer of wheels. Each object is edited once, from its original bytes, and proven."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wheelfix.archive.directory import Entry
from wheelfix.archive.reader import read_member
from wheelfix.archive.record import UNLISTED
from wheelfix.archive.writer import Changes, NewMember, write_wheel
from wheelfix.elf.edit import edit
from wheelfix.elf.proof import EditFailed
from wheelfix.model.plan import ElfChange, Graft, Plan
from wheelfix.model.wheel import WheelFacts
from wheelfix.repair.shim import shim
from wheelfix.repair.wheelfile import retagged

__all__ = ["EditFailed", "Writing", "apply"]


@dataclass(frozen=True, slots=True)
class Writing:
    """How the archive is written: compression level of what is new, processes, time of new members."""

    level: int | None = None
    jobs: int = 1
    epoch: int | None = None


def apply(
    source: Path,
    target: Path,
    wheel: WheelFacts,
    plan: Plan,
    documents: Mapping[str, bytes],
    writing: Writing,
    directory: Sequence[Entry],
) -> None:
    """Write the wheel that ``plan`` makes of ``source``; ``documents`` are the contents of its new files.

    ``directory`` is the source's.

    Raises ``EditFailed`` where an object cannot be changed or a grafted library is no longer what was
    planned with, ``OSError`` where something cannot be read or written.
    """
    edits = {c.member: c.change for c in plan.changes}
    moved = {move.program: move.script for move in plan.shims}
    new = {g.member: g for g in plan.grafts}
    entries = {e.name: e for e in directory}
    tasks: dict[str, Callable[[], bytes]] = {}
    for name, change in edits.items():
        if name not in new:
            tasks[name] = partial(_member, source, entries.get(moved.get(name, name)), name, change)
    for graft in plan.grafts:
        tasks[graft.member] = partial(_grafted, graft, edits.get(graft.member))
    done = _run(tasks, writing.jobs)

    replaced = {n: d for n, d in done.items() if n not in new and n not in moved}
    replaced |= {move.script: shim(move.location) for move in plan.shims}
    if plan.retag is not None and wheel.dist_info is not None:
        name = f"{wheel.dist_info}/WHEEL"
        replaced[name] = retagged(
            _original(source, entries.get(name), name), plan.retag.new, plan.retag.platlib
        )
    added = {n: NewMember(done[n], g.mode) for n, g in new.items()}
    added |= {move.program: NewMember(done[move.program], 0o755) for move in plan.shims}
    added |= {n: NewMember(d) for n, d in documents.items()}
    changes = Changes(
        replaced=replaced,
        added=added,
        removed=[m.name for m in wheel.members if m.name in _signatures(wheel)],
        modes={m.member: m.mode for m in plan.modes},
    )
    write_wheel(
        source,
        target,
        changes,
        dist_info=wheel.dist_info or "",
        hashes={m.name: m.sha256 for m in wheel.members},
        level=writing.level,
        jobs=writing.jobs,
        epoch=writing.epoch,
        directory=directory,
    )


def _signatures(wheel: WheelFacts) -> tuple[str, ...]:
    """The members that sign RECORD, which they no longer fit (PEP 427)."""
    return tuple(f"{wheel.dist_info}/{name}" for name in UNLISTED if name != "RECORD")


def _run(tasks: Mapping[str, Callable[[], bytes]], jobs: int) -> dict[str, bytes]:
    """The results by name, several at a time: the longest part is patchelf, in a process of its own."""
    if jobs <= 1 or len(tasks) < 2:
        return {name: task() for name, task in tasks.items()}
    with ThreadPoolExecutor(jobs) as pool:
        futures = {name: pool.submit(task) for name, task in tasks.items()}
        return {name: future.result() for name, future in futures.items()}


def _original(source: Path, entry: Entry | None, name: str) -> bytes:
    """The bytes of a member. Raises ``EditFailed`` where they cannot be had."""
    with source.open("rb") as file:
        data = read_member(file, entry) if entry is not None else None
    if data is None:
        raise EditFailed(f"{name} cannot be read")
    return data


def _member(source: Path, entry: Entry | None, planned: str, change: ElfChange) -> bytes:
    return _edited(planned, change, _original(source, entry, planned))


def _grafted(graft: Graft, change: ElfChange | None) -> bytes:
    """The bytes of a graft in the wheel. Raises ``EditFailed`` where the file has changed since it was planned."""
    data = Path(graft.source).read_bytes()
    if hashlib.sha256(data).hexdigest() != graft.sha256:
        raise EditFailed(f"{graft.source} has changed since it was read")
    return _edited(graft.member, change, data)


def _edited(member: str, change: ElfChange | None, data: bytes) -> bytes:
    try:
        return edit(data, change) if change is not None else data
    except EditFailed as reason:
        raise EditFailed(f"{member}: {reason}") from None
