"""The pipeline from wheel files to a report, on small wheels that gcc and zipfile make."""

from __future__ import annotations

import base64
import datetime
import hashlib
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from wheelfix import audit, checks
from wheelfix.archive.reader import Unreadable
from wheelfix.audit import Options, audit_wheel, audit_wheels, prepare, subject_of
from wheelfix.model.finding import Finding, WheelReport
from wheelfix.policy.load import PolicyErrors

# memcpy@GLIBC_2.14 is newer than manylinux_2_12 and older than manylinux_2_17.
EXTENSION = """
__asm__(".symver memcpy, memcpy@GLIBC_2.14");
void *memcpy(void *, const void *, unsigned long);
const char *const backend = "DemoBackend";
void *PyInit__ext(void *to, void *from, unsigned long n) { return memcpy(to, from, n); }
"""
TAG = "cp311-cp311-manylinux_2_17_x86_64"
TOO_NEW = "symbol-version-too-new"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An extension module that needs libc alone, a library, and a module that needs the library of ``other``."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "ext.c").write_text(EXTENSION)
    (folder / "own.c").write_text("int own(void) { return 1; }\n")
    (folder / "user.c").write_text("int own(void); int PyInit__ext(void) { return own(); }\n")

    def gcc(*arguments: str) -> None:
        subprocess.run(["gcc", "-shared", "-fPIC", "-fno-builtin", *arguments], cwd=folder, check=True)

    gcc("ext.c", "-o", "ext.so")
    gcc("own.c", "-o", "libown.so", "-Wl,-soname,libown.so", "-Wl,-rpath,/opt/own")
    gcc("user.c", "-o", "user.so", "libown.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../other")
    return {name: (folder / name).read_bytes() for name in ("ext.so", "libown.so", "user.so")}


def wheel(
    folder: Path, name: str, members: Mapping[str, bytes], *, tag: str = TAG, requires: str | None = None
) -> Path:
    """A wheel whose RECORD is right. A tag with several platforms is expanded in WHEEL, as PEP 427 asks."""
    info = f"{name}-1.0.dist-info"
    python, abi, platforms = tag.split("-")
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    if requires is not None:
        metadata += f"Requires-Dist: {requires}\n"
    tags = "".join(f"Tag: {python}-{abi}-{p}\n" for p in platforms.split("."))
    text = f"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\n{tags}"
    files = {**members, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": text.encode()}
    rows = [f"{info}/RECORD,,"]
    for member, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{member},sha256={digest},{len(data)}")
    path = folder / f"{name}-1.0-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in (files | {f"{info}/RECORD": "\n".join([*rows, ""]).encode()}).items():
            archive.writestr(member, data)
    return path


def extension(folder: Path, built: Mapping[str, bytes], name: str = "demo", tag: str = TAG) -> Path:
    return wheel(folder, name, {f"{name}/_ext.so": built["ext.so"]}, tag=tag)


def judge(path: Path, **options: object) -> WheelReport:
    return audit_wheel(path, prepare(Options(**options)))  # type: ignore[arg-type]


def ids(report: WheelReport) -> set[str]:
    return {f.rule for f in report.findings}


def judged_tags(path: Path, **options: object) -> list[str]:
    return [p.tag for p in subject_of(path, prepare(Options(**options))).platforms]  # type: ignore[arg-type]


def test_a_right_wheel_passes_and_the_report_says_what_it_is(tmp_path: Path, built: dict[str, bytes]) -> None:
    report = judge(path := extension(tmp_path, built))
    assert [f for f in report.findings if f.severity == "error"] == []
    assert (report.path, report.name, report.version) == (str(path), "demo", "1.0")
    assert (report.tags, report.policies, report.verdict) == ((TAG,), ("manylinux",), "pass")


def test_a_version_above_the_tag_fails(tmp_path: Path, built: dict[str, bytes]) -> None:
    report = judge(extension(tmp_path, built, tag="cp311-cp311-manylinux_2_12_x86_64"))
    (finding,) = (f for f in report.findings if f.severity == "error")
    assert (report.verdict, finding.rule, finding.member, finding.symbol) == (
        "fail",
        TOO_NEW,
        "demo/_ext.so",
        "memcpy",
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_several_wheels_keep_their_order_and_a_bad_one_hides_none(
    tmp_path: Path, built: dict[str, bytes], jobs: int
) -> None:
    bad = tmp_path / "bad-1.0-py3-none-any.whl"
    bad.write_bytes(b"PK")
    absent = tmp_path / "absent-1.0-py3-none-any.whl"
    old = extension(tmp_path, built, "old", "cp311-cp311-manylinux_2_12_x86_64")
    paths = [extension(tmp_path, built, "z"), bad, old, absent, extension(tmp_path, built, "a")]
    report = audit_wheels(paths, prepare(Options(jobs=jobs)))
    assert [w.path for w in report.wheels] == [str(p) for p in paths]
    assert [w.verdict for w in report.wheels] == ["pass", "unreadable", "fail", "unreadable", "pass"]
    assert [ids(w) for w in report.wheels if w.verdict == "unreadable"] == [{"unreadable"}, {"unreadable"}]


def test_the_number_of_processes_does_not_change_the_report(tmp_path: Path, built: dict[str, bytes]) -> None:
    tags = (TAG, "cp311-cp311-manylinux_2_12_x86_64", "py3-none-any")
    paths = [extension(tmp_path, built, f"demo{i}", tag) for i, tag in enumerate(tags)]
    alone, together = (audit_wheels(paths, prepare(Options(jobs=n))) for n in (1, 2))
    assert alone == together
    assert sum(len(w.findings) for w in alone.wheels) > 0


def test_a_fault_of_the_tool_on_one_wheel_hides_no_other(
    tmp_path: Path, built: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WHEELFIX_TRACEBACK", raising=False)
    real = audit.subject_of

    def breaks_on_first(path: Path, setting: audit.Setting) -> object:
        if path.name.startswith("first"):
            raise ZeroDivisionError("no luck")
        return real(path, setting)

    monkeypatch.setattr(audit, "subject_of", breaks_on_first)
    paths = [extension(tmp_path, built, "first"), extension(tmp_path, built, "second")]
    first, second = audit_wheels(paths, prepare(Options())).wheels
    assert (first.verdict, ids(first), second.verdict) == ("unreadable", {"internal-error"}, "pass")
    assert "ZeroDivisionError: no luck" in first.findings[0].message


def test_an_input_that_is_no_wheel_has_no_name_and_no_tags(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(b"nothing")
    report = judge(path)
    assert (report.verdict, report.name, report.version, report.tags) == ("unreadable", None, None, ())
    assert path.name in report.findings[0].message
    with pytest.raises(Unreadable):
        subject_of(path, prepare(Options()))


def test_plat_is_judged_instead_of_the_tag_of_the_file_name(tmp_path: Path, built: dict[str, bytes]) -> None:
    newer = extension(tmp_path, built, "newer")
    older = extension(tmp_path, built, "older", "cp311-cp311-manylinux_2_12_x86_64")
    assert TOO_NEW in ids(judge(newer, plat="manylinux_2_12_x86_64"))
    assert TOO_NEW not in ids(judge(older, plat="manylinux_2_17_x86_64"))


def test_a_policys_floor_is_judged_with_the_architecture_of_the_wheel(
    tmp_path: Path, built: dict[str, bytes]
) -> None:
    policy = tmp_path / "floor.toml"
    policy.write_text('schema = 1\nname = "floor"\n[platform]\ntag = "manylinux_2_12"\n')
    path = extension(tmp_path, built)
    assert judged_tags(path, policies=(str(policy),)) == ["manylinux_2_12_x86_64"]
    report = judge(path, policies=(str(policy),))
    assert (report.policies, TOO_NEW in ids(report)) == (("floor",), True)


def test_plat_goes_before_a_policys_floor(tmp_path: Path, built: dict[str, bytes]) -> None:
    policy = tmp_path / "floor.toml"
    policy.write_text('schema = 1\nname = "floor"\n[platform]\ntag = "manylinux_2_12"\n')
    path = extension(tmp_path, built)
    assert judged_tags(path, policies=(str(policy),), plat="manylinux_2_28_x86_64") == [
        "manylinux_2_28_x86_64"
    ]


def test_every_tag_is_judged_and_the_loader_is_asked_on_the_oldest_machine(
    tmp_path: Path, built: dict[str, bytes]
) -> None:
    path = extension(tmp_path, built, tag="cp311-cp311-manylinux_2_28_x86_64.manylinux_2_17_x86_64")
    subject = subject_of(path, prepare(Options()))
    assert [p.tag for p in subject.platforms] == ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64"]
    assert [s.platform.tag for s in subject.scenes] == ["manylinux_2_17_x86_64"]


def test_a_wheel_for_both_c_libraries_has_a_scene_and_a_policy_for_each(
    tmp_path: Path, built: dict[str, bytes]
) -> None:
    path = extension(tmp_path, built, tag="cp311-cp311-manylinux_2_17_x86_64.musllinux_1_2_x86_64")
    subject = subject_of(path, prepare(Options()))
    assert [s.world.libc for s in subject.scenes] == ["glibc", "musl"]
    assert subject.policy.names == ("manylinux", "musllinux")


def test_objects_in_a_wheel_for_any_platform_are_judged_as_plain_linux(
    tmp_path: Path, built: dict[str, bytes]
) -> None:
    path = extension(tmp_path, built, tag="py3-none-any")
    assert judged_tags(path) == ["linux_x86_64"]
    assert "any-tag-with-elf" in ids(judge(path))


def test_select_and_ignore_take_globs_and_decide_the_verdict(tmp_path: Path, built: dict[str, bytes]) -> None:
    path = extension(tmp_path, built, tag="cp311-cp311-manylinux_2_12_x86_64")
    assert ids(judge(path, select=("symbol-version-*",))) == {TOO_NEW}
    assert ids(judge(path, select=("needed-*",))) == set()
    ignoring = judge(path, ignore=("symbol-version-*",))
    assert (TOO_NEW in ids(ignoring), ignoring.verdict) == (False, "pass")
    assert ids(judge(path, select=(TOO_NEW,), ignore=("symbol-*",))) == set()


def test_errors_come_first(tmp_path: Path, built: dict[str, bytes]) -> None:
    members = {"demo/_ext.so": built["ext.so"], "demo/libown.so": built["libown.so"]}
    path = wheel(tmp_path, "demo", members, tag="cp311-cp311-manylinux_2_12_x86_64")
    order = ["error", "warning", "info"]
    levels = [order.index(f.severity) for f in judge(path).findings]
    assert (levels == sorted(levels), levels[0], levels[-1] > 0) == (True, 0, True)


def test_what_several_machines_have_in_common_is_told_once(
    tmp_path: Path, built: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Finding("needed-missing", "error", "m", member=m) for m in ("a.so", "b.so"))
    monkeypatch.setattr(checks, "run", lambda subject: [one, other, one])
    assert judge(extension(tmp_path, built)).findings == (one, other)


def test_given_wheels_are_seen_by_the_loader_but_not_judged(tmp_path: Path, built: dict[str, bytes]) -> None:
    user = wheel(tmp_path, "demo", {"demo/_ext.so": built["user.so"]}, requires="other")
    other = wheel(tmp_path, "other", {"other/libown.so": built["libown.so"]})
    assert "rpath-absolute" in ids(judge(other))  # a fault of the given wheel
    assert "needed-external" in ids(judge(user))
    report = judge(user, with_=(other,))
    assert ids(report).isdisjoint({"rpath-absolute", "needed-external", "needed-missing", "undefined-symbol"})
    bindings = [b for s in subject_of(user, prepare(Options(with_=(other,)))).scenes for b in s.bindings]
    assert [(b.status, b.provider) for b in bindings if b.symbol == "own"] == [("bound", "other/libown.so")]


def test_a_given_folder_means_each_wheel_in_it(tmp_path: Path, built: dict[str, bytes]) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    for name in ("b", "a"):
        wheel(folder, name, {f"{name}/__init__.py": b""})
    (folder / "notes.txt").write_text("no wheel")
    assert [w.name for w in prepare(Options(with_=(folder,))).given] == ["a", "b"]


def test_a_run_that_cannot_be_prepared_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('schema = 1\nname = "bad"\n[[deny]]\nobject = "**"\n')
    (tmp_path / "bad.whl").write_bytes(b"")
    with pytest.raises(PolicyErrors):
        prepare(Options(policies=(str(tmp_path / "bad.toml"),)))
    with pytest.raises(Unreadable):
        prepare(Options(with_=(tmp_path / "bad.whl",)))


def test_strings_of_the_policy_are_looked_for_when_a_wheel_is_read(
    tmp_path: Path, built: dict[str, bytes]
) -> None:
    policy = tmp_path / "p.toml"
    entry = '[[registration]]\nobject = "demo/*"\nstring = "{}"\n'
    policy.write_text('schema = 1\nname = "p"\n' + entry.format("DemoBackend") + entry.format("NoBackend"))
    report = judge(extension(tmp_path, built), policies=(str(policy),))
    told = [f.policy for f in report.findings if f.rule == "contract-registration"]
    assert told == ["p:registration[1].string"]


def test_today_decides_whether_a_waiver_still_counts(tmp_path: Path, built: dict[str, bytes]) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text(
        f'schema = 1\nname = "p"\n[[waive]]\nrule = "{TOO_NEW}"\nreason = "old"\nuntil = 2026-06-30\n'
    )
    path = extension(tmp_path, built, tag="cp311-cp311-manylinux_2_12_x86_64")
    on_the_day = judge(path, policies=(str(policy),), today=datetime.date(2026, 6, 30))
    after = judge(path, policies=(str(policy),), today=datetime.date(2026, 7, 1))
    assert (on_the_day.verdict, after.verdict) == ("pass", "fail")
    assert {TOO_NEW, "waiver-expired"} <= ids(after)
