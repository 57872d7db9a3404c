"""Where the bytes of a wheel are: for the treemap, and the bars of device code. Pure."""

from __future__ import annotations

from typing import Any

from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.report.device_code import totals, totals_as_json
from wheelfix.report.escape import plain

#: So many files are told one by one, the smaller ones as a sum for each folder: nobody can see them in a picture.
MOST_FILES = 2500
_PYTHON = (".py", ".pyi", ".pyc")


def sizes(wheel: WheelFacts) -> dict[str, Any]:
    """``files``: path, bytes as installed, bytes in the archive, kind. ``rest``: folder, files, the same two sums."""
    files = [m for m in wheel.members if m.content != "directory"]
    largest = sorted(files, key=lambda m: (-m.size, m.path))
    rest: dict[str, list[int]] = {}
    for member in largest[MOST_FILES:]:
        total = rest.setdefault(member.path.rpartition("/")[0], [0, 0, 0])
        total[0] += 1
        total[1] += member.size
        total[2] += member.compressed
    return {
        "files": [[plain(m.path), m.size, m.compressed, _kind(m)] for m in largest[:MOST_FILES]],
        "rest": [[plain(folder), *total] for folder, total in rest.items()],
    }


def device(wheel: WheelFacts) -> list[dict[str, Any]]:
    """The device code by kind and architecture, largest first, each with the objects that hold it."""
    holders: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for member in wheel.elves:
        for code in totals([member]):
            holders.setdefault((code.kind, code.architecture), []).append((plain(member.path), code.size))
    rows = totals_as_json(wheel)
    for row in rows:
        row["objects"] = sorted(holders[row["kind"], row["architecture"]], key=lambda held: -held[1])
        row["architecture"] = plain(row["architecture"])
    return rows


def _kind(member: Member) -> str:
    if member.elf is not None or member.content == "elf":
        return "elf"
    return "python" if member.path.endswith(_PYTHON) else "other"
