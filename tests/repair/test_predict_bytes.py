"""The predicted facts of a changed object are those that its changed bytes have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wheelfix.elf.edit import edit
from wheelfix.elf.read import read
from wheelfix.model.elf import ElfFacts
from wheelfix.model.plan import ElfChange
from wheelfix.repair.predict import changed

LONG = "$ORIGIN/../../../a/very/long/path/that/fits/nowhere:$ORIGIN/../x.libs"


@pytest.fixture
def library(forge: Any) -> Path:
    """Needs two libraries, one with versions; has a SONAME, a RUNPATH, a filter and a symbol table."""
    (forge.folder / "v.map").write_text("V_1 { global: ver; local: *; };")
    ver = forge.library("libver.so.1", "ver", "1", f"-Wl,--version-script={forge.folder}/v.map")
    plain = forge.library("libplain.so", "plain", "2")
    path: Path = forge.library(
        "libuser.so.1",
        "user",
        "ver() + plain()",
        str(ver),
        str(plain),
        "-Wl,-rpath,$ORIGIN/old:/abs",
        "-Wl,-F,libfilt.so.1",
    )
    return path


def facts_of(data: bytes) -> ElfFacts:
    facts = read(data).facts
    assert facts is not None
    return facts


def loader_view(facts: ElfFacts) -> ElfFacts:
    """What does not depend on where the bytes lie in the file."""
    return replace(
        facts,
        size=0,
        segments=(),
        sections=(),
        symbols=tuple(s._replace(value=0, section=min(s.section, 1)) for s in facts.symbols),
    )


@pytest.mark.parametrize(
    "change",
    [
        ElfChange(soname="libuser-1a2b3c4d.so.1"),
        ElfChange(rename_needed=(("libver.so.1", "libver-1a2b3c4d.so.1"),)),
        ElfChange(rename_needed=(("libplain.so", "p"), ("libver.so.1", "libver-1a2b3c4d.so.1"))),
        ElfChange(rename_needed=(("libfilt.so.1", "libf.so.1"),)),
        ElfChange(remove_needed=("libplain.so",)),
        ElfChange(path="$ORIGIN", path_kind="runpath"),
        ElfChange(path=LONG, path_kind="runpath"),
        ElfChange(path=LONG, path_kind="rpath"),
        ElfChange(path="", path_kind="runpath"),
        ElfChange(strip=True),
        ElfChange(
            soname="libuser-1a2b3c4d.so.1",
            rename_needed=(("libver.so.1", "libver-1a2b3c4d.so.1"),),
            remove_needed=("libplain.so",),
            path=LONG,
            path_kind="rpath",
            strip=True,
        ),
    ],
)
def test_prediction_and_bytes_agree(library: Path, change: ElfChange) -> None:
    before = library.read_bytes()
    predicted = loader_view(changed(facts_of(before), change))
    found = loader_view(facts_of(edit(before, change)))
    assert found == predicted
