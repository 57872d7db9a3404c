"""What is wrong around wheelfix is told in plain words: no traceback, no hang, a status of 0 to 4, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.elf.conftest import make_elf
from tests.test_audit import wheel

Run = Callable[..., tuple[int, str, str]]
OBJECT = make_elf(needed=("libgone.so.1",), soname="x.so")
#: An object whose repair needs patchelf: an absolute entry goes, a longer one comes.
NAME = "x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return wheel(tmp_path, "x", {"pkg/x.so": OBJECT})


@pytest.fixture
def to_graft(tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a repair that grafts a library: names and paths grow, so patchelf is called."""
    host = tmp_path / "host"
    host.mkdir()
    (host / "own.c").write_text("int own(void) { return 1; }")
    (host / "x.c").write_text("int own(void); int use(void) { return own(); }")
    link = ["gcc", "-shared", "-fPIC", "-nostdlib"]
    subprocess.run([*link, "own.c", "-o", "libown.so.1", "-Wl,-soname,libown.so.1"], cwd=host, check=True)
    subprocess.run([*link, "x.c", "-o", "x.so", "libown.so.1"], cwd=host, check=True)
    source = wheel(tmp_path, "x", {"pkg/x.so": (host / "x.so").read_bytes()})
    out = tmp_path / "out"
    return ["repair", "-w", str(out), str(source)], {"LD_LIBRARY_PATH": str(host)}


# patchelf.


def without_patchelf(tmp_path: Path, script: str | None) -> list[str]:
    """A Python whose folder and PATH hold no patchelf, or the given script under that name, and wheelfix in it."""
    tools = tmp_path / "tools"
    tools.mkdir()
    if script is not None:
        (tools / "patchelf").write_text(script)
        (tools / "patchelf").chmod(0o755)
    code = (
        "import os, sys, importlib.metadata as m, wheelfix.cli as c\n"
        f"os.environ['PATH'] = {str(tools)!r}\n"
        f"sys.executable = {str(tools / 'python')!r}\n"
        "m.files = lambda name: []\n"
        "sys.exit(c.main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "patchelf is not installed"),
        (
            "#!/bin/sh\necho 'unknown option --set-soname' >&2; exit 1\n",
            "patchelf refused the object: unknown",
        ),
        ("#!/bin/sh\nexit 3\n", "it did not say why"),
        ("#!/bin/sh\nkill -9 $$\n", "patchelf refused the object"),
        ("#!/bin/sh\nexit 0\n", "patchelf did not make every change"),
        ('#!/bin/sh\nfor last; do :; done; : > "$last"\n', ""),  # an empty object
        ('#!/bin/sh\nfor last; do :; done; /bin/rm "$last"\n', "patchelf left no object"),
        ("\x7fELF no program", "patchelf could not be run"),
    ],
    ids=["absent", "old", "silent", "killed", "idle", "empties", "removes", "no program"],
)
def test_a_patchelf_that_does_not_work_blocks_the_repair(
    to_graft: tuple[list[str], dict[str, str]], tmp_path: Path, script: str | None, said: str
) -> None:
    arguments, environment = to_graft
    done = subprocess.run(
        [*without_patchelf(tmp_path, script), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "blocked, nothing written" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


# Inputs that cannot be read.


def as_anybody() -> list[str]:
    """What stands before a command so that it heeds modes: root, which may read and write everything, does not."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


@pytest.mark.parametrize("command", ["verify", "show", "tree", "symbols", "repair"])
@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "circle", "device"])
def test_what_is_no_file_is_status_3_at_once(wheelfix: Run, tmp_path: Path, command: str, kind: str) -> None:
    path = tmp_path / NAME
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"dangling": "nowhere", "circle": NAME, "device": "/dev/zero"}[kind])
    status, out, err = wheelfix(command, path, cwd=tmp_path)
    assert status == 3, out + err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == [NAME]


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_file_that_may_not_be_read_is_status_3(path: Path) -> None:
    path.chmod(0)
    command = [*as_anybody(), sys.executable, "-m", "wheelfix", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Permission denied" in done.stdout + done.stderr


# Names.


@pytest.mark.parametrize("member", ["pkg/größe.so", "pkg/a b.so", "pkg/it's.so", 'pkg/"x".so', "pkg/a,b.so"])
def test_members_of_any_name_in_the_c_locale(wheelfix: Run, tmp_path: Path, member: str) -> None:
    path = wheel(tmp_path, "x", {member: OBJECT})
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONIOENCODING", "LANG", "LC_CTYPE")}
    env = {**plain, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for more in ([], ["--format", "json"], ["-o", str(tmp_path / "report")]):
        command = [sys.executable, "-m", "wheelfix", "verify", *more, str(path)]
        done = subprocess.run(command, capture_output=True, env=env, check=False)
        assert (done.returncode, done.stderr) == (1, b"")


#: A space, quotes, what a shell and a pattern would read, an option, a newline, an escape, non-ASCII letters, and a
#: byte that is no UTF-8.
FOLDERS = {
    "space": "a b",
    "quote": "it's",
    "quotes": '"a"',
    "shell": "$(x) `y` & *?[a] %s {}",  # no semicolon: ld.so divides LD_LIBRARY_PATH at it, as at a colon
    "option": "-w",
    "newline": "a\nb",
    "escape": "a\x1b[2Jb",
    "umlaut": "größe",
    "script": "日本語 🐍",
    "bytes": "a\udcffb",
}


@pytest.mark.parametrize(
    ("kind", "locale"),
    [*((kind, "C") for kind in FOLDERS), ("umlaut", "C.UTF-8"), ("script", "C.UTF-8"), ("bytes", "C.UTF-8")],
)
def test_folders_of_any_name_hold_wheels_and_take_them(
    tmp_path: Path, to_graft: tuple[list[str], dict[str, str]], kind: str, locale: str
) -> None:
    """In the input's folder, the library's on the build host, the output's, and of the report."""
    (_, _, _, source), environment = to_graft
    folder = tmp_path / FOLDERS[kind]
    folder.mkdir()
    shutil.move(source, folder)
    shutil.move(environment["LD_LIBRARY_PATH"], folder)
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONIOENCODING", "PYTHONUTF8", "LC_CTYPE")}
    env = {**plain, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "wheelfix", *arguments]
        search = f"{FOLDERS[kind]}/host"
        given = {**env, "LD_LIBRARY_PATH": search, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=given, check=False)
        said = (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
        assert "Traceback" not in said
        assert "\x1b" not in said
        return done.returncode, said

    path = f"./{FOLDERS[kind]}/{Path(source).name}"
    report = f"./{FOLDERS[kind]}/report.json"
    status, said = run("verify", "--format", "json", "-o", report, path)
    assert status == 1, said
    assert json.loads((tmp_path / report).read_text())["wheels"][0]["verdict"] == "fail"

    status, said = run("repair", "-w", f"./{FOLDERS[kind]}/out", path)
    assert status == 0, said
    (repaired,) = (folder / "out").iterdir()
    status, said = run("verify", f"./{FOLDERS[kind]}/out/{repaired.name}")
    assert status == 0, said
    assert len(said.splitlines()) < 4  # a newline in a name is told, not written
    assert {f.name for f in folder.iterdir()} == {"host", "out", "report.json", Path(source).name}


# Home, terminal, pipe, signal.


@pytest.mark.parametrize("home", [None, "/nonexistent", "/proc"])
def test_no_home_is_needed(path: Path, home: str | None) -> None:
    env = {"PATH": os.environ["PATH"], **({"HOME": home} if home else {})}
    command = [sys.executable, "-m", "wheelfix", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_home_that_cannot_be_written_is_not_missed(
    tmp_path: Path, to_graft: tuple[list[str], dict[str, str]]
) -> None:
    arguments, environment = to_graft
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **environment}
    for command in (["verify", arguments[-1]], arguments):
        done = subprocess.run(
            [*as_anybody(), sys.executable, "-m", "wheelfix", *command],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        assert (done.returncode, done.stderr) == (int(command[0] == "verify"), ""), done.stdout
    assert os.listdir(home) == []


def test_head_takes_one_line_and_nobody_complains(path: Path) -> None:
    script = f"'{sys.executable}' -m wheelfix verify -v '{path}' | head -n 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_an_interrupted_verify_ends_by_the_signal_and_leaves_nothing(tmp_path: Path) -> None:
    path = wheel(
        tmp_path, "x", {"pkg/x.so": OBJECT, **{f"pkg/{i}.bin": os.urandom(1 << 20) for i in range(30)}}
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "wheelfix", "verify", "-j", "2", *[str(path)] * 400],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=scratch,
        start_new_session=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")
    assert os.listdir(scratch) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
