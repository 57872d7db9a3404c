"""One test that holds rule, documentation and cases together.

A case says which rule it is about with ``@pytest.mark.rule("id", fires=True)`` (the rule must report) or
``fires=False`` (a healthy input, on which it must not). Every rule needs one of each.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from wheelfix.checks import RULES
from wheelfix.report.rules import GROUPS

TESTS = Path(__file__).resolve().parent


@cache
def marked() -> dict[str, set[bool]]:
    """Rule id -> what the marked cases under tests/ hold of it, read from their source without running it."""
    found: dict[str, set[bool]] = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
                (name,), (fires,) = node.args, [k.value for k in node.keywords if k.arg == "fires"]
                assert isinstance(name, ast.Constant), f"{path}: the rule's id must be written out"
                assert isinstance(fires, ast.Constant), f"{path}: fires must be True or False"
                found.setdefault(str(name.value), set()).add(bool(fires.value))
    return found


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_a_rule_has_its_text_a_bad_case_and_a_good_one(rule) -> None:  # type: ignore[no-untyped-def]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
    assert rule.group in GROUPS
    for field in ("what", "why", "fix", "example", "remedy"):
        text = getattr(rule, field)
        assert len(text.split()) >= 3, f"{rule.id}.{field} says nothing"
        assert text.count("```") % 2 == 0, f"{rule.id}.{field} has an open code block"
    assert "\n" not in rule.remedy
    cases = marked().get(rule.id, set())
    assert True in cases, f"no test marked rule({rule.id!r}, fires=True)"
    assert False in cases, f"no test marked rule({rule.id!r}, fires=False)"


def test_marks_name_rules_that_exist() -> None:
    assert set(marked()) - set(RULES) == set()


def test_no_rule_that_users_may_name_has_vanished() -> None:
    """Ids stand in scripts, policies and waivers: none is removed or renamed, new ones are added to the list."""
    listed = (TESTS / "rule_ids.txt").read_text("utf-8").split()
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == set(RULES)
