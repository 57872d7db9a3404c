"""``wheelfix symbols``: which object supplies each undefined symbol."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wheelfix.commands.options import add_exclude, add_limits, add_world, audit_options

_EPILOG = """\
examples:
  wheelfix symbols my.whl                              what is missing, and what nobody can know yet
  wheelfix symbols --with torch.whl my.whl --symbol '*getCallerStream*'
  wheelfix symbols my.whl --symbol 'std::runtime_error::*'
  wheelfix symbols --json my.whl                       every undefined symbol under every root
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "symbols",
        help="which object supplies each undefined symbol",
        description="Tells who supplies each undefined symbol, for every root that is opened. Without --symbol only\n"
        "those that are missing or cannot be decided are listed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wheel", metavar="WHEEL", type=Path)
    parser.add_argument(
        "--symbol", metavar="GLOB", help="these symbols only: mangled names, demangled ones where it holds ::"
    )
    parser.add_argument("--json", action="store_true", help="every binding as JSON (wheelfix/symbols/1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="list all names, count none")
    add_exclude(parser)
    add_limits(parser)
    add_world(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Tell the bindings of one wheel (or lone ELF file). Raises ``Unreadable`` where it is neither."""
    from wheelfix import audit
    from wheelfix.checks.demangle import demangled
    from wheelfix.commands.output import look, write
    from wheelfix.commands.tree import subject_of_file
    from wheelfix.policy.globs import matches_name
    from wheelfix.report.symbols import as_json, as_text

    subject = subject_of_file(options.wheel, audit.prepare(audit_options(options)))
    glob = options.symbol

    def chosen(name: str) -> bool:
        return glob is None or matches_name(demangled(name) if "::" in glob else name, glob)

    bindings = [(s.platform.tag, b) for s in subject.scenes for b in s.bindings if chosen(b.symbol)]
    if options.json:
        write(as_json(bindings))
        return 0
    most = None if options.verbose else 10
    write(as_text(bindings, everything=glob is not None, demangled=demangled, most=most, width=look().width))
    return 0
