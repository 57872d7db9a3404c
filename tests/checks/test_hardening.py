"""The hardening rules on literal facts, and their grounds on the real loader."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from wheelfix.checks.hardening import check
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import (
    DF_STATIC_TLS,
    ET_EXEC,
    PF_R,
    PF_W,
    PF_X,
    PT_GNU_STACK,
    PT_TLS,
    ElfFacts,
    Segment,
)
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Libc, PlatformPolicy, Policy
from wheelfix.model.resolution import Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts

STACK = Segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 16)
EXECUTABLE = STACK._replace(flags=PF_R | PF_W | PF_X)


def tls(size: int) -> Segment:
    return Segment(PT_TLS, PF_R, 0, 0, 0, size, 8)


def judged(*objects: ElfFacts, libc: Libc = "glibc") -> list[Finding]:
    """The first object is the root that loads the others."""
    policy = PlatformPolicy("tag", "x86_64", libc, (2, 17), frozenset(), {})
    nodes = tuple(Node(f"pkg/{i}.so", f"/x/pkg/{i}.so", f) for i, f in enumerate(objects))
    scene = Scene(policy, World({}, frozenset(), libc=libc), (Load(nodes[0], nodes, ()),))
    members = tuple(Member(n.path, n.path, content="elf", elf=n.elf) for n in nodes)
    return list(check(Subject(WheelFacts("x.whl", members=members), (policy,), (scene,), Policy())))


def rules(*objects: ElfFacts, libc: Libc = "glibc") -> list[tuple[str, str, str | None]]:
    return [(f.rule, f.severity, f.member) for f in judged(*objects, libc=libc)]


# -- execstack --------------------------------------------------------------------------------------------


@pytest.mark.rule("execstack", fires=True)
def test_an_executable_stack_is_an_error() -> None:
    assert rules(ElfFacts(segments=(EXECUTABLE,))) == [("execstack", "error", "pkg/0.so")]


@pytest.mark.rule("execstack", fires=False)
@pytest.mark.rule("textrel", fires=False)
def test_a_stack_that_is_not_executable_is_right() -> None:
    assert rules(ElfFacts(segments=(STACK,))) == []


@pytest.mark.parametrize(
    ("machine", "found"),
    [(62, True), (3, True), (40, True), (22, True), (183, False), (21, False), (243, False), (258, False)],
)
def test_no_header_means_an_executable_stack_where_glibc_takes_it_so(machine: int, found: bool) -> None:
    assert bool(rules(ElfFacts(machine=machine))) is found


def test_other_headers_do_not_matter_and_one_glibc_among_the_machines_is_enough() -> None:
    code = Segment(1, PF_R | PF_X, 0, 0, 0, 0, 4096)
    assert rules(ElfFacts(segments=(code, STACK))) == []
    assert rules(ElfFacts(dynamic=False), ElfFacts(segments=(EXECUTABLE,))) == [
        ("execstack", "error", "pkg/1.so")
    ]
    musl, glibc = (PlatformPolicy(t, "x86_64", t, (2, 17), frozenset(), {}) for t in ("musl", "glibc"))  # type: ignore[arg-type]
    scenes = tuple(Scene(p, World({}, frozenset()), ()) for p in (musl, glibc))
    wheel = WheelFacts("x.whl", members=(Member("x.so", "x.so", content="elf", elf=ElfFacts()),))
    assert [f.rule for f in check(Subject(wheel, (musl, glibc), scenes, Policy()))] == ["execstack"]


def test_musl_does_not_ask_for_the_header() -> None:
    assert rules(ElfFacts(), libc="musl") == []
    assert rules(ElfFacts(segments=(EXECUTABLE,)), libc="musl") != []


def test_programs_start_with_any_stack() -> None:
    assert rules(ElfFacts(type=ET_EXEC, segments=(EXECUTABLE,))) == []


def test_objects_that_the_loader_never_opens_are_not_judged() -> None:
    assert rules(ElfFacts(dynamic=False)) == []


def test_the_real_loader_makes_the_stack_executable_without_the_header(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int x;")
    subprocess.run(["gcc", "-shared", "-fPIC", "x.c", "-o", "x.so"], check=True, cwd=tmp_path)
    data = bytearray((tmp_path / "x.so").read_bytes())
    for i in range(struct.unpack_from("<H", data, 56)[0]):
        if struct.unpack_from("<I", data, 64 + 56 * i)[0] == PT_GNU_STACK:
            struct.pack_into("<I", data, 64 + 56 * i, 0)
    (tmp_path / "bare.so").write_bytes(data)
    code = (
        "import ctypes, sys\n"
        "try: ctypes.CDLL(sys.argv[1])\n"
        "except OSError as e: print(e)\n"
        "print([l for l in open('/proc/self/maps') if '[stack]' in l][0].split()[1])"
    )
    shown = [
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / n], capture_output=True, text=True, check=True
        ).stdout
        for n in ("x.so", "bare.so")
    ]
    assert "rw-p" in shown[0]
    assert "rwxp" in shown[1] or "cannot enable executable stack" in shown[1]


# -- textrel ----------------------------------------------------------------------------------------------


@pytest.mark.rule("textrel", fires=True)
def test_text_relocations_are_a_warning() -> None:
    assert rules(ElfFacts(segments=(STACK,), textrel=True)) == [("textrel", "warning", "pkg/0.so")]


# -- static TLS -------------------------------------------------------------------------------------------


def static(size: int, **more: object) -> ElfFacts:
    return ElfFacts(segments=(STACK, tls(size)), flags=DF_STATIC_TLS, **more)  # type: ignore[arg-type]


@pytest.mark.rule("static-tls", fires=True)
def test_more_static_tls_than_the_surplus_is_a_warning() -> None:
    assert rules(static(8192)) == [("static-tls", "warning", "pkg/0.so")]


def test_the_surplus_is_1664_bytes_less_144_of_the_c_library() -> None:
    assert rules(static(1520)) == []
    assert rules(static(1521)) != []


def test_the_static_tls_of_openmp_runtimes_is_right() -> None:
    assert rules(ElfFacts(segments=(STACK,)), static(120)) == []
    assert rules(ElfFacts(segments=(STACK,), flags=DF_STATIC_TLS)) == []  # what it uses is another's


@pytest.mark.rule("static-tls", fires=False)
def test_thread_local_data_of_the_dynamic_model_is_right_at_any_size() -> None:
    assert rules(ElfFacts(segments=(STACK, tls(100_000)))) == []


def test_static_tls_that_a_program_starts_with_is_right() -> None:
    assert rules(ElfFacts(type=ET_EXEC, segments=(STACK,)), static(8192)) == []


def test_what_is_loaded_together_is_told() -> None:
    (finding,) = judged(static(2000), static(300), ElfFacts(segments=(STACK, tls(5000))))
    assert finding.evidence["together"] == 2300


def node_of(elf: ElfFacts) -> Node:
    return Node("given/large.so", "/x/given/large.so", elf, "given")


def test_what_the_fullest_process_loads_together_counts_and_the_hosts_libraries_do_not() -> None:
    nodes = [
        Node(f"pkg/{i}.so", f"/x/pkg/{i}.so", f)
        for i, f in enumerate([static(2000), static(300), static(50)])
    ]
    libc = Node("host:libc.so.6", "/host/libc.so.6", static(120), "host")
    text = Node("pkg/text.so", "/x/pkg/text.so", None)
    bare = Node("pkg/bare.so", "/x/pkg/bare.so", ElfFacts(segments=(STACK,), flags=DF_STATIC_TLS))
    policy = PlatformPolicy("tag", "x86_64", "glibc", (2, 17), frozenset(), {})
    loads = (
        Load(text, (text, nodes[1]), ()),
        Load(nodes[2], (nodes[2], node_of(static(9000)), libc), ()),  # without the object that is judged
        Load(nodes[0], (nodes[0], nodes[2], libc), ()),
        Load(nodes[1], (nodes[1], nodes[0], bare, text, libc), ()),
        Load(nodes[2], (nodes[2], nodes[1], libc), ()),
    )
    members = tuple(Member(n.path, n.path, content="elf", elf=n.elf) for n in nodes)
    scene = Scene(policy, World({}, frozenset()), loads)
    (finding,) = check(Subject(WheelFacts("x.whl", members=members), (policy,), (scene,), Policy()))
    assert finding.member == "pkg/0.so"
    assert finding.evidence == {"bytes": 2000, "together": 2300, "surplus": 1664, "libc": 144}


def test_the_reserve_is_a_matter_of_glibc() -> None:
    assert rules(static(8192), libc="musl") == []


@pytest.mark.parametrize(("size", "opens"), [(1520, True), (8192, False)])
def test_the_real_loader_has_that_much_room(tmp_path: Path, size: int, opens: bool) -> None:
    (tmp_path / "x.c").write_text(
        f'static __thread char b[{size}] __attribute__((tls_model("initial-exec"))); char *f(int i) {{ return b + i; }}'
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "x.c", "-o", "x.so"], check=True, cwd=tmp_path)
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 'x.so')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is opens
    assert opens or "static TLS block" in done.stderr
