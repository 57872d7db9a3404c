"""The page of the policy language names every section and key, and its example is a valid policy."""

from __future__ import annotations

import re
from pathlib import Path

from wheelfix.checks import RULES
from wheelfix.policy.load import load_policies
from wheelfix.policy.schema import SECTIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "policy.md").read_text("utf-8")


def test_every_section_and_key_is_documented() -> None:
    rows = dict(re.findall(r"^\| `\[+([a-z-]+)\]+` \| (.*?) \|", PAGE, re.MULTILINE))
    assert {k for k in rows if k != "severity"} == set(SECTIONS)
    for section, table in SECTIONS.items():
        assert set(re.findall(r"`([a-z-]+)`", rows[section])) == set(table.keys), section


def test_the_example_is_valid(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    path = tmp_path / "example.toml"
    path.write_text(example[1])
    assert "my-extension" in load_policies([str(path)], known_rules=RULES).names
