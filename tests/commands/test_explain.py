from __future__ import annotations

from collections.abc import Callable

from wheelfix.checks import RULES

Run = Callable[..., tuple[int, str, str]]


def test_without_a_rule_every_rule_is_listed(wheelfix: Run) -> None:
    status, out, _ = wheelfix("explain")
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert status == 0
    assert sorted(listed) == sorted(RULES)


def test_a_rule_is_printed_with_all_that_it_says(wheelfix: Run) -> None:
    status, out, _ = wheelfix("explain", "needed-missing")
    rule = RULES["needed-missing"]
    assert status == 0
    for text in (rule.id, rule.severity, rule.what, rule.why, rule.fix, rule.example, rule.remedy):
        assert text in out
