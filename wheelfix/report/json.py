"""A report for programs: the schema ``wheelfix/report/1``, described in docs/json.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wheelfix import __version__
from wheelfix.model.finding import Finding, Report, WheelReport

SCHEMA = "wheelfix/report/1"


def render(report: Report) -> str:
    """One JSON object, ASCII only: control characters of names are escaped by the format itself."""
    return dumped(SCHEMA, {"wheels": [_wheel(w) for w in report.wheels]})


def dumped(schema: str, content: Mapping[str, Any]) -> str:
    """Any answer of wheelfix as JSON text: its schema first, then the tool, then the content."""
    head = {"schema": schema, "tool": {"name": "wheelfix", "version": __version__}}
    return json.dumps({**head, **content}, indent=2) + "\n"


def _wheel(wheel: WheelReport) -> dict[str, Any]:
    return {
        "path": wheel.path,
        "name": wheel.name,
        "version": wheel.version,
        "tags": list(wheel.tags),
        "policies": list(wheel.policies),
        "verdict": wheel.verdict,
        "findings": [_finding(f) for f in wheel.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "member": finding.member,
        "library": finding.library,
        "symbol": finding.symbol,
        "message": finding.message,
        "evidence": dict(finding.evidence),
        "remedy": finding.remedy,
        "policy": finding.policy,
    }
