"""The adapter says of every platform what auditwheel itself says."""

from __future__ import annotations

import pytest
from auditwheel.architecture import Architecture
from auditwheel.libc import Libc
from auditwheel.policy import WheelPolicies

from wheelfix.policy.platform import candidates, for_platform

ARCHS = ("x86_64", "i686", "aarch64", "armv7l", "ppc64le", "s390x", "riscv64", "loongarch64")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("libc", "theirs"), [("glibc", Libc.GLIBC), ("musl", Libc.MUSL)])
def test_tags_libraries_and_versions_are_auditwheels(arch: str, libc: str, theirs: Libc) -> None:
    policies = WheelPolicies(libc=theirs, arch=Architecture(arch))
    expected = {p.name: p for p in policies if not p.name.startswith("linux_")}
    ours = {p.tag: p for p in candidates(arch, libc)}  # type: ignore[arg-type]
    # auditwheel leaves musl policies out that the running machine's musl is too old for.
    assert set(expected) <= set(ours) if libc == "musl" else set(expected) == set(ours)
    for tag, other in expected.items():
        policy = ours[tag]
        # auditwheel says Alpine's name of musl's C library only; Debian's is libc.so, and it is the loader, too.
        own = {n for n in policy.libraries if n == "libc.so" or n.startswith("ld-musl-")}
        assert set(policy.libraries) - own == set(other.whitelist) - {"libc.so"}
        assert {k: set(v) for k, v in policy.versions.items()} == {
            k: set(v) for k, v in other.symbol_versions.items()
        }
        assert set(policy.aliases) == set(other.aliases)


@pytest.mark.parametrize(
    ("platform", "tag"),
    [
        ("manylinux_2_28_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux2014_aarch64", "manylinux_2_17_aarch64"),
        ("manylinux1_i686", "manylinux_2_5_i686"),
        ("manylinux_2_30_x86_64", "manylinux_2_28_x86_64"),
        ("musllinux_1_2_s390x", "musllinux_1_2_s390x"),
        ("linux_x86_64", "linux_x86_64"),
    ],
)
def test_platform_tags_lead_to_their_policy(platform: str, tag: str) -> None:
    policy = for_platform(platform)
    assert policy is not None
    assert policy.tag == tag


@pytest.mark.parametrize(
    "platform", ["any", "win_amd64", "macosx_11_0_arm64", "manylinux_2_28_vax", "manylinux_2_1_x86_64"]
)
def test_other_systems_have_no_policy(platform: str) -> None:
    assert for_platform(platform) is None


def test_a_plain_linux_tag_promises_no_versions() -> None:
    policy = for_platform("linux_x86_64")
    assert policy is not None
    assert not policy.capped
    assert "libc.so.6" in policy.libraries
