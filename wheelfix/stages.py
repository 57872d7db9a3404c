"""Where the time of a run goes, stage by stage: what the hidden ``--profile`` prints. Costs nothing without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class _Spent:
    """Seconds of one stage without those of the stages inside: by the clock, of this process, of processes that ended."""

    wall: float = 0.0
    cpu: float = 0.0
    children: float = 0.0

    def add(self, seconds: tuple[float, float, float], sign: int = 1) -> None:
        self.wall += sign * seconds[0]
        self.cpu += sign * seconds[1]
        self.children += sign * seconds[2]


_spent: dict[str, _Spent] | None = None
_open: list[str] = []


def watch() -> None:
    """Begin to measure; what this process has used so far (the interpreter, imports) is the first stage."""
    global _spent
    used = time.process_time()
    _spent = {"start": _Spent(used, used)}


@contextmanager
def stage(name: str) -> Iterator[None]:
    """What is done inside counts for this stage, and no longer for the one around it; decorates a function, too."""
    if _spent is None:
        yield
        return
    _open.append(name)
    before = _now()
    try:
        yield
    finally:
        after = _now()
        seconds = (after[0] - before[0], after[1] - before[1], after[2] - before[2])
        _open.pop()
        _spent.setdefault(name, _Spent()).add(seconds)
        if _open:
            _spent.setdefault(_open[-1], _Spent()).add(seconds, -1)


def _now() -> tuple[float, float, float]:
    import resource

    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time(), ended.ru_utime + ended.ru_stime


def table() -> str:
    """The stages with their seconds, in the order in which they ended first; "" where nothing is measured.

    Wheels that are judged in processes of their own (``-j`` with several wheels) are told as one stage.
    """
    if _spent is None:
        return ""
    rows = [*_spent.items()]
    total = _Spent()
    for _, spent in rows:
        total.add((spent.wall, spent.cpu, spent.children))
    lines = [f"{'stage':<28}{'wall s':>9}{'CPU s':>9}{'workers s':>11}"]
    lines += [f"{n:<28}{s.wall:>9.3f}{s.cpu:>9.3f}{s.children:>11.3f}" for n, s in (*rows, ("total", total))]
    return "\n".join(lines) + "\n"
