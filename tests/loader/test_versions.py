"""The versions that are checked before any look-up, on literal facts (elf/dl-version.c, _dl_check_map_versions)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.loader.test_binding import V1, VERSIONED, gives, node, opened, world
from wheelfix.loader.versions import loaded_by_name, version_errors
from wheelfix.model.elf import ET_EXEC, ElfFacts, VersionNeed, VersionRef
from wheelfix.model.resolution import Edge, Node

NEEDS = (VersionNeed("a.so", (VersionRef("V1", 2), VersionRef("V2", 3))),)


def test_version_that_the_named_file_lacks() -> None:
    root = node("root.so", verneed=NEEDS)
    (error,) = version_errors(world(), opened(root, node("a.so", **VERSIONED)))
    assert error == ("root.so", "root.so", "a.so", "V2", "missing", "a.so")


@pytest.mark.parametrize(
    "library",
    [
        node("a.so"),  # no versions: a message at most
        Node("a.so", "/a.so", ElfFacts(complete=False, verdef=V1), "external"),
        Node("a.so", "/a.so", None),  # no ELF object
        node("a.so", open_ended=True, **VERSIONED),  # the machine's may be newer than the data
    ],
)
def test_version_of_a_file_that_cannot_be_judged(library: Node) -> None:
    assert version_errors(world(), opened(node("root.so", verneed=NEEDS), library)) == ()


def test_weak_version_may_be_missing() -> None:
    need = (VersionNeed("a.so", (VersionRef("V2", 3, weak=True),)),)
    assert version_errors(world(), opened(node("root.so", verneed=need), node("a.so", **VERSIONED))) == ()


def test_version_of_a_file_that_nothing_loads() -> None:
    errors = version_errors(world(), opened(node("root.so", verneed=NEEDS)))
    assert {e.trouble for e in errors} == {"orphan"}


def test_version_of_a_file_that_is_not_found_is_no_orphan() -> None:
    assert version_errors(world(), opened(node("root.so", verneed=NEEDS), missing=["a.so"])) == ()


def test_version_of_a_file_of_the_process() -> None:
    libc = node("a.so", owner="host", **VERSIONED)
    (error,) = version_errors(world(libc), opened(node("root.so", verneed=NEEDS)))
    assert (error.version, error.trouble) == ("V2", "missing")


def test_musl_checks_no_versions() -> None:
    assert version_errors(world(libc="musl"), opened(node("root.so", verneed=NEEDS))) == ()


def test_every_version_that_is_lacking_is_told_for_every_object_that_needs_it() -> None:
    first, second = node("root.so", verneed=NEEDS), node("b.so", verneed=(*NEEDS, *NEEDS_OTHER))
    errors = version_errors(world(), opened(first, second, node("a.so"), node("c.so", **VERSIONED)))
    assert [e[1:] for e in errors] == [("b.so", "c.so", "V2", "missing", "c.so")]
    errors = version_errors(world(), opened(first, second, node("a.so", **VERSIONED)))
    assert [e[1:] for e in errors] == [
        ("root.so", "a.so", "V2", "missing", "a.so"),
        ("b.so", "a.so", "V2", "missing", "a.so"),
        ("b.so", "c.so", "V2", "orphan", None),
    ]


NEEDS_OTHER = (VersionNeed("c.so", (VersionRef("V2", 3),)),)


def test_a_file_that_is_not_judged_does_not_hide_those_behind_it() -> None:
    needs = (*NEEDS_OTHER, VersionNeed("plain.so", (VersionRef("V2", 3),)), *NEEDS)
    load = opened(node("root.so", verneed=needs), node("a.so", **VERSIONED), node("plain.so"))
    errors = version_errors(world(), load)
    assert [(e.file, e.trouble) for e in errors] == [("c.so", "orphan"), ("a.so", "missing")]


def test_objects_without_facts_need_no_version() -> None:
    text = Node("b.so", "/b.so", None)
    assert version_errors(world(), opened(node("root.so"), text)) == ()


def test_the_process_is_known_by_its_soname_or_else_by_the_name_of_the_file() -> None:
    named = node("lib/one.so", owner="host")
    bare = Node("p", "/usr/bin/python3", ElfFacts(), "interpreter")
    text = Node("t", "/usr/bin/text", None, "interpreter")
    odd = replace(named, elf=ElfFacts(soname="libodd.so.1"), location="/lib/file.so")
    names = loaded_by_name(world(named, bare, text, odd), opened(node("root.so")))
    root = names["/root.so"]
    assert dict(names) == {
        "one.so": named,
        "python3": bare,
        "text": text,
        "libodd.so.1": odd,
        "/root.so": root,
    }


def test_a_program_is_not_in_the_process_of_the_interpreter() -> None:
    libc = node("a.so", owner="host", **VERSIONED)
    program = node("tool", verneed=NEEDS, type=ET_EXEC)
    assert {e.trouble for e in version_errors(world(libc), opened(program))} == {"orphan"}


def test_the_first_object_of_a_name_goes_by_it_and_each_by_its_location() -> None:
    process, again = node("a.so", owner="host"), node("lib/a.so")
    root = node("root.so")
    load = opened(root, again)
    assert loaded_by_name(world(process), load)["a.so"] is process
    assert loaded_by_name(world(), load)["a.so"] is again
    assert loaded_by_name(world(process), load)["/lib/a.so"] is again
    # What was asked for by another name goes by that one too; its SONAME alone nobody asked for.
    edges = (Edge("root.so", "root.so", "liba.so.1", "found", "lib/a.so"),)
    names = loaded_by_name(world(), replace(load, edges=edges))
    assert sorted(names) == ["/lib/a.so", "/root.so", "liba.so.1"]


def test_a_version_of_a_file_that_verneed_names_by_its_path() -> None:
    need = (VersionNeed("/lib/a.so", (VersionRef("V2", 3),)),)
    load = opened(node("root.so", verneed=need), node("lib/a.so", gives("g"), **VERSIONED))
    (error,) = version_errors(world(), load)
    assert (error.file, error.provider, error.trouble) == ("/lib/a.so", "lib/a.so", "missing")
