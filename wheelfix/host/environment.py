"""An installed environment (``--env PREFIX``): its site-packages and the distributions in it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from wheelfix.host.libraries import RealFiles, RealFolders, RealLinks
from wheelfix.model.resolution import SITE, Node


def read_environment(
    prefix: Path,
) -> tuple[Mapping[str, Node], Container[str], frozenset[str], Mapping[str, str]]:
    """Files and folders of the environment's site-packages, seen where the wheel is installed, its distributions, and
    its symbolic links.

    ``prefix`` is a virtual environment or a site-packages folder itself; the newest Python of a prefix counts.
    Raises ``FileNotFoundError`` where it is neither.
    """
    prefix = prefix.resolve()
    found = sorted(prefix.glob("lib*/python3*/site-packages"), key=_version)
    if found:
        site = found[-1]
    elif any(prefix.glob("*.dist-info")) or prefix.name == "site-packages":
        site = prefix
    else:
        raise FileNotFoundError(f"{prefix} is no environment: it has no lib/python3*/site-packages")
    files = RealFiles(site, SITE, "given")
    names = (p.name.removesuffix(".dist-info").rpartition("-")[0] for p in site.glob("*.dist-info"))
    return files, RealFolders(files), frozenset(canonicalize_name(n) for n in names), RealLinks(files)


def _version(site: Path) -> tuple[int, ...]:
    digits = site.parent.name.removeprefix("python").rstrip("t")
    return tuple(int(p) for p in digits.split(".") if p.isdigit())
