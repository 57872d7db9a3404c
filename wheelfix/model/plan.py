"""What repair will do to a wheel, as data: decided before a byte changes, printable, and all that the writer needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PathKind = Literal["rpath", "runpath"]


@dataclass(frozen=True, slots=True)
class ElfChange:
    """What to change in one object; a field at its default is left as it is.

    ``path`` is the new DT_RPATH or DT_RUNPATH, ``path_kind`` says which of the two; "" removes both.
    Renaming a DT_NEEDED renames the file in verneed with it: glibc's dl-version.c looks the file up among
    the loaded ones by that name and aborts where none has it.
    """

    soname: str | None = None
    rename_needed: tuple[tuple[str, str], ...] = ()  # (old, new)
    remove_needed: tuple[str, ...] = ()
    path: str | None = None
    path_kind: PathKind = "rpath"
    strip: bool = False  # before any other change

    def __bool__(self) -> bool:
        """Whether anything changes at all."""
        return self != ElfChange(path_kind=self.path_kind)


@dataclass(frozen=True, slots=True)
class Graft:
    """A library of the build host that goes into the wheel.

    ``source`` is its real path there (no symbolic link), ``sha256`` the hexadecimal hash of its bytes before any
    change, ``requested`` the names under which it was asked for, ``member`` its name in the archive.
    """

    source: str
    sha256: str
    requested: tuple[str, ...]
    member: str
    why: str
    mode: int = 0o755
    size: int = 0  # bytes, before any change


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A change to an object of the wheel or to a graft, by its name in the planned archive, with the reasons."""

    member: str
    change: ElfChange
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModeChange:
    """Permission bits of a member that the archive lost."""

    member: str
    mode: int
    why: str


@dataclass(frozen=True, slots=True)
class Shim:
    """A program of ``.data/scripts`` that moves into the package's own folder; a Python script takes its place."""

    script: str  # member name of the program, from now on that of the script
    program: str  # member name of the program after the move
    location: str  # of the program after the move, relative to site-packages
    why: str


@dataclass(frozen=True, slots=True)
class Retag:
    """New platform tags: the last part of the file name and the Tag lines of WHEEL."""

    old: tuple[str, ...]  # whole tags, as the file name has them
    new: tuple[str, ...]
    filename: str
    why: str
    platlib: bool = False  # Root-Is-Purelib becomes false


@dataclass(frozen=True, slots=True)
class AddFile:
    """A member that repair writes: the list of grafted files, licence texts, shims."""

    member: str
    why: str
    source: str | None = None  # real path of the file to copy; None: made by repair


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that repair does to one wheel, in the order in which it is done."""

    wheel: str  # file name of the input
    filename: str  # of the output
    platform: str  # the tag that the result is planned for
    grafts: tuple[Graft, ...] = ()
    shims: tuple[Shim, ...] = ()
    changes: tuple[ObjectChange, ...] = ()
    modes: tuple[ModeChange, ...] = ()
    retag: Retag | None = None
    files: tuple[AddFile, ...] = ()
    notes: tuple[str, ...] = ()  # what was seen and left alone

    @property
    def empty(self) -> bool:
        """Nothing to do: the output is the input."""
        return not (self.grafts or self.shims or self.changes or self.modes or self.retag or self.files)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a wheel cannot be repaired: every reason, each a sentence."""

    wheel: str
    reasons: tuple[str, ...]
