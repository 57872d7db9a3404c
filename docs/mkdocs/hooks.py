"""What mkdocs asks before it builds: the nav gets a page for each rule, under the headings of the rules."""

from __future__ import annotations

from typing import Any

from wheelfix.checks import RULES
from wheelfix.report.rules import GROUPS


def on_config(config: Any) -> Any:
    """Put the pages of the rules behind ``rules/index.md``, wherever that stands in the nav."""
    groups = [
        {heading: [f"rules/{r.id}.md" for r in RULES.values() if r.group == group]}
        for group, heading in GROUPS.items()
    ]
    for section in config.nav:
        for entries in section.values():
            if isinstance(entries, list) and {"Rules": "rules/index.md"} in entries:
                entries[entries.index({"Rules": "rules/index.md"})] = {"Rules": ["rules/index.md", *groups]}
    return config
