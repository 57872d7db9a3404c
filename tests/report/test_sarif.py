"""SARIF 2.1.0: held against the standard's JSON schema, and against what GitHub's code scanning takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema import Draft4Validator, FormatChecker  # type: ignore[import-untyped]

from wheelfix import __version__
from wheelfix.checks import RULES
from wheelfix.model.finding import Finding, Report, WheelReport
from wheelfix.report import sarif

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json").read_text("utf-8"))
NAME = "demo-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
MISSING = Finding("needed-missing", "error", "libx.so.1 is not found", "demo/_ext.so", "libx.so.1")


def run_of(report: Report) -> dict[str, Any]:
    return run_in(sarif.render(report, RULES))


def run_in(text: str) -> dict[str, Any]:
    """The one run of the log, after the log was held against the schema."""
    log = json.loads(text)
    problems = [
        f"{e.json_path}: {e.message}"
        for e in Draft4Validator(SCHEMA, format_checker=FormatChecker()).iter_errors(log)
    ]
    assert problems == []
    (run,) = log["runs"]
    return dict(run)


def one(*findings: Finding, path: str = NAME) -> Report:
    return Report((WheelReport(path, "demo", "1.0", (), (), "fail", findings),))


def message(text: str) -> str:
    return str(run_of(one(Finding("not-elf", "error", text)))["results"][0]["message"]["text"])


def fingerprint(finding: Finding, path: str = NAME) -> str:
    return str(
        run_of(one(finding, path=path))["results"][0]["partialFingerprints"]["primaryLocationLineHash"]
    )


@pytest.mark.parametrize("name", ["failed", "passed", "several", "hostile"])
def test_every_report_is_valid_sarif(name: str, request: pytest.FixtureRequest) -> None:
    run_of(request.getfixturevalue(name))


def test_the_schema_refuses_what_is_no_sarif() -> None:
    log = json.loads(sarif.render(one(MISSING), RULES))
    log["runs"][0]["results"][0]["level"] = "info"
    assert not Draft4Validator(SCHEMA).is_valid(log)


def test_the_driver_lists_every_rule_with_its_texts_and_default_level() -> None:
    driver = run_of(Report(()))["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("wheelfix", __version__)
    assert [r["id"] for r in driver["rules"]] == list(RULES)
    for told, rule in zip(driver["rules"], RULES.values(), strict=True):
        assert told["defaultConfiguration"]["level"] == {"info": "note"}.get(rule.severity, rule.severity)
        for part in (rule.what, rule.why, rule.fix):
            assert part in told["help"]["markdown"]
        assert "helpUri" not in told


@pytest.mark.parametrize(
    ("version", "semantic"),
    [
        ("1.2.3", "1.2.3"),
        ("0.1.dev7+g3d81b21", None),
        ("1.2.4.dev1+g3d81b21.d20261203", None),
        ("1.0rc1", None),
    ],
)
def test_a_semantic_version_is_told_where_the_version_is_one(
    version: str, semantic: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema of SARIF 2.1.0: "in the format specified by Semantic Versioning 2.0"; it need not be there."""
    monkeypatch.setattr(sarif, "__version__", version)
    driver = run_of(Report(()))["tool"]["driver"]
    assert (driver["version"], driver.get("semanticVersion")) == (version, semantic)


def test_texts_and_tags_of_rules_keep_githubs_limits() -> None:
    for rule in run_of(Report(()))["tool"]["driver"]["rules"]:
        assert len(rule["id"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert 0 < len(rule["properties"]["tags"]) <= 10


def test_a_result_names_its_rule_level_wheel_member_and_evidence(several: Report) -> None:
    run = run_of(several)
    dynamic = run["results"][0]
    assert (
        run["tool"]["driver"]["rules"][dynamic["ruleIndex"]]["id"]
        == dynamic["ruleId"]
        == "cxx-runtime-dynamic"
    )
    assert [r["level"] for r in run["results"]] == ["error", "error", "warning", "note", "error"]
    (location,) = dynamic["locations"]
    where = location["physicalLocation"]["artifactLocation"]
    assert where == {"uri": "dist/demo-1.0-py3-none-linux_x86_64.whl", "index": 0}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "pkg/_ext.so"
    assert dynamic["message"]["text"].endswith(
        "; the policy wants the C++ runtime linked in. Fix: Link with -static-libstdc++."
    )
    assert dynamic["properties"]["evidence"] == {"needed": ["libstdc++.so.6"], "count": 1}
    assert dynamic["properties"]["policy"] == "static-cxx-runtime:cxx-runtime[0].linkage"


def test_a_finding_on_the_whole_wheel_has_no_place_inside(failed: Report) -> None:
    (location,) = run_of(failed)["results"][1]["locations"]
    assert "logicalLocations" not in location


def test_the_artifacts_are_the_wheels_in_their_order_with_their_verdicts(several: Report) -> None:
    artifacts = run_of(several)["artifacts"]
    assert [(a["location"]["uri"], a["properties"]["verdict"]) for a in artifacts] == [
        (w.path, w.verdict) for w in several.wheels
    ]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("dist/a b.whl", "dist/a%20b.whl"),
        ("a:b.whl", "a%3Ab.whl"),  # RFC 3986, 4.2: a colon in the first segment would make "a" a scheme
        ("x#y?z%.whl", "x%23y%3Fz%25.whl"),
        ("größe.whl", "gr%C3%B6%C3%9Fe.whl"),
        ("/tmp/x y/../a.whl", "file:///tmp/a.whl"),
    ],
)
def test_a_path_is_a_uri(path: str, uri: str) -> None:
    where = run_of(one(MISSING, path=path))["results"][0]["locations"][0]["physicalLocation"][
        "artifactLocation"
    ]
    assert where["uri"] == uri
    if not path.startswith("/"):
        assert unquote(urlsplit(uri).path) == path


def test_braces_of_a_demangled_name_are_no_placeholder() -> None:
    # SARIF 2.1.0, 3.11.5: literal braces are written twice.
    assert message("f()::{lambda()#1} is missing") == "f()::{{lambda()#1}} is missing."


@pytest.mark.parametrize("text", ["[click](https://example.org)", "operator[](unsigned long)"])
def test_a_name_is_no_link(text: str) -> None:
    # 3.11.6: a link is "[text](target)"; a bracket behind a backslash does not end its text.
    assert not re.search(r"\[(?:[^\]\\]|\\.)*\]\(", message(text))


def test_nothing_in_a_hostile_name_steers_a_reader(hostile: Report) -> None:
    text = sarif.render(hostile, RULES)
    assert text.isascii()
    strings: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, dict):
            collect(list(value) + list(value.values()))
        elif isinstance(value, list):
            for item in value:
                collect(item)

    run = run_of(hostile)
    collect([run["results"], run["artifacts"]])
    assert strings
    assert all(s.isprintable() for s in strings)


def test_a_fingerprint_outlives_a_new_version_of_the_wheel() -> None:
    new = NAME.replace("1.0", "1.1.dev3+local")
    assert fingerprint(MISSING) == fingerprint(replace(MISSING, message="said anew"), f"elsewhere/{new}")
    assert fingerprint(MISSING) == fingerprint(MISSING, NAME.replace("-1.0-", "-1.0-7build-"))
    record = Finding("record-missing", "error", "RECORD is not there", "demo-1.0.dist-info/RECORD")
    newer = replace(record, member="demo-1.1.dist-info/RECORD")
    assert fingerprint(record) == fingerprint(newer, new)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: (replace(f, rule="needed-unreachable"), NAME),
        lambda f: (replace(f, member="demo/_other.so"), NAME),
        lambda f: (replace(f, library="liby.so.1"), NAME),
        lambda f: (replace(f, symbol="f"), NAME),
        lambda f: (f, NAME.replace("cp311", "cp312")),
        lambda f: (f, NAME.replace("x86_64", "aarch64")),
        lambda f: (f, NAME.replace("demo", "other")),
    ],
)
def test_another_finding_or_build_has_another_fingerprint(
    change: Callable[[Finding], tuple[Finding, str]],
) -> None:
    assert fingerprint(*change(MISSING)) != fingerprint(MISSING)


def test_no_two_results_of_a_run_share_a_fingerprint() -> None:
    run = run_of(one(MISSING, replace(MISSING, message="on musl, too")))
    prints = [r["partialFingerprints"]["primaryLocationLineHash"] for r in run["results"]]
    assert len(set(prints)) == 2


def test_a_wheel_that_cannot_be_read_is_a_result_of_a_run_that_worked(several: Report) -> None:
    run = run_of(several)
    assert run["results"][-1]["ruleId"] == "unreadable"
    assert run["invocations"][0]["executionSuccessful"] is True


def test_a_bug_of_wheelfix_is_a_run_that_did_not_work() -> None:
    (invocation,) = run_of(one(Finding("internal-error", "error", "wheelfix failed on it")))["invocations"]
    assert invocation["executionSuccessful"] is False
    (told,) = invocation["toolExecutionNotifications"]
    assert (told["level"], told["message"]["text"]) == ("error", "wheelfix failed on it.")


def test_of_more_results_than_github_takes_the_gravest_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sarif.MOST_RESULTS == 25_000
    monkeypatch.setattr(sarif, "MOST_RESULTS", 3)
    severities = ("info", "warning", "error", "info", "error")
    run = run_of(one(*(Finding("not-elf", s, f"number {n}") for n, s in enumerate(severities))))  # type: ignore[arg-type]
    assert [r["message"]["text"] for r in run["results"]] == ["number 2.", "number 4.", "number 1."]
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].startswith("2 findings ")
