"""Owning packages: the package managers of other systems are small scripts that answer as those do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from wheelfix.repair import owner as module


@pytest.fixture(autouse=True)
def fresh() -> None:
    module._debian_package.cache_clear()
    module._os_release.cache_clear()


def answer(folder: Path, program: str, script: str) -> None:
    path = folder / program
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_an_unowned_file_has_no_owner(tmp_path: Path) -> None:
    (tmp_path / "libx.so").touch()
    assert module.owner(str(tmp_path / "libx.so")) is None


def test_without_a_package_manager_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert module.owner("/usr/lib/libx.so") is None


def test_dpkg_is_asked_under_both_paths_of_merged_usr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(
        tmp_path,
        "dpkg-query",
        'case "$1 $2" in\n'
        '"--search /lib/a/libz.so.1") echo "zlib1g:amd64: /lib/a/libz.so.1";;\n'
        '"--show"*) printf "zlib1g:amd64\\t1:1.2.13\\tamd64";;\n'
        "*) exit 1;; esac",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = module.owner("/usr/lib/a/libz.so.1")
    assert found is not None
    assert (found.origin.name, found.origin.version) == ("zlib1g", "1:1.2.13")
    assert found.origin.purl.startswith("pkg:deb/")
    assert "arch=amd64" in found.origin.purl


def test_rpm_tells_package_version_and_licence_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    licence = tmp_path / "LICENSE"
    licence.write_text("text")
    answer(
        tmp_path,
        "rpm",
        f'if [ "$1" = -qf ]; then printf "zlib\\t1.2.11-31.el9\\tx86_64\\n"; else echo {licence}; echo /gone; fi',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = module._rpm("/usr/lib64/libz.so.1")
    assert found is not None
    assert (found.origin.name, found.origin.version) == ("zlib", "1.2.11-31.el9")
    assert found.licences == (str(licence),)


def test_apk_tells_name_and_version_in_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(
        tmp_path,
        "apk",
        'if [ "$1" = info ]; then echo "$3 is owned by zstd-libs-1.5.5-r8"; else echo x86_64; fi',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = module._apk("/usr/lib/libzstd.so.1")
    assert found is not None
    assert (found.origin.name, found.origin.version) == ("zstd-libs", "1.5.5-r8")


@pytest.mark.skipif(not os.path.exists("/usr/bin/dpkg-query"), reason="asks Debian's own data base")
def test_the_c_library_of_debian_is_owned_by_libc6() -> None:
    real = os.path.realpath(
        subprocess.run(
            ["gcc", "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    found = module.owner(real)
    assert found is not None
    assert found.origin.name == "libc6"
    assert found.licences == ("/usr/share/doc/libc6/copyright",)
