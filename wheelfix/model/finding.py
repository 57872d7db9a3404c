"""What is said of a wheel: faults as the readers see them, findings as the checks judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "info"]
Verdict = Literal["pass", "fail", "unreadable"]

#: The gravest severity first: what to sort by.
GRAVITY: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong that a reader met: the id of the rule it breaks and what was seen.

    Readers do not know severities, remedies or policies; a check turns a fault into a finding.
    """

    rule: str
    message: str
    member: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of the verdict.

    ``member`` is a path relative to the virtual site-packages (``scripts:`` and ``data:`` before those
    two schemes), ``policy`` the key of the policy that asked for it (``executorch-cuda:deny[0]``).
    ``evidence`` holds plain JSON values only.
    """

    rule: str
    severity: Severity
    message: str
    member: str | None = None
    library: str | None = None
    symbol: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    remedy: str = ""
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class WheelReport:
    """The verdict on one wheel; name and version are None and tags empty where it could not be read."""

    path: str
    name: str | None
    version: str | None
    tags: tuple[str, ...]
    policies: tuple[str, ...]
    verdict: Verdict
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of ``verify`` says, in the order of its arguments."""

    wheels: tuple[WheelReport, ...]
