"""A short run of every mutator, and every input that once broke something."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wheelfix import audit
from wheelfix.elf.read import read
from wheelfix.policy.load import PolicyErrors, load_policies

CORPUS = Path(__file__).parent / "corpus"


def test_mutated_inputs_break_nothing() -> None:
    """The seed is fixed, so that CI says the same twice; ``make fuzz`` runs longer and elsewhere."""
    command = [sys.executable, "-m", "tests.fuzz", "--count", "1500", "--seed", "ci"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert done.stdout.startswith("1500 inputs"), done.stdout[-2000:]


def test_an_input_that_breaks_something_is_found(tmp_path: Path) -> None:
    """The run itself is tested: with a reader that fails on one input in many, it says which and exits with 1."""
    (tmp_path / "sitecustomize.py").write_text(
        "import wheelfix.elf.read as r\n"
        "real = r.read\n"
        "def broken(data, **more):\n"
        "    found = real(data, **more)\n"
        "    if found.facts is not None and found.facts.bits == 32: raise KeyError('planted')\n"
        "    return found\n"
        "r.read = broken\n"
    )
    command = [sys.executable, "-m", "tests.fuzz", "--count", "100", "--target", "elf"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1
    assert "KeyError: 'planted'" in done.stdout


@pytest.mark.parametrize("name", sorted(p.name for p in CORPUS.iterdir() if p.suffix != ".md"))
def test_what_once_broke_something_is_told(name: str, tmp_path: Path) -> None:
    path = CORPUS / name
    if path.suffix == ".so":
        found = read(path.read_bytes(), name=name)
        assert found.facts is not None or found.faults
    elif path.suffix == ".toml":
        with pytest.raises(PolicyErrors):
            load_policies([str(path)], known_rules={})
    else:
        # The suffix behind .whl tells what broke; the name before it is the wheel's.
        wheel = tmp_path / f"{name.partition('.whl')[0]}.whl"
        shutil.copyfile(path, wheel)
        report = audit.audit_wheel(wheel, audit.prepare(audit.Options()))
        assert report.verdict in ("pass", "fail", "unreadable")
        assert not any(f.rule == "internal-error" for f in report.findings)
