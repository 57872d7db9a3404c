"""What a rule is: its id, its default severity and the text that ``explain`` and the docs print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wheelfix.model.finding import Finding, Severity

Group = Literal["archive", "platform", "loader", "cxx-runtime", "symbols", "contract", "cuda", "hardening"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. The texts are whole sentences in Markdown; ``fix`` and ``example`` may hold code blocks.

    ``remedy`` is the one line that every finding of the rule carries unless the check has a better one.
    """

    id: str
    group: Group
    severity: Severity
    what: str
    why: str  # why it breaks, and for whom
    fix: str  # linker flag, CMake or setuptools snippet
    example: str
    remedy: str

    def finding(
        self,
        message: str,
        *,
        member: str | None = None,
        library: str | None = None,
        symbol: str | None = None,
        evidence: Mapping[str, object] | None = None,
        remedy: str | None = None,
        severity: Severity | None = None,
        policy: str | None = None,
    ) -> Finding:
        """A finding of this rule, with the rule's own severity and remedy where none is given."""
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            message=message,
            member=member,
            library=library,
            symbol=symbol,
            evidence=dict(evidence or {}),
            remedy=self.remedy if remedy is None else remedy,
            policy=policy,
        )
