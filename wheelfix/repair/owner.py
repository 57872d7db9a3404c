"""Which package of this machine installed a library, and where its licence texts lie: dpkg, rpm, apk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from wheelfix.repair.documents import Source
from wheelfix.repair.sbom import Origin

_TIMEOUT = 60  # seconds; a package data base answers in well under one
_LICENCE_NAMES = ("COPYING", "COPYRIGHT", "LICENSE", "LICENCE", "NOTICE")


def owner(path: str) -> Source | None:
    """The package that installed the file at ``path`` (a real path), None where no package manager knows."""
    for ask in (_dpkg, _rpm, _apk):
        found = ask(path)
        if found is not None:
            return found
    return None


def _dpkg(path: str) -> Source | None:
    """Debian. Files of merged /usr stand in the data base under either of their two paths."""
    other = path.removeprefix("/usr") if path.startswith("/usr/") else f"/usr{path}"
    for place in (path, other):
        text = _run("dpkg-query", "--search", place)
        if text is not None:
            # "libz1:amd64: /lib/..."; several packages are separated by ", ".
            names = text.splitlines()[0].rpartition(": ")[0]
            return _debian_package(names.partition(", ")[0])
    return None


@cache
def _debian_package(name: str) -> Source | None:
    text = _run("dpkg-query", "--show", "--showformat=${binary:Package}\t${Version}\t${Architecture}", name)
    if text is None:
        return None
    package, version, arch = text.split("\t")
    package = package.partition(":")[0]
    vendor = _os_release().get("ID", "debian")
    licence = f"/usr/share/doc/{package}/copyright"
    return Source(
        Origin(package, version, _purl("deb", vendor, package, version, arch)),
        (licence,) if os.path.isfile(licence) else (),
    )


def _rpm(path: str) -> Source | None:
    text = _run("rpm", "-qf", "--queryformat", "%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\n", path)
    if text is None:
        return None
    package, version, arch = text.splitlines()[0].split("\t")
    licences = _run("rpm", "-qL", package) or ""
    return Source(
        Origin(package, version, _purl("rpm", _os_release().get("ID", "redhat"), package, version, arch)),
        tuple(p for p in licences.splitlines() if p.startswith("/") and os.path.isfile(p)),
    )


def _apk(path: str) -> Source | None:
    """Alpine: "/lib/libz.so.1.2.13 is owned by zlib-1.2.13-r0"; a version begins behind the last but one dash."""
    text = _run("apk", "info", "--who-owns", path)
    if text is None or " is owned by " not in text:
        return None
    package, version, release = text.splitlines()[0].rpartition(" is owned by ")[2].rsplit("-", 2)
    version = f"{version}-{release}"
    arch = (_run("apk", "--print-arch") or "").strip()
    folder = Path("/usr/share/licenses") / package
    return Source(
        Origin(package, version, _purl("apk", _os_release().get("ID", "alpine"), package, version, arch)),
        tuple(_licences_in(folder)),
    )


def _licences_in(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        yield from (str(p) for p in sorted(folder.iterdir()) if p.name.upper().startswith(_LICENCE_NAMES))


def _purl(kind: str, vendor: str, package: str, version: str, arch: str) -> str:
    from packageurl import PackageURL

    qualifiers = {"arch": arch} if arch else {}
    release = _os_release()
    if "VERSION_ID" in release:
        qualifiers["distro"] = f"{release.get('ID', vendor)}-{release['VERSION_ID']}"
    return PackageURL(kind, vendor, package, version, qualifiers).to_string()


@cache
def _os_release() -> Mapping[str, str]:
    """os-release(5) of this machine, empty where it has none."""
    for place in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            lines = Path(place).read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        pairs = (line.partition("=") for line in lines)
        return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs if key.strip()}
    return {}


def _run(*command: str) -> str | None:
    """What a program prints, None where it is not there or fails."""
    if shutil.which(command[0]) is None:
        return None
    environ = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            env=environ,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 and done.stdout.strip() else None
