from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfix.commands.verify import exit_status
from wheelfix.model.finding import Finding, Report, WheelReport

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sick(sample_wheels: Path) -> Path:
    return next(sample_wheels.glob("sample_helper_missing-*"))


@pytest.fixture
def healthy(sample_wheels: Path) -> Path:
    return next(sample_wheels.glob("sample_healthy-*"))


def _report(verdict: str, *severities: str) -> Report:
    findings = tuple(Finding("r", s, "m") for s in severities)  # type: ignore[arg-type]
    return Report((WheelReport("x", None, None, (), (), verdict, findings),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "severities", "statuses"),
    [
        ("pass", (), (0, 0, 0)),
        ("pass", ("info",), (0, 0, 0)),
        ("pass", ("warning",), (0, 1, 0)),
        ("fail", ("error",), (1, 1, 0)),
        ("unreadable", ("error",), (3, 3, 3)),
    ],
)
def test_the_status_follows_fail_on(
    verdict: str, severities: tuple[str, ...], statuses: tuple[int, ...]
) -> None:
    report = _report(verdict, *severities)
    assert tuple(exit_status(report, f) for f in ("error", "warning", "never")) == statuses


@pytest.mark.rule("unreadable", fires=True)
@pytest.mark.rule("unreadable", fires=False)
def test_several_wheels_give_the_highest_status_and_none_hides_another(
    wheelfix: Run, sick: Path, healthy: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken-1-py3-none-any.whl"
    broken.write_bytes(b"PK")
    status, out, _ = wheelfix("verify", "--format", "json", broken, sick, healthy)
    wheels = json.loads(out)["wheels"]
    assert status == 3
    assert [(w["path"], w["verdict"]) for w in wheels] == [
        (str(broken), "unreadable"),
        (str(sick), "fail"),
        (str(healthy), "pass"),
    ]


def test_any_number_of_jobs_gives_the_same_bytes(wheelfix: Run, sample_wheels: Path) -> None:
    wheels = sorted(sample_wheels.glob("*.whl"))
    one = wheelfix("verify", "--format", "json", "-j", "1", *wheels)
    assert one == wheelfix("verify", "--format", "json", "-j", "3", *wheels)


def test_the_report_goes_to_the_file_that_is_named(wheelfix: Run, sick: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    assert wheelfix("verify", "--format", "json", "-o", target, sick) == (1, "", "")
    assert json.loads(target.read_text())["wheels"][0]["verdict"] == "fail"
    status, _, err = wheelfix("verify", "-o", tmp_path / "absent" / "x", sick)
    assert status == 2
    assert "cannot write" in err


def test_select_and_ignore_take_ids_and_globs(wheelfix: Run, sick: Path) -> None:
    def rules(*arguments: str) -> list[str]:
        out = wheelfix("verify", "--format", "json", *arguments, sick)[1]
        return [f["rule"] for f in json.loads(out)["wheels"][0]["findings"]]

    assert rules() == ["needed-missing"]
    assert rules("--ignore", "needed-*") == []
    assert rules("--select", "zip-*,needed-missing") == ["needed-missing"]
    assert rules("--select", "record-hash") == []


def test_plat_judges_against_that_tag(wheelfix: Run, healthy: Path) -> None:
    status, out, _ = wheelfix("verify", "--format", "json", "--plat", "manylinux_2_17_x86_64", healthy)
    rules = {f["rule"] for f in json.loads(out)["wheels"][0]["findings"]}
    assert status == 1
    assert "symbol-version-too-new" in rules  # it needs _dl_find_object@GLIBC_2.35: readelf -V


def test_a_library_that_another_wheel_supplies_is_found_there(
    wheelfix: Run, sick: Path, tmp_path: Path
) -> None:
    assert wheelfix("verify", sick)[0] == 1
    assert wheelfix("verify", "--exclude", "libhelper.so", sick)[0] == 0


def test_text_is_80_columns_and_without_colours_when_piped(wheelfix: Run, sick: Path) -> None:
    _, out, _ = wheelfix("verify", sick, env={"COLUMNS": "200"})
    assert "\x1b" not in out
    assert all(len(line) <= 80 or len(line.split()) <= 3 for line in out.splitlines()[1:])
