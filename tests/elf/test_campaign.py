"""A small edit campaign, and that its judges see what is broken."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.elf import campaign as module
from tests.elf.campaign import campaign, one, table
from tests.elf.campaign_judge import by_pyelftools, by_readelf, loaded, told
from tests.elf.campaign_set import LONG_PATH, USER_ANSWER, Subject, compiled
from wheelfix.model.plan import ElfChange


def altered(data: bytes, section: str) -> bytes:
    """The object with the first byte of one section changed."""
    at = ELFFile(io.BytesIO(data)).get_section_by_name(section)["sh_offset"]
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


CHANGE = ElfChange(path="$ORIGIN/../libs", path_kind="runpath")


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """An ordinary library of the compiled set, with a path of its own."""
    subjects = compiled(tmp_path_factory.mktemp("set") / "own", random.Random(1), 30)
    return next(
        s
        for s in subjects
        if s.answer == USER_ANSWER and not s.program and s.hidden is None and LONG_PATH in s.name
    )


def test_thirty_random_edits_of_compiled_objects_load_and_are_what_was_asked(tmp_path: Path) -> None:
    verdicts = campaign(30, 7, [], tmp_path)
    assert [v for v in verdicts if v.outcome == "BROKEN"] == []
    outcomes = {v.outcome for v in verdicts}
    assert {"in place", "by patchelf"} <= outcomes
    assert sum(v.judged == "loaded" for v in verdicts) >= 20
    assert table(verdicts).splitlines()[0].split() == [
        "objects",
        "edit",
        *["in", "place", "by", "patchelf", "refused", "BROKEN"],
    ]


def test_a_sound_edit_passes_every_judge(subject: Subject) -> None:
    verdict = one(subject, "path shorter", CHANGE)
    assert (verdict.outcome, verdict.why, verdict.judged) == ("in place", "", "loaded")


@pytest.mark.parametrize(
    ("damage", "sight"),
    [
        (lambda d: d, "RUNPATH is"),
        (lambda d: d.replace(b"libunused.so\0", b"libunuser.so\0"), "NEEDED is"),
        (lambda d: d.replace(b"picked\0", b"picket\0"), "symbols differ"),
        (lambda d: altered(d, ".tdata"), ".tdata holds other bytes"),
        (lambda d: altered(d, ".rela.dyn"), "relocations differ"),
        (lambda d: altered(d, ".text"), ".text holds other bytes"),
    ],
)  # fmt: skip
def test_damage_is_seen(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, damage: object, sight: str
) -> None:
    real = module.editor.edit
    unchanged = sight == "RUNPATH is"

    def broken(data: bytes, change: ElfChange) -> bytes:
        return damage(data if unchanged else real(data, change))  # type: ignore[no-any-return,operator]

    monkeypatch.setattr(module.editor, "edit", broken)
    verdict = one(subject, "path shorter", CHANGE)
    assert verdict.outcome == "BROKEN"
    assert sight in verdict.why


def test_a_segment_out_of_step_with_its_address_is_seen(subject: Subject) -> None:
    data = bytearray(subject.path.read_bytes())
    (table_at,) = struct.unpack_from("<Q", data, 32)
    count = struct.unpack_from("<H", data, 56)[0]
    last = max(i for i in range(count) if struct.unpack_from("<I", data, table_at + 56 * i)[0] == 1)
    (offset,) = struct.unpack_from("<Q", data, table_at + 56 * last + 8)
    struct.pack_into("<Q", data, table_at + 56 * last + 8, offset + 8)
    assert any("congruent" in f for f in by_pyelftools(subject.path.read_bytes(), bytes(data), 4096))


def test_an_edit_that_undoes_itself_or_leaves_files_is_seen(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.editor, "edit", lambda data, change: data + b"\0")
    assert "the same edit again changes something" in one(subject, "path shorter", CHANGE).why


def test_a_library_that_cannot_find_its_needs_does_not_load(subject: Subject) -> None:
    change = ElfChange(rename_needed=(("libdep.so.1", "libd.so.1"),))
    assert "libdep.so.1" in loaded(subject, subject.path.read_bytes(), change)


def test_a_version_file_that_kept_its_name_is_seen(subject: Subject) -> None:
    """glibc aborts where verneed names a file that nobody loaded (dl-version.c)."""
    old = told(subject.path.read_bytes())
    faults = by_readelf(old, old, ElfChange(rename_needed=(("libdep.so.1", "libd.so.1"),)))
    assert any(f.startswith("NEEDED") for f in faults)
    assert any(f.startswith("versions differ") for f in faults)
