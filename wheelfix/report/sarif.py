"""A report as SARIF 2.1.0, the OASIS format that code scanning services and editors read. Pure.

Sections (§) are those of the standard. GitHub takes a part of it and sets limits; where it asks for more than the
standard does, the comments say so.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from wheelfix import __version__
from wheelfix.checks.rule import Rule
from wheelfix.model.finding import GRAVITY, Finding, Report, WheelReport
from wheelfix.report.escape import plain
from wheelfix.report.rules import markdown

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: GitHub rejects a run with more results than this.
MOST_RESULTS = 25_000
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
# The folder that has the version in its name: demo-1.0.dist-info, demo-1.0.data.
_VERSIONED = re.compile(r"^([^/]+?)-[^/]+\.(dist-info|data)(?=/|$)")
# GitHub wants a region of every location, also in a file that has no lines.
_REGION = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """One run with a result for each finding. ``rules`` are those that ran, by id.

    Of more than ``MOST_RESULTS`` findings the gravest are told, and a notification counts the rest.
    """
    found = [(number, f) for number, wheel in enumerate(report.wheels) for f in wheel.findings]
    told = _gravest(found)
    positions = {rule: position for position, rule in enumerate(rules)}
    seen: Counter[str] = Counter()
    results = []
    for number, finding in told:
        result = _result(report.wheels[number], number, finding, seen)
        if finding.rule in positions:
            result["ruleIndex"] = positions[finding.rule]
        results.append(result)
    driver = {"name": "wheelfix", "version": __version__, "rules": [_rule(r) for r in rules.values()]}
    if re.fullmatch(r"\d+\.\d+\.\d+", __version__):  # 0.1.dev7+g3d81b21, between releases, is none
        driver["semanticVersion"] = __version__
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation([f for _, f in found], len(found) - len(told))],
        "artifacts": [_artifact(w) for w in report.wheels],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _gravest(found: Sequence[tuple[int, Finding]]) -> Sequence[tuple[int, Finding]]:
    if len(found) <= MOST_RESULTS:
        return found
    return sorted(found, key=lambda pair: GRAVITY[pair[1].severity])[:MOST_RESULTS]


def _rule(rule: Rule) -> dict[str, Any]:
    """A reportingDescriptor (§3.49). Its texts take no arguments, so that their braces stay as people copy them."""
    text = markdown(rule)
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": rule.why},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.group]},
    }


def _result(wheel: WheelReport, number: int, finding: Finding, seen: Counter[str]) -> dict[str, Any]:
    said = (
        f"{_sentence(finding.message)} Fix: {_sentence(finding.remedy)}"
        if finding.remedy
        else finding.message
    )
    fingerprint = _fingerprint(wheel, finding)
    seen[fingerprint] += 1
    mark = f"{fingerprint}:{seen[fingerprint]}"
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(wheel.path), "index": number},
            "region": _REGION,
        }
    }
    if finding.member is not None:
        # A viewer opens files, not members of an archive: the member is a place inside the wheel (§3.33).
        name = plain(finding.member)
        location["logicalLocations"] = [
            {"name": posixpath.basename(name), "fullyQualifiedName": name, "kind": "resource"}
        ]
    about = {
        "member": finding.member,
        "library": finding.library,
        "symbol": finding.symbol,
        "evidence": dict(finding.evidence) or None,
        "remedy": finding.remedy or None,
        "policy": finding.policy,
    }
    return {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(_sentence(said))},
        "locations": [location],
        # GitHub matches the alerts of two runs by the second name alone.
        "partialFingerprints": {"wheelfixFinding/v1": mark, "primaryLocationLineHash": mark},
        "properties": {key: _printable(value) for key, value in about.items() if value is not None},
    }


def _fingerprint(wheel: WheelReport, finding: Finding) -> str:
    """The same for the same finding in another version of the wheel, another for another build of one version."""
    parts = posixpath.basename(wheel.path).split(
        "-"
    )  # PEP 427: name, version, build number or not, three tags
    build = [parts[0], *parts[-3:]] if len(parts) >= 5 else parts
    member = _VERSIONED.sub(r"\1.\2", finding.member or "")
    content = json.dumps([build, finding.rule, member, finding.library, finding.symbol])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _artifact(wheel: WheelReport) -> dict[str, Any]:
    return {
        "location": {"uri": _uri(wheel.path)},
        "roles": ["analysisTarget"],
        "properties": {
            "name": _printable(wheel.name),
            "version": _printable(wheel.version),
            "wheelTags": _printable(wheel.tags),
            "policies": _printable(wheel.policies),
            "verdict": wheel.verdict,
        },
    }


def _invocation(found: Iterable[Finding], left_out: int) -> dict[str, Any]:
    """Whether wheelfix itself worked (§3.20.14): a wheel that cannot be read is a result, a bug of ours is not."""
    bugs = [f for f in found if f.rule == "internal-error"]
    notes = [{"level": "error", "message": {"text": _message(_sentence(f.message))}} for f in bugs]
    if left_out:
        text = f"{left_out} findings of the least severity are left out; --format json tells all."
        notes.append({"level": "warning", "message": {"text": text}})
    return {"executionSuccessful": not bugs, "toolExecutionNotifications": notes}


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _message(text: str) -> str:
    """Text of a message as it is: no placeholder (§3.11.5), no link (§3.11.6), no control character."""
    return plain(text).replace("{", "{{").replace("}", "}}").replace("](", "\\](")


def _printable(value: object) -> object:
    """Plain JSON values with every name in them made printable: many readers of SARIF refuse a lone surrogate."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {plain(str(k)): _printable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(v) for v in value]
    return value


def _uri(path: str) -> str:
    """An absolute path as a file URI, which may hold no ".."; any other as a relative reference (RFC 3986, 4.2)."""
    if path.startswith("/"):
        return f"file://{quote(posixpath.normpath(path), errors='backslashreplace')}"
    return quote(path, errors="backslashreplace")
