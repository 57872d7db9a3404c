"""A report for people: the verdict first, then every finding beside the member that it is about. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from wheelfix.model.finding import Finding, Report, WheelReport
from wheelfix.report.escape import plain

# SGR codes (ECMA-48): bold red, bold yellow, cyan, bold green, dim, bold.
_COLOURS = {"error": "1;31", "warning": "1;33", "info": "36", "pass": "1;32", "dim": "2", "bold": "1"}


def render(
    report: Report,
    *,
    why: Mapping[str, str] | None = None,
    width: int = 80,
    colour: bool = False,
    verbose: bool = False,
    quiet: bool = False,
) -> str:
    """The report as text of ``width`` columns; names longer than a line stay whole, to be copied.

    ``why`` maps a rule to why it breaks and for whom, told once a wheel. Notes (severity "info") and
    evidence are told where ``verbose``, else counted; where ``quiet``, each wheel gets a line and no more.
    """
    style = _Style(width, colour)
    several = len(report.wheels) > 1
    lines = [_verdict(w, style) for w in report.wheels]
    if quiet:
        return "\n".join(lines) + "\n"
    for wheel in report.wheels:
        shown = [f for f in wheel.findings if verbose or f.severity != "info"]
        if shown:
            lines += ["", *([style.paint("bold", plain(wheel.path))] if several else [])]
            lines += _members(shown, why or {}, style, verbose)
    lines += _closing(report, verbose, style)
    return "\n".join(lines) + "\n"


class _Style:
    """Width and colours in one value, so that functions need no more than this."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = width, colour

    def paint(self, name: str, text: str) -> str:
        return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if self.colour else text

    def wrap(self, text: str, first: str, rest: str) -> list[str]:
        """Lines of a paragraph; prefixes are plain text. A word longer than a line is left whole."""
        return textwrap.wrap(
            text,
            max(self.width, len(rest) + 20),
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _verdict(wheel: WheelReport, style: _Style) -> str:
    counts = [(s, sum(f.severity == s for f in wheel.findings)) for s in ("error", "warning", "info")]
    words = {"error": "error", "warning": "warning", "info": "note"}
    told = ", ".join(f"{n} {words[s]}{'s' * (n != 1)}" for s, n in counts if n) or "no findings"
    word = style.paint("pass" if wheel.verdict == "pass" else "error", wheel.verdict.upper())
    policies = f" [{', '.join(map(plain, wheel.policies))}]" if wheel.policies else ""
    return f"{word} {plain(wheel.path)}: {told}{policies}"


def _members(
    findings: Sequence[Finding], why: Mapping[str, str], style: _Style, verbose: bool
) -> Iterator[str]:
    """Findings by member: the wheel as a whole first, then members in the order of their worst finding."""
    groups: dict[str | None, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.member, []).append(finding)
    told: set[str] = set()
    for number, member in enumerate(sorted(groups, key=lambda m: m is not None)):
        if number:
            yield ""
        yield "  " + style.paint("bold", "the wheel as a whole" if member is None else plain(member))
        for finding in groups[member]:
            reason = None if finding.rule in told else why.get(finding.rule)
            told.add(finding.rule)
            yield from _finding(finding, reason, style, verbose)


def _finding(finding: Finding, reason: str | None, style: _Style, verbose: bool) -> Iterator[str]:
    head = f"{finding.severity}: {plain(finding.rule)}"
    names = [
        f"{label} {name}"
        for label, name in (("library", finding.library), ("symbol", finding.symbol))
        if name is not None and name not in finding.message
    ]
    about = f" ({plain(', '.join(names))})" if names else ""
    first, *rest = style.wrap(head + about, "    ", "      ")
    yield first.replace(head, style.paint(finding.severity, head))
    yield from rest
    yield from style.wrap(plain(finding.message), "      ", "      ")
    parts = [("why:", _flowing(reason or "")), ("fix:", finding.remedy), ("policy:", finding.policy or "")]
    if verbose and finding.evidence:
        parts.append(("seen:", json.dumps(dict(finding.evidence), sort_keys=True)))
    for label, text in parts:
        if text:
            yield from style.wrap(plain(text), f"      {label:<8}", " " * 14)


def _flowing(text: str) -> str:
    """A rule's text as one paragraph."""
    return " ".join(text.split())


def _closing(report: Report, verbose: bool, style: _Style) -> Iterator[str]:
    findings = [f for w in report.wheels for f in w.findings]
    shown = [f.rule for f in findings if verbose or f.severity != "info"]
    hidden = len(findings) - len(shown)
    notes = []
    if shown:
        notes.append(
            f"`wheelfix explain {plain(shown[0])}` tells how to fix it in the build, with an example."
        )
    if hidden:
        notes.append(f"{hidden} {'note' if hidden == 1 else 'notes'} not shown; -v shows them.")
    if notes:
        yield ""
        for note in notes:
            yield from (style.paint("dim", line) for line in style.wrap(note, "", ""))
