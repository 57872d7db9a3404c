"""/etc/ld.so.conf: the folders that ldconfig says it reads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from wheelfix.host.ldconf import default_folders

_FOLDER = re.compile(r"^(/.*): \(from (?!<builtin>).*\)$")
TRUSTED = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def told_by_ldconfig(conf: Path) -> list[str]:
    """The configured folders, in ldconfig's order; only existing ones are told."""
    command = ["/sbin/ldconfig", "-v", "-N", "-X", "-f", conf]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    return [m[1] for line in said.splitlines() if (m := _FOLDER.match(line))]


def configured(conf: Path) -> list[str]:
    return [f for f in default_folders(conf) if f not in TRUSTED]


def folders(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True)


def test_lines_comments_and_old_types(tmp_path: Path) -> None:
    folders(tmp_path, "a", "b", "with space", "d")
    conf = tmp_path / "ld.so.conf"
    conf.write_text(
        f"# no folder\n\n  {tmp_path}/a/  \n{tmp_path}/with space # why\nhwcap 1 nosegneg\n"
        f"{tmp_path}/b=libc6\n{tmp_path}/a\n{tmp_path}/d//\n"
    )
    expected = [f"{tmp_path}/{n}" for n in ("a", "with space", "b", "d")]
    assert told_by_ldconfig(conf) == expected
    assert configured(conf) == expected


def test_includes_are_globs_relative_to_the_file_and_stand_where_they_are(tmp_path: Path) -> None:
    folders(tmp_path, "first", "x", "y", "z", "last", "conf.d")
    (tmp_path / "conf.d/20.conf").write_text(f"{tmp_path}/y\n")
    (tmp_path / "conf.d/10.conf").write_text(f"{tmp_path}/x\ninclude more\n")
    (tmp_path / "conf.d/more").write_text(f"{tmp_path}/z\n")
    conf = tmp_path / "ld.so.conf"
    conf.write_text(f"{tmp_path}/first\ninclude conf.d/*.conf none/*.conf\n{tmp_path}/last\n")
    expected = [f"{tmp_path}/{n}" for n in ("first", "x", "z", "y", "last")]
    assert told_by_ldconfig(conf) == expected
    assert configured(conf) == expected


def test_this_machine() -> None:
    told = told_by_ldconfig(Path("/etc/ld.so.conf"))
    assert [f for f in default_folders() if f in told and f not in TRUSTED] == [
        f for f in told if f not in TRUSTED
    ]


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.conf").write_text(f"/{name}\ninclude *.conf\n")
    assert configured(tmp_path / "a.conf") == ["/a", "/b", "/c"]


def test_no_configuration(tmp_path: Path) -> None:
    assert default_folders(tmp_path / "none") == TRUSTED
