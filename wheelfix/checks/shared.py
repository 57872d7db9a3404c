"""The checks in two processes: who supplies each symbol is told of some objects here, of the rest in a forked helper.

Bindings take most of the time of a large wheel, and those of one object do not depend on those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from wheelfix import checks
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_WORTH_A_FORK = 30_000  # symbols of the wheel's objects: below, one process is done before two have shared


def run(subject: Subject, jobs: int) -> list[Finding]:
    """All findings, as ``checks.run`` has them; those that both processes find come twice.

    Only a subject whose bindings nobody has asked for yet is shared, and its own stay unknown.
    """
    weights = {member.path: len(elf.symbols) for member, elf in subject.wheel.objects}
    bound = any("bound" in vars(scene) for scene in subject.scenes)
    if jobs <= 1 or bound or len(weights) < 2 or sum(weights.values()) < _WORTH_A_FORK:
        return list(checks.run(subject))
    import multiprocessing

    mine, theirs = (_with_share(subject, share) for share in _shares(weights))
    context = multiprocessing.get_context("fork")
    answer, speak = context.Pipe(duplex=False)
    helper = context.Process(target=_tell, args=(theirs, speak), daemon=True)
    helper.start()
    speak.close()
    try:
        found = list(checks.run(mine))
        try:
            found += answer.recv()
        except (EOFError, OSError):  # it came to nothing there: whatever is wrong comes up here, too
            found += checks.run(theirs, checks.BY_BINDINGS)
        return found
    finally:
        helper.terminate()
        helper.join()
        answer.close()


def _tell(subject: Subject, speak: Connection) -> None:
    """What the helper does. If it fails, it says nothing."""
    with suppress(Exception):
        speak.send(list(checks.run(subject, checks.BY_BINDINGS)))


def _with_share(subject: Subject, share: Sequence[str]) -> Subject:
    return replace(subject, scenes=tuple(replace(s, share=frozenset(share)) for s in subject.scenes))


def _shares(weights: dict[str, int]) -> tuple[list[str], list[str]]:
    """The objects in two shares of about the same weight: the heaviest first, each to the lighter share."""
    shares: tuple[list[str], list[str]] = ([], [])
    sums = [0, 0]
    for path in sorted(weights, key=lambda p: (-weights[p], p)):
        lighter = sums.index(min(sums))
        shares[lighter].append(path)
        sums[lighter] += weights[path]
    return shares
