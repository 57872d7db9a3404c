import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfix.model.elf import ElfFacts
from wheelfix.repair import runpath


@pytest.mark.parametrize(
    ("entry", "location"),
    [
        ("$ORIGIN", "/site/pkg"),
        ("${ORIGIN}/../x.libs", "/site/x.libs"),
        ("$ORIGIN/$LIB", "/site/pkg/lib64"),
        ("$ORIGIN/${PLATFORM}/", "/site/pkg/x86_64"),
        ("/opt/lib", "/opt/lib"),
        ("", None),
        ("lib", None),
        ("./lib", None),
        ("$ORIGINAL/lib", None),
    ],
)
def test_tokens_are_those_of_ld_so(entry: str, location: str | None) -> None:
    assert runpath.leads_to(entry, "/site/pkg", "lib64", "x86_64") == location


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("$ORIGIN", True),
        ("${ORIGIN}/x", True),
        ("$ORIGINAL/x", False),
        ("$ORIGINx", False),
        ("/opt/$ORIGIN", False),
        ("$LIB/x", False),
        ("", False),
    ],
)
def test_only_an_entry_that_begins_at_the_object_is_relative_to_it(entry: str, expected: bool) -> None:
    assert runpath.has_origin(entry) is expected


def test_rpath_beside_runpath_does_not_count() -> None:
    both = ElfFacts(rpath="/a", runpath="$ORIGIN:/b")
    assert runpath.entries(both) == ("$ORIGIN", "/b")
    assert runpath.kind_of(both) == "runpath"


def test_an_object_without_path_gets_an_rpath_for_runpath_would_end_inheritance() -> None:
    assert runpath.kind_of(ElfFacts()) == "rpath"
    assert runpath.entries(ElfFacts()) == ()


def test_an_empty_runpath_is_one_empty_entry() -> None:
    assert runpath.entries(ElfFacts(runpath="")) == ("",)


@pytest.mark.parametrize(
    ("folder", "target", "entry"),
    [
        ("/s/pkg", "/s/pkg", "$ORIGIN"),
        ("/s/pkg", "/s/pkg/lib", "$ORIGIN/lib"),
        ("/s/acme/core/deep/leaf", "/s/c39.libs", "$ORIGIN/../../../../c39.libs"),
        ("/s", "/s/x.libs", "$ORIGIN/x.libs"),
    ],
)
def test_a_hop_is_the_shortest_relative_path(folder: str, target: str, entry: str) -> None:
    assert runpath.hop(folder, target) == entry


_PART = st.text("abc.-_", min_size=1, max_size=4).filter(lambda p: p not in (".", ".."))
_FOLDER = st.lists(_PART, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts))


@given(_FOLDER, _FOLDER)
def test_a_hop_leads_to_its_target(folder: str, target: str) -> None:
    entry = runpath.hop(folder, target)
    assert os.path.normpath(entry.replace("$ORIGIN", folder)) == target


def test_joined_keeps_the_first_of_equal_entries() -> None:
    assert runpath.joined(["$ORIGIN", "$ORIGIN/a", "$ORIGIN"]) == "$ORIGIN:$ORIGIN/a"
