"""What a wheel holds and which tags are true for it: for people, and ``wheelfix/show/1`` for programs. Pure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from wheelfix.model.elf import ElfFacts
from wheelfix.model.policy import Libc
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.repair.show import megabytes
from wheelfix.report import device_code
from wheelfix.report.escape import plain
from wheelfix.report.json import dumped

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "wheelfix/show/1"
#: Whose C++ runtime an object uses: a shared one that it needs, one of its own, one that nobody it names gives, or
#: none that can be seen (a static one whose symbols are hidden and stripped leaves no trace).
Runtime = Literal["shared", "static", "absent", "none"]


@dataclass(frozen=True, slots=True)
class Reach:
    """The best tag that is true for one C library and architecture, and what stands against the next better one.

    ``best`` is None where no tag is true, ``better`` None where no policy is older than the best.
    """

    libc: Libc
    arch: str
    best: str | None
    better: str | None
    why_not: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Object:
    """One ELF object in a few words; ``floor`` holds the newest version of each kind that it needs of a host."""

    member: Member
    facts: ElfFacts
    floor: tuple[str, ...]
    runtime: Runtime


@dataclass(frozen=True, slots=True)
class Shown:
    """One wheel; ``error`` says why it cannot be read, and nothing else is known then."""

    path: str
    wheel: WheelFacts | None = None
    objects: tuple[Object, ...] = ()
    reach: tuple[Reach, ...] = ()
    error: str | None = None


def as_json(wheels: Sequence[Shown], *, cuda: bool = False) -> str:
    """All wheels in the order of the command line."""
    return dumped(SCHEMA, {"wheels": [_wheel(w, cuda) for w in wheels]})


def as_text(wheels: Sequence[Shown], *, cuda: bool = False, width: int = 80, colour: bool = False) -> str:
    """A header, the tags, the objects; device code where asked for. Unreadable wheels are left out."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for number, shown in enumerate(w for w in wheels if w.wheel is not None):
        if number:
            console.print()
        _header(console, shown)
        _tags(console, shown)
        if shown.objects:
            console.print()
            _objects(console, shown.objects)
        if cuda and shown.wheel is not None:
            console.print()
            device_code.print_table(console, shown.wheel)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n" if file.tell() else ""


def kind_of(facts: ElfFacts) -> str:
    """What an object is for: a program, an extension module of Python, or a library."""
    if facts.is_program:
        return "program"
    return "extension module" if facts.python_modules else "library"


def _wheel(shown: Shown, cuda: bool) -> dict[str, Any]:
    wheel = shown.wheel
    if wheel is None:
        return {"path": shown.path, "error": shown.error}
    told = {
        "path": shown.path,
        "error": None,
        "name": wheel.name,
        "version": wheel.version,
        "tags": list(wheel.tags),
        "size": wheel.file_size,
        "members": len(wheel.members),
        "requires_dist": list(wheel.requires_dist),
        "reachable": [
            {
                "libc": r.libc,
                "arch": r.arch,
                "best": r.best,
                "next_better": r.better,
                "why_not": list(r.why_not),
            }
            for r in shown.reach
        ],
        "objects": [_object(o, cuda) for o in shown.objects],
    }
    if cuda:
        told["device_code"] = device_code.totals_as_json(wheel)
    return told


def _object(shown: Object, cuda: bool) -> dict[str, Any]:
    facts = shown.facts
    told: dict[str, Any] = {
        "member": shown.member.path,
        "kind": kind_of(facts),
        "size": facts.size,
        "compressed": shown.member.compressed,
        "arch": facts.arch,
        "soname": facts.soname,
        "needed": list(facts.needed),
        "rpath": facts.rpath,
        "runpath": facts.runpath,
        "floor": list(shown.floor),
        "cxx_runtime": shown.runtime,
    }
    if cuda:
        told["device_code"] = [device_code.as_json(c) for c in facts.device_code]
    return told


def _header(console: Console, shown: Shown) -> None:
    wheel = shown.wheel
    if wheel is None:
        return
    console.print(plain(shown.path), style="bold", soft_wrap=True)
    inflated = sum(m.size for m in wheel.members)
    programs = sum(o.facts.is_program for o in shown.objects)
    modules = sum(bool(o.facts.python_modules) for o in shown.objects)
    rest = len(shown.objects) - programs - modules
    parts = [
        f"{n} {what}{'' if n == 1 else 's'}"
        for n, what in ((modules, "extension module"), (rest, "library"), (programs, "program"))
        if n
    ]
    objects = ", ".join(parts).replace("librarys", "libraries") or "no ELF objects"
    rows = [
        ("is", f"{wheel.name or '?'} {wheel.version or '?'} for {', '.join(wheel.tags) or 'nothing'}"),
        ("holds", f"{len(wheel.members)} files, {objects}"),
        ("size", f"{megabytes(wheel.file_size)}, {megabytes(inflated)} installed"),
    ]
    always = [r for r in wheel.requires_dist if "extra" not in r.partition(";")[2]]
    extras = len(wheel.requires_dist) - len(always)
    if wheel.requires_dist:
        more = [f"{extras} more for extras"] if extras else []
        rows.append(("requires", ", ".join([*always, *more])))
    _rows(console, rows)


def _tags(console: Console, shown: Shown) -> None:
    for reach in shown.reach:
        rows = [("best tag", reach.best or f"none for {reach.libc} on {reach.arch} is true")]
        if reach.better is not None:
            rows.append(("why not", f"{reach.better}:"))
            rows += [("", reason) for reason in reach.why_not[:6]]
            if len(reach.why_not) > 6:
                rows.append(("", f"and {len(reach.why_not) - 6} more reasons (--json has all)"))
        else:
            rows.append(("", "no policy is for older machines"))
        _rows(console, rows)


def _rows(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=10)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(Text(f"  {label}", style="dim"), Text(plain(text)))
    console.print(table)


def _objects(console: Console, objects: Sequence[Object]) -> None:
    """Each object's path on a line of its own, to be copied, and what is known of it below."""
    from rich.padding import Padding
    from rich.text import Text

    for shown in objects:
        console.print(Text(plain(shown.member.path)), soft_wrap=True)
        parts = [megabytes(shown.facts.size), kind_of(shown.facts), f"C++ runtime {shown.runtime}"]
        if shown.facts.arch is not None:
            parts.insert(1, shown.facts.arch)
        lines = [", ".join(parts)]
        if shown.floor:
            lines.append(f"floor {' '.join(shown.floor)}")
        if shown.facts.needed:
            lines.append(f"needs {' '.join(shown.facts.needed)}")
        for line in lines:
            console.print(Padding(Text(plain(line)), (0, 0, 0, 4)))
