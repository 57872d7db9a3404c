"""A disk that is full or read-only while a repair writes: no wheel, no remains, the input as it was, the reason told."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Repair = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def source(forge: Any) -> Path:
    """A wheel of 3 MB whose repair grafts one library of this machine."""
    result: Path = forge.wheel_to_graft(3)
    return result


@pytest.fixture
def repair(forge: Any, source: Path) -> Repair:
    """``repair(out)`` in a process of its own: with ``most``, no file may grow beyond so many bytes; with ``mounts``, a
    shell script that may mount and gets ``out`` and the repair's command as arguments. The input must stay as it is.
    """

    def run(
        out: Path, most: int | None = None, mounts: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        before = source.read_bytes()
        command = forge.command_to_graft(source, out)
        if mounts is not None:  # as root, or as a user in a namespace; the mounts end with the script
            user = [] if os.geteuid() == 0 else ["-r"]
            command = ["unshare", *user, "-m", "sh", "-euc", mounts, "sh", str(out), *command]
        limit = None if most is None else partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            preexec_fn=limit,
            check=False,
        )
        assert done.returncode == 4, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert source.read_bytes() == before
        return done

    return run


@pytest.mark.parametrize("share", [0.0, 0.002, 0.3, 0.9, 0.999])
def test_a_file_that_cannot_grow_is_told_and_leaves_nothing(
    repair: Repair, source: Path, tmp_path: Path, share: float
) -> None:
    """The limit of file sizes stops a write in the middle, as a full disk does, also in patchelf."""
    done = repair(tmp_path / "out", most=int(source.stat().st_size * share))
    assert "blocked, nothing written" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kilobytes", [16, 512, 2900])
def test_a_full_disk_is_told_and_leaves_nothing(
    repair: Repair, source: Path, tmp_path: Path, kilobytes: int
) -> None:
    assert kilobytes << 10 < source.stat().st_size
    out = tmp_path / "disk"
    out.mkdir()
    script = (
        f'disk=$1; shift; mount -t tmpfs -o size={kilobytes}k none "$disk"; status=0; "$@" || status=$?;'
        ' ls -A "$disk"; exit $status'
    )
    done = repair(out, mounts=script)
    assert "No space left on device" in done.stderr
    assert str(out) in done.stderr
    assert done.stdout == ""  # what the folder holds afterwards


@pytest.mark.parametrize("inner", [".", "wheelhouse"], ids=["the folder itself", "a folder to be made"])
def test_a_read_only_output_is_told(repair: Repair, tmp_path: Path, inner: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    script = f"shift; mount --bind '{out}' '{out}'; mount -o remount,ro,bind '{out}'; \"$@\""
    done = repair(out / inner, mounts=script)
    assert "Read-only file system" in done.stderr
    assert str(out) in done.stderr
    assert list(out.iterdir()) == []


def test_an_output_folder_that_is_a_file_is_told(repair: Repair, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    assert f"{out}: File exists" in repair(out).stderr
    assert out.read_text() == "mine"


def test_the_inputs_own_folder_without_room_keeps_the_input(repair: Repair, source: Path) -> None:
    """Output beside the input: the disk fills while the new wheel is written."""
    repair(source.parent, most=source.stat().st_size // 2)
    assert [p.name for p in source.parent.iterdir()] == [source.name]
