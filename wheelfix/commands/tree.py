"""``wheelfix tree``: who loads whom, from where, by which rule."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfix.commands.options import add_exclude, add_limits, add_world, audit_options

if TYPE_CHECKING:
    from wheelfix.audit import Setting
    from wheelfix.checks.subject import Subject

_EPILOG = """\
examples:
  wheelfix tree my-1.0-cp311-cp311-manylinux_2_28_x86_64.whl
  wheelfix tree --with torch-2.14.1-*.whl my_extension-1.0-*.whl
  wheelfix tree --baseline host build/lib/_ext.so
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "tree",
        help="who loads whom, from where, by which rule",
        description="Draws what opening each root (extension module, program, lone library) loads. A single ELF file\n"
        "is taken as if it lay alone in site-packages.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="WHEEL|ELF", type=Path)
    parser.add_argument("--json", action="store_true", help="every edge as JSON (wheelfix/tree/1)")
    add_exclude(parser)
    add_limits(parser)
    add_world(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw one wheel or ELF file. Raises ``Unreadable`` where it is neither."""
    from wheelfix import audit
    from wheelfix.commands.output import look, write
    from wheelfix.report.tree import as_json, as_text

    subject = subject_of_file(options.file, audit.prepare(audit_options(options)))
    scenery = [(scene.platform.tag, scene.loads) for scene in subject.scenes]
    how = look()
    write(as_json(scenery) if options.json else as_text(scenery, width=how.width, colour=how.colour))
    return 0


def subject_of_file(path: Path, setting: Setting) -> Subject:
    """The subject of a wheel, or of a lone ELF file as a wheel that holds nothing else.

    Raises ``Unreadable`` where it is neither.
    """
    from wheelfix import audit
    from wheelfix.archive.limits import Unreadable
    from wheelfix.archive.reader import refuse_what_is_no_file
    from wheelfix.elf.read import read
    from wheelfix.model.wheel import Member, WheelFacts

    refuse_what_is_no_file(path)
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return audit.subject_of(path, setting)
            data = b"\x7fELF" + file.read()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    seen = read(data, name=path.name)
    if seen.facts is None:
        reasons = "; ".join(f.message for f in seen.faults) or "it is no ELF object that can be read"
        raise Unreadable(f"{path}: {reasons}")
    member = Member(path.name, path.name, size=len(data), content="elf", elf=seen.facts)
    return audit.subject_from(WheelFacts(filename=path.name, members=(member,)), setting)
