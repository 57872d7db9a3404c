"""Waivers and severities of a policy."""

from __future__ import annotations

import datetime

import pytest

from wheelfix.checks.waivers import apply_policy
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy, Waiver

TODAY = datetime.date(2026, 6, 1)
FINDING = Finding("rpath-absolute", "warning", "m", member="pkg/v/x.so", library="libx.so.1", symbol="f")


def left(*waivers: Waiver, **severities: str) -> list[tuple[str, str]]:
    policy = Policy(waivers=waivers, severities={k.replace("_", "-"): v for k, v in severities.items()})  # type: ignore[misc]
    return [(f.rule, f.severity) for f in apply_policy([FINDING], policy, TODAY)]


@pytest.mark.rule("waiver-unused", fires=False)
@pytest.mark.rule("waiver-expired", fires=False)
@pytest.mark.parametrize(
    "given", [{}, {"member": "pkg/**"}, {"library": "libx*"}, {"symbol": "f"}, {"until": TODAY}]
)
def test_a_waiver_that_matches_removes_the_finding(given: dict[str, object]) -> None:
    assert left(Waiver("p:waive[0]", "rpath-absolute", "why", **given)) == []  # type: ignore[arg-type]


@pytest.mark.rule("waiver-unused", fires=True)
@pytest.mark.parametrize("given", [{"member": "pkg/*"}, {"library": "liby*"}, {"symbol": "g"}])
def test_a_waiver_that_matches_nothing_is_told(given: dict[str, str]) -> None:
    found = left(Waiver("p:waive[0]", "rpath-absolute", "why", **given))  # type: ignore[arg-type]
    assert found == [("rpath-absolute", "warning"), ("waiver-unused", "warning")]


@pytest.mark.rule("waiver-expired", fires=True)
def test_a_waiver_past_its_day_no_longer_counts_and_is_told() -> None:
    old = Waiver("p:waive[0]", "rpath-absolute", "why", until=TODAY - datetime.timedelta(1))
    assert left(old) == [("rpath-absolute", "warning"), ("waiver-expired", "warning")]


def test_severities_change_and_off_removes() -> None:
    assert left(rpath_absolute="error") == [("rpath-absolute", "error")]
    assert left(rpath_absolute="off") == []
