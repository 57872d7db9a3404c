"""DT_NEEDED on literal facts: what is missing, forbidden, out of reach, another's, or for nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.loading import brief, library, module, provider, subject, told, wheel
from wheelfix.checks import needed
from wheelfix.model.elf import (
    DF_1_NODEFLIB,
    LOOKUP_DATA,
    LOOKUP_PLT,
    STB_WEAK,
    Symbol,
    VersionNeed,
    VersionRef,
)
from wheelfix.model.policy import Policy
from wheelfix.model.wheel import Member

HELPER = "libhelper-nobody-packages.so"


def gives(name: str) -> Symbol:
    return Symbol(name, section=7, value=4096)


def wants(name: str, **more: object) -> Symbol:
    return Symbol(name, lookups=LOOKUP_PLT, **more)  # type: ignore[arg-type]


@pytest.mark.rule("needed-missing", fires=True)
def test_a_library_that_is_nowhere() -> None:
    (finding,) = told(needed, subject(wheel(module("pkg/x.so", HELPER, runpath="$ORIGIN"))))
    assert brief([finding]) == [("needed-missing", "error", "pkg/x.so", HELPER)]
    assert finding.evidence["tried"] == [f"pkg/{HELPER}", "the host's cache and default folders"]
    assert finding.message.endswith(" nor promised by manylinux_2_28_x86_64")
    assert "opened through" not in finding.message


@pytest.mark.rule("needed-missing", fires=True)
def test_a_library_is_told_once_for_all_roots() -> None:
    inner = library("pkg/liba.so", HELPER)
    roots = [module(f"pkg/{n}.so", "liba.so", runpath="$ORIGIN") for n in "xy"]
    assert brief(told(needed, subject(wheel(*roots, inner)), "needed-missing")) == [
        ("needed-missing", "error", "pkg/liba.so", HELPER)
    ]


@pytest.mark.rule("needed-missing", fires=True)
def test_the_root_through_which_a_library_is_missing() -> None:
    inner, roots = (
        library("pkg/liba.so", HELPER),
        [
            module("pkg/x.so", "liba.so", rpath="$ORIGIN:$ORIGIN/lib"),
            module("pkg/y.so", "liba.so", rpath="$ORIGIN"),
        ],
    )
    (finding,) = told(
        needed, subject(wheel(*roots, inner, library(f"pkg/lib/{HELPER}"))), "needed-unreachable"
    )
    assert (finding.member, finding.evidence["root"]) == ("pkg/liba.so", "pkg/y.so")
    assert f"{HELPER} (opened through pkg/y.so); " in finding.message


@pytest.mark.rule("needed-missing", fires=False)
def test_what_a_given_distribution_needs_is_its_own_concern() -> None:
    other = wheel(library("other/lib/liba.so", HELPER), name="other")
    one = subject(wheel(module("pkg/x.so", "liba.so", runpath="$ORIGIN/../other/lib")), other)
    assert told(needed, one, "needed-missing") == []


@pytest.mark.rule("needed-missing", fires=False)
def test_a_text_under_the_librarys_name_is_told_as_that() -> None:
    text = Member(f"pkg/{HELPER}", f"pkg/{HELPER}", content="text")
    one = subject(wheel(library("pkg/x.so", HELPER, runpath="$ORIGIN"), text))
    assert [f.rule for f in told(needed, one)] == ["needed-unused"]


@pytest.mark.rule("needed-missing", fires=True)
@pytest.mark.rule("needed-not-allowed", fires=False)
def test_a_promised_library_that_the_object_keeps_from_being_found() -> None:
    # DF_1_NODEFLIB closes the default folders, in which what the tag promises stands.
    one = subject(wheel(library("pkg/x.so", "libz.so.1", flags_1=DF_1_NODEFLIB)))
    assert "needed-missing" in [f.rule for f in told(needed, one)]
    assert told(needed, one, "needed-not-allowed") == []


@pytest.mark.rule("needed-missing", fires=False)
def test_a_library_that_the_path_leads_to() -> None:
    one = subject(wheel(module("pkg/x.so", "liba.so", runpath="$ORIGIN"), library("pkg/liba.so")))
    assert [f.rule for f in told(needed, one)] == ["needed-unused"]


@pytest.mark.rule("needed-missing", fires=False)
@pytest.mark.parametrize("name", ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6"])
def test_what_the_tag_promises_is_there(name: str) -> None:
    assert told(needed, subject(wheel(module("pkg/x.so", name)))) == []


@pytest.mark.rule("needed-missing", fires=False)
@pytest.mark.rule("needed-not-allowed", fires=False)
@pytest.mark.parametrize("name", [HELPER, "libpng16.so.16"])
def test_what_was_excluded_comes_from_elsewhere(name: str) -> None:
    one = subject(wheel(module("pkg/x.so", name)), exclude=("libother*", name[:8] + "*"))
    assert [f.rule for f in told(needed, one)] == ["exclude-unused"]  # of libother*


@pytest.mark.parametrize("object_", [module, library])
def test_libpython_is_the_process_itself(object_: Callable[..., Member]) -> None:
    assert told(needed, subject(wheel(object_("pkg/x.so", "libpython3.11.so.1.0")))) == []


@pytest.mark.rule("needed-not-allowed", fires=True)
def test_a_system_library_that_the_tag_does_not_promise() -> None:
    (finding,) = told(needed, subject(wheel(module("pkg/x.so", "libpng16.so.16"))))
    assert brief([finding]) == [("needed-not-allowed", "error", "pkg/x.so", "libpng16.so.16")]
    assert "libpng16-16" in str(finding.evidence["package"])


@pytest.mark.rule("needed-not-allowed", fires=True)
def test_a_system_library_is_nobody_elses_though_a_requirement_was_not_given() -> None:
    one = subject(wheel(module("pkg/x.so", "libpng16.so.16"), requires=["torch"]))
    assert [f.rule for f in told(needed, one)] == ["needed-not-allowed"]


@pytest.mark.rule("needed-not-allowed", fires=False)
def test_a_system_library_in_the_wheel_is_the_wheels() -> None:
    one = subject(
        wheel(module("pkg/x.so", "libpng16.so.16", runpath="$ORIGIN"), library("pkg/libpng16.so.16"))
    )
    assert told(needed, one, "needed-not-allowed") == []


@pytest.mark.rule("needed-unreachable", fires=True)
def test_a_library_of_the_wheel_without_a_path_to_it() -> None:
    one = subject(wheel(module("pkg/sub/x.so", "liba.so", runpath="/build"), library("pkg/lib/liba.so")))
    (finding,) = told(needed, one)
    assert brief([finding]) == [("needed-unreachable", "error", "pkg/sub/x.so", "liba.so")]
    assert "$ORIGIN/../lib" in finding.remedy
    assert finding.evidence["held-by"] == ["pkg/lib/liba.so"]


@pytest.mark.rule("needed-unreachable", fires=True)
def test_a_library_under_another_file_name() -> None:
    hashed = library("pkg/liba-1234abcd.so", soname="liba.so.1")
    (finding,) = told(needed, subject(wheel(module("pkg/x.so", "liba.so.1", runpath="$ORIGIN"), hashed)))
    assert brief([finding]) == [("needed-unreachable", "error", "pkg/x.so", "liba.so.1")]
    assert "Ship the file as liba.so.1" in finding.remedy
    assert "pkg/liba-1234abcd.so is there, under the name liba-1234abcd.so, but" in finding.message


@pytest.mark.rule("needed-unreachable", fires=True)
def test_all_that_hold_a_library_by_file_name_before_soname_the_wheel_before_others() -> None:
    members = (
        module("pkg/x.so", "liba.so", runpath="/build"),
        library("pkg/a/liba-12.so", soname="liba.so"),
        library("pkg/b/liba.so", soname="other"),
        library("pkg/c/liba.so"),
        library("pkg/d/libother.so"),
    )
    given = wheel(library("other/lib/liba.so"), name="other")
    (finding,) = told(needed, subject(wheel(*members), given), "needed-unreachable")
    assert finding.evidence["held-by"] == [
        "pkg/b/liba.so",
        "pkg/c/liba.so",
        "pkg/a/liba-12.so",
        "other/lib/liba.so",
    ]
    assert "pkg/b/liba.so is there, but no path" in finding.message


@pytest.mark.rule("needed-unreachable", fires=True)
def test_a_library_for_another_machine_is_passed_over() -> None:
    aarch64 = library("pkg/liba.so", machine=183)
    (finding,) = told(needed, subject(wheel(module("pkg/x.so", "liba.so", runpath="$ORIGIN"), aarch64)))
    assert finding.rule == "needed-unreachable"
    assert finding.message.endswith("; pkg/liba.so is for another machine (aarch64)")


@pytest.mark.parametrize(
    ("member", "target", "hop"),
    [
        ("pkg/x.so", "pkg/liba.so", "$ORIGIN"),
        ("x.so", "liba.so", "$ORIGIN"),
        ("x.so", "pkg/liba.so", "$ORIGIN/pkg"),
        ("pkg/x.so", "liba.so", "$ORIGIN/.."),
        ("pkg/x.so", "pkg/lib/liba.so", "$ORIGIN/lib"),
        ("pkg/x.so", "pkg.libs/liba.so", "$ORIGIN/../pkg.libs"),
        ("a/b/c/x.so", "a/d/c/liba.so", "$ORIGIN/../../d/c"),
        ("a/b/c/x.so", "a/b/liba.so", "$ORIGIN/.."),
    ],
)
def test_the_shortest_way_from_one_folder_to_another(member: str, target: str, hop: str) -> None:
    assert needed.origin_hop(member, target) == hop


@pytest.mark.rule("needed-unreachable", fires=True)
def test_runpath_is_not_inherited() -> None:
    inner, deep = library("pkg/liba.so", "libb.so"), library("pkg/libb.so")
    one = subject(wheel(module("pkg/x.so", "liba.so", runpath="$ORIGIN"), inner, deep))
    assert ("needed-unreachable", "error", "pkg/liba.so", "libb.so") in brief(told(needed, one))


@pytest.mark.rule("needed-unreachable", fires=False)
def test_rpath_is_inherited() -> None:
    inner, deep = library("pkg/liba.so", "libb.so"), library("pkg/libb.so")
    one = subject(wheel(module("pkg/x.so", "liba.so", rpath="$ORIGIN"), inner, deep))
    assert told(needed, one, "needed-unreachable") == []


@pytest.mark.rule("needed-unreachable", fires=True)
def test_a_given_library_that_nothing_loads_by_import() -> None:
    other = wheel(library("other/lib/liba.so"), name="other")
    one = subject(wheel(module("pkg/x.so", "liba.so"), requires=["other"]), other)
    (finding,) = told(needed, one)
    assert brief([finding]) == [("needed-unreachable", "error", "pkg/x.so", "liba.so")]
    assert "$ORIGIN/../other/lib" in finding.remedy


@pytest.mark.rule("needed-unreachable", fires=False)
def test_a_given_library_that_an_import_loads() -> None:
    other = wheel(
        module("other/_c.so", "liba.so", runpath="$ORIGIN/lib"), library("other/lib/liba.so"), name="other"
    )
    one = subject(wheel(module("pkg/x.so", "liba.so"), requires=["other"]), other)
    assert told(needed, one, "needed-unreachable") == []


@pytest.mark.rule("needed-has-slash", fires=True)
@pytest.mark.parametrize("name", ["/build/out/liba.so", "out/liba.so", "./liba.so"])
def test_a_path_in_place_of_a_name(name: str) -> None:
    for root in (module("pkg/x.so", name, runpath="$ORIGIN"), library("pkg/x.so", name, runpath="$ORIGIN")):
        one = subject(wheel(root, library("pkg/liba.so")))
        assert brief(told(needed, one)) == [("needed-has-slash", "error", "pkg/x.so", name)]


@pytest.mark.rule("needed-has-slash", fires=False)
def test_a_name_is_no_path() -> None:
    assert told(needed, subject(wheel(module("pkg/x.so", "libc.so.6"))), "needed-has-slash") == []


@pytest.mark.rule("needed-external", fires=True)
def test_a_library_of_a_distribution_that_a_provider_rule_names() -> None:
    one = subject(
        wheel(module("pkg/x.so", "libtorch_cpu.so"), requires=["torch"]),
        policy=provider("libtorch*.so", "torch", "torch/lib"),
    )
    (finding,) = told(needed, one, "needed-external")
    assert brief([finding]) == [("needed-external", "warning", "pkg/x.so", "libtorch_cpu.so")]
    assert finding.evidence["distribution"] == "torch"
    assert "a library of torch, which was not given" in finding.message


@pytest.mark.rule("needed-external", fires=True)
def test_a_name_with_a_token_is_the_name_that_it_stands_for() -> None:
    # dl-deps.c expands $LIB, which is lib64 here; a name is known again as it was expanded.
    root = module("pkg/x.so", "libxlib64.so", "libx$LIB.so")
    one = subject(wheel(root), policy=provider("libxlib64.so", "other", "other/lib"))
    found = told(needed, one, "needed-external")
    assert [(f.library, f.evidence["distribution"]) for f in found] == [
        ("libxlib64.so", "other"),
        ("libx$LIB.so", None),
    ]


@pytest.mark.rule("needed-external", fires=True)
def test_a_path_into_the_folder_of_another_distribution() -> None:
    one = subject(wheel(module("pkg/x.so", HELPER, runpath="$ORIGIN/../other/lib")))
    (finding,) = told(needed, one)
    assert (finding.rule, finding.evidence["distribution"]) == ("needed-external", None)
    assert "a library of another distribution, which was not given" in finding.message


@pytest.mark.rule("needed-external", fires=True)
def test_a_requirement_that_was_not_given_may_hold_it() -> None:
    one = subject(wheel(module("pkg/x.so", HELPER), requires=["other>=2"]))
    (finding,) = told(needed, one)
    assert (finding.rule, finding.evidence["distribution"]) == ("needed-external", "other")


@pytest.mark.rule("needed-external", fires=False)
def test_a_given_distribution_that_lacks_it_does_not_hold_it() -> None:
    other = wheel(library("other/libb.so"), name="other")
    one = subject(wheel(module("pkg/x.so", HELPER), requires=["other"]), other)
    assert [f.rule for f in told(needed, one)] == ["needed-missing"]


@pytest.mark.rule("needed-external", fires=False)
def test_a_requirement_of_an_extra_alone_holds_nothing() -> None:
    one = subject(wheel(module("pkg/x.so", HELPER), requires=["other; extra == 'more'"]))
    assert [f.rule for f in told(needed, one)] == ["needed-missing"]


@pytest.mark.rule("needed-duplicate", fires=True)
@pytest.mark.parametrize("times", [2, 3])
def test_a_name_listed_more_than_once(times: int) -> None:
    one = subject(wheel(module("pkg/x.so", "libm.so.6", "libc.so.6", *["libm.so.6"] * (times - 1))))
    (finding,) = told(needed, one)
    assert brief([finding]) == [("needed-duplicate", "warning", "pkg/x.so", "libm.so.6")]
    assert f"lists libm.so.6 {times} times" in finding.message


@pytest.mark.rule("needed-duplicate", fires=False)
def test_names_listed_once() -> None:
    assert told(needed, subject(wheel(module("pkg/x.so", "libm.so.6", "libc.so.6")))) == []


DRIVERS = ["libcuda.so.1", "libnvcuvid.so.1", "libnvidia-ml.so.1", "libcudadebugger.so.1"]


@pytest.mark.rule("driver-lib", fires=True)
@pytest.mark.parametrize("name", DRIVERS)
def test_a_library_of_the_gpus_driver(name: str) -> None:
    one = subject(wheel(module("pkg/x.so", name)))
    assert brief(told(needed, one, "driver-lib")) == [("driver-lib", "warning", "pkg/x.so", name)]
    assert told(needed, one, "needed-missing") == []


@pytest.mark.rule("driver-lib", fires=True)
def test_a_driver_library_that_is_meant_is_an_information() -> None:
    held = wheel(module("pkg/x.so", "libcuda.so.1"))
    other, driver = (provider(n, "driver", "x").providers for n in ("libother.so", "libcuda.so.1"))
    one = subject(held, policy=Policy(providers=other))
    assert brief(told(needed, one, "driver-lib")) == [("driver-lib", "warning", "pkg/x.so", "libcuda.so.1")]
    for one in (
        subject(held, exclude=("libother*", "libcuda.so*")),
        subject(held, policy=Policy(providers=(*other, *driver))),
    ):
        assert brief(told(needed, one, "driver-lib")) == [("driver-lib", "info", "pkg/x.so", "libcuda.so.1")]


@pytest.mark.rule("driver-lib", fires=False)
@pytest.mark.parametrize("name", ["libcudart.so.12", "libamdhip64.so.6", "libOpenCL.so.1", "libcudnn.so.9"])
def test_a_toolkits_library_is_no_drivers(name: str) -> None:
    assert told(needed, subject(wheel(module("pkg/x.so", name))), "driver-lib") == []


def using(*symbols: Symbol, **facts: object) -> list[tuple[str, str, str | None, str | None]]:
    root = module("pkg/x.so", "liba.so", runpath="$ORIGIN", symbols=symbols, **facts)
    return brief(
        told(needed, subject(wheel(root, library("pkg/liba.so", symbols=(gives("g"),)))), "needed-unused")
    )


@pytest.mark.rule("needed-unused", fires=True)
def test_a_library_of_which_no_symbol_is_used() -> None:
    assert using() == [("needed-unused", "info", "pkg/x.so", "liba.so")]


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_of_which_a_symbol_is_used() -> None:
    assert using(wants("g")) == []


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_whose_version_is_needed() -> None:
    assert using(verneed=(VersionNeed("liba.so", (VersionRef("V1"),)),)) == []


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_of_which_a_symbol_is_used_where_it_is_there() -> None:
    assert using(wants("g", bind=STB_WEAK)) == []


@pytest.mark.rule("needed-unused", fires=True)
def test_another_file_whose_version_is_needed_is_another() -> None:
    verneed = (VersionNeed("libb.so", (VersionRef("V1"),)),)
    root = library("pkg/x.so", "libb.so", "liba.so", runpath="$ORIGIN", verneed=verneed)
    one = subject(wheel(root, library("pkg/liba.so"), library("pkg/libb.so")))
    assert brief(told(needed, one)) == [("needed-unused", "info", "pkg/x.so", "liba.so")]


@pytest.mark.rule("needed-unused", fires=False)
def test_what_data_relocations_find_is_used_as_well() -> None:
    # Functions that are called bind to the definition in libb.so; their addresses to the PLT entry of liba.so,
    # which dl-lookup.c takes for anything but calls.
    root = module(
        "pkg/x.so",
        "liba.so",
        "libb.so",
        runpath="$ORIGIN",
        symbols=(Symbol("g", lookups=LOOKUP_PLT | LOOKUP_DATA),),
    )
    entry = library("pkg/liba.so", symbols=(Symbol("g", value=4096),))
    one = subject(wheel(root, entry, library("pkg/libb.so", symbols=(gives("g"),))))
    assert told(needed, one, "needed-unused") == []


@pytest.mark.rule("needed-unused", fires=True)
def test_a_symbol_of_one_object_is_no_use_for_another() -> None:
    roots = (
        module("pkg/x.so", "liba.so", runpath="$ORIGIN"),
        module("pkg/y.so", "liba.so", runpath="$ORIGIN", symbols=(wants("g"),)),
    )
    one = subject(wheel(*roots, library("pkg/liba.so", symbols=(gives("g"),))))
    assert brief(told(needed, one)) == [("needed-unused", "info", "pkg/x.so", "liba.so")]


@pytest.mark.rule("needed-unused", fires=True)
def test_a_missing_library_is_for_nothing_where_all_symbols_are_found() -> None:
    helper = library("pkg/liba.so", symbols=(gives("g"),))
    for symbols, unused in (((wants("g"),), [HELPER]), ((wants("g"), wants("h")), [])):
        root = library("pkg/x.so", "liba.so", HELPER, runpath="$ORIGIN", symbols=symbols)
        found = told(needed, subject(wheel(root, helper)), "needed-unused")
        assert [f.library for f in found] == unused


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_that_was_not_given_may_hold_what_a_later_one_holds_too() -> None:
    root = library("pkg/x.so", HELPER, "liba.so", runpath="$ORIGIN", symbols=(wants("g"),))
    one = subject(wheel(root, library("pkg/liba.so", symbols=(gives("g"),)), requires=["other"]))
    assert told(needed, one, "needed-unused") == []


def under_two_roots(name: str, first: tuple[str, ...], **facts: object) -> list[str | None]:
    """Unused libraries, where pkg/lib/NAME is found for pkg/liba.so under the second root alone."""
    members = (
        module("pkg/x.so", *first, "liba.so", rpath="$ORIGIN"),
        module("pkg/y.so", "liba.so", rpath="$ORIGIN:$ORIGIN/lib"),
        library("pkg/liba.so", name, **facts),
        library("pkg/libother.so", symbols=(gives("g"),)),
        library(f"pkg/lib/{name}", symbols=(gives("g"),)),
    )
    found = told(needed, subject(wheel(*members)), "needed-unused")
    return [f.library for f in found if f.member == "pkg/liba.so"]


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_that_is_used_under_one_root_of_two() -> None:
    assert under_two_roots(HELPER, ("libother.so",), symbols=(wants("g"),)) == []


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_that_is_the_hosts_under_one_root_of_two() -> None:
    assert under_two_roots("libz.so.1", ()) == []


@pytest.mark.rule("needed-unused", fires=False)
def test_what_an_object_filters_is_not_what_it_needs() -> None:
    root = library("pkg/x.so", filters=("liba.so",), runpath="$ORIGIN")
    assert told(needed, subject(wheel(root, library("pkg/liba.so")))) == []


@pytest.mark.rule("needed-unused", fires=False)
def test_a_hosts_library_does_no_harm() -> None:
    assert told(needed, subject(wheel(module("pkg/x.so", "libm.so.6")))) == []


@pytest.mark.rule("needed-unused", fires=False)
def test_a_library_that_was_not_given_may_be_used() -> None:
    root = module("pkg/x.so", HELPER, symbols=(wants("g"),))
    assert told(needed, subject(wheel(root, requires=["other"])), "needed-unused") == []


@pytest.mark.rule("needed-unused", fires=True)
def test_an_optional_hook_uses_no_library() -> None:
    hook = wants("hook", bind=STB_WEAK)
    assert using(hook) == [("needed-unused", "info", "pkg/x.so", "liba.so")]
    assert using(hook, wants("g")) == []
    absent = subject(wheel(library("pkg/x.so", HELPER, symbols=(hook,)), requires=["other"]))
    assert brief(told(needed, absent, "needed-unused")) == [("needed-unused", "info", "pkg/x.so", HELPER)]


@pytest.mark.rule("exclude-unused", fires=True)
def test_a_pattern_that_matches_nothing_names_the_closest() -> None:
    one = subject(wheel(module("pkg/x.so", "libbig.so.5")), exclude=("libbig.so",))
    (finding,) = told(needed, one, "exclude-unused")
    assert (finding.severity, finding.member, finding.library) == ("warning", None, "libbig.so.5")
    assert finding.message.endswith("; the closest is libbig.so.5")


@pytest.mark.rule("exclude-unused", fires=True)
def test_a_pattern_that_is_close_to_nothing_names_nothing() -> None:
    names = [f"lib{n:02}.so" for n in range(51)]
    one = subject(wheel(library("pkg/x.so", *names)), exclude=("quite-different",))
    (finding,) = told(needed, one, "exclude-unused")
    assert finding.library is None
    assert finding.message == "--exclude quite-different matches no library that the wheel needs"
    assert finding.evidence == {"pattern": "quite-different", "needed": names[:50]}


@pytest.mark.rule("exclude-unused", fires=False)
@pytest.mark.parametrize("pattern", ["libbig.so.5", "libbig.so*", "lib?ig*"])
def test_a_pattern_that_matches(pattern: str) -> None:
    one = subject(wheel(module("pkg/x.so", "libbig.so.5", "libc.so.6")), exclude=(pattern,))
    assert told(needed, one, "exclude-unused") == []
