"""The text of a rule, for ``explain`` and for docs/rules/. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from wheelfix.checks.rule import Rule

#: The groups in the order in which people read of them, with the heading of each.
GROUPS = {
    "archive": "Archive",
    "platform": "Platform tag",
    "loader": "Loader",
    "cxx-runtime": "C++ runtime",
    "symbols": "Symbols",
    "contract": "Contract (only from a policy)",
    "cuda": "CUDA device code",
    "hardening": "Hardening",
}


def markdown(rule: Rule, level: int = 1) -> str:
    """One rule as Markdown, its heading at ``level``."""
    mark = "#" * level
    return (
        f"{mark} {rule.id}\n\n"
        f"Severity: {rule.severity}. {rule.what}\n\n"
        f"**Why.** {rule.why}\n\n"
        f"**Fix.** {rule.fix}\n\n"
        f"**Example.** {rule.example}\n\n"
        f"**In one line.** {rule.remedy}\n"
    )


def listing(rules: Iterable[Rule]) -> str:
    """Every rule on a line of its own under its group: id, severity."""
    rules = list(rules)
    width = max((len(r.id) for r in rules), default=0)
    lines = []
    for group, heading in GROUPS.items():
        members = [r for r in rules if r.group == group]
        if members:
            lines += ["", heading, *(f"  {r.id:<{width}}  {r.severity}" for r in members)]
    return "\n".join(lines[1:]) + "\n"


def index(rules: Iterable[Rule]) -> str:
    """docs/rules/index.md: every rule under its group, with its severity and what it sees."""
    rules = list(rules)
    parts = [
        "# Rules\n\nMade by `make docs` from the texts in `wheelfix/checks/`; `wheelfix explain RULE` prints the same."
        " Policies, `--select` and `--ignore` change what counts.\n"
    ]
    for group, heading in GROUPS.items():
        members = [r for r in rules if r.group == group]
        if members:
            rows = "\n".join(f"| [`{r.id}`]({r.id}.md) | {r.severity} | {r.what} |" for r in members)
            parts.append(f"## {heading}\n\n| rule | severity | what it sees |\n|---|---|---|\n{rows}\n")
    return "\n".join(parts)
