"""A report as JUnit XML: a suite for each wheel, in it a case for each rule. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from wheelfix.model.finding import Finding, Report, WheelReport
from wheelfix.report.escape import plain


def render(report: Report, rules: Iterable[str]) -> str:
    """A case fails if its rule found an error; warnings and notes are its output. ``rules`` are those that ran."""
    ids = list(rules)
    suites = [_suite(w, ids) for w in report.wheels]
    root = ET.Element("testsuites", name="wheelfix")
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(s.get(count, "0")) for s in suites)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(wheel: WheelReport, rules: list[str]) -> ET.Element:
    found: dict[str, list[Finding]] = {rule: [] for rule in rules}
    for finding in wheel.findings:
        found.setdefault(finding.rule, []).append(finding)
    suite = ET.Element("testsuite", name=plain(wheel.path))
    failures = 0
    for rule, findings in found.items():
        case = ET.SubElement(suite, "testcase", classname=plain(wheel.path), name=plain(rule))
        errors = [f for f in findings if f.severity == "error"]
        rest = [f for f in findings if f.severity != "error"]
        if errors:
            failures += 1
            failure = ET.SubElement(case, "failure", type=plain(rule), message=plain(errors[0].message))
            failure.text = _lines(errors)
        if rest:
            ET.SubElement(case, "system-out").text = _lines(rest)
    suite.set("tests", str(len(found)))
    suite.set("failures", str(failures))
    suite.set("errors", "0")  # Jenkins' schema wants it
    return suite


def _lines(findings: Iterable[Finding]) -> str:
    return "\n".join(plain(f"{f.severity}: {f.message} Fix: {f.remedy}") for f in findings)
