"""A report as Markdown, for the summary of a CI job. Pure."""

from __future__ import annotations

import re

from wheelfix.model.finding import Report, WheelReport
from wheelfix.report.escape import plain

_MARKS = {"pass": "✅", "fail": "❌", "unreadable": "❌"}


def render(report: Report) -> str:
    """A table of verdicts, then a table of findings for each wheel that has any."""
    rows = ["| wheel | verdict | errors | warnings | notes |", "|---|---|---|---|---|"]
    for wheel in report.wheels:
        counts = " | ".join(
            str(sum(f.severity == s for f in wheel.findings)) for s in ("error", "warning", "info")
        )
        rows.append(f"| {cell(wheel.path)} | {_MARKS[wheel.verdict]} {wheel.verdict} | {counts} |")
    parts = ["\n".join(rows), *(_findings(w) for w in report.wheels if w.findings)]
    return "\n\n".join(parts) + "\n"


def _findings(wheel: WheelReport) -> str:
    rows = [
        f"### {cell(wheel.path)}",
        "",
        "| severity | rule | member | what | fix |",
        "|---|---|---|---|---|",
    ]
    for finding in wheel.findings:
        cells = (finding.rule, finding.member or "", finding.message, finding.remedy)
        rows.append(f"| {finding.severity} | {' | '.join(map(cell, cells))} |")
    return "\n".join(rows)


def cell(text: str) -> str:
    """Text for a cell of a table, in which nothing is markup: names from strangers make no links, mentions or HTML.

    ``://`` and ``www.`` alone begin a link on GitHub (GitHub Flavored Markdown, "Autolinks (extension)").
    """
    return re.sub(r"([\\`*_\[\]<>|#~!&$]|:(?=//)|(?<=www)\.)", r"\\\1", plain(text), flags=re.I).replace(
        "@", "&#64;"
    )
