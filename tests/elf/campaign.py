"""Random edits over compiled and real objects, judged by readelf, pyelftools and the loader.

    .venv/bin/python -m tests.elf.campaign --count 1000 --seed 1 [WHEELS|FOLDERS|FILES ...]

Compiled objects and those of the places given take turns. An edit is *ok in place* or *ok by patchelf* where
every judge finds it right and the same edit again changes nothing; *refused* where ``edit`` says why;
*BROKEN* otherwise, which makes the exit status 1.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elftools.common.exceptions import ELFError

import wheelfix.elf.edit as editor
from tests.elf.campaign_judge import Told, before, by_pyelftools, by_readelf, loaded, told
from tests.elf.campaign_set import MACHINES, Subject, compiled, real, with_headers
from wheelfix.elf.proof import EditFailed
from wheelfix.model.plan import ElfChange

KINDS = (
    "path longer", "path shorter", "path removed", "rename longer", "rename shorter", "remove needed",
    "soname longer", "soname shorter", "strip only", "several",
)  # fmt: skip
#: Of libc and the loader, a process has one: another copy under a new name is no edit that anybody makes.
_ONE_OF_A_KIND = ("libc.so", "ld-", "libc.musl")
_PAGES = {"aarch64": 65536}  # largest page of a kernel; 4 KiB elsewhere


@dataclass(frozen=True, slots=True)
class Verdict:
    """One edit: which, on what, and what came of it."""

    subject: Subject
    kind: str
    change: ElfChange
    outcome: str  # "in place", "by patchelf", "refused", "BROKEN"
    why: str = ""
    judged: str = ""  # "loaded" or "inspected"


def draw(pick: random.Random, kind: str, subject: Subject, old: Told) -> ElfChange | None:
    """A random change of this kind; None where the object has nothing to change so."""
    if kind == "several":
        change = ElfChange()
        for part in pick.sample(KINDS[:-2], pick.randint(2, 4)):
            more = draw(pick, part, subject, old)
            if more is not None:
                change = _joined(change, more)
        return change if change else None
    verb, size = kind.split(" ")
    filters = ("FILTER", "AUXILIARY") if verb == "rename" else ()
    paths = old.strings("RPATH", "RUNPATH")
    if verb == "path":
        if size == "removed":
            return ElfChange(path="") if paths else None
        start = paths[0] if paths else "$ORIGIN/../libs"
        longer = start + ":$ORIGIN/" + "p" * pick.choice([1, 7, 40, 300, 5000])
        shorter = "$ORIGIN/../libs" if len(start) > 15 else start[: pick.randint(1, len(start))]
        return ElfChange(
            path=longer if size == "longer" else shorter, path_kind=pick.choice(["rpath", "runpath"])
        )
    if verb == "soname":
        if subject.program:
            return None  # nobody asks for a program by name, and patchelf gives none to ET_EXEC
        now = (old.strings("SONAME") or [subject.path.name])[0]
        return ElfChange(soname=_renamed(pick, now, size))
    if verb == "strip":
        return ElfChange(strip=True)
    needed = [n for n in dict.fromkeys(old.strings("NEEDED", *filters)) if not n.startswith(_ONE_OF_A_KIND)]
    if verb == "remove":
        # What it takes versions from is refused, and what a compiled object truly needs must stay.
        versioned = {m[1] for v in old.versions if (m := re.search(r"File: (\S+)", v))}
        spared = versioned if subject.answer is None else set(needed) - {"libunused.so", "libfiltee.so"}
        needed = [n for n in needed if n not in spared or (n in versioned and pick.random() < 0.05)]
        return ElfChange(remove_needed=(pick.choice(needed),)) if needed else None
    chosen = pick.sample(needed, min(len(needed), pick.choice([1, 1, 1, 2])))
    pairs = tuple((n, _renamed(pick, n, size)) for n in chosen)
    return ElfChange(rename_needed=pairs) if pairs else None


def _renamed(pick: random.Random, name: str, size: str) -> str:
    stem, dot, rest = name.partition(".so")
    if size == "longer":
        return f"{stem}-{pick.getrandbits(32):08x}{'x' * pick.choice([0, 0, 30, 200])}{dot}{rest}"
    return f"{pick.choice('abcdefgh')}{pick.randint(0, 99)}{dot if len(name) > 8 else ''}"[
        : max(len(name) - 1, 1)
    ]


def _joined(a: ElfChange, b: ElfChange) -> ElfChange:
    gone = {*a.remove_needed, *b.remove_needed}
    renames = {**dict(b.rename_needed), **dict(a.rename_needed)}
    return ElfChange(
        soname=a.soname if b.soname is None else b.soname,
        rename_needed=tuple((o, n) for o, n in renames.items() if o not in gone),
        remove_needed=tuple(sorted(gone)),
        path=a.path if b.path is None else b.path,
        path_kind=a.path_kind if b.path is None else b.path_kind,
    )


def one(subject: Subject, kind: str, change: ElfChange) -> Verdict:
    """Make one edit and have it judged."""
    data = subject.path.read_bytes()
    calls: list[ElfChange] = []
    patchelf = editor._patchelf

    def counted(data: bytes, change: ElfChange) -> bytes:
        calls.append(change)
        return patchelf(data, change)

    editor._patchelf = counted
    with tempfile.TemporaryDirectory() as scratch:
        usual, tempfile.tempdir = tempfile.tempdir, scratch
        try:
            result = editor.edit(data, change)
        except EditFailed as reason:
            left = [p.name for p in Path(scratch).iterdir()]
            return Verdict(
                subject,
                kind,
                change,
                "BROKEN" if left else "refused",
                f"left {left}" if left else str(reason),
            )
        except Exception as reason:  # a fault of the editor's is what the campaign looks for
            return Verdict(subject, kind, change, "BROKEN", f"edit raised {reason!r}")
        finally:
            tempfile.tempdir, editor._patchelf = usual, patchelf
    faults, judged = _judged(subject, data, result, change)
    try:
        if editor.edit(result, change) != result:
            faults.append("the same edit again changes something")
    except EditFailed as reason:
        faults.append(f"the same edit again is refused: {reason}")
    outcome = "BROKEN" if faults else "by patchelf" if calls else "in place"
    return Verdict(subject, kind, change, outcome, "; ".join(faults), judged)


def _judged(subject: Subject, data: bytes, result: bytes, change: ElfChange) -> tuple[list[str], str]:
    machine = MACHINES.get(int.from_bytes(data[18:20], "little"), "")
    first, second = with_headers(data, subject.hidden), with_headers(result, subject.hidden)
    faults = by_readelf(before(subject), told(second), change)
    try:
        faults += by_pyelftools(first, second, _PAGES.get(machine, 4096))
    except ELFError as reason:
        faults.append(f"pyelftools: {reason}")
    if not subject.native:
        return faults, "inspected"
    # The old object is loaded under its old names, with the search path of the edited one.
    was = f"loaded {subject.answer}"
    if subject.answer is None:
        was = loaded(subject, data, replace(change, rename_needed=(), soname=None))
    now = loaded(subject, result, change)
    works, worked = now.startswith("loaded"), was.startswith("loaded")
    may_start = change.rename_needed or change.remove_needed  # what was missing may no longer be wanted
    if (worked and now != was) or (works and not worked and not may_start):
        faults.append(f"the loader: {was!r} before, {now!r} now")
    return faults, "loaded" if worked else "inspected"


def campaign(
    count: int, seed: int, places: Sequence[Path], scratch: Path, limit: float = 1e9
) -> list[Verdict]:
    """``count`` random edits, fewer where ``limit`` seconds are over."""
    pick, end = random.Random(seed), time.monotonic() + limit
    own = list(compiled(scratch / "own", pick, max(6, min(60, count // 8))))
    others: dict[str, list[Subject]] = {}
    for found in real(scratch / "real", places, pick):
        others.setdefault(found.row, []).append(found)
    for subject in own:
        if (answer := loaded(subject, subject.path.read_bytes(), ElfChange())) != f"loaded {subject.answer}":
            raise RuntimeError(f"{subject.name} is no object to begin with: {answer}")
    verdicts: list[Verdict] = []
    while len(verdicts) < count and time.monotonic() < end:
        rows = list(others.values()) if others and len(verdicts) % 2 else [own]
        subject = pick.choice(pick.choice([*rows, max(rows, key=len)]))
        kind = pick.choice(KINDS)
        change = draw(pick, kind, subject, before(subject))
        if change is None:
            continue
        if pick.random() < 0.3:
            change = replace(change, strip=True)
        verdict = one(subject, kind, change)
        verdicts.append(verdict)
        if verdict.outcome == "BROKEN":
            print(
                f"BROKEN {subject.name} [{kind}] {change}\n    {verdict.why}",
                file=sys.stderr,
                flush=True,
            )
    return verdicts


def table(verdicts: Sequence[Verdict]) -> str:
    """Linker and kind of edit against the outcomes, and the reasons of the refusals."""
    outcomes = ("in place", "by patchelf", "refused", "BROKEN")
    counts = Counter((v.subject.row, v.kind, v.outcome) for v in verdicts)
    lines = [f"{'objects':<20} {'edit':<15}" + "".join(f"{o:>12}" for o in outcomes)]
    rows = sorted({(v.subject.row, KINDS.index(v.kind)) for v in verdicts})
    for row, kind in rows:
        lines.append(
            f"{row:<20} {KINDS[kind]:<15}" + "".join(f"{counts[row, KINDS[kind], o]:>12}" for o in outcomes)
        )
    total = Counter(v.outcome for v in verdicts)
    lines.append(f"{'all':<20} {len(verdicts):<15}" + "".join(f"{total[o]:>12}" for o in outcomes))
    strip = sum(v.change.strip for v in verdicts)
    how = Counter((v.judged, v.subject.answer is None) for v in verdicts)
    lines.append(
        f"{strip} with strip; loaded and inspected: {how['loaded', False]} compiled, {how['loaded', True]} real;"
        f" inspected only: {how['inspected', True]}"
    )
    for why, number in Counter(v.why for v in verdicts if v.outcome == "refused").most_common():
        lines.append(f"refused {number:>4}: {why}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 1 where any edit is broken."""
    parser = argparse.ArgumentParser(
        description="Random edits, judged by readelf, pyelftools and the loader."
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument("places", nargs="*", type=Path, metavar="WHEEL|FOLDER|FILE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="campaign-") as scratch:
        verdicts = campaign(given.count, given.seed, given.places, Path(scratch), given.seconds)
    print(table(verdicts))
    return int(any(v.outcome == "BROKEN" for v in verdicts))


if __name__ == "__main__":
    sys.exit(main())
