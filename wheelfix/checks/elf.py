"""Files that are no whole ELF objects, or that the loader cannot map."""

from __future__ import annotations

from collections.abc import Iterator

from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding

NOT_ELF = Rule(
    id="not-elf",
    group="archive",
    severity="error",
    what="A file that is named like a shared library, or that a DT_NEEDED leads to, is no ELF object: a linker "
    "script, a static archive, an empty file, some other text.",
    why="The loader takes the first file of the right name that it can open. If that file is no ELF object it does "
    "not look further: the import fails with `invalid ELF header` or `file too short`, for everybody.",
    fix="Ship the library that the linker script names, under its SONAME, and drop the development file:\n\n"
    "```cmake\ninstall(TARGETS helper LIBRARY DESTINATION pkg/lib NAMELINK_SKIP)\n```\n\n"
    "With Git LFS, make sure that the checkout has the objects and not their pointers (`git lfs pull`).",
    example="`pkg/lib/libhelper.so` holds `INPUT ( libhelper.so.1 )` and `_ext.so` needs `libhelper.so`.",
    remedy="Ship the real library under this name, or link against its SONAME and leave this file out.",
)
TRUNCATED = Rule(
    id="elf-truncated",
    group="archive",
    severity="error",
    what="An ELF object ends before what its own headers describe: a segment, the section table, or a table that "
    "the dynamic segment points at.",
    why="Where a segment is cut short the loader maps pages that have no bytes behind them and the process dies "
    "with SIGBUS, or it refuses the file. Where only the section table is gone it still loads, but strip, patchelf "
    "and debuggers do not work on it. Half a file often parses without a complaint.",
    fix="Build or download the file again. Look for interrupted copies, full disks and file size limits between the "
    "build and the wheel, and for tools that cut files after they were linked.",
    example="A 16 KB extension of which the first 6,000 bytes were packed.",
    remedy="Build the object again; this copy of it is not whole.",
)
BAD_ALIGNMENT = Rule(
    id="elf-bad-alignment",
    group="archive",
    severity="error",
    what="A PT_LOAD segment whose p_offset and p_vaddr differ modulo p_align or modulo the page, or whose p_align is "
    "no power of two or no multiple of the page.",
    why="mmap maps whole pages, so the file offset and the address must agree. glibc refuses the object: `ELF load "
    "command address/offset not properly aligned` up to 2.34, `not page-aligned` since.",
    fix="This is what `strip` after `patchelf` leaves behind, and old versions of either. Strip first, then change the "
    "file once:\n\n```sh\nstrip --strip-unneeded lib.so\npatchelf --set-rpath '$ORIGIN' lib.so\n```",
    example="A library that was patched, stripped and patched again: p_offset 0x1010, p_vaddr 0x1000.",
    remedy="Take the object as it was linked; strip before patchelf, never after.",
)
LIMIT = Rule(
    id="elf-limit",
    group="archive",
    severity="error",
    what="An ELF object has more segments, sections, symbols, version entries or longer strings than wheelfix reads.",
    why="No linker makes such objects; the limits are more than ten times what the largest real libraries have. They "
    "keep a hostile file from using up time and memory, so nothing is known about the object.",
    fix="If the object is real, report it with its numbers.",
    example="A program header table of 60,000 entries.",
    remedy="Look at the object with `readelf -hl`; it is most likely damaged.",
)

RULES: tuple[Rule, ...] = (NOT_ELF, TRUNCATED, BAD_ALIGNMENT, LIMIT)
_BY_ID = {r.id: r for r in RULES}


def check(subject: Subject) -> Iterator[Finding]:
    """What the reader saw, and files that a DT_NEEDED leads to and that are no ELF objects."""
    needed = tuple(_needed(subject))
    yield from needed
    told = {f.member for f in needed}
    for fault in subject.wheel.faults:
        rule = _BY_ID.get(fault.rule)
        if rule is None or (rule is NOT_ELF and (fault.member in told or not _for_linux(subject))):
            continue
        yield rule.finding(f"{fault.member}: {fault.message}", member=fault.member, evidence=fault.evidence)


def _for_linux(subject: Subject) -> bool:
    """Libraries of other systems are named ``.so`` too; whoever builds for those only is not judged here."""
    return any("linux" in p or p == "any" for p in subject.wheel.platforms) or bool(subject.wheel.elves)


def _needed(subject: Subject) -> Iterator[Finding]:
    """A file of the wheel that a DT_NEEDED leads to and that holds something else.

    The loader's edge says so: it stays missing, and its detail starts with the path of what stood there.
    """
    others = [m for m in subject.wheel.members if m.content not in ("elf", "directory")]
    for edge in (e for s in subject.scenes for load in s.loads for e in load.edges):
        if edge.status != "missing" or edge.detail is None:
            continue
        for member in others:
            if edge.detail.startswith(f"{member.path} "):
                yield NOT_ELF.finding(
                    f"{edge.object} needs {edge.needed}, and the file that the loader finds, {member.path}, "
                    "is no ELF object",
                    member=member.path,
                    library=edge.needed,
                    evidence={"object": edge.object, "content": member.content},
                )
