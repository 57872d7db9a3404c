"""What one wheel holds: its members, its metadata, and the faults of the archive itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Fault

Scheme = Literal["purelib", "platlib", "scripts", "data", "headers"]
Content = Literal["elf", "text", "archive", "other", "directory"]


@dataclass(frozen=True, slots=True)
class Member:
    """One file of the archive.

    ``name`` is its name in the ZIP; ``path`` where an installer puts it, relative to site-packages
    (``scripts:tool``, ``data:lib/libx.so``, ``headers:x.h`` for the other schemes). ``elf`` is None for
    anything but an ELF object that could be read.
    """

    name: str
    path: str
    scheme: Scheme = "platlib"
    size: int = 0  # inflated, bytes
    compressed: int = 0  # bytes
    sha256: str = ""  # urlsafe base64 without padding, as RECORD writes it; "" where it could not be inflated
    mode: int | None = None  # Unix permission bits; None where the archive was not made on Unix
    content: Content = "other"
    elf: ElfFacts | None = None
    ctypes_names: tuple[str, ...] = ()  # library names in the text of a .py file that speaks of ctypes


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """One wheel, read whole. ``tags`` are those of the file name, expanded; ``wheel_tags`` those of WHEEL."""

    filename: str
    name: str | None = None  # as METADATA spells it
    version: str | None = None
    build: str | None = None
    tags: tuple[str, ...] = ()
    wheel_tags: tuple[str, ...] = ()
    root_is_purelib: bool = False
    dist_info: str | None = None  # name of the folder, without a slash
    requires_dist: tuple[str, ...] = ()
    provides_extra: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    faults: tuple[Fault, ...] = ()
    file_size: int = 0  # of the archive, in bytes

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform parts of the tags, each once, in the order of the file name."""
        return tuple(dict.fromkeys(t.rsplit("-", 1)[1] for t in self.tags))

    @property
    def elves(self) -> tuple[Member, ...]:
        """The members that are readable ELF objects."""
        return tuple(m for m in self.members if m.elf is not None)

    @property
    def objects(self) -> tuple[tuple[Member, ElfFacts], ...]:
        """The same, each with its facts."""
        return tuple((m, m.elf) for m in self.members if m.elf is not None)
