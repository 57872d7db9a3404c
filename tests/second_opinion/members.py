"""The ELF members of a wheel, put into a folder by the standard library."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path


def elf_members(wheel: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Name in the archive and a copy of it, one at a time: the copy is gone when the next is asked for."""
    copy = folder / "object"
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            with archive.open(item) as member:
                if member.read(4) != b"\x7fELF":
                    continue
            with archive.open(item) as member, copy.open("wb") as target:
                shutil.copyfileobj(member, target, 1 << 20)
            yield item.filename, copy
