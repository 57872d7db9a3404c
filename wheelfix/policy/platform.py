"""Platform tags as policies: the one adapter to auditwheel's policy data.

The JSON files of the installed auditwheel are read, its code is not: new policies arrive with new
versions of that distribution, and importing it would cost more than the whole of a small run.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wheelfix.model.policy import Libc, PlatformPolicy
from wheelfix.policy.interpreters import musl_names

# PEP 513, 571 and 599 name policies by year; PEP 600 names them by glibc's version.
_PLATFORM = re.compile(r"(?:(manylinux|musllinux)_(\d+)_(\d+)|(manylinux(?:1|2010|2014))|(linux))_(\w+)")


def for_platform(platform: str) -> PlatformPolicy | None:
    """The policy of one platform tag (``manylinux_2_28_x86_64``, ``manylinux2014_aarch64``, ``linux_x86_64``).

    A plain ``linux_*`` tag promises nothing: it gets the libraries of the newest policy of its architecture,
    without version caps. A PEP 600 tag between two policies that the data know (``manylinux_2_30``) is read as
    the next older one, since what the older machine has the newer has too. None for a tag of another system,
    or an architecture that no policy covers.
    """
    match = _PLATFORM.fullmatch(platform)
    if match is None:
        return None
    family, major, minor, legacy, plain, arch = match.groups()
    known = candidates(arch, "musl" if family == "musllinux" else "glibc")
    if not known:
        return None
    if plain:
        newest = known[-1]
        return PlatformPolicy(
            tag=platform,
            arch=arch,
            libc="glibc",
            libc_version=newest.libc_version,
            libraries=newest.libraries,
            versions={},
            denied_symbols=newest.denied_symbols,
            capped=False,
        )
    if legacy:
        return next((p for p in known if f"{legacy}_{arch}" in p.aliases), None)
    wanted = (int(major), int(minor))
    older = [p for p in known if p.libc_version <= wanted and p.libc_version[0] == wanted[0]]
    return older[-1] if older else None


@cache
def candidates(arch: str, libc: Libc) -> tuple[PlatformPolicy, ...]:
    """All policies of an architecture and C library, the oldest machine (the best tag) first."""
    family = "manylinux" if libc == "glibc" else "musllinux"
    found = (_policy(entry, arch, libc) for entry in _entries(family) if arch in entry["symbol_versions"])
    return tuple(sorted(found, key=lambda p: p.libc_version))


def _policy(entry: dict[str, Any], arch: str, libc: Libc) -> PlatformPolicy:
    major, minor = (int(part) for part in entry["name"].split("_")[1:])
    return PlatformPolicy(
        tag=f"{entry['name']}_{arch}",
        arch=arch,
        libc=libc,
        libc_version=(major, minor),
        # auditwheel's file names musl's C library `libc.so`; objects ask for it by its distribution's name.
        libraries=frozenset(entry["lib_whitelist"]) | (set(musl_names(arch)) if libc == "musl" else set()),
        versions={prefix: frozenset(names) for prefix, names in entry["symbol_versions"][arch].items()},
        denied_symbols={library: frozenset(names) for library, names in entry["blacklist"].items()},
        aliases=tuple(f"{alias}_{arch}" for alias in entry["aliases"]),
    )


@cache
def _entries(family: str) -> tuple[dict[str, Any], ...]:
    spec = find_spec("auditwheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("auditwheel, whose policy data wheelfix reads, is not installed")
    text = Path(spec.origin).with_name("policy").joinpath(f"{family}-policy.json").read_text("utf-8")
    return tuple(entry for entry in json.loads(text) if entry["name"] != "linux")
