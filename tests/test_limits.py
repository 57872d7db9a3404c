"""Each limit: what is under it is read, what is over it is told with the option that reads more, and nothing breaks."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from tests.elf.conftest import make_elf
from tests.test_audit import wheel
from wheelfix.model.limits import Limits

Run = Callable[..., tuple[int, str, str]]
SYMBOLS = tuple((f"s{i}", 0x12, 7) for i in range(200))
OBJECT = make_elf(
    needed=("liba.so", "libb.so.1"),
    symbols=SYMBOLS,
    versym=[2] * 201,
    verneed=(("liba.so", (("V1", 0, 2), ("V2", 0, 3))),),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return wheel(tmp_path, "x", {"pkg/x.so": OBJECT, "pkg/data.txt": b"x" * 5000})


#: A limit, a value that this wheel exceeds, and the rule that tells it; None: exit status 3.
EXCEEDED = {
    "members": ("2", None),
    "name-length": ("5", "archive-limit"),
    "member": ("4000", "archive-limit"),
    "total": ("4000", "archive-limit"),
    "held": ("1000", "elf-limit"),
    "segments": ("1", "elf-limit"),
    "dynamic": ("3", "elf-limit"),
    "versions": ("1", "elf-limit"),
    "symbols": ("100", "elf-limit"),
    "string": ("3", "elf-limit"),
    "names": ("100", "elf-limit"),
}


@pytest.mark.parametrize("name", EXCEEDED)
def test_what_is_over_a_limit_is_told_with_the_option(wheelfix: Run, path: Path, name: str) -> None:
    value, rule = EXCEEDED[name]

    status, out, err = wheelfix("verify", "--limit", f"{name}={value}", path)
    assert "Traceback" not in err
    if rule is None:
        assert status == 3
        assert f"--limit {name}=N" in out + err
    else:
        assert status == 1
        assert f"[{rule}]" in out or rule in out
        assert f"{name}=N" in " ".join(out.split())


@pytest.mark.parametrize("name", EXCEEDED)
def test_what_is_under_every_limit_is_read(wheelfix: Run, path: Path, name: str) -> None:

    status, out, _ = wheelfix("verify", "--limit", f"{name}=1G", path)
    assert status in (0, 1)
    assert "-limit" not in out


@pytest.mark.parametrize(
    "text", ["symbols", "symbols=", "symbols=x", "symbols=-1", "symbols=0", "bogus=1", "=", "symbols=1e3"]
)
def test_a_limit_that_is_none_is_wrong_usage(wheelfix: Run, path: Path, text: str) -> None:

    status, _, err = wheelfix("verify", "--limit", text, path)
    assert status == 2
    assert f"--limit {text}" in err


def test_the_policy_file_has_a_limit_too(wheelfix: Run, path: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text("schema = 1\n" + "# long\n" * 1000)

    status, _, err = wheelfix("verify", "--limit", "policy=1000", "--policy", policy, path)
    assert status == 2
    assert "--limit policy=N" in err


def test_a_member_of_zeros_takes_no_memory(wheelfix: Run, tmp_path: Path) -> None:
    """A bomb that looks like an object: 300 MB of zeros behind the magic number, 300 KB in the archive."""
    target = wheel(tmp_path, "x", {"pkg/x.so": OBJECT})
    with (
        zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("pkg/bomb.so", "w") as bomb,
    ):
        bomb.write(OBJECT[:64])
        for _ in range(300):
            bomb.write(bytes(1 << 20))

    status, out, err = wheelfix("verify", "--limit", "held=64M", target)
    assert status == 1
    assert "held=N" in " ".join(out.split())
    assert "Traceback" not in err


def test_every_limit_is_documented() -> None:
    text = (Path(__file__).parents[1] / "docs" / "limits.md").read_text("utf-8")
    for field in fields(Limits):
        assert f"| `{field.name.replace('_', '-')}` |" in text
