"""``[tool.wheelfix]``: found upwards, checked whole, beaten by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
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
    for of_others in (
        "[tool.other]\nx = 1\n",
        "[tool.other\n",
    ):  # the second is no TOML: that is not ours to say
        (below / "pyproject.toml").write_text(of_others)
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
    # Nothing of the library is used: repair would drop it.
    many = next((project / "dist").glob("*many*"))
    assert "needs libelsewhere.so.1 no more" in wheelfix("repair", "-v", "--dry-run", many, cwd=project)[1]
    says(project, '[tool.wheelfix]\nexclude = ["libelsewhere*"]\n')
    status, out, err = wheelfix("repair", "-v", many, cwd=project)
    assert status == 0, err
    assert "libelsewhere" not in out


WRONG = {
    "[tool]\nwheelfix = 1\n": "tool.wheelfix: must be a table",
    "[tool.wheelfix]\npolicies = 1\n": "tool.wheelfix.policies: must be an array of strings",
    '[tool.wheelfix]\nwith = ["nowhere"]\n': "tool.wheelfix.with[0]: there is no file or folder 'nowhere'",
    "[tool.wheelfix]\nexclude = [1]\n": "tool.wheelfix.exclude: must be an array of strings",
    "[tool.wheelfix]\npolicy = []\n": "tool.wheelfix.policy: unknown key; did you mean policies?",
    '[tool.wheelfix.severity]\nneeded-mising = "off"\n': "severity.needed-mising: there is no rule 'needed-mising'; did you mean needed-missing?",
    '[tool.wheelfix.severity]\nneeded-missing = "loud"\n': "severity.needed-missing: must be one of error, warning, info, off",
    "[tool.wheelfix]\nseverity = 3\n": "severity: must be a table",
    "[tool.wheelfix]\noverride = 3\n": "tool.wheelfix.override: must be an array of tables",
    "[[tool.wheelfix.override]]\nexclude = []\n": "tool.wheelfix.override[0].platform: is required",
    '[[tool.wheelfix.override]]\nplatform = "*"\nplatfrom = 1\n': "tool.wheelfix.override[0].platfrom: unknown key; did you mean platform?",
    '[[tool.wheelfix.override]]\nplatform = ""\n': "tool.wheelfix.override[0].platform: must be a string that is not empty",
    "[tool.wheelfix\n": "  pyproject.toml: Expected",
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
    assert (
        "pyproject.toml: tool.wheelfix.policies[0]: there is no policy or file 'manylinx'; did you mean manylinux?"
        in err
    )


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("text", ['policies = ["absent.toml"]\n', 'policies = ["bad.toml"]\n'])
def test_a_wrong_policy_of_an_override_ends_the_run_before_it_starts(
    wheelfix: Run, project: Path, text: str, jobs: str
) -> None:
    (project / "bad.toml").write_text("schema = 2\n")
    says(project, f'[[tool.wheelfix.override]]\nplatform = "musllinux_*"\n{text}')
    status, out, err = wheelfix("verify", "-j", jobs, *sorted((project / "dist").glob("*.whl")), cwd=project)
    assert (status, out) == (2, "")
    assert "the policy does not validate" in err


def test_the_errors_of_all_policy_files_are_told_at_once(wheelfix: Run, project: Path) -> None:
    (project / "a.toml").write_text("schema = 2\n")
    (project / "b.toml").write_text('schema = 1\nbogus = ""\n')
    says(
        project,
        '[tool.wheelfix]\npolicies = ["a.toml"]\n'
        '[[tool.wheelfix.override]]\nplatform = "musllinux_*"\npolicies = ["a.toml", "b.toml"]\n',
    )
    status, _, err = wheelfix("verify", next((project / "dist").glob("*many*")), cwd=project)
    assert status == 2
    assert [err.count("a.toml: schema"), err.count("b.toml: bogus")] == [1, 1]


def test_files_are_looked_for_beside_the_pyproject_and_not_where_the_command_runs(
    wheelfix: Run, project: Path
) -> None:
    below = project / "below"
    below.mkdir()
    (below / "contract.toml").write_text("schema = 1\n")
    says(project, '[tool.wheelfix]\npolicies = ["contract.toml"]\n')
    status, _, err = wheelfix("verify", next((project / "dist").glob("*many*")), cwd=below)
    assert status == 2
    assert f"{Path('..', 'pyproject.toml')}: tool.wheelfix.policies[0]: there is no policy" in err


def test_a_shipped_name_means_the_shipped_policy_whatever_lies_beside(wheelfix: Run, project: Path) -> None:
    (project / "manylinux").write_text("no TOML at all")
    says(project, '[tool.wheelfix]\npolicies = ["manylinux"]\n')
    assert judged(wheelfix, project)["needed-missing"] == "error"


def test_with_must_be_there_only_where_a_wheel_of_the_run_gets_it(wheelfix: Run, project: Path) -> None:
    many, musl = (next((project / "dist").glob(f"*{libc}*")) for libc in ("many", "musl"))
    says(project, '[[tool.wheelfix.override]]\nplatform = "musllinux_*"\nwith = ["unbuilt"]\n')
    assert wheelfix("verify", many, cwd=project)[0] == 1  # needed-missing: it was judged
    status, _, err = wheelfix("verify", many, musl, cwd=project)
    assert status == 2
    assert "tool.wheelfix.override[0].with[0]: there is no file or folder 'unbuilt'" in err
    assert wheelfix("verify", "--with", project / "dist", many, musl, cwd=project)[0] == 1


def test_a_command_whose_wheels_are_not_known_is_given_every_with(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wheelfix.audit import Options
    from wheelfix.commands.project import with_project

    monkeypatch.chdir(project)
    says(project, '[tool.wheelfix]\nwith = ["dist"]\n')
    found = with_project(Options(), ()).project
    assert found is not None
    assert found.base.with_ == (project / "dist",)


def test_the_command_line_wins_over_overrides_too(wheelfix: Run, project: Path) -> None:
    (project / "contract.toml").write_text('schema = 1\n[[require-file]]\npath = "pkg/absent.so"\n')
    says(
        project,
        '[[tool.wheelfix.override]]\nplatform = "*"\nexclude = ["libelsewhere*"]\npolicies = ["contract.toml"]\n',
    )
    assert judged(wheelfix, project).keys() & {"contract-file", "needed-missing"} == {"contract-file"}
    found = judged(wheelfix, project, "--policy", "manylinux", "--exclude", "libq*")
    assert found.keys() & {"contract-file", "needed-missing"} == {"needed-missing"}


def test_severities_stay_whatever_policy_the_command_line_names(wheelfix: Run, project: Path) -> None:
    (project / "own.toml").write_text('schema = 1\n[severity]\nneeded-missing = "info"\n')
    says(project, '[tool.wheelfix.severity]\nneeded-missing = "warning"\n')
    assert judged(wheelfix, project, "--policy", "own.toml")["needed-missing"] == "warning"


def test_overrides_with_wheels_that_are_large_enough_to_be_read_by_several_processes(
    wheelfix: Run, project: Path
) -> None:
    # A process of the pool must not start processes of its own: Python's are daemonic and may have no children.
    large = {"pkg/x.so": OBJECT, **{f"pkg/{n}.bin": bytes(7 << 20) for n in range(3)}}
    for tag in (MANY, MUSL):
        wheel(project / "dist", "x", large, tag=tag)
    says(
        project,
        '[[tool.wheelfix.override]]\nplatform = "musllinux_*"\nseverity = { needed-missing = "warning" }\n',
    )
    assert judged(wheelfix, project, tag=MANY)["needed-missing"] == "error"
    assert judged(wheelfix, project, tag=MUSL)["needed-missing"] == "warning"


def test_with_of_an_override_serves_its_wheels_alone(wheelfix: Run, project: Path) -> None:
    (project / "others").mkdir()
    other = make_elf(soname="libelsewhere.so.1")
    wheel(project / "others", "y", {"other/libelsewhere.so.1": other}, tag=MUSL)
    says(project, '[[tool.wheelfix.override]]\nplatform = "musllinux_*"\nwith = ["others"]\n')
    assert "needed-missing" in judged(wheelfix, project, tag=MANY)
    assert "needed-missing" not in judged(wheelfix, project, tag=MUSL)


def test_tree_goes_by_the_override_and_a_lone_object_by_the_section_alone(
    wheelfix: Run, project: Path
) -> None:
    (project / "x.so").write_bytes(OBJECT)
    says(project, '[[tool.wheelfix.override]]\nplatform = "*"\nexclude = ["libelsewhere*"]\n')

    def statuses(path: Path) -> list[str]:
        return [e["status"] for e in json.loads(wheelfix("tree", "--json", path, cwd=project)[1])["edges"]]

    assert statuses(next((project / "dist").glob("*many*"))) == ["external"]
    assert statuses(project / "x.so") == ["missing"]


def test_repair_goes_by_the_tags_of_the_wheel_that_it_reads(wheelfix: Run, project: Path) -> None:
    many, musl = (next((project / "dist").glob(f"*{libc}*")) for libc in ("many", "musl"))
    says(project, '[[tool.wheelfix.override]]\nplatform = "manylinux_*"\nexclude = ["libelsewhere*"]\n')
    _, out, _ = wheelfix("repair", "-v", "--dry-run", many, musl, cwd=project)
    of_many, of_musl = out.split(musl.name)
    assert many.name in of_many
    assert "libelsewhere" not in of_many
    assert "needs libelsewhere.so.1 no more" in of_musl


def test_a_file_that_speaks_of_wheelfix_and_is_too_large_is_no_file_without_the_section(
    wheelfix: Run, project: Path
) -> None:
    says(project, "[tool.wheelfix]\n" + "#" * 2000 + "\n")
    many = next((project / "dist").glob("*many*"))
    status, _, err = wheelfix("verify", "--limit", "policy=1000", many, cwd=project)
    assert status == 2
    assert "pyproject.toml: is larger than 1000 bytes" in err


def test_a_working_directory_that_was_removed_lies_in_no_project(project: Path) -> None:
    gone = project / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD"; exec "$0" -m wheelfix verify --format json "$1"'
    many = next((project / "dist").glob("*many*"))
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, many], cwd=gone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr  # needed-missing, and no fault of wheelfix
    assert "needed-missing" in done.stdout


def test_help_reads_no_toml(project: Path) -> None:
    says(project, "[tool.wheelfix\n")
    script = (
        "import sys, contextlib, wheelfix.cli\n"
        "with contextlib.suppress(SystemExit): wheelfix.cli.main(['verify', '--help'])\n"
        "sys.exit(bool({'tomllib', 'tomli', 'wheelfix.policy.project'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
