"""Literal reports: what the renderers are held against."""

from __future__ import annotations

import pytest

from wheelfix.model.finding import Finding, Report, WheelReport

DYNAMIC = Finding(
    rule="cxx-runtime-dynamic",
    severity="error",
    message="pkg/_ext.so needs libstdc++.so.6 of the machine; the policy wants the C++ runtime linked in",
    member="pkg/_ext.so",
    library="libstdc++.so.6",
    symbol="_ZSt4cout",
    evidence={"needed": ["libstdc++.so.6"], "count": 1},
    remedy="Link with -static-libstdc++.",
    policy="static-cxx-runtime:cxx-runtime[0].linkage",
)
DEAD = Finding(
    rule="rpath-dead",
    severity="warning",
    message="an entry leads nowhere",
    member="pkg/_ext.so",
    remedy="Remove it.",
)
NOTE = Finding(
    rule="needed-unused", severity="info", message="libm.so.6 is not used", member="pkg/_ext.so", remedy="-"
)
WHOLE = Finding(rule="record-missing", severity="error", message="RECORD is not there", remedy="Build anew.")
FAILED = WheelReport(
    "dist/demo-1.0-py3-none-linux_x86_64.whl",
    "demo",
    "1.0",
    ("py3-none-linux_x86_64",),
    ("static-cxx-runtime",),
    "fail",
    (DYNAMIC, WHOLE, DEAD, NOTE),
)
PASSED = WheelReport("b.whl", "b", "2", ("py3-none-any",), ("manylinux",), "pass", ())
UNREADABLE = WheelReport(
    "c.whl",
    None,
    None,
    (),
    (),
    "unreadable",
    (Finding("unreadable", "error", "c.whl cannot be read as a wheel: not a ZIP archive"),),
)


@pytest.fixture
def failed() -> Report:
    return Report((FAILED,))


@pytest.fixture
def passed() -> Report:
    return Report((PASSED,))


@pytest.fixture
def several() -> Report:
    return Report((FAILED, PASSED, UNREADABLE))


@pytest.fixture
def hostile() -> Report:
    """Names that would clear the screen, turn the text around or forge a line."""
    bad = "pkg/\x1b[2J\u202egnp.so\nPASS forged.whl\x9b1m\udcff"
    finding = Finding(
        "not-elf", "error", f"{bad} is text", bad, bad, bad, {"seen": bad}, f"Remove {bad}.", bad
    )
    return Report((WheelReport(bad, bad, bad, (bad,), (bad,), "fail", (finding,)),))
