"""The command line: what it costs, what it answers to wrong use, and how it ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfix import __version__, cli
from wheelfix.archive.limits import Unreadable
from wheelfix.commands.options import UsageError
from wheelfix.policy.load import PolicyError, PolicyErrors

Run = Callable[..., tuple[int, str, str]]


def test_version(wheelfix: Run) -> None:
    assert wheelfix("--version") == (0, f"wheelfix {__version__}\n", "")


def test_help_lists_every_command_and_every_exit_status(wheelfix: Run) -> None:
    status, out, _ = wheelfix("--help")
    assert status == 0
    for name in cli.COMMANDS:
        assert f"\n    {name} " in out
    for number in range(6):
        assert f"\n  {number}  " in out


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_the_help_of_each_command_has_an_example_or_tells_its_exit_status(wheelfix: Run, name: str) -> None:
    status, out, err = wheelfix(name, "--help")
    assert (status, err) == (0, "")
    assert f"wheelfix {name}" in out.partition("\n\n")[2] or "exit status" in out


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument: str) -> None:
    code = (
        "import sys; from wheelfix.cli import main\n"
        f"try: main([{argument!r}])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in {'lief', 'rich', 'packaging', 'auditwheel'}\n"
        "    or m.startswith('wheelfix.') and m not in {'wheelfix.cli', 'wheelfix._version'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_help_costs_less_than_60_ms_more_than_the_interpreter_alone() -> None:
    def cost(*arguments: str) -> float:
        times = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    assert cost("-m", "wheelfix", "--help") - cost("-c", "") < 0.06


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["verify"],
        ["verify", "--format", "nonsense", "x.whl"],
        ["verify", "-j", "0", "x.whl"],
        ["verify", "--plat", "manylinux_2_28", "x.whl"],
        ["verify", "--select", "no-such-rule", "x.whl"],
        ["verify", "--ignore", "zip-*,no-such-*", "x.whl"],
        ["verify", "--policy", "no-such-policy", "x.whl"],
        ["verify", "--with", "/no/such/file.whl", "x.whl"],
        ["verify", "--env", "/no/such/folder", "x.whl"],
        ["verify", "--ld-library-path", "/usr/lib", "x.whl"],
        ["explain", "no-such-rule"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_status_2_and_says_why_in_plain_words(wheelfix: Run, arguments: list[str]) -> None:
    status, out, err = wheelfix(*arguments)
    assert (status, out) == (2, "")
    assert "Traceback" not in err
    assert "error:" in err or "usage:" in err


def test_an_unknown_rule_gets_the_one_that_was_meant(wheelfix: Run) -> None:
    assert "did you mean needed-missing?" in wheelfix("explain", "needed-mising")[2]
    assert "did you mean rpath-dead?" in wheelfix("verify", "--ignore", "rpath-ded", "x.whl")[2]


def test_what_is_no_wheel_is_status_3(wheelfix: Run, tmp_path: Path) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"no archive")
    for arguments in (["verify"], ["show"], ["tree"], ["symbols"]):
        for name in ("x-1-py3-none-any.whl", "absent-1-py3-none-any.whl"):
            status, _, err = wheelfix(*arguments, tmp_path / name)
            assert status == 3
            assert "Traceback" not in err


@pytest.mark.parametrize("name", ["dist/*.whl", "absent.whl", "absent-1-py3-none-any.whl"])
def test_what_is_not_there_is_said_to_be_missing_whatever_its_name_is(
    wheelfix: Run, tmp_path: Path, name: str
) -> None:
    status, out, _ = wheelfix("verify", tmp_path / name)
    assert (status, "No such file" in " ".join(out.split())) == (3, True), out


def test_a_wrong_option_is_told_by_the_command_that_does_not_have_it(wheelfix: Run) -> None:
    status, out, err = wheelfix("verify", "--frmat", "json", "x.whl")
    assert (status, out) == (2, "")
    assert err.startswith("usage: wheelfix verify")
    assert err.endswith("wheelfix verify: error: unrecognized arguments: --frmat; did you mean --format?\n")
    assert "did you mean" not in wheelfix("policy", "list", "--zzz")[2]


def test_a_bug_is_status_5_with_one_clear_line_and_how_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: object) -> int:
        raise ZeroDivisionError("\x1b[2Jboom")

    monkeypatch.setattr("wheelfix.commands.explain.run", broken)
    monkeypatch.delenv("WHEELFIX_TRACEBACK", raising=False)
    assert cli.main(["explain"]) == 5
    err = capsys.readouterr().err
    assert r"bug in wheelfix" in err
    assert r"ZeroDivisionError: \x1b[2Jboom" in err
    assert "test_cli.py" in err
    assert "report" in err
    assert "Traceback" not in err
    monkeypatch.setenv("WHEELFIX_TRACEBACK", "1")
    assert cli.main(["explain"]) == 5
    assert "Traceback" in capsys.readouterr().err


def test_each_kind_of_error_has_its_status() -> None:
    wrong = PolicyErrors([PolicyError("p.toml", "deny[0]", "no"), PolicyError("p.toml", "size", "also no")])
    status, text = cli.explained(wrong)
    assert status == 2
    assert "deny[0]: no" in text
    assert "size: also no" in text
    assert cli.explained(UsageError("x"))[0] == 2
    assert cli.explained(Unreadable("x"))[0] == 3
    assert cli.explained(OSError("x"))[0] == 5


def test_a_reader_that_has_seen_enough_changes_neither_status_nor_stderr(sample_wheels: Path) -> None:
    wheel = next(sample_wheels.glob("sample_helper_missing*"))
    read, write = os.pipe()
    os.close(read)  # whoever was to read is gone before the first byte
    try:
        done = subprocess.run(
            [sys.executable, "-m", "wheelfix", "verify", wheel],
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(("target", "status"), [(">&-", 1), ("2>&-", 1), (">/dev/full", 2)])
def test_closed_and_full_outputs_are_no_bug(sample_wheels: Path, target: str, status: int) -> None:
    wheel = next(sample_wheels.glob("sample_helper_missing*"))
    command = f'"{sys.executable}" -m wheelfix verify "{wheel}" {target}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (status == 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_by_itself_and_without_a_word(number: signal.Signals) -> None:
    code = (
        "import time, wheelfix.commands.explain as e, wheelfix.cli as c\n"
        "def slow(options): print('ready', flush=True); time.sleep(60)\n"
        "e.run = slow\n"
        "c.main(['explain'])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (-number, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_several_workers_leaves_neither_a_word_nor_a_process(number: signal.Signals) -> None:
    code = (
        "import multiprocessing, time, wheelfix.commands.explain as e, wheelfix.cli as c\n"
        "def slow(options):\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        result = pool.map_async(time.sleep, [60, 60]); time.sleep(0.3)\n"
        "        print('ready', flush=True); result.get()\n"
        "e.run = slow\n"
        "c.main(['explain'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, number)  # as a terminal does: the whole group
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (-number, b"", b"")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_names_that_the_locale_cannot_say_are_escaped(wheelfix: Run, tmp_path: Path) -> None:
    name = "größe-1-py3-none-any.whl"
    (tmp_path / name).write_bytes(b"")
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    status, out, err = wheelfix("verify", name, cwd=tmp_path, env=env)
    assert status == 3
    assert "Traceback" not in err
    assert out.isascii()
