"""``wheelfix policy``: list, show and check; and a policy in force as text."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfix.model.policy import CxxRuntime, Deny, Policy, RpathRule, Size, SymbolContract, Waiver
from wheelfix.policy.load import load_policies, shipped_policies
from wheelfix.report.policy import described

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
GOOD = 'schema = 1\nname = "good"\n[[deny]]\nobject = "pkg/**"\nlibrary = "libcuda*"\n'
BAD = 'schema = 1\nname = "bad"\n[[deny]]\nobject = "pkg/**"\nreach = "far"\n'


def test_list_names_every_shipped_policy_with_its_first_line(wheelfix: Run) -> None:
    status, out, err = wheelfix("policy", "list")
    files = sorted((ROOT / "policies").glob("*.toml"))
    assert (status, err, len(files) > 0) == (0, "", True)
    expected = [(f.stem, f.read_text("utf-8").splitlines()[0].removeprefix("# ")) for f in files]
    assert [tuple(line.split(maxsplit=1)) for line in out.splitlines()] == expected


@pytest.mark.parametrize("name", shipped_policies())
def test_every_shipped_policy_is_shown_with_the_keys_that_findings_carry(wheelfix: Run, name: str) -> None:
    status, out, _ = wheelfix("policy", "show", name)
    policy = load_policies([name])
    keys = [*(e.key for e in policy.deny), *(e.key for e in policy.providers)]
    keys += [*(e.key for e in policy.require_files), *(e.key for e in policy.cxx_runtime)]
    assert status == 0
    assert [k for k in keys if f"\n{k}: " not in out] == []
    assert out.splitlines()[0].endswith(", ".join(policy.names))


def test_what_a_policy_extends_is_shown_too(wheelfix: Run, tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "child.toml").write_text('schema = 1\nname = "child"\nextends = ["good.toml"]\n')
    status, out, _ = wheelfix("policy", "show", tmp_path / "child.toml")
    assert (status, out.splitlines()) == (
        0,
        [
            "policies, later ones override: good, child",
            "good:deny[0]: object = pkg/**, library = libcuda*, reach = closure",
        ],
    )


def test_valid_files_are_said_to_be_valid(wheelfix: Run, tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(GOOD)
    status, out, err = wheelfix("policy", "check", "good.toml", cwd=tmp_path)
    assert (status, out, err) == (0, "good.toml is a valid policy\n", "")


def test_every_error_of_every_file_is_told_with_its_key_and_exit_status_2(
    wheelfix: Run, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text(BAD)
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "torn.toml").write_text("schema = ")
    status, out, err = wheelfix("policy", "check", "bad.toml", "good.toml", "torn.toml", cwd=tmp_path)
    assert (status, out) == (2, "good.toml is a valid policy\n")
    assert [part in err for part in ("deny[0].reach", "deny[0]", "library", "torn.toml")] == [True] * 4


@pytest.mark.parametrize("action", ["check", "show"])
def test_a_policy_that_is_not_there_is_wrong_usage(wheelfix: Run, action: str) -> None:
    status, out, err = wheelfix("policy", action, "nowhere")
    assert (status, out, "nowhere" in err) == (2, "", True)


def test_a_rule_that_does_not_exist_is_told(wheelfix: Run, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('schema = 1\nname = "p"\n[severity]\nneeded-mising = "off"\n')
    status, _, err = wheelfix("policy", "check", tmp_path / "p.toml")
    assert (status, "needed-mising" in err, "needed-missing" in err) == (2, True, True)


def test_without_an_action_it_is_wrong_usage(wheelfix: Run) -> None:
    assert wheelfix("policy")[0] == 2


def test_a_policy_in_force_as_text() -> None:
    policy = Policy(
        names=("base", "mine"),
        tag="manylinux_2_28",
        tag_key="mine:platform.tag",
        cxx_runtime=(CxxRuntime("mine:cxx-runtime[0]", ("a.so", "b.so"), "static"),),
        deny=(Deny("base:deny[0]", "**", "libcuda*", "direct"),),
        imports=(SymbolContract("mine:import[0]", "a.so", "f"),),
        rpaths=(RpathRule("mine:rpath[0]", required=("$ORIGIN",), allowed=()),),
        size=Size("mine:size", wheel_max=1000),
        waivers=(Waiver("mine:waive[0]", "exec-bit", "why", until=datetime.date(2026, 6, 30)),),
        severities={"exec-bit": "off"},
    )
    assert described(policy).splitlines() == [
        "policies, later ones override: base, mine",
        "mine:platform.tag: manylinux_2_28",
        "mine:cxx-runtime[0]: objects = [a.so, b.so], linkage = static, libgcc = any, exports = allow",
        "base:deny[0]: object = **, library = libcuda*, reach = direct",
        "mine:import[0]: object = a.so, symbol = f",
        "mine:rpath[0]: objects = [**], required = [$ORIGIN], allowed = []",
        "mine:size: wheel-max = 1000",
        "mine:waive[0]: rule = exec-bit, reason = why, until = 2026-06-30",
        "severity.exec-bit: off",
    ]


def test_a_policys_text_cannot_steer_a_terminal() -> None:
    hostile = Policy(names=("p",), deny=(Deny("p:deny[0]", "x\x1b[2J\ny", "l"),))
    assert described(hostile).splitlines()[1:] == [
        "p:deny[0]: object = x\\x1b[2J\\ny, library = l, reach = closure"
    ]
