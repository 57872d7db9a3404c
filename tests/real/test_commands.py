"""Every command on real wheels: nothing is unreadable, nothing is a bug, and healthy wheels have no errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

Run = Callable[..., tuple[int, str, str]]
Where = Callable[[dict[str, Any]], Path]


def test_verify_reads_every_wheel_and_finds_no_error_in_healthy_ones(
    wheelfix: Run, real_wheel: dict[str, Any], real_path: Where
) -> None:
    status, out, err = wheelfix("verify", "--format", "json", real_path(real_wheel))
    (report,) = json.loads(out)["wheels"]
    assert err == ""
    assert report["verdict"] != "unreadable"
    assert report["version"] == real_wheel["version"]
    errors = [(f["rule"], f["member"]) for f in report["findings"] if f["severity"] == "error"]
    assert not errors or not real_wheel["healthy"], errors
    assert status == (1 if errors else 0)


@pytest.mark.parametrize("command", ["show", "tree", "symbols"])
def test_the_informing_commands_answer(
    wheelfix: Run, real_wheel: dict[str, Any], real_path: Where, command: str
) -> None:
    status, out, err = wheelfix(command, "--json", real_path(real_wheel))
    assert (status, err) == (0, "")
    assert json.loads(out)["schema"] == f"wheelfix/{command}/1"


def test_the_best_tag_of_a_healthy_wheel_is_at_least_its_own(
    wheelfix: Run, healthy_wheel: dict[str, Any], real_path: Where
) -> None:
    _, out, _ = wheelfix("show", "--json", real_path(healthy_wheel))
    (shown,) = json.loads(out)["wheels"]
    for reach in shown["reachable"]:
        assert reach["best"] is not None, reach
        assert _version(reach["best"]) <= min(_version(tag) for tag in shown["tags"]), reach


def _version(tag: str) -> tuple[int, ...]:
    """(2, 17) for manylinux_2_17_x86_64, manylinux2014_x86_64 and what carries one of them at its end."""
    platform = tag.rpartition("-")[2]
    if platform.startswith("manylinux2014"):
        return (2, 17)
    return tuple(int(part) for part in platform.split("_")[1:3])
