"""A fault of wheelfix itself on one wheel hides no other wheel, and gives exit status 5."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheelfix import audit
from wheelfix.commands.verify import exit_status


@pytest.fixture
def two_wheels(sample_wheels: Path) -> list[Path]:
    return sorted(sample_wheels.glob("*.whl"))[:2]


@pytest.mark.rule("internal-error", fires=True)
def test_the_other_wheels_are_still_judged(two_wheels: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    real = audit.subject_of

    def failing(path: Path, setting: audit.Setting) -> object:
        if path == two_wheels[0]:
            raise RuntimeError("nobody thought of this")
        return real(path, setting)

    monkeypatch.setattr(audit, "subject_of", failing)
    report = audit.audit_wheels(two_wheels, audit.prepare(audit.Options()))
    assert [f.rule for f in report.wheels[0].findings] == ["internal-error"]
    assert report.wheels[1].name is not None
    assert exit_status(report, "never") == 5


@pytest.mark.rule("internal-error", fires=False)
def test_a_run_without_faults_has_none(two_wheels: list[Path]) -> None:
    report = audit.audit_wheels(two_wheels, audit.prepare(audit.Options()))
    assert all(f.rule != "internal-error" for w in report.wheels for f in w.findings)
    assert exit_status(report, "error") in (0, 1)
