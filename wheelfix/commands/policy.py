"""``wheelfix policy``: what policies there are, what they ask for, and whether a file is one."""

from __future__ import annotations

import argparse
from typing import Any

_EPILOG = """\
examples:
  wheelfix policy list
  wheelfix policy show executorch-cuda    all that is in force, what it extends included
  wheelfix policy check my-policy.toml    exit status 2 and every error with the path of its key
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command with its three sub-commands."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "policy",
        help="list, show and check policies",
        description="Policies are TOML files: shipped ones by name, your own by path.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the shipped policies, with the first line of each")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="what a policy asks for, entry by entry")
    show.add_argument("policy", metavar="NAME|FILE", nargs="+")
    show.set_defaults(run=_show)
    check = actions.add_parser("check", help="whether files are valid policies")
    check.add_argument("policy", metavar="FILE", nargs="+")
    check.set_defaults(run=_check)


def run(options: argparse.Namespace) -> int:
    """Run the chosen sub-command."""
    chosen: int = options.run(options)
    return chosen


def _list(options: argparse.Namespace) -> int:
    from wheelfix.commands.output import write
    from wheelfix.policy.data import data_folder
    from wheelfix.policy.load import shipped_policies

    lines = []
    for name in shipped_policies():
        first = (data_folder() / f"{name}.toml").read_text("utf-8").partition("\n")[0]
        lines.append(f"{name:<20} {first.lstrip('# ')}\n")
    write("".join(lines))
    return 0


def _show(options: argparse.Namespace) -> int:
    from wheelfix.checks import RULES
    from wheelfix.commands.output import write
    from wheelfix.policy.load import load_policies
    from wheelfix.report.policy import described

    write(described(load_policies(options.policy, known_rules=RULES)))
    return 0


def _check(options: argparse.Namespace) -> int:
    from wheelfix.checks import RULES
    from wheelfix.commands.output import write
    from wheelfix.policy.load import PolicyError, PolicyErrors, load_policies

    errors: list[PolicyError] = []
    for name in options.policy:
        try:
            load_policies([name], known_rules=RULES)
            write(f"{name} is a valid policy\n")
        except PolicyErrors as wrong:
            errors += wrong.errors
    if errors:
        raise PolicyErrors(errors)
    return 0
