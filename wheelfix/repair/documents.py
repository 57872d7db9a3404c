"""What goes along with grafts: the list of them, and the licence texts of the packages that they come from."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wheelfix.model.plan import AddFile, Plan
from wheelfix.model.wheel import WheelFacts
from wheelfix.repair.propose import Proposal
from wheelfix.repair.sbom import MEMBER, Grafted, Origin, document
from wheelfix.world import distribution_of


@dataclass(frozen=True, slots=True)
class Source:
    """The package of this machine that installed a file, and where its licence texts lie."""

    origin: Origin
    licences: tuple[str, ...] = ()


Owner = Callable[[str], Source | None]


def with_documents(
    proposal: Proposal, wheel: WheelFacts, owner: Owner, epoch: int | None
) -> tuple[Plan, Mapping[str, bytes]]:
    """The plan with the files that its grafts bring along, and the contents of those files by member name."""
    plan = proposal.plan
    if not plan.grafts or wheel.dist_info is None:
        return plan, {}
    entries = []
    files: dict[str, AddFile] = {}
    contents: dict[str, bytes] = {}
    taken = {m.name for m in wheel.members}
    for graft in plan.grafts:
        source = owner(graft.source)
        entries.append(
            Grafted(graft, proposal.grafted[graft.sha256].soname, source.origin if source else None)
        )
        for path in source.licences if source else ():
            member = f"{wheel.dist_info}/licenses/{source.origin.name if source else ''}/{Path(path).name}"
            if member not in taken and member not in files:
                data = _read(path)
                if data is not None:
                    contents[member] = data
                    files[member] = AddFile(member, f"the licence of {graft.member}", path)
    name = _free(f"{wheel.dist_info}/{MEMBER}", taken)
    moment = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc) if epoch is not None else None
    contents[name] = document(
        wheel.name or distribution_of(wheel), wheel.version or "0", tuple(entries), moment
    )
    listed = (AddFile(name, "the list of grafted files"), *(files[m] for m in sorted(files)))
    return replace(plan, files=(*plan.files, *listed)), contents


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _free(name: str, taken: set[str]) -> str:
    """The name itself, or with a number where an earlier repair has written one."""
    stem, suffix = name.removesuffix(".cdx.json"), ".cdx.json"
    number = 2
    while name in taken:
        name = f"{stem}-{number}{suffix}"
        number += 1
    return name
