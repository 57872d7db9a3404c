"""The command: exit status, forms, and two real builds of one source."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_audit import TAG, wheel

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A wheel, and its next version: a symbol went, one came, and a library is needed."""
    made = []
    for version, source, flags in (
        ("1", "int f(void) { return 1; } int gone(void) { return 2; }", []),
        (
            "2",
            "#include <math.h>\ndouble f(double x) { return cos(x); } int came(void) { return 3; }",
            ["-lm", "-Wl,-rpath,$ORIGIN"],
        ),
    ):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "x.c").write_text(source)
        command = ["gcc", "-shared", "-fPIC", "-O0", "-Wl,--no-as-needed", "x.c", *flags, "-o", "x.so"]
        subprocess.run(command, check=True, cwd=folder)
        made.append(wheel(folder, "x", {"pkg/x.so": (folder / "x.so").read_bytes()}, tag=TAG))
    return made[0], made[1]


def test_what_the_loader_sees(wheelfix: Run, pair: tuple[Path, Path]) -> None:
    status, out, _ = wheelfix("diff", "--json", *pair)
    assert status == 0
    (changed,) = json.loads(out)["changed"]
    rows = {r["aspect"]: (r["removed"], r["added"]) for r in changed["rows"]}
    assert rows["exports"] == (["gone"], ["came"])
    assert rows["NEEDED"] == ([], ["libm.so.6"])
    assert rows["RUNPATH"] == ([], ["$ORIGIN"])
    assert rows["imports"][1][0].startswith("cos")


def test_text_and_markdown(wheelfix: Run, pair: tuple[Path, Path]) -> None:
    status, text, _ = wheelfix("diff", *pair)
    assert status == 0
    assert "- gone" in text
    status, markdown, _ = wheelfix("diff", "--markdown", *pair)
    assert status == 0
    assert "| exports | gone | came |" in markdown


def test_a_wheel_and_itself(wheelfix: Run, pair: tuple[Path, Path]) -> None:
    status, text, _ = wheelfix("diff", pair[0], pair[0])
    assert status == 0
    assert "nothing that a loader could see is different" in text


def test_an_input_that_is_no_wheel(wheelfix: Run, pair: tuple[Path, Path], tmp_path: Path) -> None:
    bad = tmp_path / "y-1.0-py3-none-any.whl"
    bad.write_bytes(b"no")
    for arguments in ((pair[0], bad), (bad, pair[0])):
        status, _, err = wheelfix("diff", *arguments)
        assert status == 3
        assert "cannot be read as a wheel" in err


def test_one_wheel_is_wrong_usage(wheelfix: Run, pair: tuple[Path, Path]) -> None:
    assert wheelfix("diff", pair[0])[0] == 2
