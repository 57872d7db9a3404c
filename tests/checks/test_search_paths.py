"""DT_RPATH and DT_RUNPATH on literal facts: entries that lead nowhere, elsewhere, or are not there at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import test_audit
from tests.checks.loading import brief, library, module, provider, script, subject, told, wheel
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
) -> list[Finding]:
    return told(search_paths, subject(wheel(*members, requires=requires), *given, policy=policy), rule)


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
@pytest.mark.parametrize("entry", ["/opt/lib", "/build/$LIB", "lib"])
def test_an_entry_that_does_not_begin_at_the_object(entry: str) -> None:
    (finding,) = findings("rpath-absolute", module("pkg/x.so", rpath=f"$ORIGIN:{entry}:{entry}"))
    assert (finding.severity, finding.member, finding.evidence["entry"]) == ("warning", "pkg/x.so", entry)


@pytest.mark.rule("rpath-absolute", fires=False)
def test_entries_that_begin_at_the_object() -> None:
    assert findings("rpath-absolute", module("pkg/x.so", runpath="$ORIGIN:${ORIGIN}/../lib")) == []


@pytest.mark.rule("rpath-dead", fires=True)
def test_an_entry_that_leads_to_no_folder_and_a_library_that_is_lost() -> None:
    (finding,) = findings("rpath-dead", module("pkg/x.so", "liba.so", runpath="$ORIGIN/../pkg/lib"))
    assert (finding.severity, finding.member, finding.evidence["entry"]) == (
        "warning",
        "pkg/x.so",
        "$ORIGIN/../pkg/lib",
    )


@pytest.mark.rule("rpath-dead", fires=True)
def test_an_entry_on_which_nothing_depends_is_an_information() -> None:
    (finding,) = findings("rpath-dead", module("pkg/x.so", "libc.so.6", runpath="$ORIGIN/lib"))
    assert finding.severity == "info"


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
def test_a_library_that_is_reached_through_the_prefix() -> None:
    root = module("pkg/x.so", "liba.so", runpath="$ORIGIN/../../../../lib")
    (finding,) = findings("data-scheme-rpath", root, DATA)
    assert brief([finding]) == [("data-scheme-rpath", "warning", "pkg/x.so", "liba.so")]
    assert finding.evidence["path"] == "data:lib/liba.so"


@pytest.mark.rule("data-scheme-rpath", fires=False)
def test_libraries_of_the_prefix_among_themselves() -> None:
    elf = library("x/libb.so", "liba.so", runpath="$ORIGIN").elf
    other = Member(
        "pkg-1.data/data/lib/libb.so", "data:lib/libb.so", "data", content="elf", elf=elf, sha256="b"
    )
    assert findings("data-scheme-rpath", other, DATA) == []


LEADS = module("pkg/x.so", "liba.so", "libb.so", runpath="$ORIGIN/lib")


@pytest.mark.rule("load-order-dependent", fires=True)
def test_a_library_that_another_object_has_loaded() -> None:
    members = LEADS, library("pkg/lib/liba.so"), library("pkg/lib/libb.so", "liba.so")
    (finding,) = findings("load-order-dependent", *members)
    assert brief([finding]) == [("load-order-dependent", "warning", "pkg/lib/libb.so", "liba.so")]
    assert "pkg/x.so has loaded it before" in finding.message


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
def test_a_library_of_an_absent_distribution_that_only_another_objects_path_leads_to() -> None:
    policy = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
    root = module("pkg/x.so", "libcudart.so.13", "libb.so", runpath="$ORIGIN:$ORIGIN/../nvidia/cu13/lib")
    helper = library("pkg/libb.so", "libcudart.so.13")
    (finding,) = findings("load-order-dependent", root, helper, policy=policy)
    assert brief([finding]) == [("load-order-dependent", "warning", "pkg/libb.so", "libcudart.so.13")]


def test_a_library_of_an_absent_distribution_that_no_path_leads_to_is_unreachable() -> None:
    policy = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
    root = module("pkg/x.so", "libcudart.so.13", runpath="$ORIGIN")
    (finding,) = findings("needed-unreachable", root, policy=policy)
    assert (finding.severity, finding.policy) == ("error", "test:provider[0]")
    assert "$ORIGIN/../nvidia/cu13/lib" in finding.remedy


@pytest.mark.rule("needed-unreachable", fires=False)
def test_a_path_that_leads_into_the_providers_folder() -> None:
    policy = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
    root = module("pkg/x.so", "libcudart.so.13", runpath="$ORIGIN/../nvidia/cu13/lib")
    assert findings("needed-unreachable", root, policy=policy) == []


TORCH = wheel(
    library("torch/lib/libtorch.so", "libcudart.so.13", runpath="$ORIGIN/../../nvidia/cu13/lib"),
    module("torch/_C.so", "libtorch.so", runpath="$ORIGIN/lib"),
    name="torch",
)


@pytest.mark.rule("load-order-dependent", fires=True)
def test_a_library_of_an_absent_distribution_to_which_an_import_leads() -> None:
    policy = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
    judged = subject(wheel(module("pkg/x.so", "libcudart.so.13"), requires=["torch"]), TORCH, policy=policy)
    (finding,) = told(search_paths, judged)
    assert brief([finding]) == [("load-order-dependent", "info", "pkg/x.so", "libcudart.so.13")]
    assert "importing torch" in finding.message


@pytest.mark.rule("needed-unreachable", fires=True)
def test_no_import_comes_before_a_program() -> None:
    policy = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
    program = library(
        "pkg/bin/tool", "libcudart.so.13", soname=None, interpreter="/lib64/ld-linux-x86-64.so.2"
    )
    judged = subject(wheel(program, requires=["torch"]), TORCH, policy=policy)
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
