"""A report as workflow commands of GitHub Actions: an annotation for each finding. Pure."""

from __future__ import annotations

from wheelfix.model.finding import Finding, Report
from wheelfix.report.escape import plain

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report) -> str:
    """One line for each finding and one for each verdict."""
    lines = []
    for wheel in report.wheels:
        lines += [_command(wheel.path, f) for f in wheel.findings]
        lines.append(f"{wheel.verdict}: {plain(wheel.path)}")
    return "".join(f"{line}\n" for line in lines)


def _command(path: str, finding: Finding) -> str:
    remedy = f" Fix: {finding.remedy}" if finding.remedy else ""
    title = _property(f"{finding.rule}: {finding.member}" if finding.member else finding.rule)
    return f"::{_COMMANDS[finding.severity]} file={_property(path)},title={title}::{_data(finding.message + remedy)}"


def _data(text: str) -> str:
    """Control characters are escapes already; what is left to protect is the percent sign of GitHub's own escapes."""
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
