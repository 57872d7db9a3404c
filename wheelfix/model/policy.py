"""Policies as values: what a platform tag promises, and what a project's own TOML file asks for."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from wheelfix.model.finding import Severity

Libc = Literal["glibc", "musl"]


@dataclass(frozen=True, slots=True)
class PlatformPolicy:
    """What one platform tag promises of the machine, from auditwheel's policy data.

    ``versions`` maps a version prefix (``GLIBC``, ``GLIBCXX``, ``CXXABI``, ``GCC``, ...) to the version
    names that the oldest promised machine has (``2.17`` for ``GLIBC_2.17``); empty with ``capped`` False for a
    plain ``linux_*`` tag, which promises nothing.
    """

    tag: str  # manylinux_2_28_x86_64
    arch: str
    libc: Libc
    libc_version: tuple[int, int]
    libraries: frozenset[str]
    versions: Mapping[str, frozenset[str]]
    denied_symbols: Mapping[str, frozenset[str]] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()  # manylinux2014_x86_64
    capped: bool = True


@dataclass(frozen=True, slots=True)
class CxxRuntime:
    key: str  # "executorch-cuda:cxx-runtime[0]": where the entry stands
    objects: tuple[str, ...] = ("**",)
    linkage: Literal["static", "host", "any"] = "any"
    libgcc: Literal["static", "any"] = "any"
    exports: Literal["forbid", "allow"] = "allow"


@dataclass(frozen=True, slots=True)
class RequireFile:
    key: str
    path: str


@dataclass(frozen=True, slots=True)
class RequireNeeded:
    key: str
    object: str
    library: str


@dataclass(frozen=True, slots=True)
class Deny:
    key: str
    object: str
    library: str
    reach: Literal["closure", "direct"] = "closure"


@dataclass(frozen=True, slots=True)
class SymbolContract:
    """An entry of [[import]], [[export]] or [[sole-definer]]; ``provider`` is [[import]]'s ``from``."""

    key: str
    object: str
    symbol: str
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    key: str
    object: str
    string: str


@dataclass(frozen=True, slots=True)
class Provider:
    key: str
    library: str
    distribution: str
    path: str
    loads: Literal["by-path", "by-import"] = "by-path"
    versions: str | None = None  # PEP 440: the versions of the distribution that hold the library; None: any


@dataclass(frozen=True, slots=True)
class RpathRule:
    key: str
    objects: tuple[str, ...] = ("**",)
    required: tuple[str, ...] = ()
    allowed: tuple[str, ...] | None = None  # None: anything


@dataclass(frozen=True, slots=True)
class Cuda:
    key: str
    architectures: tuple[str, ...] | None = None
    ptx: Literal["newest", "none", "any"] = "any"


@dataclass(frozen=True, slots=True)
class Size:
    key: str
    wheel_max: int | None = None  # bytes
    member_max: int | None = None  # bytes


@dataclass(frozen=True, slots=True)
class Waiver:
    key: str
    rule: str
    reason: str
    member: str | None = None
    library: str | None = None
    symbol: str | None = None
    until: datetime.date | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy in force: its own file and all that it extends, later files overriding earlier ones."""

    names: tuple[str, ...] = ()  # outermost last
    tag: str | None = None  # [platform] tag: a floor without architecture (manylinux_2_28)
    tag_key: str | None = None
    cxx_runtime: tuple[CxxRuntime, ...] = ()
    require_files: tuple[RequireFile, ...] = ()
    require_needed: tuple[RequireNeeded, ...] = ()
    deny: tuple[Deny, ...] = ()
    imports: tuple[SymbolContract, ...] = ()
    exports: tuple[SymbolContract, ...] = ()
    sole_definers: tuple[SymbolContract, ...] = ()
    registrations: tuple[Registration, ...] = ()
    providers: tuple[Provider, ...] = ()
    rpaths: tuple[RpathRule, ...] = ()
    cuda: Cuda | None = None
    size: Size | None = None
    waivers: tuple[Waiver, ...] = ()
    severities: Mapping[str, Severity | Literal["off"]] = field(default_factory=dict)
