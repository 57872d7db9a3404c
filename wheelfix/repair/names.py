"""What grafted libraries are called, and where in the archive they go."""

from __future__ import annotations

import posixpath
import re

# The part of a library's name that says what it is, before its version: libz.so.1 -> libz.
_STEM = re.compile(r"(?P<stem>.+?)(?P<rest>\.so(\..*)?)")

HASH_LENGTH = 8


def graft_name(name: str, sha256: str) -> str:
    """The name of a graft: ``libz.so.1`` becomes ``libz-1a2b3c4d.so.1``.

    The hash of the content keeps two libraries of one SONAME apart in a process (glibc tells loaded objects by name
    and SONAME). A name that already carries this hash is left alone; one without ``.so`` gets it at the
    end (``libodd-1a2b3c4d``).
    """
    name = posixpath.basename(name)
    match = _STEM.fullmatch(name)
    stem, rest = (match["stem"], match["rest"]) if match else (name, "")
    suffix = f"-{sha256[:HASH_LENGTH]}"
    return name if stem.endswith(suffix) else f"{stem}{suffix}{rest}"


def libs_folder(wheel: str, suffix: str = ".libs") -> str:
    """The folder for grafts, in site-packages: the name of the file name's first part with ``--lib-sdir`` after it."""
    return wheel.split("-", 1)[0] + suffix


def scripts_folder(wheel: str) -> str:
    """The folder for programs that a script takes the place of."""
    return wheel.split("-", 1)[0] + ".scripts"
