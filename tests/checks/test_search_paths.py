"""DT_RPATH and DT_RUNPATH on literal facts: entries that lead nowhere, elsewhere, or are not there at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import test_audit
from tests.checks.loading import TAG, brief, library, module, provider, script, subject, told, wheel
from tests.elf.conftest import make_elf
from wheelfix import audit
from wheelfix.checks import search_paths
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy, Provider
from wheelfix.model.wheel import Member, WheelFacts


def findings(
    rule: str,
    *members: Member,
    given: tuple[WheelFacts, ...] = (),
    policy: Policy | None = None,
    requires: tuple[str, ...] = (),
    tag: str = TAG,
    **options: object,
) -> list[Finding]:
    judged = wheel(*members, requires=requires, tag=tag)
    return told(search_paths, subject(judged, *given, policy=policy, **options), rule)


@pytest.mark.rule("rpath-empty-element", fires=True)
@pytest.mark.parametrize("path", [":$ORIGIN", "$ORIGIN:", "$ORIGIN::/x", ":"])
@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_an_empty_element(kind: str, path: str) -> None:
    (finding,) = findings("rpath-empty-element", module("pkg/x.so", **{kind: path}))
    assert (finding.severity, finding.member, finding.evidence) == ("error", "pkg/x.so", {"path": path})


@pytest.mark.rule("rpath-empty-element", fires=False)
@pytest.mark.parametrize("path", [None, "", "$ORIGIN", "$ORIGIN:$ORIGIN/lib"])
def test_a_path_that_is_empty_as_a_whole_is_none(path: str | None) -> None:
    assert findings("rpath-empty-element", module("pkg/x.so", runpath=path)) == []


@pytest.mark.rule("rpath-absolute", fires=True)
@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("/opt/lib", "a folder of the machine that built it"),
        ("/build/$LIB", "a folder of the machine that built it"),
        ("lib", "below the working directory"),
        ("$LIB/x", "below the working directory"),
    ],
)
def test_an_entry_that_does_not_begin_at_the_object(entry: str, place: str) -> None:
    path = f"$ORIGIN:{entry}:{entry}"
    (finding,) = findings("rpath-absolute", module("pkg/x.so", rpath=path))
    assert (finding.severity, finding.member, finding.evidence) == (
        "warning",
        "pkg/x.so",
        {"entry": entry, "path": path},
    )
    assert finding.message == f"pkg/x.so has the search path entry {entry!r}, {place}"


@pytest.mark.rule("rpath-absolute", fires=False)
def test_entries_that_begin_at_the_object() -> None:
    assert findings("rpath-absolute", module("pkg/x.so", runpath="$ORIGIN:${ORIGIN}/../lib")) == []


@pytest.mark.rule("rpath-dead", fires=True)
@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_an_entry_that_leads_to_no_folder_and_a_library_that_is_lost(kind: str) -> None:
    (finding,) = findings("rpath-dead", module("pkg/x.so", "liba.so", **{kind: "$ORIGIN/../pkg/lib"}))
    assert finding.message.endswith("leads to no folder")
    assert (finding.severity, finding.member, finding.evidence["entry"]) == (
        "warning",
        "pkg/x.so",
        "$ORIGIN/../pkg/lib",
    )


@pytest.mark.rule("rpath-dead", fires=True)
def test_an_entry_on_which_nothing_depends_is_an_information() -> None:
    lost = module("pkg/y.so", "liba.so")  # of another object
    (finding,) = findings("rpath-dead", module("pkg/x.so", "libc.so.6", runpath="$ORIGIN/lib"), lost)
    assert finding.severity == "info"
    assert finding.message.endswith("leads to no folder; nothing depends on it")


@pytest.mark.rule("rpath-dead", fires=True)
def test_each_entry_is_judged_for_itself() -> None:
    path = "/opt/lib:$ORIGIN:$ORIGIN/../other/lib:$ORIGIN/gone:$ORIGIN/../../gone"
    found = findings("rpath-dead", module("pkg/x.so", runpath=path))
    # /opt/lib is rpath-absolute; the first of these two is in the wheel, the second beside site-packages.
    assert [f.evidence["entry"] for f in found] == ["$ORIGIN/gone", "$ORIGIN/../../gone"]


@pytest.mark.rule("rpath-dead", fires=False)
def test_runpath_turns_rpath_off() -> None:
    assert findings("rpath-dead", module("pkg/x.so", rpath="$ORIGIN/gone", runpath="$ORIGIN")) == []


@pytest.mark.rule("rpath-dead", fires=False)
def test_an_entry_that_leads_to_a_folder_of_the_wheel() -> None:
    members = module("pkg/x.so", runpath="$ORIGIN/../pkg.libs:$ORIGIN"), library("pkg.libs/liba.so")
    assert findings("rpath-dead", *members) == []


@pytest.mark.rule("rpath-dead", fires=False)
def test_an_entry_into_another_distribution_that_was_not_given() -> None:
    assert findings("rpath-dead", module("pkg/x.so", "liba.so", runpath="$ORIGIN/../other/lib")) == []


@pytest.mark.rule("rpath-dead", fires=False)
def test_an_entry_into_the_folder_that_a_provider_rule_names() -> None:
    policy = provider("liba.so", "other", "pkg/plugins/other")
    member = module("pkg/x.so", "liba.so", runpath="$ORIGIN/plugins/other")
    assert findings("rpath-dead", member, policy=policy) == []


DATA = Member(
    "pkg-1.data/data/lib/liba.so",
    "data:lib/liba.so",
    "data",
    content="elf",
    elf=library("x/liba.so").elf,
    sha256="a",
)


@pytest.mark.rule("data-scheme-rpath", fires=True)
@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_a_library_that_is_reached_through_the_prefix(kind: str) -> None:
    root = module("pkg/x.so", "liba.so", **{kind: "$ORIGIN/../../../../lib"})
    (finding,) = findings("data-scheme-rpath", root, DATA)
    assert brief([finding]) == [("data-scheme-rpath", "warning", "pkg/x.so", "liba.so")]
    assert finding.evidence["path"] == "data:lib/liba.so"


def _of_the_prefix(*needed: str, runpath: str) -> Member:
    elf = library("x/libb.so", *needed, runpath=runpath).elf
    return Member(
        "pkg-1.data/data/lib/libb.so", "data:lib/libb.so", "data", content="elf", elf=elf, sha256="b"
    )


@pytest.mark.rule("data-scheme-rpath", fires=True)
def test_a_library_of_the_prefix_that_reaches_into_site_packages() -> None:
    other = _of_the_prefix("libc.so.6", "libp.so", runpath="$ORIGIN/python3/site-packages/pkg")
    (finding,) = findings("data-scheme-rpath", other, library("pkg/libp.so"))
    assert brief([finding]) == [("data-scheme-rpath", "warning", "data:lib/libb.so", "libp.so")]


@pytest.mark.rule("data-scheme-rpath", fires=False)
def test_libraries_of_the_prefix_among_themselves_and_those_of_the_machine() -> None:
    other = _of_the_prefix("liba.so", "libm.so.6", runpath="$ORIGIN")
    assert findings("data-scheme-rpath", other, DATA) == []


@pytest.mark.rule("data-scheme-rpath", fires=False)
def test_what_ld_library_path_finds_is_no_search_paths() -> None:
    found = findings(
        "data-scheme-rpath", module("pkg/x.so", "liba.so"), DATA, ld_library_path=("/prefix/lib",)
    )
    assert found == []


def test_a_text_in_the_place_of_a_library_is_found_by_nobody() -> None:
    text = Member("pkg/lib/liba.so", "pkg/lib/liba.so", content="text")
    judged = subject(wheel(module("pkg/x.so", "liba.so", runpath="$ORIGIN/lib"), text))
    assert told(search_paths, judged) == []


LEADS = module("pkg/x.so", "liba.so", "libb.so", runpath="$ORIGIN/lib")


@pytest.mark.rule("load-order-dependent", fires=True)
def test_a_library_that_another_object_has_loaded() -> None:
    members = LEADS, library("pkg/lib/liba.so"), library("pkg/lib/libb.so", "liba.so")
    (finding,) = findings("load-order-dependent", *members)
    assert brief([finding]) == [("load-order-dependent", "warning", "pkg/lib/libb.so", "liba.so")]
    assert "pkg/x.so has loaded it before" in finding.message


@pytest.mark.rule("load-order-dependent", fires=True)
def test_a_library_beside_the_packages_that_another_object_has_loaded() -> None:
    root = module("x.so", "liba.so", "libb.so", runpath="$ORIGIN")
    (finding,) = findings("load-order-dependent", root, library("liba.so"), library("libb.so", "liba.so"))
    assert brief([finding]) == [("load-order-dependent", "warning", "libb.so", "liba.so")]


@pytest.mark.rule("load-order-dependent", fires=True)
def test_the_first_that_loads_it_is_named_the_root_where_it_is_the_library_itself() -> None:
    first = library("pkg/lib/libb.so", "libc.so", runpath="$ORIGIN")
    root = module("pkg/x.so", "libb.so", "libd.so", soname="libx.so", runpath="$ORIGIN/lib")
    last = library("pkg/lib/libd.so", "libx.so", "libc.so")
    found = findings("load-order-dependent", root, first, library("pkg/lib/libc.so"), last)
    assert [(f.member, f.library, f.message.rpartition("because ")[2]) for f in found] == [
        ("pkg/lib/libd.so", "libx.so", "pkg/x.so has loaded it before"),
        ("pkg/lib/libd.so", "libc.so", "pkg/lib/libb.so has loaded it before"),
    ]


@pytest.mark.rule("load-order-dependent", fires=True)
def test_a_path_in_place_of_a_name_is_told_as_that() -> None:
    built = library("pkg/lib/liba.so", soname="out/liba.so")
    helper = library("pkg/lib/libb.so", "out/liba.so", "libd.so")
    root = module("pkg/x.so", "liba.so", "libb.so", "libd.so", runpath="$ORIGIN/lib")
    (finding,) = findings("load-order-dependent", root, built, helper, library("pkg/lib/libd.so"))
    assert (finding.member, finding.library) == ("pkg/lib/libb.so", "libd.so")


@pytest.mark.rule("load-order-dependent", fires=False)
def test_the_libraries_of_a_given_distribution_are_not_judged() -> None:
    other = wheel(library("other/lib/liba.so"), library("other/lib/libb.so", "liba.so"), name="other")
    root = module("pkg/x.so", "liba.so", "libb.so", runpath="$ORIGIN/../other/lib")
    assert findings("load-order-dependent", root, given=(other,)) == []


@pytest.mark.rule("load-order-dependent", fires=False)
@pytest.mark.parametrize("path", [{"runpath": "$ORIGIN"}, {"rpath": "$ORIGIN"}])
def test_a_library_with_a_path_of_its_own(path: dict[str, str]) -> None:
    members = LEADS, library("pkg/lib/liba.so"), library("pkg/lib/libb.so", "liba.so", **path)
    assert findings("load-order-dependent", *members) == []


@pytest.mark.rule("load-order-dependent", fires=False)
def test_an_inherited_rpath_is_a_path() -> None:
    root = module("pkg/x.so", "liba.so", "libb.so", rpath="$ORIGIN/lib")
    members = root, library("pkg/lib/liba.so"), library("pkg/lib/libb.so", "liba.so")
    assert findings("load-order-dependent", *members) == []


@pytest.mark.rule("load-order-dependent", fires=False)
def test_the_hosts_libraries_need_no_path() -> None:
    root = module("pkg/x.so", "libm.so.6", "libb.so", runpath="$ORIGIN/lib")
    assert findings("load-order-dependent", root, library("pkg/lib/libb.so", "libm.so.6")) == []


BY_EXTENSION = wheel(
    module("other/_c.so", "liba.so", runpath="$ORIGIN/lib"), library("other/lib/liba.so"), name="other"
)
BY_CTYPES = wheel(script("other/__init__.py", "liba.so"), library("other/lib/liba.so"), name="other")
BY_RULE = wheel(library("other/lib/liba.so"), name="other")


@pytest.mark.rule("load-order-dependent", fires=True)
@pytest.mark.parametrize(
    ("other", "policy"),
    [
        (BY_EXTENSION, None),
        (BY_CTYPES, None),
        (BY_RULE, provider("liba.so", "other", "other/lib", "by-import")),
    ],
    ids=["extension module", "ctypes", "provider rule"],
)
def test_what_the_import_of_a_requirement_loads_is_an_information(
    other: WheelFacts, policy: Policy | None
) -> None:
    root = module("pkg/x.so", "liba.so")
    (finding,) = findings("load-order-dependent", root, given=(other,), policy=policy, requires=("other",))
    assert brief([finding]) == [("load-order-dependent", "info", "pkg/x.so", "liba.so")]
    assert "importing other" in finding.message


@pytest.mark.rule("load-order-dependent", fires=True)
def test_another_library_of_the_name_than_the_one_that_an_import_loads() -> None:
    members = LEADS, library("pkg/lib/liba.so"), library("pkg/lib/libb.so", "liba.so")
    (finding,) = findings("load-order-dependent", *members, given=(BY_EXTENSION,), requires=("other",))
    assert brief([finding]) == [("load-order-dependent", "warning", "pkg/lib/libb.so", "liba.so")]
    assert "pkg/x.so has loaded it before" in finding.message


CUDART = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
TO_CUDART = "$ORIGIN/../nvidia/cu13/lib"


@pytest.mark.rule("load-order-dependent", fires=True)
@pytest.mark.parametrize("policy", [CUDART, None], ids=["provider rule", "nothing but the path"])
def test_a_library_of_an_absent_distribution_that_only_another_objects_path_leads_to(
    policy: Policy | None,
) -> None:
    root = module("pkg/x.so", "libcudart.so.13", "libb.so", runpath=f"$ORIGIN:{TO_CUDART}")
    # Neither leads into another distribution: a folder of the wheel itself, one outside of site-packages.
    helper = library("pkg/libb.so", "libcudart.so.13", runpath="$ORIGIN/gone:$ORIGIN/../../../gone")
    (finding,) = findings("load-order-dependent", root, helper, policy=policy)
    assert brief([finding]) == [("load-order-dependent", "warning", "pkg/libb.so", "libcudart.so.13")]
    assert finding.message.endswith("it is found because pkg/x.so has loaded it before")


@pytest.mark.rule("load-order-dependent", fires=False)
def test_two_objects_with_a_path_into_another_distribution_each() -> None:
    root = module("pkg/x.so", "libcudart.so.13", "libb.so", runpath=f"$ORIGIN:{TO_CUDART}")
    helper = library("pkg/libb.so", "libcudart.so.13", runpath=TO_CUDART)
    assert findings("load-order-dependent", root, helper) == []


@pytest.mark.rule("load-order-dependent", fires=False)
def test_what_is_loaded_later_helps_nobody() -> None:
    # Breadth-first: what the root needs is looked for before what its libraries need.
    root = module("pkg/x.so", "libb.so", "libcudart.so.13", "libm.so.6", runpath="$ORIGIN")
    helper = library("pkg/libb.so", "libcudart.so.13", runpath=TO_CUDART)
    with_rule, without = subject(wheel(root, helper), policy=CUDART), subject(wheel(root, helper))
    assert brief(told(search_paths, with_rule)) == [
        ("needed-unreachable", "error", "pkg/x.so", "libcudart.so.13")
    ]
    assert told(search_paths, without) == []


@pytest.mark.rule("load-order-dependent", fires=False)
def test_two_objects_neither_with_a_path_into_another_distribution() -> None:
    root = module("pkg/x.so", "libcudart.so.13", "libb.so", runpath="$ORIGIN")
    helper = library("pkg/libb.so", "libcudart.so.13")
    assert findings("load-order-dependent", root, helper, requires=("other",)) == []


@pytest.mark.rule("needed-unreachable", fires=False)
@pytest.mark.rule("load-order-dependent", fires=False)
@pytest.mark.parametrize(
    ("name", "exclude"),
    [("libcuda.so.1", ()), ("libpython3.11.so.1.0", ()), ("libcudart.so.13", ("libcudart.so*",))],
)
def test_the_drivers_libraries_pythons_and_those_that_were_excluded_need_no_path(
    name: str, exclude: tuple[str, ...]
) -> None:
    root = module("pkg/x.so", name, "libb.so", runpath=f"$ORIGIN:{TO_CUDART}")
    helper = library("pkg/libb.so", name)
    for policy in (provider(name, "other", "other/lib"), None):
        judged = subject(wheel(root, helper), policy=policy, exclude=exclude)
        assert told(search_paths, judged) == []


def test_a_library_of_an_absent_distribution_that_no_path_leads_to_is_unreachable() -> None:
    root = module("pkg/x.so", "libcudart.so.13", runpath="$ORIGIN")
    (finding,) = findings("needed-unreachable", root, policy=CUDART)
    assert (finding.severity, finding.policy) == ("error", "test:provider[0]")
    assert finding.remedy == f"Give pkg/x.so the RUNPATH {TO_CUDART}."
    assert finding.evidence == {"root": "pkg/x.so", "hop": TO_CUDART, "provider": "nvidia-cuda-runtime"}


def test_a_library_that_a_given_distribution_lacks_is_told_as_missing() -> None:
    lacks = wheel(library("nvidia/cu12/lib/libcudart.so.12"), name="nvidia-cuda-runtime")
    judged = subject(
        wheel(module("pkg/x.so", "libcudart.so.13"), requires=[lacks.name]), lacks, policy=CUDART
    )
    assert told(search_paths, judged) == []


@pytest.mark.rule("needed-unreachable", fires=True)
def test_of_two_providers_that_no_path_leads_to_the_first_is_named_for_each_object() -> None:
    root, helper = module("pkg/x.so", "libcudart.so.13", "libb.so", runpath="$ORIGIN"), "pkg/libb.so"
    other = Provider("test:provider[1]", "libcudart.so.*", "other", "other/lib")
    policy = Policy(providers=(*CUDART.providers, other))
    found = findings("needed-unreachable", root, library(helper, "libcudart.so.13"), policy=policy)
    assert [(f.member, f.policy) for f in found] == [
        ("pkg/x.so", "test:provider[0]"),
        (helper, "test:provider[0]"),
    ]


@pytest.mark.rule("needed-unreachable", fires=False)
@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_a_path_that_leads_into_the_folder_of_one_of_the_providers(kind: str) -> None:
    root = module("pkg/x.so", "libcudart.so.13", **{kind: f"$ORIGIN:{TO_CUDART}"})
    other = Provider("test:provider[1]", "libcudart.so.*", "other", "other/lib")
    policy = Policy(providers=(other, *CUDART.providers))
    assert findings("needed-unreachable", root, policy=policy) == []


MUSL = "cp311-cp311-musllinux_1_2_x86_64"


@pytest.mark.rule("needed-unreachable", fires=True)
@pytest.mark.rule("needed-unreachable", fires=False)
@pytest.mark.parametrize(
    ("tag", "root", "helper", "reached"),
    [
        (TAG, {"rpath": f"$ORIGIN:{TO_CUDART}"}, {}, True),
        (TAG, {"rpath": f"$ORIGIN:{TO_CUDART}"}, {"rpath": "/x"}, True),
        (TAG, {"rpath": f"$ORIGIN:{TO_CUDART}"}, {"runpath": "/x"}, False),
        (TAG, {"rpath": TO_CUDART, "runpath": "$ORIGIN"}, {}, False),
        (TAG, {"runpath": f"$ORIGIN:{TO_CUDART}"}, {}, False),
        (TAG, {"runpath": "$ORIGIN"}, {"rpath": TO_CUDART, "runpath": "/x"}, False),
        # musl takes the paths of all loaders, and drops one that holds another token than $ORIGIN.
        (MUSL, {"runpath": f"$ORIGIN:{TO_CUDART}"}, {}, True),
        (MUSL, {"rpath": f"$ORIGIN:{TO_CUDART}"}, {"runpath": "/x"}, True),
        (MUSL, {"rpath": TO_CUDART, "runpath": "$ORIGIN"}, {}, False),
        (MUSL, {"runpath": "$ORIGIN"}, {"runpath": f"{TO_CUDART}:/x/$LIB"}, False),
    ],
)
def test_the_paths_that_count_for_a_library_of_the_root(
    tag: str, root: dict[str, str], helper: dict[str, str], reached: bool
) -> None:
    members = module("pkg/x.so", "libb.so", **root), library("pkg/libb.so", "libcudart.so.13", **helper)
    found = findings("needed-unreachable", *members, policy=CUDART, tag=tag)
    assert brief(found) == (
        [] if reached else [("needed-unreachable", "error", "pkg/libb.so", "libcudart.so.13")]
    )


TORCH = wheel(
    library("torch/lib/libtorch.so", "libcudart.so.13", runpath="$ORIGIN/../../nvidia/cu13/lib"),
    module("torch/_C.so", "libtorch.so", runpath="$ORIGIN/lib"),
    name="torch",
)


@pytest.mark.rule("load-order-dependent", fires=True)
def test_a_library_of_an_absent_distribution_to_which_an_import_leads() -> None:
    judged = subject(wheel(module("pkg/x.so", "libcudart.so.13"), requires=["torch"]), TORCH, policy=CUDART)
    (finding,) = told(search_paths, judged)
    assert brief([finding]) == [("load-order-dependent", "info", "pkg/x.so", "libcudart.so.13")]
    assert "importing torch" in finding.message


@pytest.mark.rule("needed-unreachable", fires=True)
@pytest.mark.parametrize(
    "lib",
    [
        library("torch/lib/libtorch.so", "libcudart.so.13", runpath="$ORIGIN"),
        library("torch/lib/libtorch.so", runpath="$ORIGIN/../../nvidia/cu13/lib"),
    ],
    ids=["no path", "no need"],
)
def test_an_import_that_does_not_lead_to_the_library(lib: Member) -> None:
    torch = wheel(lib, module("torch/_C.so", "libtorch.so", runpath="$ORIGIN/lib"), name="torch")
    judged = subject(wheel(module("pkg/x.so", "libcudart.so.13"), requires=["torch"]), torch, policy=CUDART)
    assert [f.rule for f in told(search_paths, judged)] == ["needed-unreachable"]


@pytest.mark.rule("needed-unreachable", fires=True)
def test_no_import_comes_before_a_program() -> None:
    program = library(
        "pkg/bin/tool", "libcudart.so.13", soname=None, interpreter="/lib64/ld-linux-x86-64.so.2"
    )
    judged = subject(wheel(program, requires=["torch"]), TORCH, policy=CUDART)
    assert [f.rule for f in told(search_paths, judged)] == ["needed-unreachable"]


BROUGHT = (
    Provider("p:provider[0]", "libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib"),
    Provider("p:provider[1]", "libcudart.so.*", "torch", "nvidia", loads="by-import"),
)


def _about_cudart(
    tmp_path: Path, name: str, *, program: bool = False, with_torch: bool = False
) -> set[tuple[str, str]]:
    """The rules about libcudart.so.13, of a module (or a program) without any path to it."""

    needs = make_elf(needed=("libcudart.so.13",))
    data = needs[:16] + (2).to_bytes(2, "little") + needs[18:] if program else needs
    path = test_audit.wheel(
        tmp_path, "x", {name: data}, tag="cp311-cp311-manylinux_2_28_x86_64", requires="torch"
    )
    policy = tmp_path / "p.toml"
    rows = "".join(
        f'[[provider]]\nlibrary = "{p.library}"\ndistribution = "{p.distribution}"\npath = "{p.path}"\nloads = "{p.loads}"\n'
        for p in BROUGHT
    )
    policy.write_text(f"schema = 1\n{rows}")
    given = ()
    if with_torch:
        (tmp_path / "t").mkdir()
        given = (
            test_audit.wheel(
                tmp_path / "t", "torch", {"torch/__init__.py": b""}, tag="cp311-cp311-manylinux_2_28_x86_64"
            ),
        )
    report = audit.audit_wheel(path, audit.prepare(audit.Options(policies=(str(policy),), with_=given)))
    return {(f.rule, f.severity) for f in report.findings if f.library == "libcudart.so.13"}


def test_what_importing_torch_brings_needs_no_path(tmp_path: Path) -> None:
    found = _about_cudart(tmp_path, "pkg/x.so")
    assert ("load-order-dependent", "info") in found
    assert not any(rule == "needed-unreachable" for rule, _ in found)


def test_a_program_imports_nothing(tmp_path: Path) -> None:
    assert ("needed-unreachable", "error") in _about_cudart(tmp_path, "pkg/bin/x", program=True)


def test_a_torch_that_was_given_and_does_not_load_it_brings_nothing(tmp_path: Path) -> None:
    assert ("needed-unreachable", "error") in _about_cudart(tmp_path, "pkg/x.so", with_torch=True)
