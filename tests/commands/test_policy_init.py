"""``policy init``: the wheel keeps its own draft, and a wheel that lost something does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.test_audit import TAG, wheel

Run = Callable[..., tuple[int, str, str]]
EXTENSION = f"pkg/_e.cpython-{TAG[2:5]}-x86_64-linux-gnu.so"
SOURCES = {
    "libhelp.so": ("int help_me(void) { return 1; }", ["-Wl,-soname,libhelp.so"]),
    "_e.so": (
        'int help_me(void); void register_backend(const char *n) {} __attribute__((constructor)) static void c(void) { register_backend("CudaBackend"); }'
        " void *PyInit__e(void) { return help_me() ? (void *)register_backend : 0; }",
        ["libhelp.so", "-Wl,-rpath,$ORIGIN"],
    ),
}


def build(folder: Path, changes: Mapping[str, tuple[str, list[str]]] | None = None) -> dict[str, bytes]:
    made = {}
    folder.mkdir()
    for name, (source, flags) in {**SOURCES, **(changes or {})}.items():
        (folder / "s.c").write_text(source)
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", "s.c", "-o", name, *flags], check=True, cwd=folder)
        made[name] = (folder / name).read_bytes()
    return {"pkg/libhelp.so": made["libhelp.so"], EXTENSION: made["_e.so"], "pkg/__init__.py": b""}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return wheel(tmp_path, "x", build(tmp_path / "good"), tag=TAG)


@pytest.fixture
def draft(wheelfix: Run, good: Path, tmp_path: Path) -> Path:
    target = tmp_path / "contract.toml"
    status, _, err = wheelfix("policy", "init", "-o", target, good)
    assert status == 0, err
    return target


def test_the_wheel_keeps_its_own_draft(wheelfix: Run, good: Path, draft: Path) -> None:
    assert wheelfix("policy", "check", draft)[0] == 0
    status, out, _ = wheelfix("verify", "--policy", draft, good)
    assert status == 0, out
    text = draft.read_text("utf-8")
    for line in (
        'path = "pkg/libhelp.so"',
        'library = "libhelp.so"',
        'symbol = "help_me"',
        'from = "libhelp.so"',
        'string = "CudaBackend"',
        'required = ["$ORIGIN"]',
        "wheel-max = ",
        'path = "pkg/_e.*.so"',
    ):
        assert line in text


REGRESSIONS: dict[str, tuple[Mapping[str, tuple[str, list[str]]], str]] = {
    "the library is not needed any more": (
        {"_e.so": (SOURCES["_e.so"][0].replace("help_me()", "1"), ["-Wl,-rpath,$ORIGIN"])},
        "contract-needed",
    ),
    "the symbol comes from elsewhere": (
        {
            "_e.so": (
                SOURCES["_e.so"][0].replace("int help_me(void);", "int help_me(void) { return 2; }"),
                SOURCES["_e.so"][1],
            )
        },
        "contract-import",
    ),
    "the registration was dropped": (
        {"_e.so": (SOURCES["_e.so"][0].replace("CudaBackend", "CpuBackend"), SOURCES["_e.so"][1])},
        "contract-registration",
    ),
    "another path": (
        {"_e.so": (SOURCES["_e.so"][0], ["libhelp.so", "-Wl,-rpath,$ORIGIN/../lib:$ORIGIN"])},
        "contract-rpath",
    ),
    "a large table": (
        {"libhelp.so": (SOURCES["libhelp.so"][0] + " char table[300000] = {1};", SOURCES["libhelp.so"][1])},
        "contract-size",
    ),
}


@pytest.mark.parametrize("what", REGRESSIONS)
def test_what_a_later_wheel_lost_is_a_finding(wheelfix: Run, draft: Path, tmp_path: Path, what: str) -> None:
    changes, rule = REGRESSIONS[what]
    (tmp_path / "later").mkdir()
    later = wheel(tmp_path / "later", "x", build(tmp_path / "bad", changes), tag=TAG)
    status, out, _ = wheelfix("verify", "--policy", draft, later)
    assert status == 1
    assert rule in out


def test_a_member_that_is_gone_is_a_finding(wheelfix: Run, draft: Path, tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    members = build(tmp_path / "bad")
    del members["pkg/libhelp.so"]
    status, out, _ = wheelfix("verify", "--policy", draft, wheel(tmp_path / "later", "x", members, tag=TAG))
    assert status == 1
    assert "contract-file" in out


def test_a_file_that_is_there_is_not_overwritten(wheelfix: Run, good: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text("# mine\n")
    status, _, err = wheelfix("policy", "init", "-o", target, good)
    assert status == 2
    assert "is there already" in err
    assert target.read_text() == "# mine\n"


def test_what_the_wheel_does_not_keep_itself_is_left_out_and_said(wheelfix: Run, tmp_path: Path) -> None:
    """Two roots bind one symbol of one library differently: no entry can demand either."""
    members = build(tmp_path / "b", {"_e.so": (SOURCES["_e.so"][0], ["libhelp.so", "-Wl,-rpath,$ORIGIN//"])})
    status, out, _ = wheelfix("policy", "init", wheel(tmp_path, "x", members, tag=TAG))
    assert status == 0
    draft = tmp_path / "d.toml"
    draft.write_text(out)
    assert wheelfix("policy", "check", draft)[0] == 0


def test_a_file_that_is_no_wheel(wheelfix: Run, tmp_path: Path) -> None:
    bad = tmp_path / "x-1.0-py3-none-any.whl"
    bad.write_bytes(b"")
    assert wheelfix("policy", "init", bad)[0] == 3
