"""What is written can be read by zipfile and pip's own rules, and what did not change is copied as it was."""

from __future__ import annotations

import csv
import io
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wheelfix.archive.reader import Inspected, read_wheel
from wheelfix.archive.writer import Changes, NewMember, write_wheel

MakeWheel = Callable[..., Path]
INFO = "demo-1.0.dist-info"


def rewritten(source: Path, changes: Changes, target: Path | None = None, **options: int) -> Path:
    facts = read_wheel(source, inspect=lambda name, data: Inspected("elf"))
    target = target or source.parent / "out" / source.name
    target.parent.mkdir(exist_ok=True)
    write_wheel(
        source,
        target,
        changes,
        dist_info=INFO,
        hashes={m.name: m.sha256 for m in facts.members},
        **options,  # type: ignore[arg-type]
    )
    return target


def stream(path: Path, name: str) -> bytes:
    """The compressed bytes of a member, found by zipfile."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        info = archive.getinfo(name)
        file.seek(info.header_offset + 26)
        lengths = file.read(4)
        file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
        return file.read(info.compress_size)


def test_unchanged_members_keep_stream_time_mode_and_order(make_wheel: MakeWheel) -> None:
    source = make_wheel({"demo/a.py": b"a = 1\n" * 99, "demo/tool": b"#!x\n"}, modes={"demo/tool": 0o755})
    target = rewritten(source, Changes(added={"demo.libs/x": NewMember(b"new")}))
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target) as new:
        assert new.testzip() is None
        assert new.namelist() == [
            "demo/a.py",
            "demo/tool",
            "demo.libs/x",
            f"{INFO}/METADATA",
            f"{INFO}/WHEEL",
            f"{INFO}/RECORD",
        ]
        for name in ("demo/a.py", "demo/tool"):
            assert new.getinfo(name).date_time == old.getinfo(name).date_time
            assert new.getinfo(name).external_attr == old.getinfo(name).external_attr
            assert stream(source, name) == stream(target, name)


def test_record_lists_every_member_and_itself_last(make_wheel: MakeWheel) -> None:
    source = make_wheel({"demo/a,b.txt": b"comma", "demo/a.py": b"x"})
    target = rewritten(source, Changes(replaced={"demo/a.py": b"y"}, added={"demo/n": NewMember(b"n")}))
    with zipfile.ZipFile(target) as archive:
        rows = list(csv.reader(io.StringIO(archive.read(f"{INFO}/RECORD").decode())))
        assert [r[0] for r in rows] == archive.namelist()
        assert rows[-1] == [f"{INFO}/RECORD", "", ""]
    # the reader holds every hash of RECORD against the bytes
    assert read_wheel(target, inspect=lambda n, d: Inspected()).faults == ()


def test_renamed_removed_and_modes(make_wheel: MakeWheel) -> None:
    source = make_wheel({"demo/a": b"a", "demo/b": b"b"})
    changes = Changes(removed={"demo/a"}, renamed={"demo/b": "demo/c"}, modes={"demo/b": 0o755})
    with zipfile.ZipFile(rewritten(source, changes)) as archive:
        assert archive.namelist()[0] == "demo/c"
        assert archive.read("demo/c") == b"b"
        assert stat.S_IMODE(archive.getinfo("demo/c").external_attr >> 16) == 0o755


def test_new_members_have_the_time_of_source_date_epoch(make_wheel: MakeWheel) -> None:
    source = make_wheel({})
    changes = Changes(added={"demo/n": NewMember(b"n", 0o600)})
    with zipfile.ZipFile(rewritten(source, changes, epoch=1_600_000_000)) as archive:
        assert archive.getinfo("demo/n").date_time == (2020, 9, 13, 12, 26, 40)


def test_same_input_same_bytes_for_any_number_of_jobs(make_wheel: MakeWheel, tmp_path: Path) -> None:
    source = make_wheel({"demo/a": b"a" * 5000})
    changes = Changes(replaced={"demo/a": os.urandom(3000) * 900}, added={"demo/n": NewMember(b"n" * 999)})
    one = rewritten(source, changes, tmp_path / "1.whl", jobs=1).read_bytes()
    two = rewritten(source, changes, tmp_path / "2.whl", jobs=2).read_bytes()
    assert one == two


def test_failure_leaves_nothing_behind(make_wheel: MakeWheel, tmp_path: Path) -> None:
    source = make_wheel({"demo/a": b"a" * 5000})
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(KeyError):  # a member whose hash is not known
        write_wheel(source, folder / "x.whl", Changes(), dist_info=INFO, hashes={})
    assert list(folder.iterdir()) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text("abc/é ,\"'", min_size=1, max_size=8)
        .map(lambda t: "demo/" + t.strip("/").replace("//", "/"))
        .filter(lambda t: not t.endswith("/")),
        st.binary(max_size=300),
        max_size=6,
    ),
    st.binary(max_size=500),
)
def test_round_trip(make_wheel: MakeWheel, members: dict[str, bytes], new: bytes) -> None:
    source = make_wheel(members)
    target = rewritten(source, Changes(added={"demo.libs/lib.so": NewMember(new)}))
    with zipfile.ZipFile(target) as archive:
        for name, data in members.items():
            assert archive.read(name) == data
        assert archive.read("demo.libs/lib.so") == new
    assert read_wheel(target, inspect=lambda n, d: Inspected()).faults == ()
