"""Every format of every sample wheel, of a wheel with hostile names and, where they are beside the checkout, of the cases
from public bug reports, holds what was found and nothing else."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.report.renders import check, check_html, check_markdown, rendered
from tests.test_audit import wheel

RUN = ROOT.parent / "shared" / "cases" / "run.py"
CASES = sorted(path.parent for path in RUN.parent.glob("*/case.json"))
NAMES = (
    "a|b",
    "`code`",
    "<script>alert(1)</script>",
    "<img src=http://e.example/x>",
    "[x](http://e.example)",
    "https://e.example/x",
    "www.e.example",
    "![x](y)",
    "&lt;",
    "**x**",
    "~~x~~",
    "# x",
    "a\\|b\\",
    "x\n| forged | row |",
    "\x1b[2J",
    "\u202egnp",
    "x\r::error::forged",
    "100%0A,file=x",
)


@pytest.mark.parametrize("sample", sorted((ROOT / "sample_wheels").glob("*.whl")), ids=lambda p: p.name[7:25])
@pytest.mark.parametrize("contract", [False, True], ids=["by tag", "by contract"])
def test_every_format_of_a_sample_wheel_says_what_was_found(
    sample: Path, contract: bool, tmp_path: Path
) -> None:
    options = ("--policy", str(ROOT / "sample_wheels" / "contract.toml")) if contract else ()
    check(rendered(tmp_path, sample, *options))


def test_hostile_names_are_text_in_every_format(tmp_path: Path) -> None:
    folder = tmp_path / "a|b `c` <i> #1"
    folder.mkdir()
    texts = rendered(tmp_path, wheel(folder, "demo", {f"demo/{name}.so": b"text" for name in NAMES}))
    assert texts["json"].count('"not-elf"') == len(NAMES)
    check(texts)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_every_format_of_a_case_says_what_was_found(case: Path, tmp_path: Path) -> None:
    built = _runner().Case(case, [], tmp_path)
    main, rest = built.build()
    check(rendered(tmp_path, main, *built.options(rest), *built.spec.get("verify_args", [])))


@cache
def _runner() -> Any:
    """The program that builds the cases, as a module."""
    spec = importlib.util.spec_from_file_location("cases_run", RUN)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRONG = {"path": "x.whl", "verdict": "fail", "findings": []}


@pytest.mark.parametrize(
    "page",
    [
        "<script></script><style></style><p><b></p></b>",
        "<script></script><style></style><div>",
        '<script></script><style></style><img src="https://e.example/x">',
        '<script></script><style></style><a onclick="x">y</a>',
        "<script></script><script></script><style></style>",
    ],
)
def test_the_check_refuses_a_broken_page(page: str) -> None:
    with pytest.raises(AssertionError):
        check_html(page, WRONG)


@pytest.mark.parametrize("path", ["x|y.whl", "*x*.whl", "<b>.whl", "[x](y).whl", "x\n.whl"])
def test_the_check_refuses_a_table_with_names_as_they_are(path: str) -> None:
    table = "| wheel | verdict | errors | warnings | notes |\n|---|---|---|---|---|\n| {} | ❌ fail | 0 | 0 | 0 |\n"
    check_markdown(table.format("x.whl"), WRONG)
    with pytest.raises(AssertionError):
        check_markdown(table.format(path), {**WRONG, "path": path})
