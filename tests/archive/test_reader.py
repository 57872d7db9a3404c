"""What is wrong with an archive is told as a fault; the rest is read all the same."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from wheelfix.archive.directory import unsafe
from wheelfix.archive.reader import Inspected, Unreadable, read_wheel
from wheelfix.model.limits import Limits
from wheelfix.model.wheel import WheelFacts

MakeWheel = Callable[..., Path]
INFO = "demo-1.0.dist-info"


def read(path: Path, limits: Limits | None = None, jobs: int = 1) -> WheelFacts:
    return read_wheel(path, inspect=lambda n, d: Inspected("elf"), limits=limits, jobs=jobs)


def rules(path: Path, limits: Limits | None = None) -> list[str]:
    return sorted({f.rule for f in read(path, limits).faults})


def append(path: Path, name: str, data: bytes, attr: int = 0o100644 << 16) -> None:
    """Write one more member behind the finished wheel, as careless tools do."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        entry.create_system, entry.external_attr = 3, attr
        archive.writestr(entry, data)


def test_a_right_wheel_has_no_faults_and_all_facts(make_wheel: MakeWheel) -> None:
    facts = read(
        make_wheel({"demo/a.py": b"a", "demo-1.0.data/scripts/t": b"#!", "demo-1.0.data/data/x/y": b""})
    )
    assert facts.faults == ()
    assert facts.tags == ("py3-none-manylinux_2_28_x86_64",)
    assert [m.path for m in facts.members][:3] == ["demo/a.py", "scripts:t", "data:x/y"]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "C:x", "a\\b", "a\0b"])
def test_names_that_leave_the_target_are_unsafe(name: str) -> None:
    assert unsafe(name) is not None


@pytest.mark.parametrize("name", ["a/b", "a..b/c", "..a", "ab:c", "é/ü"])
def test_ordinary_names_are_safe(name: str) -> None:
    assert unsafe(name) is None


@pytest.mark.rule("zip-slip", fires=True)
def test_a_member_that_climbs_out_is_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b""})
    append(path, "../evil", b"x")
    assert "zip-slip" in rules(path)


@pytest.mark.rule("zip-duplicate", fires=True)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"one"})
    append(path, "demo/a", b"two")
    assert "zip-duplicate" in rules(path)


@pytest.mark.rule("zip-symlink", fires=True)
def test_a_symbolic_link_is_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({})
    append(path, "demo/l", b"target", 0o120777 << 16)
    assert "zip-symlink" in rules(path)


@pytest.mark.rule("zip-local-central", fires=True)
def test_bytes_before_and_behind_the_archive_are_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x"})
    whole = path.read_bytes()
    path.write_bytes(b"#!/bin/sh\n" + whole)
    assert rules(path) == ["zip-local-central"]
    path.write_bytes(whole + b"behind")
    assert rules(path) == ["zip-local-central"]


def test_a_local_entry_that_the_directory_does_not_list_is_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x"})
    whole = path.read_bytes()
    at = whole.index(b"PK\1\2")
    hidden = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, 8, 0) + b"hidden.x"
    end = bytearray(whole[at:])
    struct.pack_into("<L", end, len(end) - 6, at + len(hidden))
    path.write_bytes(whole[:at] + hidden + bytes(end))
    (fault,) = read(path).faults
    assert (fault.rule, fault.member) == ("zip-local-central", "hidden.x")


def test_a_local_name_that_differs_is_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/abc": b"x"})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"demo/abc", b"demo/xyz", 1))
    (fault,) = read(path).faults
    assert fault.evidence["differ"] == ["name"]


def test_two_entries_at_one_offset_overlap(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x", "demo/b": b"y"})
    whole = bytearray(path.read_bytes())
    first = whole.index(b"PK\1\2")
    second = whole.index(b"PK\1\2", first + 4)
    whole[second + 42 : second + 46] = whole[first + 42 : first + 46]
    path.write_bytes(bytes(whole))
    faults = [f for f in read(path).faults if f.rule == "zip-local-central"]
    assert any("overlaps" in f.message for f in faults)


@pytest.mark.rule("zip-crc", fires=True)
def test_damaged_bytes_are_told_and_the_rest_is_read(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x" * 1000, "demo/b": b"y"})
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"demo/a") + 8] ^= 0xFF
    path.write_bytes(bytes(whole))
    facts = read(path)
    assert [f.rule for f in facts.faults] == ["zip-crc"]
    assert next(m for m in facts.members if m.name == "demo/b").sha256


@pytest.mark.rule("zip-unsupported", fires=True)
def test_encrypted_and_unknown_methods_are_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x" * 100})
    whole = path.read_bytes()
    for offset, value in ((8, 1), (10, 14)):  # flags, method, in the central entry
        changed = bytearray(whole)
        at = changed.index(b"PK\1\2") + offset
        struct.pack_into("<H", changed, at, value)
        path.write_bytes(bytes(changed))
        assert "zip-unsupported" in rules(path)


@pytest.mark.rule("zip-unsupported", fires=True)
@pytest.mark.parametrize(("data", "method"), [(b"smuggled", 0), (b"", 93)])
def test_a_folder_that_holds_bytes_or_is_compressed_in_an_unknown_way_is_told(
    make_wheel: MakeWheel, data: bytes, method: int
) -> None:
    path = make_wheel({"demo/a": b"x"})
    append(path, "demo/sub/", data)
    whole = bytearray(path.read_bytes())
    struct.pack_into("<H", whole, whole.rindex(b"PK\1\2") + 10, method)
    path.write_bytes(bytes(whole))
    assert "zip-unsupported" in rules(path)


@pytest.mark.rule("zip-unsupported", fires=False)
def test_an_empty_folder_that_was_deflated_is_healthy(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x"})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("demo/sub/"), b"", zipfile.ZIP_DEFLATED)
    assert rules(path) == []


@pytest.mark.rule("archive-limit", fires=True)
def test_a_member_over_the_limit_is_not_read(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x" * 5000})
    assert "archive-limit" in rules(path, Limits(member=4000))
    assert "archive-limit" not in rules(path, Limits(member=6000))


@pytest.mark.rule("zip-ratio", fires=True)
@pytest.mark.rule("zip-ratio", fires=False)
def test_a_large_run_of_zeros_is_told_and_a_small_one_is_not(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/zeros": bytes(2 << 20)})
    assert rules(path, Limits(ratio_from=1 << 20)) == ["zip-ratio"]
    assert rules(path) == []


@pytest.mark.rule("record-missing", fires=True)
def test_a_member_that_record_omits_is_told(make_wheel: MakeWheel) -> None:
    path = make_wheel({"demo/a": b"x"}, record=lambda t: "\n".join(t.splitlines()[1:]) + "\n")
    assert rules(path) == ["record-missing"]


@pytest.mark.parametrize(
    ("old", "new"), [("sha256=", "md5="), ("sha256=", "sha256=A"), (",1\n", ",2\n"), (",1\n", ",x\n")]
)
@pytest.mark.rule("record-hash", fires=True)
def test_a_weak_wrong_or_unreadable_hash_is_told(make_wheel: MakeWheel, old: str, new: str) -> None:
    path = make_wheel({"demo/a": b"x"}, record=lambda t: t.replace(old, new, 1))
    assert "record-hash" in rules(path)


@pytest.mark.parametrize("row", ["/etc/passwd,,", "../x,,", "demo/none,sha256=abc,1"])
@pytest.mark.rule("record-path", fires=True)
def test_rows_without_a_member_are_told(make_wheel: MakeWheel, row: str) -> None:
    path = make_wheel({"demo/a": b"x"}, record=lambda t: t + row + "\n")
    assert rules(path) == ["record-path"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": "Name: other\nVersion: 1.0\n"},
        {"metadata": "Name: demo\nVersion: 1.1\n"},
        {"wheel": "Tag: py3-none-linux_x86_64\n"},
    ],
)
@pytest.mark.rule("metadata-mismatch", fires=True)
def test_files_that_contradict_the_file_name_are_told(make_wheel: MakeWheel, wrong: dict[str, str]) -> None:
    assert rules(make_wheel({}, **wrong)) == ["metadata-mismatch"]


@pytest.mark.rule("metadata-mismatch", fires=False)
def test_names_and_versions_agree_after_normalisation(make_wheel: MakeWheel) -> None:
    metadata = "Metadata-Version: 2.1\nName: DEMO\nVersion: 1.0.0\n"
    assert rules(make_wheel({}, metadata=metadata)) == []


def test_what_is_no_wheel_is_unreadable(tmp_path: Path) -> None:
    for name, data in (
        ("x.whl", b""),
        ("demo-1.0-py3-none-any.whl", b"no zip"),
        ("demo-1.0-py3-none-any.zip", b""),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(Unreadable):
            read(path)


def test_several_processes_give_the_same_facts(make_wheel: MakeWheel) -> None:
    members = {f"demo/{i}": bytes([i]) * (4 << 20) for i in range(6)}
    path = make_wheel(members)
    assert read(path, jobs=1) == read(path, jobs=3)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(at=707, junk=b"\0", cut=0)  # two entries at one offset
@given(at=st.integers(0, 2000), junk=st.binary(min_size=1, max_size=6), cut=st.integers(0, 3000))
def test_damaged_archives_give_faults_and_never_raise(
    make_wheel: MakeWheel, at: int, junk: bytes, cut: int
) -> None:
    path = make_wheel({"demo/a": b"abc" * 50, "demo/b.so": b"\x7fELF" + bytes(60)})
    whole = bytearray(path.read_bytes())
    whole[at : at + len(junk)] = junk
    path.write_bytes(bytes(whole[: max(0, len(whole) - cut if cut < 200 else len(whole))]))
    try:
        facts = read(path)
    except Unreadable:
        return
    assert facts.filename == path.name
