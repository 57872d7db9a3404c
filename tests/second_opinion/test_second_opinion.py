"""wheelfix against readers that share no code with it, on every real wheel. Where they differ, differences.toml says who
is right and why; a difference that it does not explain fails, and so does a row that explains nothing any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.wheels import Entry, path_of
from tests.second_opinion import ours, tags
from tests.second_opinion.by_auditwheel import by_auditwheel
from tests.second_opinion.by_pyelftools import by_pyelftools
from tests.second_opinion.by_readelf import by_readelf
from tests.second_opinion.members import elf_members
from tests.second_opinion.table import (
    READERS,
    RIGHT,
    Difference,
    differences,
    outlived,
    rows,
    unexplained,
)
from wheelfix.audit import Options, prepare, read

ROWS = rows()


def judge(found: list[Difference], file: str, *readers: str) -> None:
    """Each difference is explained, and each explanation is of a difference."""
    assert unexplained(found, file, ROWS) == []
    assert outlived(found, file, readers, ROWS) == []


def test_every_row_is_of_a_known_reader_and_says_who_is_right_and_why() -> None:
    assert ROWS
    for row in ROWS:
        assert row.reader in READERS, row
        assert row.right in RIGHT, row
        assert len(row.why.split()) > 10, row


@pytest.mark.real
def test_every_object_is_read_as_pyelftools_and_readelf_read_it(real_wheel: Entry, tmp_path: Path) -> None:
    path = path_of(real_wheel)
    facts = {m.name: m.elf for m in read(path, prepare(Options())).elves if m.elf is not None}
    found: list[Difference] = []
    symbols = 0
    names = []
    for name, copy in elf_members(path, tmp_path):
        names.append(name)
        own = ours.by_wheelfix(facts[name])
        found += differences("pyelftools", name, own, by_pyelftools(copy))
        found += differences("readelf", name, own, by_readelf(copy))
        symbols += len(facts[name].symbols)
    print(f"{real_wheel['file']}: {len(names)} objects, {symbols} symbols, {len(found)} differences")
    assert sorted(names) == sorted(facts)
    judge(found, path.name, "pyelftools", "readelf")


@pytest.mark.real
def test_the_tag_is_auditwheels(real_wheel: Entry) -> None:
    path = path_of(real_wheel)
    theirs = by_auditwheel(path)
    setting = prepare(Options())
    own = tags.by_wheelfix(read(path, setting), setting, str(theirs["tag"]))
    found = list(differences("auditwheel", "", own, theirs))
    print(f"{real_wheel['file']}: {len(theirs)} facts of its tag, {len(found)} differences")
    judge(found, path.name, "auditwheel")


@pytest.mark.real
def test_the_manifest_has_auditwheels_tag(real_wheel: Entry) -> None:
    if "auditwheel" in real_wheel:
        assert by_auditwheel(path_of(real_wheel))["tag"] == real_wheel["auditwheel"]
