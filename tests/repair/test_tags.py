from wheelfix.model.elf import ElfFacts, VersionNeed, VersionRef
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.wheel import WheelFacts
from wheelfix.repair.tags import filename_for, fits, platform_tags, tags_for, too_new


def policy(version: tuple[int, int], aliases: tuple[str, ...] = (), capped: bool = True) -> PlatformPolicy:
    """A promise of glibc up to ``version``, of nothing else."""
    known = frozenset(f"2.{n}" for n in range(version[1] + 1))
    return PlatformPolicy(
        tag=f"manylinux_{version[0]}_{version[1]}_x86_64",
        arch="x86_64",
        libc="glibc",
        libc_version=version,
        libraries=frozenset({"libc.so.6", "libstdc++.so.6"}),
        versions={"GLIBC": known, "GLIBCXX": frozenset({"3.4"})},
        aliases=aliases,
        capped=capped,
    )


def needs(file: str, *versions: str) -> ElfFacts:
    return ElfFacts(verneed=(VersionNeed(file, tuple(map(VersionRef, versions))),))


P17 = policy((2, 17), ("manylinux2014_x86_64",))
P28 = policy((2, 28))


def test_a_version_above_the_cap_is_too_new() -> None:
    facts = needs("libc.so.6", "GLIBC_2.17", "GLIBC_2.28")
    assert list(too_new(facts, P17, P17.libraries)) == [("libc.so.6", "GLIBC_2.28")]
    assert not fits([facts], P17)
    assert fits([facts], P28)


def test_every_prefix_is_judged_by_its_own_cap() -> None:
    assert not fits([needs("libstdc++.so.6", "GLIBCXX_3.4.30")], P28)


def test_private_and_marker_versions_are_no_numbers_and_too_new() -> None:
    assert not fits([needs("libc.so.6", "GLIBC_PRIVATE")], P28)
    assert not fits([needs("libc.so.6", "GLIBC_ABI_DT_RELR")], P28)


def test_relr_without_its_marker_needs_glibc_2_36_all_the_same() -> None:
    assert not fits([ElfFacts(relr=True)], P28)
    assert fits([ElfFacts(relr=True)], policy((2, 36)))


def test_versions_of_a_library_of_the_wheel_do_not_count() -> None:
    assert fits([needs("libstdc++-1a2b3c4d.so.6", "GLIBCXX_3.4.30")], P17)


def test_prefixes_that_no_policy_caps_do_not_count() -> None:
    assert fits([needs("libc.so.6", "OPENSSL_3.0.0")], P17)


def test_a_plain_linux_tag_promises_nothing_to_break() -> None:
    assert fits([needs("libc.so.6", "GLIBC_2.99")], policy((2, 17), capped=False))


def wheel(platforms: str) -> WheelFacts:
    tags = tuple(f"cp311-{abi}-{p}" for abi in ("cp311",) for p in platforms.split("."))
    return WheelFacts(f"x-1.0-cp311-cp311-{platforms}.whl", tags=tags)


def test_the_chosen_tags_stand_with_their_aliases_sorted_as_other_tools_write_them() -> None:
    assert platform_tags(wheel("linux_x86_64"), [P17], ()) == (
        "manylinux2014_x86_64",
        "manylinux_2_17_x86_64",
    )


def test_an_untrue_tag_goes_and_a_true_one_stays() -> None:
    old = wheel("manylinux_2_17_x86_64.manylinux_2_31_x86_64")
    assert platform_tags(old, [P28], {"manylinux_2_31_x86_64"}) == (
        "manylinux_2_28_x86_64",
        "manylinux_2_31_x86_64",
    )


def test_tags_that_are_right_already_keep_their_order() -> None:
    old = wheel("manylinux_2_17_x86_64.manylinux2014_x86_64")
    assert platform_tags(old, [P17], set(old.platforms)) == old.platforms


def test_the_file_name_keeps_everything_but_its_last_part() -> None:
    named = WheelFacts("x_y-1.0-2-cp310.cp311-abi3-linux_x86_64.whl")
    assert filename_for(named, ("a", "b")) == "x_y-1.0-2-cp310.cp311-abi3-a.b.whl"


def test_each_python_and_abi_gets_each_platform() -> None:
    old = WheelFacts("x.whl", tags=("py2-none-any", "py3-none-any"))
    assert tags_for(old, ("p", "q")) == ("py2-none-p", "py2-none-q", "py3-none-p", "py3-none-q")
