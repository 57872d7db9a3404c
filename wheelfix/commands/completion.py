"""What the tab key offers for a value that only wheelfix knows: the ids of rules, the names of policies."""

from __future__ import annotations

import argparse


def offers_rules(action: argparse.Action) -> None:
    """The action takes ids of rules; the last of several between commas is completed."""
    # argcomplete looks for the function at the action itself (its documentation, "Specifying completers").
    vars(action)["completer"] = _rules


def offers_policies(action: argparse.Action) -> None:
    """The action takes the name of a shipped policy, or a file."""
    vars(action)["completer"] = _policies


def _rules(prefix: str, **_: object) -> list[str]:
    from wheelfix.checks import RULES

    before, comma, _last = prefix.rpartition(",")
    return [f"{before}{comma}{name}" for name in RULES]


def _policies(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    from wheelfix.policy.load import shipped_policies

    return [*shipped_policies(), *FilesCompleter()(prefix)]
