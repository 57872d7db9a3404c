"""``[tool.wheelfix]``: found upwards, checked whole, beaten by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.elf.conftest import make_elf
from tests.test_audit import wheel

Run = Callable[..., tuple[int, str, str]]
OBJECT = make_elf(needed=("libelsewhere.so.1",))
MANY, MUSL = "cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-musllinux_1_2_x86_64"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a wheel that needs a library of nobody, for either C library."""
    (tmp_path / "dist").mkdir()
    for tag in (MANY, MUSL):
        wheel(tmp_path / "dist", "x", {"pkg/x.so": OBJECT}, tag=tag)
    return tmp_path


def says(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n' + text, "utf-8")


def judged(run: Run, folder: Path, *arguments: str | Path, tag: str = MANY) -> dict[str, str]:
    """The severity of each rule that the wheel of a tag meets."""
    root = folder if (folder / "dist").is_dir() else folder.parent
    status, out, err = run(
        "verify", "--format", "json", "-j2", *arguments, *sorted((root / "dist").glob("*.whl")), cwd=folder
    )
    assert status in (0, 1), err
    found = {w["tags"][0]: w for w in json.loads(out)["wheels"]}[tag]
    return {f["rule"]: f["severity"] for f in found["findings"]}


def test_without_a_section_nothing_is_asked_for(wheelfix: Run, project: Path) -> None:
    says(project, "")
    assert judged(wheelfix, project)["needed-missing"] == "error"


def test_exclude_and_severity_take_effect(wheelfix: Run, project: Path) -> None:
    says(project, '[tool.wheelfix]\nexclude = ["libelsewhere*"]\n')
    assert "needed-missing" not in judged(wheelfix, project)
    says(project, '[tool.wheelfix.severity]\nneeded-missing = "warning"\n')
    assert judged(wheelfix, project)["needed-missing"] == "warning"
    says(project, '[tool.wheelfix.severity]\nneeded-missing = "off"\n')
    assert "needed-missing" not in judged(wheelfix, project)


def test_policies_are_names_or_files_beside_the_pyproject(wheelfix: Run, project: Path) -> None:
    (project / "ci").mkdir()
    (project / "ci" / "contract.toml").write_text('schema = 1\n[[require-file]]\npath = "pkg/absent.so"\n')
    says(project, '[tool.wheelfix]\npolicies = ["static-cxx-runtime", "ci/contract.toml"]\n')
    below = project / "below"
    below.mkdir()
    assert judged(wheelfix, below)["contract-file"] == "error"


def test_with_gives_wheels_beside_the_pyproject(wheelfix: Run, project: Path) -> None:
    (project / "others").mkdir()
    other = make_elf(soname="libelsewhere.so.1")
    wheel(project / "others", "y", {"other/libelsewhere.so.1": other}, tag=MANY)
    says(project, '[tool.wheelfix]\nwith = ["others"]\n')
    assert "needed-unreachable" in judged(wheelfix, project)
    assert "needed-missing" not in judged(wheelfix, project)


def test_the_command_line_wins(wheelfix: Run, project: Path) -> None:
    (project / "contract.toml").write_text('schema = 1\n[[require-file]]\npath = "pkg/absent.so"\n')
    says(project, '[tool.wheelfix]\npolicies = ["contract.toml"]\nexclude = ["libelsewhere*"]\n')
    assert judged(wheelfix, project, "--policy", "manylinux", "--exclude", "libq*").keys() >= {
        "needed-missing",
        "exclude-unused",
    }
    assert "contract-file" not in judged(wheelfix, project, "--policy", "manylinux")
    assert "contract-file" in judged(wheelfix, project)


def test_an_override_counts_for_its_platform_alone_and_the_last_one_wins(
    wheelfix: Run, project: Path
) -> None:
    says(
        project,
        '[tool.wheelfix.severity]\nneeded-missing = "info"\n'
        '[[tool.wheelfix.override]]\nplatform = "musllinux_*"\nseverity = { needed-missing = "error" }\n'
        '[[tool.wheelfix.override]]\nplatform = "musllinux_1_2_*"\nseverity = { needed-missing = "warning" }\n'
        '[[tool.wheelfix.override]]\nplatform = "*_aarch64"\nexclude = ["*"]\n',
    )
    assert judged(wheelfix, project, tag=MANY)["needed-missing"] == "info"
    assert judged(wheelfix, project, tag=MUSL)["needed-missing"] == "warning"


def test_a_list_of_an_override_replaces_the_list(wheelfix: Run, project: Path) -> None:
    says(
        project,
        '[tool.wheelfix]\nexclude = ["libelsewhere*"]\n'
        '[[tool.wheelfix.override]]\nplatform = "musllinux_*"\nexclude = ["libother*"]\n',
    )
    assert "needed-missing" not in judged(wheelfix, project, tag=MANY)
    assert "needed-missing" in judged(wheelfix, project, tag=MUSL)


def test_the_nearest_file_with_the_section_counts(wheelfix: Run, project: Path) -> None:
    says(project, '[tool.wheelfix.severity]\nneeded-missing = "warning"\n')
    below = project / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert judged(wheelfix, below)["needed-missing"] == "warning"
    (below / "pyproject.toml").write_text('[tool.wheelfix.severity]\nneeded-missing = "info"\n')
    assert judged(wheelfix, below)["needed-missing"] == "info"


@pytest.mark.parametrize("command", ["show", "tree", "symbols", "repair"])
def test_every_command_reads_it(wheelfix: Run, project: Path, command: str) -> None:
    says(project, "[tool.wheelfix]\nbogus = 1\n")
    status, _, err = wheelfix(command, next((project / "dist").glob("*many*")), cwd=project)
    assert status == 2
    assert "tool.wheelfix.bogus" in err


def test_repair_leaves_what_the_project_excludes(wheelfix: Run, project: Path) -> None:
    says(project, '[tool.wheelfix]\nexclude = ["libelsewhere*"]\n')
    status, _, err = wheelfix("repair", next((project / "dist").glob("*many*")), cwd=project)
    assert status == 0, err


WRONG = {
    "[tool]\nwheelfix = 1\n": "tool.wheelfix: must be a table",
    "[tool.wheelfix]\npolicies = 1\n": "tool.wheelfix.policies: must be an array of strings",
    '[tool.wheelfix]\nwith = ["nowhere"]\n': "tool.wheelfix.with: there is no file or folder 'nowhere'",
    "[tool.wheelfix]\nexclude = [1]\n": "tool.wheelfix.exclude: must be an array of strings",
    "[tool.wheelfix]\npolicy = []\n": "tool.wheelfix.policy: unknown key; did you mean policies?",
    '[tool.wheelfix.severity]\nneeded-mising = "off"\n': "severity.needed-mising: there is no rule 'needed-mising'; did you mean needed-missing?",
    '[tool.wheelfix.severity]\nneeded-missing = "loud"\n': "severity.needed-missing: must be one of error, warning, info, off",
    "[tool.wheelfix]\nseverity = 3\n": "severity: must be a table",
    "[tool.wheelfix]\noverride = 3\n": "tool.wheelfix.override: must be an array of tables",
    "[[tool.wheelfix.override]]\nexclude = []\n": "tool.wheelfix.override[0].platform: is required",
    '[[tool.wheelfix.override]]\nplatform = "*"\nplatfrom = 1\n': "tool.wheelfix.override[0].platfrom: unknown key; did you mean platform?",
    '[[tool.wheelfix.override]]\nplatform = ""\n': "tool.wheelfix.override[0].platform: must be a string that is not empty",
    "[tool.wheelfix\n": "pyproject.toml: cannot be read",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_an_error_names_the_key_and_what_it_takes(wheelfix: Run, project: Path, text: str) -> None:
    says(project, text)
    status, _, err = wheelfix("verify", next((project / "dist").glob("*many*")), cwd=project)
    assert status == 2
    assert WRONG[text] in err
    assert "Traceback" not in err


def test_all_errors_are_told_at_once(wheelfix: Run, project: Path) -> None:
    says(project, '[tool.wheelfix]\nbogus = 1\nexclude = 2\n[tool.wheelfix.severity]\nx = "off"\n')
    _, _, err = wheelfix("verify", next((project / "dist").glob("*many*")), cwd=project)
    assert all(
        key in err for key in ("tool.wheelfix.bogus", "tool.wheelfix.exclude", "tool.wheelfix.severity.x")
    )


def test_a_policy_that_is_not_there_is_an_error(wheelfix: Run, project: Path) -> None:
    says(project, '[tool.wheelfix]\npolicies = ["manylinx"]\n')
    status, _, err = wheelfix("verify", next((project / "dist").glob("*many*")), cwd=project)
    assert status == 2
    assert "did you mean manylinux?" in err
