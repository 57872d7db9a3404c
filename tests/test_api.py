"""``import wheelfix``: what verify answers and raises, what the import costs, and that the page about it is true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import wheelfix
from tests.test_audit import wheel

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sample(sample_wheels: Path) -> Callable[[str], Path]:
    return lambda name: next(sample_wheels.glob(f"sample_{name}-*.whl"))


def rules(report: wheelfix.Report) -> list[list[str]]:
    return [[f.rule for f in w.findings] for w in report.wheels]


def test_it_says_what_the_command_says(sample: Callable[[str], Path], request: pytest.FixtureRequest) -> None:
    paths = [sample("healthy"), sample("helper_missing"), sample("no_runtime")]
    command: Run = request.getfixturevalue("wheelfix")
    said = json.loads(command("verify", "--format", "json", *paths)[1])["wheels"]
    report = wheelfix.verify(paths)
    assert [w.verdict for w in report.wheels] == ["pass", "fail", "fail"]
    assert [(w.path, w.verdict, [f.message for f in w.findings]) for w in report.wheels] == [
        (w["path"], w["verdict"], [f["message"] for f in w["findings"]]) for w in said
    ]


@pytest.mark.parametrize("kind", [str, Path, lambda p: [p], lambda p: iter([str(p)])])
def test_one_path_or_several(
    sample: Callable[[str], Path], kind: Callable[[Path], str | Path | Iterable[str | Path]]
) -> None:
    path = sample("healthy")
    (judged,) = wheelfix.verify(kind(path)).wheels
    assert (judged.path, judged.verdict) == (str(path), "pass")


def test_the_types_are_those_of_the_report(sample: Callable[[str], Path]) -> None:
    report = wheelfix.verify(sample("helper_missing"))
    assert isinstance(report, wheelfix.Report)
    assert isinstance(report.wheels[0], wheelfix.WheelReport)
    assert isinstance(report.wheels[0].findings[0], wheelfix.Finding)


def test_the_order_is_kept_by_several_processes(sample: Callable[[str], Path]) -> None:
    paths = [sample("no_runtime"), sample("healthy"), sample("helper_missing")]
    assert wheelfix.verify(paths, jobs=2) == wheelfix.verify(paths)


@pytest.mark.parametrize("kind", [lambda p: p, str, lambda p: ["manylinux", str(p)]])
def test_a_policy_by_name_or_file(
    sample: Callable[[str], Path], tmp_path: Path, kind: Callable[[Path], str | Path | list[str]]
) -> None:
    file = tmp_path / "small.toml"
    file.write_text('schema = 1\nname = "small"\n[size]\nwheel-max = "1 KB"\n')
    assert rules(wheelfix.verify(sample("healthy"), policy=kind(file))) == [["contract-size"]]


def test_a_shipped_policy(sample: Callable[[str], Path]) -> None:
    report = wheelfix.verify(sample("dynamic_runtime"), policy="static-cxx-runtime")
    assert "cxx-runtime-dynamic" in rules(report)[0]


def test_the_platform_to_judge_against(sample: Callable[[str], Path]) -> None:
    # The sample needs GLIBC_2.35.
    assert (
        "symbol-version-too-new" in rules(wheelfix.verify(sample("healthy"), plat="manylinux_2_28_x86_64"))[0]
    )


@pytest.mark.parametrize("exclude", ["libhelper*", ["libother.so", "libhelper.so"]])
def test_a_library_that_the_machine_supplies(sample: Callable[[str], Path], exclude: str | list[str]) -> None:
    assert "needed-missing" not in rules(wheelfix.verify(sample("helper_missing"), exclude=exclude))[0]


def test_a_wheel_beside_it_that_is_no_wheel(sample: Callable[[str], Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no archive")
    with pytest.raises(wheelfix.Unreadable):
        wheelfix.verify(sample("healthy"), with_=broken)
    (judged,) = wheelfix.verify(broken).wheels
    assert (judged.verdict, [f.rule for f in judged.findings]) == ("unreadable", ["unreadable"])


@pytest.mark.parametrize("folder", [False, True])
def test_a_wheel_beside_it_or_a_folder_of_them(tmp_path: Path, folder: bool) -> None:
    def gcc(output: str, source: str, *flags: str) -> bytes:
        (tmp_path / "source.c").write_text(source)
        command = ["gcc", "-shared", "-fPIC", "source.c", "-o", output, *flags]
        subprocess.run(command, cwd=tmp_path, check=True)
        return (tmp_path / output).read_bytes()

    library = gcc("libown.so", "int own(void) { return 1; }\n", "-Wl,-soname,libown.so")
    needs = ("libown.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../other")
    module = gcc("_ext.so", "int own(void); int PyInit__ext(void) { return own(); }\n", *needs)
    beside = tmp_path / "beside"
    beside.mkdir()
    other = wheel(beside, "other", {"other/libown.so": library})
    user = wheel(tmp_path, "user", {"user/_ext.so": module}, requires="other")
    assert "needed-external" in rules(wheelfix.verify(user))[0]
    assert "needed-external" not in rules(wheelfix.verify(user, with_=beside if folder else other))[0]


def test_what_is_not_there(sample: Callable[[str], Path], tmp_path: Path) -> None:
    gone = tmp_path / "gone.whl"
    with pytest.raises(FileNotFoundError, match=re.escape("gone.whl")):
        wheelfix.verify([sample("healthy"), gone])
    with pytest.raises(FileNotFoundError, match=re.escape("gone.whl")):
        wheelfix.verify(sample("healthy"), with_=[gone])


def test_a_policy_that_does_not_validate_or_is_not_there(
    sample: Callable[[str], Path], tmp_path: Path
) -> None:
    file = tmp_path / "p.toml"
    file.write_text('schema = 1\nname = "p"\nnonsense = 1\n[size]\nwheel-max = "many"\n')
    with pytest.raises(wheelfix.PolicyErrors) as raised:
        wheelfix.verify(sample("healthy"), policy=file)
    assert {e.key for e in raised.value.errors} == {"nonsense", "size.wheel-max"}
    with pytest.raises(wheelfix.PolicyErrors, match="no-such-policy"):
        wheelfix.verify(sample("healthy"), policy="no-such-policy")


@pytest.mark.parametrize("plat", ["manylinux_2_28", "win_amd64", ""])
def test_a_platform_that_no_policy_covers(sample: Callable[[str], Path], plat: str) -> None:
    with pytest.raises(ValueError, match="no policy covers"):
        wheelfix.verify(sample("healthy"), plat=plat)


def test_the_import_brings_no_other_module_of_the_package() -> None:
    code = (
        "import sys; before = set(sys.modules); import wheelfix, os\n"
        "print(sorted(m for m in set(sys.modules) - before if m.split('.')[0] not in {'__future__', 'typing'}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(re.findall(r"'([^']+)'", done.stdout))
    assert "wheelfix" in loaded
    assert {m for m in loaded if m.startswith("wheelfix.")} <= {"wheelfix._version"}


def test_every_name_of_the_api_is_there_and_no_other() -> None:
    for name in wheelfix.__all__:
        assert getattr(wheelfix, name) is not None
        assert name in dir(wheelfix)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = wheelfix.no_such_name  # type: ignore[attr-defined]


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(wheelfix.__file__).parent / "py.typed").is_file()


def test_the_example_of_the_page_prints_what_it_says() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.S)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == printed


def test_the_page_names_all_of_the_api() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert {f"wheelfix.{name}" for name in wheelfix.__all__} <= set(re.findall(r"wheelfix\.\w+", page))
