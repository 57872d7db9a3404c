"""One wheel from input to output: read, propose, apply, and hold the result against the prediction."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheelfix import audit
from wheelfix.archive.directory import Entry, read_directory
from wheelfix.model.finding import Finding
from wheelfix.model.limits import Limits
from wheelfix.model.plan import Blocked, Plan
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.wheel import WheelFacts
from wheelfix.repair.apply import EditFailed, Writing, apply
from wheelfix.repair.buildhost import installed
from wheelfix.repair.documents import Owner, with_documents
from wheelfix.repair.predict import outcome, planned_wheel
from wheelfix.repair.propose import Proposal, RepairOptions, propose
from wheelfix.repair.recheck import copies
from wheelfix.repair.supply import Find
from wheelfix.stages import stage

_FAULT = "the written wheel is not what the simulation said, which is a fault of wheelfix"
_BY_SIZE = frozenset({"contract-size", "zip-ratio", "archive-limit"})


@dataclass(frozen=True, slots=True)
class Done:
    """A wheel that was written (or, with ``target`` None, only planned)."""

    plan: Plan
    findings: tuple[Finding, ...]  # what is left to say of the result: no errors unless --no-verify
    target: Path | None
    size_before: int
    size_after: int


def repair(
    source: Path,
    folder: Path | None,
    setting: audit.Setting,
    options: RepairOptions,
    writing: Writing,
    finder: Callable[[PlatformPolicy], Find],
    owner: Owner,
    say: Callable[[str], None],
) -> Done | Blocked:
    """Repair one wheel into ``folder`` (None: plan only); ``say`` is told what is being done.

    Raises ``Unreadable`` for an input that is no wheel, ``OSError`` where the output cannot be written.
    The output appears whole and under its final name, or not at all.
    """
    say("reading")
    wheel = audit.read(source, setting)
    say("simulating the loader")
    with stage("propose"):
        proposal = propose(wheel, setting, options, finder, installed(setting.environment))
    if isinstance(proposal, Blocked):
        return proposal
    plan, documents = with_documents(proposal, wheel, owner, writing.epoch)
    before = source.stat().st_size
    if folder is None:
        return Done(plan, proposal.findings, None, before, before)
    missing = tuple(p for p in (folder, *folder.parents) if not p.exists())
    # Named before it is made: a signal that comes between the two leaves nothing either.
    scratch = folder / f".wheelfix-{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(0o700)
        written = scratch / plan.filename
        if plan.empty:
            _copy(source, written)
        else:
            say("writing")
            with source.open("rb") as file:
                directory, _ = read_directory(file, Limits())
            with stage("edit, write"):
                apply(source, written, wheel, plan, documents, writing, directory)
            say("checking the result")
            with stage("check the result"):
                reasons = _disagreement(written, source, directory, wheel, plan, proposal, setting)
            if reasons:
                return Blocked(wheel.filename, reasons)
        target = folder / plan.filename
        os.replace(written, target)
    except EditFailed as reason:
        return Blocked(wheel.filename, (str(reason),))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        _unmake(missing)
    return Done(plan, proposal.findings, target, before, target.stat().st_size)


def _copy(source: Path, target: Path) -> None:
    """A copy whose bytes are on the disk before it gets its name."""
    with source.open("rb") as old, target.open("xb") as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())


def _unmake(folders: tuple[Path, ...]) -> None:
    """Remove those of the folders that nothing was written to."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _disagreement(
    written: Path,
    source: Path,
    directory: Sequence[Entry],
    wheel: WheelFacts,
    plan: Plan,
    proposal: Proposal,
    setting: audit.Setting,
) -> tuple[str, ...]:
    """Where the audit of the written bytes says something else than the prediction did.

    Sizes alone are not predicted: an error that comes from one is a reason of its own.
    """
    planned = planned_wheel(wheel, plan, proposal.grafted)
    facts = audit.read(written, setting, copies(written, source, directory, wheel))
    facts = replace(facts, faults=(*planned.faults, *facts.faults))
    sized = setting.policy is not None and setting.policy.size is not None
    if not sized and _judged_alike(facts) == _judged_alike(planned):
        return ()  # the checks are pure: equal facts, equal findings
    expected = replace(setting, options=replace(setting.options, plat=None))
    found = outcome(audit.findings_of(audit.subject_from(facts, expected), expected.options))
    predicted = outcome(proposal.findings)
    reasons = []
    for item in sorted(found - predicted, key=str):
        if item[0] not in _BY_SIZE:
            reasons.append(f"{_FAULT}: unforeseen {_told(item)}")
        elif item[1] == "error":
            reasons.append(f"the repaired wheel would break {_told(item)}")
    lost = (item for item in predicted - found if item[0] not in _BY_SIZE)
    reasons += [f"{_FAULT}: {_told(item)} did not come true" for item in sorted(lost, key=str)]
    return tuple(reasons)


def _judged_alike(wheel: WheelFacts) -> tuple[object, ...]:
    """Everything that a check may look at, apart from sizes and the hashes of what is no ELF object."""
    members = {
        m.name: replace(m, size=0, compressed=0, sha256=m.sha256 if m.elf is not None else "")
        for m in wheel.members
    }
    faults = {(f.rule, f.message, f.member) for f in wheel.faults}
    return members, faults, replace(wheel, members=(), faults=(), file_size=0)


def _told(item: tuple[str, str, str | None, str | None, str | None]) -> str:
    return " ".join(part for part in item if part)
