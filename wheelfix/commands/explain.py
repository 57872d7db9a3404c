"""``wheelfix explain``: the text of a rule."""

from __future__ import annotations

import argparse
from typing import Any

from wheelfix.commands.completion import offers_rules
from wheelfix.commands.options import UsageError, closest

_EPILOG = """\
examples:
  wheelfix explain                      every rule with its severity
  wheelfix explain cxx-runtime-dynamic  what, why, for whom, how to fix it, an example
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "explain",
        help="what a rule means, why it breaks and how to fix it",
        description="Prints a rule: what it sees, why that breaks and for whom, how to fix it, an example.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rule = parser.add_argument(
        "rule", metavar="RULE", nargs="?", help="the id of a rule; all are listed without"
    )
    offers_rules(rule)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one rule, or the list of all. Raises ``UsageError`` for a rule that does not exist."""
    from wheelfix.checks import RULES
    from wheelfix.commands.output import look, write
    from wheelfix.report.rules import listing, markdown

    if options.rule is None:
        write(listing(RULES.values()))
        return 0
    rule = RULES.get(options.rule)
    if rule is None:
        near = closest(options.rule, list(RULES))
        raise UsageError(f"no rule is called {options.rule}{near} (wheelfix explain lists them all)")
    how = look()
    write(_drawn(markdown(rule), how.width) if how.colour else markdown(rule))
    return 0


def _drawn(text: str, width: int) -> str:
    """Markdown as a terminal shows it."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(width, 100), force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(Markdown(text, code_theme="ansi_dark"))
    return captured.get()
