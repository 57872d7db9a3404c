"""The CUDA rules on literal facts."""

from __future__ import annotations

import pytest

from wheelfix.checks.cuda import check
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import DeviceCode, ElfFacts
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Cuda, PlatformPolicy, Policy
from wheelfix.model.resolution import Edge, Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts

LINUX = PlatformPolicy("manylinux_2_28_x86_64", "x86_64", "glibc", (2, 28), frozenset(), {})


def judged(*code: DeviceCode, cuda: Cuda | None = None, needed: tuple[str, ...] = ()) -> list[Finding]:
    facts = ElfFacts(device_code=code, needed=needed)
    node = Node("pkg/k.so", "/k.so", facts)
    edges = tuple(Edge("pkg/k.so", "pkg/k.so", n, "external") for n in needed)
    scene = Scene(LINUX, World({}, frozenset()), (Load(node, (node,), edges),))
    wheel = WheelFacts("x.whl", members=(Member("pkg/k.so", "pkg/k.so", content="elf", elf=facts),))
    return list(check(Subject(wheel, (LINUX,), (scene,), Policy(cuda=cuda))))


def cubin(arch: str) -> DeviceCode:
    return DeviceCode("cubin", arch, 1, 100)


def ptx(arch: str) -> DeviceCode:
    return DeviceCode("ptx", arch, 1, 100)


WANTED = Cuda("p:cuda", ("sm_80", "sm_90"), "any")


@pytest.mark.rule("cuda-arch-missing", fires=True)
def test_an_architecture_of_the_policy_that_an_object_lacks_is_an_error() -> None:
    (finding,) = judged(cubin("sm_80"), cuda=WANTED)
    assert (finding.rule, finding.severity, finding.policy) == (
        "cuda-arch-missing",
        "error",
        "p:cuda.architectures",
    )
    assert "sm_90" in finding.message


@pytest.mark.rule("cuda-arch-missing", fires=False)
@pytest.mark.rule("cuda-arch-unexpected", fires=False)
def test_exactly_the_architectures_of_the_policy_are_right() -> None:
    assert judged(cubin("sm_80"), cubin("sm_90"), cuda=WANTED) == []


@pytest.mark.rule("cuda-arch-unexpected", fires=True)
def test_an_architecture_beyond_the_policy_is_an_error() -> None:
    found = judged(cubin("sm_80"), cubin("sm_90"), cubin("sm_52"), cuda=WANTED)
    assert [(f.rule, "sm_52" in f.message) for f in found] == [("cuda-arch-unexpected", True)]


def test_an_object_without_device_code_is_not_judged_and_those_after_it_are() -> None:
    assert judged(cuda=WANTED) == []
    members = tuple(
        Member(n, n, content="elf", elf=ElfFacts(device_code=code))
        for n, code in (("pkg/plain.so", ()), ("pkg/k.so", (cubin("sm_80"),)))
    )
    found = check(Subject(WheelFacts("x.whl", members=members), (LINUX,), (), Policy()))
    assert [f.member for f in found] == ["pkg/k.so"]


def test_all_architectures_that_differ_are_told_by_number_with_what_is_there() -> None:
    policy = Cuda("p:cuda", ("sm_100", "sm_75", "sm_90"), "any")
    found = judged(cubin("sm_120"), cubin("sm_86"), cubin("sm_90"), cuda=policy)
    assert [f.message.split(";")[0].split(", which")[0] for f in found] == [
        "pkg/k.so holds no device code for sm_75",
        "pkg/k.so holds no device code for sm_100",
        "pkg/k.so holds device code for sm_86",
        "pkg/k.so holds device code for sm_120",
    ]
    assert found[0].message.endswith("it has sm_120, sm_86, sm_90")
    assert {f.policy for f in found} == {"p:cuda.architectures"}
    assert all(f.evidence == {"architectures": ["sm_120", "sm_86", "sm_90"], "ptx": []} for f in found)
    (none,) = judged(ptx("compute_80"), cuda=Cuda("p:cuda", ("sm_80",), "any"))
    assert none.message.endswith("it has none")


@pytest.mark.rule("cuda-ptx-missing", fires=True)
@pytest.mark.parametrize(("cuda", "severity"), [(None, "info"), (Cuda("p:cuda", None, "newest"), "error")])
def test_machine_code_newer_than_all_ptx_is_told(cuda: Cuda | None, severity: str) -> None:
    (finding,) = judged(cubin("sm_80"), cubin("sm_90"), ptx("compute_80"), cuda=cuda)
    assert (finding.rule, finding.severity) == ("cuda-ptx-missing", severity)
    assert finding.policy == ("p:cuda.ptx" if cuda else None)
    assert (
        "up to sm_90 but no PTX for it that later GPUs can use (PTX: compute_80): they run" in finding.message
    )


def test_machine_code_without_any_ptx_cannot_run_on_later_gpus() -> None:
    (finding,) = judged(cubin("sm_80"))
    assert finding.message.endswith("can use: GPUs of a later generation cannot run it")


def test_the_newest_of_several_older_ptx_is_what_later_gpus_run() -> None:
    (finding,) = judged(cubin("sm_120"), ptx("compute_100"), ptx("compute_90"), ptx("compute_103f"))
    assert finding.message.endswith("compiles from compute_100")


@pytest.mark.rule("cuda-ptx-missing", fires=False)
def test_ptx_for_the_newest_architecture_is_enough() -> None:
    assert (
        judged(cubin("sm_80"), cubin("sm_90"), ptx("compute_90"), cuda=Cuda("p:cuda", None, "newest")) == []
    )


@pytest.mark.parametrize("special", ["compute_90a", "compute_100f"])
def test_ptx_of_one_architecture_or_family_is_none_for_later_gpus(special: str) -> None:
    # CUDA C++ Programming Guide, "Architecture-Specific Features": such code is not forward compatible.
    (finding,) = judged(cubin("sm_90a"), ptx(special), cuda=Cuda("p:cuda", None, "newest"))
    assert (finding.rule, special in finding.message) == ("cuda-ptx-missing", True)
    assert "cannot run it" in finding.message


def test_newer_gpus_run_what_is_compiled_from_older_ptx() -> None:
    (finding,) = judged(cubin("sm_80"), cubin("sm_90a"), ptx("compute_80"))
    assert finding.rule == "cuda-ptx-missing"
    assert "compiles from compute_80" in finding.message
    assert "cannot" not in finding.message


def test_an_architecture_of_another_maker_in_the_policy_is_missing_from_cuda_code() -> None:
    found = judged(cubin("sm_80"), cuda=Cuda("p:cuda", ("sm_80", "sm_90", "gfx942"), "any"))
    assert ["gfx942" in f.message for f in found] == [True, False]


def test_an_object_of_ptx_alone_lacks_every_architecture_and_no_ptx() -> None:
    found = judged(ptx("compute_80"), cuda=Cuda("p:cuda", ("sm_80", "sm_90"), "newest"))
    assert [f.rule for f in found] == ["cuda-arch-missing", "cuda-arch-missing"]
    assert [arch for arch in ("sm_80", "sm_90") if any(f"code for {arch}" in f.message for f in found)] == [
        "sm_80",
        "sm_90",
    ]


def test_the_suffix_is_part_of_an_architecture() -> None:
    found = judged(cubin("sm_90a"), cuda=Cuda("p:cuda", ("sm_90",), "any"))
    assert [f.rule for f in found] == ["cuda-arch-missing", "cuda-arch-unexpected"]


def test_device_code_of_amd_is_not_judged_by_cuda_architectures() -> None:
    assert judged(DeviceCode("hip", "gfx942", 1, 100), cuda=WANTED) == []


def test_ptx_where_the_policy_wants_none_is_unexpected() -> None:
    (finding,) = judged(cubin("sm_90"), ptx("compute_90"), cuda=Cuda("p:cuda", None, "none"))
    assert (finding.rule, finding.policy) == ("cuda-arch-unexpected", "p:cuda.ptx")
    assert "holds PTX for compute_90;" in finding.message
    assert judged(cubin("sm_90"), cuda=Cuda("p:cuda", None, "none")) == []
    assert judged(cubin("sm_90"), cuda=Cuda("p:cuda", None, "any")) == []


@pytest.mark.rule("cuda-major-mixed", fires=True)
def test_two_majors_in_one_closure_are_told_and_an_error_under_a_policy() -> None:
    libraries = ("libcudart.so.13", "libcublas.so.12")
    (plain,) = judged(needed=libraries)
    (strict,) = judged(needed=libraries, cuda=Cuda("p:cuda"))
    assert (plain.rule, plain.severity, strict.severity) == ("cuda-major-mixed", "info", "error")
    assert (plain.policy, strict.policy) == (None, "p:cuda")
    assert plain.evidence == {"majors": {"12": ["libcublas.so.12"], "13": ["libcudart.so.13"]}}
    assert "loads libraries of CUDA 12 and 13: libcublas.so.12, libcudart.so.13" in plain.message


def test_several_libraries_of_one_major_are_not_mixed_and_a_path_is_no_name() -> None:
    assert judged(needed=("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12")) == []
    (finding,) = judged(needed=("libcudart.so.12", "/opt/cuda/libnvrtc.so.13"))
    assert finding.evidence == {"majors": {"12": ["libcudart.so.12"], "13": ["/opt/cuda/libnvrtc.so.13"]}}


def test_the_same_mixture_under_several_roots_is_told_once() -> None:
    def root(name: str, *needed: str) -> Load:
        node = Node(name, f"/{name}", ElfFacts(needed=needed))
        return Load(node, (node,), tuple(Edge(name, name, n, "external") for n in needed))

    mixed = ("libcudart.so.13", "libcublas.so.12")
    loads = (
        root("pkg/plain.so", "libcudart.so.13"),
        root("pkg/a.so", *mixed),
        root("pkg/b.so", *mixed[::-1]),
        root("pkg/c.so", *mixed, "libnvrtc.so.12"),
    )
    scene = Scene(LINUX, World({}, frozenset()), loads)
    found = check(Subject(WheelFacts("x.whl"), (LINUX,), (scene,), Policy()))
    assert [f.member for f in found] == ["pkg/a.so", "pkg/c.so"]


@pytest.mark.parametrize("inside", ["libcudart-faf08d9a.so.12", "libcudart.faf08d9a.so.12"])
def test_a_library_that_was_put_into_the_wheel_has_a_major_all_the_same(inside: str) -> None:
    (finding,) = judged(needed=("libcudart.so.13", inside))
    assert (finding.rule, inside in finding.message) == ("cuda-major-mixed", True)


@pytest.mark.rule("cuda-major-mixed", fires=False)
def test_libraries_that_count_their_versions_apart_are_not_mixed() -> None:
    # cuFFT 12 and cuRAND 10 belong to CUDA 13.
    assert judged(needed=("libcudart.so.13", "libcufft.so.12", "libcurand.so.10")) == []
