from __future__ import annotations

import re

import pytest

from wheelfix.model.finding import Report
from wheelfix.report.text import render

WHY = {
    "cxx-runtime-dynamic": "The copy of an older machine lacks symbols, so users of it cannot import the module."
}


def test_the_verdict_stands_first(failed: Report) -> None:
    first = render(failed).splitlines()[0]
    assert first == (
        "FAIL dist/demo-1.0-py3-none-linux_x86_64.whl: 2 errors, 1 warning, 1 note [static-cxx-runtime]"
    )


def test_the_verdicts_of_all_wheels_stand_before_any_detail(several: Report) -> None:
    assert [line.split()[0] for line in render(several).splitlines()[:3]] == ["FAIL", "PASS", "UNREADABLE"]


def test_quiet_is_a_line_for_each_wheel(several: Report) -> None:
    lines = render(several, quiet=True).splitlines()
    assert len(lines) == len(several.wheels)
    assert all(w.path in line for w, line in zip(several.wheels, lines, strict=True))


def test_a_wheel_without_findings_is_one_line(passed: Report) -> None:
    assert render(passed) == "PASS b.whl: no findings [manylinux]\n"


def test_a_finding_names_member_library_symbol_reason_remedy_and_policy_key(failed: Report) -> None:
    text = render(failed, why=WHY)
    squeezed = " ".join(text.split())
    for part in (
        "pkg/_ext.so",
        "error: cxx-runtime-dynamic (symbol _ZSt4cout)",
        "needs libstdc++.so.6 of the machine",
        "why: The copy of an older machine lacks symbols, so users of it cannot import the module.",
        "fix: Link with -static-libstdc++.",
        "policy: static-cxx-runtime:cxx-runtime[0].linkage",
    ):
        assert part in squeezed


def test_findings_are_grouped_by_member_and_the_whole_wheel_comes_first(failed: Report) -> None:
    lines = render(failed).splitlines()
    heads = [line.strip() for line in lines if re.match(r"  \S", line)]
    assert heads == ["the wheel as a whole", "pkg/_ext.so"]


def test_the_reason_of_a_rule_is_told_once_a_wheel(failed: Report) -> None:
    wheel = failed.wheels[0]
    twice = Report((type(wheel)(*(getattr(wheel, n) for n in wheel.__slots__[:-1]), wheel.findings * 2),))
    assert render(twice, why=WHY).count("why:") == 1


def test_notes_are_counted_and_shown_only_where_verbose(failed: Report) -> None:
    assert "libm.so.6 is not used" not in render(failed)
    assert "1 note not shown; -v shows them." in render(failed)
    assert "libm.so.6 is not used" in render(failed, verbose=True)
    assert '"count": 1' in render(failed, verbose=True)


@pytest.mark.parametrize("width", [40, 80, 132])
def test_lines_keep_to_the_width_except_for_names(failed: Report, width: int) -> None:
    for line in render(failed, why=WHY, width=width).splitlines():
        assert len(line) <= width or max(map(len, line.split())) > width - 20 or line.startswith("FAIL")


def test_a_long_name_stays_whole(failed: Report) -> None:
    name = "_ZN" + "9something" * 30 + "E"
    finding = failed.wheels[0].findings[0]
    wheel = failed.wheels[0]
    long = type(finding)("undefined-symbol", "error", f"{name} is missing", symbol=name)
    report = Report((type(wheel)(*(getattr(wheel, n) for n in wheel.__slots__[:-1]), (long,)),))
    assert name in render(report, width=60)


def test_colours_only_where_asked_for(failed: Report) -> None:
    assert "\x1b" not in render(failed)
    coloured = render(failed, colour=True)
    assert "\x1b[1;31mFAIL\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(failed)


def test_nothing_in_a_hostile_name_reaches_the_terminal(hostile: Report) -> None:
    text = render(hostile, verbose=True)
    assert all(c == "\n" or c.isprintable() for c in text)
    assert not any(line.startswith("PASS") for line in text.splitlines())
