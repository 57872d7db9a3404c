"""The formats of CI systems: GitHub's workflow commands, JUnit XML, Markdown."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from xmlschema import XMLSchema

from wheelfix.model.finding import Finding, Report, WheelReport
from wheelfix.report import github, junit, markdown


def _one(message: str, path: str = "a.whl", member: str | None = None) -> Report:
    finding = Finding("not-elf", "error", message, member, remedy="Mend.")
    return Report((WheelReport(path, "a", "1", (), (), "fail", (finding,)),))


def test_github_gets_an_annotation_for_each_finding(failed: Report) -> None:
    lines = github.render(failed).splitlines()
    assert [line.split()[0] for line in lines] == ["::error", "::error", "::warning", "::notice", "fail:"]
    assert lines[2] == (
        "::warning file=dist/demo-1.0-py3-none-linux_x86_64.whl,title=rpath-dead%3A pkg/_ext.so"
        "::an entry leads nowhere Fix: Remove it."
    )


def test_a_name_cannot_forge_a_workflow_command() -> None:
    text = github.render(_one("x\n::set-env name=A::b 100%0A", "a,b:c.whl", "m\r::stop-commands::x"))
    assert len(text.splitlines()) == 2
    assert text.startswith(r"::error file=a%2Cb%3Ac.whl,title=not-elf%3A m\r%3A%3Astop-commands%3A%3Ax::x\n")
    assert "100%250A" in text


def test_junit_has_a_case_for_each_rule_and_wheel(several: Report) -> None:
    root = ET.fromstring(junit.render(several, ["cxx-runtime-dynamic", "rpath-dead", "zip-slip"]))
    suites = root.findall("testsuite")
    assert [s.get("name") for s in suites] == [w.path for w in several.wheels]
    cases = {c.get("name"): c for c in suites[0]}
    assert cases["zip-slip"].find("failure") is None
    assert cases["rpath-dead"].find("failure") is None
    assert cases["rpath-dead"].findtext("system-out") == "warning: an entry leads nowhere Fix: Remove it."
    failure = cases["cxx-runtime-dynamic"].find("failure")
    assert failure is not None
    assert "libstdc++.so.6" in str(failure.get("message"))
    # demo: the two errors; b: none; c: unreadable. Rules that were not in the list have a case where they reported.
    assert [(s.get("tests"), s.get("failures")) for s in suites] == [("5", "2"), ("3", "0"), ("4", "1")]
    assert (root.get("tests"), root.get("failures")) == ("12", "3")


@pytest.mark.parametrize("name", ["failed", "passed", "several", "hostile"])
def test_junit_is_what_jenkins_takes(name: str, request: pytest.FixtureRequest) -> None:
    schema = XMLSchema(Path(__file__).parent / "schemas" / "junit-10.xsd")
    schema.validate(junit.render(request.getfixturevalue(name), ["cxx-runtime-dynamic", "zip-slip"]))


def test_junit_is_xml_whatever_the_names_are(hostile: Report) -> None:
    root = ET.fromstring(junit.render(hostile, []))
    assert "\x1b" not in ET.tostring(root, encoding="unicode")


def test_markdown_has_the_verdicts_first_and_then_the_findings(several: Report) -> None:
    lines = markdown.render(several).splitlines()
    assert lines[2] == "| dist/demo-1.0-py3-none-linux\\_x86\\_64.whl | ❌ fail | 2 | 1 | 1 |"
    assert lines[3] == "| b.whl | ✅ pass | 0 | 0 | 0 |"
    assert "| warning | rpath-dead | pkg/\\_ext.so | an entry leads nowhere | Remove it. |" in lines


@pytest.mark.parametrize(
    "text", ["a|b", "<img src=x>", "[x](http://y)", "`x`", "a\nb", "@someone", "*x*", "https://y", "WWW.y.z"]
)
def test_a_name_is_no_markdown(text: str) -> None:
    rendered = markdown.render(_one(text))
    assert text not in rendered
    row = next(line for line in rendered.splitlines() if line.startswith("| error"))
    assert row.replace("\\|", "").count("|") == 6
