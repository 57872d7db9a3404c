"""Findings as HTML, grouped by rule. Pure."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence

from wheelfix.checks.rule import Rule
from wheelfix.model.finding import GRAVITY, Finding
from wheelfix.report.escape import plain

#: Evidence longer than this, and rules that are no error and found more often than this, are there at a click.
_SHORT, _FEW = 400, 3


def safe(text: str) -> str:
    """Any text as text of a page: nothing in it is markup, nothing turns the direction of writing."""
    return html.escape(plain(text))


def findings(found: Sequence[Finding], rules: Mapping[str, Rule]) -> str:
    """All findings of a wheel, the gravest rules first; what is no error and much is folded."""
    if not found:
        return '<p class="none">Nothing was found.</p>'
    groups: dict[str, list[Finding]] = {}
    for finding in sorted(found, key=lambda f: (GRAVITY[f.severity], f.rule)):
        groups.setdefault(finding.rule, []).append(finding)
    parts = [_group(rule, members, rules.get(rule)) for rule, members in groups.items()]
    return (
        '<div class="findings"><h3>Findings</h3>\n'
        '<p class="tools" hidden><label>Filter <input type="search" class="find-findings" '
        'placeholder="member, library, symbol, rule"></label> <output></output></p>\n'
        + "\n".join(parts)
        + "</div>"
    )


def prose(text: str) -> str:
    """The Markdown that rules are written in as HTML: paragraphs, `code`, fenced blocks."""
    parts = []
    for number, piece in enumerate(re.split(r"^```\w*\n(.*?)^```$", text, flags=re.M | re.S)):
        if number % 2:
            parts.append(f"<pre>{safe_lines(piece)}</pre>")
        else:
            paragraphs = (" ".join(p.split()) for p in re.split(r"\n\s*\n", piece))
            parts += [f"<p>{_code(p)}</p>" for p in paragraphs if p]
    return "".join(parts)


def safe_lines(text: str) -> str:
    """As ``safe``, line by line."""
    return "\n".join(safe(line) for line in text.splitlines())


def _code(text: str) -> str:
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # an unpaired mark is a letter like any other
        return safe(text)
    return "".join(f"<code>{safe(p)}</code>" if number % 2 else safe(p) for number, p in enumerate(pieces))


def _group(rule: str, members: Sequence[Finding], known: Rule | None) -> str:
    severity = members[0].severity
    is_open = severity == "error" or (severity == "warning" and len(members) <= _FEW)
    about = ""
    if known is not None:
        about = (
            f'<div class="why">{prose(known.what)}{prose(known.why)}'
            f"<details><summary>How to fix it</summary>{prose(known.fix)}</details></div>"
        )
    return (
        f'<details class="rule"{" open" if is_open else ""}><summary>'
        f'<span class="severity {severity}">{severity}</span> <b>{safe(rule)}</b> '
        f'<span class="count">{len(members)}</span></summary>\n{about}'
        + "\n".join(map(_finding, members))
        + "</details>"
    )


def _finding(finding: Finding) -> str:
    about = [
        ("member", finding.member),
        ("library", finding.library),
        ("symbol", finding.symbol),
        ("policy", finding.policy),
    ]
    rows = "".join(f"<dt>{label}<dd><code>{safe(text)}</code>" for label, text in about if text is not None)
    remedy = f'<p class="remedy"><b>Fix</b> {_code(finding.remedy)}</p>' if finding.remedy else ""
    return (
        f'<article class="finding {finding.severity}">'
        f'<p class="message"><span class="severity {finding.severity}">{finding.severity}</span> '
        f"{safe(finding.message)}</p>"
        f"{f'<dl>{rows}</dl>' if rows else ''}{remedy}{_evidence(finding.evidence)}</article>"
    )


def _evidence(evidence: Mapping[str, object]) -> str:
    if not evidence:
        return ""
    rows = "".join(f"<dt>{safe(str(key))}<dd>{_value(value)}" for key, value in evidence.items())
    short = " open" if len(rows) <= _SHORT else ""
    return f"<details{short}><summary>Evidence</summary><dl>{rows}</dl></details>"


def _value(value: object) -> str:
    """A JSON value; a list of words is a list of words, anything deeper is told as JSON."""
    if isinstance(value, str):
        return f"<code>{safe(value)}</code>"
    if isinstance(value, (list, tuple)) and all(isinstance(v, (str, int)) for v in value):
        return " ".join(f"<code>{safe(str(v))}</code>" for v in value) or "none"
    return f"<code>{safe(json.dumps(value, ensure_ascii=False))}</code>"
