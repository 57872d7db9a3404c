"""``wheelfix diff``: what changed between two wheels, as a loader sees it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfix.commands.options import add_jobs, add_limits, audit_options

if TYPE_CHECKING:
    from wheelfix.audit import Setting
    from wheelfix.report.show import Shown

_EPILOG = """\
examples:
  wheelfix diff my-1.0-*.whl my-1.1-*.whl
  wheelfix diff dist/my-1.0-*.whl wheelhouse/my-1.0-*.whl     what a repair did
  wheelfix diff --markdown old.whl new.whl >> "$GITHUB_STEP_SUMMARY"
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "diff",
        help="what changed between two wheels, as a loader sees it",
        description="Holds two wheels against each other: needed libraries, search paths, exported and imported\n"
        "symbols, the versions that they ask of a machine, C++ runtime, device code, sizes. An object\n"
        "whose name differs in the Python version or a hash alone is the same object.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="OLD", type=Path)
    parser.add_argument("new", metavar="NEW", type=Path)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON (wheelfix/diff/1)")
    form.add_argument("--markdown", action="store_true", help="as Markdown")
    add_jobs(parser)
    add_limits(parser)
    parser.set_defaults(run=run, policy=[], with_=[], env=None, ld_library_path=[])


def run(options: argparse.Namespace) -> int:
    """Tell the difference. Raises ``Unreadable`` where one of the two is no wheel."""
    from wheelfix import audit
    from wheelfix.commands.output import look, progress, write
    from wheelfix.report.diff import as_json, as_markdown, as_text
    from wheelfix.report.difference import difference

    setting = audit.prepare(audit_options(options))
    with progress("reading", 2) as done:
        old = _shown(options.old, setting)
        done()
        new = _shown(options.new, setting)
    found = difference(old, new)
    if options.json:
        write(as_json(found))
    elif options.markdown:
        write(as_markdown(found))
    else:
        how = look()
        write(as_text(found, width=how.width, colour=how.colour))
    return 0


def _shown(path: Path, setting: Setting) -> Shown:
    from wheelfix import audit
    from wheelfix.commands.show import objects_of
    from wheelfix.report.show import Shown

    subject = audit.subject_of(path, setting)
    return Shown(str(path), subject.wheel, tuple(objects_of(subject)))
