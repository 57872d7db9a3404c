"""What a wheel says of itself in its file name, METADATA and WHEEL, and whether the three agree.

PEP 427 and the binary distribution format specification; names and versions are compared normalised
(PEP 503, PEP 440), tags expanded (PEP 425). What parses these is imported where it is used: after the processes that
inflate have started.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wheelfix.archive.limits import Unreadable
from wheelfix.model.finding import Fault


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of ``name-version(-build)?-python-abi-platform.whl`` and the tags that they expand to."""

    name: str
    version: str
    build: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The fields of METADATA and WHEEL that matter here; None or empty where a file or field is missing."""

    name: str | None = None
    version: str | None = None
    requires_dist: tuple[str, ...] = ()
    provides_extra: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    build: str | None = None
    root_is_purelib: bool = False


def parse_file_name(file_name: str) -> FileName:
    """The parts of a wheel's file name. Raises ``Unreadable`` for one that no installer would accept."""
    stem, dot, suffix = file_name.rpartition(".")
    parts = stem.split("-")
    if suffix != "whl" or not dot or len(parts) not in (5, 6) or not all(parts):
        raise Unreadable("its file name is not NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl")
    python, abi, platform = (part.split(".") for part in parts[-3:])
    tags = tuple("-".join(t) for t in itertools.product(python, abi, platform))
    return FileName(parts[0], parts[1], parts[2] if len(parts) == 6 else None, tags)


def parse_metadata(metadata: str | None, wheel: str | None) -> Metadata:
    """The fields of the two files; both are RFC 822 headers and read leniently, as installers do."""
    from email.parser import HeaderParser

    core = HeaderParser().parsestr(metadata or "")
    own = HeaderParser().parsestr(wheel or "")
    return Metadata(
        name=_one(core.get("Name")),
        version=_one(core.get("Version")),
        requires_dist=_all(core.get_all("Requires-Dist", [])),
        provides_extra=_all(core.get_all("Provides-Extra", [])),
        tags=tuple(
            "-".join(t)
            for tag in _all(own.get_all("Tag", []))
            for t in itertools.product(*(part.split(".") for part in tag.split("-")))
        ),
        build=_one(own.get("Build")),
        root_is_purelib=(_one(own.get("Root-Is-Purelib")) or "").lower() == "true",
    )


def _one(value: object) -> str | None:
    text = str(value).strip() if value is not None else ""
    return text or None


def _all(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(v).strip() for v in values)


def dist_info_folders(names: Sequence[str]) -> tuple[str, ...]:
    """Every folder at the top of the archive whose name ends in ``.dist-info``."""
    tops = (name.partition("/")[0] for name in names if "/" in name)
    return tuple(dict.fromkeys(t for t in tops if t.endswith(".dist-info")))


def disagreements(
    file: FileName, folders: Sequence[str], held: Sequence[str], metadata: Metadata
) -> Iterator[Fault]:
    """Where file name, ``.dist-info`` folder, METADATA and WHEEL contradict each other (metadata-mismatch).

    ``held`` are the file names inside the folder that counts.
    """
    from packaging.utils import canonicalize_name

    if not folders:
        yield _mismatch("the archive has no .dist-info folder, so no installer accepts it")
        return
    if len(folders) > 1:
        yield _mismatch(f"the archive has {len(folders)} .dist-info folders: {', '.join(folders)}")
    for required in ("METADATA", "WHEEL", "RECORD"):
        if required not in held:
            yield _mismatch(f"{folders[0]}/{required} is missing", f"{folders[0]}/{required}")
    folder = folders[0].removesuffix(".dist-info")
    name, _, version = folder.rpartition("-")
    claims: list[tuple[str, str | None, str | None]] = [("the .dist-info folder", name, version)]
    if "METADATA" in held:
        claims.append(("METADATA", metadata.name, metadata.version))
    for where, its_name, its_version in claims:
        if canonicalize_name(its_name or "") != canonicalize_name(file.name):
            yield _mismatch(f"{where} names the project {its_name!r}, the file name {file.name!r}")
        if _version(its_version or "") != _version(file.version):
            yield _mismatch(f"{where} gives the version {its_version!r}, the file name {file.version!r}")
    if "WHEEL" not in held:
        return
    ours, theirs = set(file.tags), set(metadata.tags)
    if ours != theirs:
        yield Fault(
            "metadata-mismatch",
            f"the tags of WHEEL ({', '.join(sorted(theirs)) or 'none'}) are not those of the file name"
            f" ({', '.join(sorted(ours))})",
            f"{folders[0]}/WHEEL",
            {"only-in-file-name": sorted(ours - theirs), "only-in-WHEEL": sorted(theirs - ours)},
        )
    if (metadata.build or None) != file.build:
        yield _mismatch(f"WHEEL gives the build {metadata.build!r}, the file name {file.build!r}")


def _version(text: str) -> str:
    from packaging.utils import canonicalize_version

    # The file name writes a local version's "+" as "_" (binary distribution format, "Escaping and Unicode").
    return canonicalize_version(text.replace("_", "+") if "+" not in text else text)


def _mismatch(message: str, member: str | None = None) -> Fault:
    return Fault("metadata-mismatch", message, member)
