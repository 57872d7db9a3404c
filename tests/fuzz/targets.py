"""What is done with a mutated input. Every target raises where wheelfix does what it never may."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import archives, objects, policies
from wheelfix import audit, checks
from wheelfix.archive.limits import Unreadable
from wheelfix.cli import main
from wheelfix.elf.read import read
from wheelfix.elf.stream import NotHeld, Stream
from wheelfix.model.finding import Report
from wheelfix.policy.load import PolicyErrors, load_policies
from wheelfix.report import github, junit, markdown, sarif, text
from wheelfix.report import json as as_json

SETTING = audit.prepare(audit.Options())


def elf(rng: random.Random, folder: Path) -> None:
    """The reader takes any bytes, and says the same of them in pieces as whole."""
    data = objects.mutated(rng)
    whole = read(
        data, name="x.so", strings=frozenset({"libopened.so.1"}) if rng.random() < 0.1 else frozenset()
    )
    if rng.random() < 0.2:
        passing = Stream(len(data))
        passing._whole = False  # small ones are kept whole; the point is to let go
        piece = rng.choice((64, 512, 4096))
        for at in range(0, len(data), piece):
            passing.feed(data[at : at + piece])
        with contextlib.suppress(NotHeld):
            slim = read(passing.data(), name="x.so")
            assert slim == read(data, name="x.so"), "in pieces it reads otherwise"
    assert whole.facts is not None or whole.content != "elf" or whole.faults, "no facts and no fault"


def archive(rng: random.Random, folder: Path) -> None:
    """Any archive gives facts with faults, or is told to be none."""
    with contextlib.suppress(Unreadable):
        audit.read(_written(rng, folder), SETTING)


def verify(rng: random.Random, folder: Path) -> None:
    """The whole pipeline and every format."""
    path = _written(rng, folder)
    report = Report((audit.audit_wheel(path, SETTING),))
    (one,) = report.wheels
    if one.verdict != "unreadable" and not any(f.rule.startswith(("zip-", "archive-")) for f in one.findings):
        with zipfile.ZipFile(path) as plain:  # pip's reader: what it cannot read must have been told
            assert plain.testzip() is None
    assert json.loads(as_json.render(report))["wheels"]
    json.loads(sarif.render(report, checks.RULES))
    for render in (github.render, markdown.render):
        assert "\x1b" not in render(report)
    assert "\x1b" not in text.render(report, width=80, colour=False)
    junit.render(report, checks.RULES)


def policy(rng: random.Random, folder: Path) -> None:
    """A policy file validates, or all its errors are told."""
    path = folder / "policy.toml"
    path.write_bytes(policies.mutated(rng))
    told = None
    try:
        load_policies([str(path)], known_rules=checks.RULES)
    except PolicyErrors as refused:
        told = refused.errors
    assert told is None or told, "refused without a word"


def commands(rng: random.Random, folder: Path) -> None:
    """Commands that inform, and a policy file as users give it."""
    path = str(_written(rng, folder))
    command = rng.choice(
        (
            ["show"],
            ["show", "--json", "--cuda"],
            ["tree"],
            ["tree", "--json"],
            ["symbols"],
            ["symbols", "--json"],
        )
    )
    _run([*command, path], (0, 3))
    policy_file = folder / "policy.toml"
    policy_file.write_bytes(policies.mutated(rng))
    _run(["verify", "--policy", str(policy_file), path], (0, 1, 2, 3))
    _run(["policy", "check", str(policy_file)], (0, 2))


def repair(rng: random.Random, folder: Path) -> None:
    """A repair writes one whole wheel that verifies, or nothing; it never changes its input."""
    path = _written(rng, folder)
    before = path.read_bytes()
    out = folder / "out"
    flags = rng.choice(([], ["--strip"], ["--no-verify"], ["--plat", "auto"]))
    status = _run(["repair", *flags, "-w", str(out), str(path)], (0, 3, 4))
    assert path.read_bytes() == before, "the input changed"
    written = sorted(out.rglob("*")) if out.exists() else []
    assert len(written) == (status == 0), f"exit {status} and {written}"
    for wheel in written if "--no-verify" not in flags else ():
        again = audit.audit_wheel(wheel, SETTING)
        assert again.verdict == "pass", [f.message for f in again.findings if f.severity == "error"]
        with zipfile.ZipFile(wheel) as made:
            assert made.testzip() is None


#: By the name under which ``python -m tests.fuzz --target`` knows them.
TARGETS: dict[str, Callable[[random.Random, Path], None]] = {
    "elf": elf,
    "archive": archive,
    "verify": verify,
    "policy": policy,
    "commands": commands,
    "repair": repair,
}


def _written(rng: random.Random, folder: Path) -> Path:
    path = folder / archives.file_name(rng)
    path.write_bytes(archives.mutated(rng))
    return path


def _run(arguments: list[str], allowed: tuple[int, ...]) -> int:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as stopped:
            status = int(stopped.code or 0)
    assert status in allowed, f"exit {status} of {' '.join(arguments)}: {err.getvalue()[-2000:]}"
    return status


os.environ["WHEELFIX_TRACEBACK"] = "1"  # a fault of wheelfix itself is raised, not reported
