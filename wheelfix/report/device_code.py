"""What the code for each GPU architecture costs in a wheel: for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wheelfix.elf.fatbin import merged
from wheelfix.model.elf import DeviceCode
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.repair.show import megabytes
from wheelfix.report.escape import plain

if TYPE_CHECKING:
    from rich.console import Console


def totals(members: Iterable[Member]) -> tuple[DeviceCode, ...]:
    """The device code of all members, one row for each kind and architecture, largest first."""
    rows = merged(*(m.elf.device_code for m in members if m.elf is not None))
    return tuple(sorted(rows, key=lambda row: -row.size))


def installed_size(wheel: WheelFacts) -> int:
    """Bytes of all members as they are installed: what the shares are of.

    An archive compresses a member as one stream, so what a part of it takes there cannot be told.
    """
    return sum(m.size for m in wheel.members)


def as_json(code: DeviceCode) -> dict[str, Any]:
    """One row for programs."""
    return {
        "kind": code.kind,
        "architecture": code.architecture,
        "entries": code.entries,
        "size": code.size,
        "compressed": code.compressed,
    }


def totals_as_json(wheel: WheelFacts) -> list[dict[str, Any]]:
    """The totals of a wheel, each with its share of the installed size (0 to 1)."""
    whole = installed_size(wheel)
    return [as_json(row) | {"share": round(_share(row.size, whole), 4)} for row in totals(wheel.elves)]


def print_table(console: Console, wheel: WheelFacts) -> None:
    """Each object with its architectures, then what each architecture costs over all objects; largest first."""
    holders = [m for m in wheel.elves if m.elf is not None and m.elf.device_code]
    if not holders:
        console.print("  no device code")
        return
    rows = totals(holders)
    width = max(len(row.architecture) for row in rows)
    whole = installed_size(wheel)
    for member in holders:
        _group(console, plain(member.path), totals([member]), whole, width)
    console.print()
    _group(console, f"device code in {len(holders)} of {len(wheel.elves)} objects", rows, whole, width)
    console.print("  %: of the installed size")


def _share(size: int, whole: int) -> float:
    # Headers may name the same bytes twice; no part is more than the whole.
    return min(1.0, size / max(whole, 1))


def _percent(share: float) -> str:
    return "<0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _group(console: Console, title: str, rows: Sequence[DeviceCode], whole: int, width: int) -> None:
    from rich.text import Text

    console.print(Text(title, style="bold"), soft_wrap=True)
    every = DeviceCode("other", "all", sum(r.entries for r in rows), sum(r.size for r in rows))
    for row in [*rows, every] if len(rows) > 1 else rows:
        kind = "" if row is every else f"{row.kind}{', compressed' if row.compressed else ''}"
        name = plain(row.architecture).ljust(width)
        console.print(
            Text(
                f"    {name}  {kind:17}  {row.entries:6}  {megabytes(row.size):>9}  {_percent(_share(row.size, whole)):>7}"
            ),
            soft_wrap=True,
        )
