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


def test_an_object_without_device_code_is_not_judged() -> None:
    assert judged(cuda=WANTED) == []


@pytest.mark.rule("cuda-ptx-missing", fires=True)
@pytest.mark.parametrize(("cuda", "severity"), [(None, "info"), (Cuda("p:cuda", None, "newest"), "error")])
def test_machine_code_newer_than_all_ptx_is_told(cuda: Cuda | None, severity: str) -> None:
    (finding,) = judged(cubin("sm_80"), cubin("sm_90"), ptx("compute_80"), cuda=cuda)
    assert (finding.rule, finding.severity) == ("cuda-ptx-missing", severity)


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


@pytest.mark.rule("cuda-major-mixed", fires=True)
def test_two_majors_in_one_closure_are_told_and_an_error_under_a_policy() -> None:
    libraries = ("libcudart.so.13", "libcublas.so.12")
    (plain,) = judged(needed=libraries)
    (strict,) = judged(needed=libraries, cuda=Cuda("p:cuda"))
    assert (plain.rule, plain.severity, strict.severity) == ("cuda-major-mixed", "info", "error")


@pytest.mark.parametrize("inside", ["libcudart-faf08d9a.so.12", "libcudart.faf08d9a.so.12"])
def test_a_library_that_was_put_into_the_wheel_has_a_major_all_the_same(inside: str) -> None:
    (finding,) = judged(needed=("libcudart.so.13", inside))
    assert (finding.rule, inside in finding.message) == ("cuda-major-mixed", True)


@pytest.mark.rule("cuda-major-mixed", fires=False)
def test_libraries_that_count_their_versions_apart_are_not_mixed() -> None:
    # cuFFT 12 and cuRAND 10 belong to CUDA 13.
    assert judged(needed=("libcudart.so.13", "libcufft.so.12", "libcurand.so.10")) == []
