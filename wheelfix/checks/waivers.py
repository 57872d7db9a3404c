"""What a policy says about findings after the checks ran: severities, and waivers with a reason and an end."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace

from wheelfix.checks.rule import Rule
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy, Waiver
from wheelfix.policy.globs import matches_name, matches_path

WAIVER_UNUSED = Rule(
    id="waiver-unused",
    group="contract",
    severity="warning",
    what="A waiver of the policy matches no finding any more.",
    why="What it excused is mended, or renamed: left in place it will hide the next fault of the kind.",
    fix="Remove the `[[waive]]` entry.",
    example='`rule = "rpath-absolute"` for `pkg/x.so`, whose RUNPATH was cleaned last month.',
    remedy="Remove the entry from the policy.",
)
WAIVER_EXPIRED = Rule(
    id="waiver-expired",
    group="contract",
    severity="warning",
    what="A waiver's `until` date has passed.",
    why="It was meant to be temporary: the finding counts again.",
    fix="Mend the finding, or extend the date with a reason that still holds.",
    example="`until = 2026-06-30`, and it is July.",
    remedy="Mend what was waived, or set a new date.",
)
RULES = (WAIVER_UNUSED, WAIVER_EXPIRED)


def apply_policy(findings: Sequence[Finding], policy: Policy, today: datetime.date) -> tuple[Finding, ...]:
    """The findings that remain, with the policy's severities, and what is to be said of its waivers."""
    active = [w for w in policy.waivers if w.until is None or w.until >= today]
    kept: list[Finding] = []
    used: set[str] = set()
    for finding in findings:
        waiver = next((w for w in active if _matches(w, finding)), None)
        if waiver is not None:
            used.add(waiver.key)
        else:
            kept.append(finding)
    kept += _about(policy, active, used)
    return tuple(f for finding in kept if (f := _with_severity(finding, policy)) is not None)


def _about(policy: Policy, active: Sequence[Waiver], used: set[str]) -> Iterator[Finding]:
    for waiver in policy.waivers:
        if waiver not in active:
            yield WAIVER_EXPIRED.finding(
                f"the waiver of {waiver.rule} ({waiver.reason}) expired on {waiver.until}",
                library=waiver.library,
                policy=waiver.key,
                evidence={"rule": waiver.rule, "until": str(waiver.until), "reason": waiver.reason},
            )
        elif waiver.key not in used:
            yield WAIVER_UNUSED.finding(
                f"the waiver of {waiver.rule} ({waiver.reason}) matches nothing in this wheel",
                policy=waiver.key,
                evidence={"rule": waiver.rule, "reason": waiver.reason},
            )


def _matches(waiver: Waiver, finding: Finding) -> bool:
    return (
        waiver.rule == finding.rule
        and (waiver.member is None or matches_path(finding.member or "", waiver.member))
        and (waiver.library is None or matches_name(finding.library or "", waiver.library))
        and (waiver.symbol is None or matches_name(finding.symbol or "", waiver.symbol))
    )


def _with_severity(finding: Finding, policy: Policy) -> Finding | None:
    severity = policy.severities.get(finding.rule)
    if severity == "off":
        return None
    return finding if severity is None else replace(finding, severity=severity)
