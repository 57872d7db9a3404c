"""A disk that is full or read-only while a repair writes: no wheel, no remains, the input as it was, the reason told."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WHEELFIX = [sys.executable, "-B", "-m", "wheelfix"]


@pytest.fixture
def source(forge: Any) -> Path:
    """A wheel of 3 MB whose repair grafts one library of this machine."""
    library = forge.library("ext/libbig.so.5", "big", "41")
    extension = forge.module(f"_e{forge.suffix}", "big()", str(library))
    noise = random.Random(1).randbytes(3 << 20).hex()
    result: Path = forge.wheel("x", {f"pkg/_e{forge.suffix}": extension, "pkg/noise.txt": noise})
    return result


def words(source: Path, out: Path) -> list[str]:
    libraries = source.parent.parent / "ext"
    return [*WHEELFIX, "repair", "--ldpaths", str(libraries), "-w", str(out), str(source)]


def in_own_mounts(script: str, *arguments: str) -> list[str]:
    """A shell script that may mount, whose mounts end with it: as root, or as a user in a namespace."""
    return ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-euc", script, "sh", *arguments]


@pytest.mark.parametrize("share", [0.0, 0.002, 0.3, 0.9, 0.999])
def test_a_file_that_cannot_grow_is_told_and_leaves_nothing(
    source: Path, tmp_path: Path, share: float
) -> None:
    """The limit of file sizes stops a write in the middle, as a full disk does, also in patchelf."""
    before = source.read_bytes()
    most = int(len(before) * share)
    done = subprocess.run(
        words(source, tmp_path / "out"),
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "blocked, nothing written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert source.read_bytes() == before


@pytest.mark.parametrize("kilobytes", [16, 512, 2900])
def test_a_full_disk_is_told_and_leaves_nothing(source: Path, tmp_path: Path, kilobytes: int) -> None:
    before = source.read_bytes()
    assert kilobytes << 10 < len(before)
    out = tmp_path / "disk"
    out.mkdir()
    script = (
        'disk=$1 size=$2; shift 2; mount -t tmpfs -o "size=$size" none "$disk"; status=0; "$@" || status=$?;'
        ' ls -A "$disk"; exit $status'
    )
    done = subprocess.run(
        in_own_mounts(script, str(out), f"{kilobytes}k", *words(source, out)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "No space left on device" in done.stderr
    assert str(out) in done.stderr
    assert done.stdout == ""  # what the folder holds afterwards
    assert source.read_bytes() == before


@pytest.mark.parametrize("inner", [".", "wheelhouse"], ids=["the folder itself", "a folder to be made"])
def test_a_read_only_output_is_told(source: Path, tmp_path: Path, inner: str) -> None:
    before = source.read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    script = 'out=$1; shift; mount --bind "$out" "$out"; mount -o remount,ro,bind "$out"; "$@"'
    done = subprocess.run(
        in_own_mounts(script, str(out), *words(source, out / inner)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Read-only file system" in done.stderr
    assert str(out) in done.stderr
    assert list(out.iterdir()) == []
    assert source.read_bytes() == before


def test_an_output_folder_that_is_a_file_is_told(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    done = subprocess.run(words(source, out), capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert f"{out}: File exists" in done.stderr
    assert out.read_text() == "mine"


def test_the_inputs_own_folder_without_room_keeps_the_input(source: Path, tmp_path: Path) -> None:
    """Output beside the input: the disk fills while the new wheel is written."""
    before = source.read_bytes()
    most = len(before) // 2
    done = subprocess.run(
        words(source, source.parent),
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        check=False,
    )
    assert done.returncode == 4
    assert [p.name for p in source.parent.iterdir()] == [source.name]
    assert source.read_bytes() == before
