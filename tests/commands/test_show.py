"""``show``: what readelf -dVW says of the sample wheels, and the tags that follow from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfix.commands.show import floor_of
from wheelfix.model.elf import ElfFacts, VersionNeed, VersionRef

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shown(wheelfix: Run, sample_wheels: Path) -> Callable[[str], dict[str, object]]:
    def show(sample: str) -> dict[str, object]:
        status, out, _ = wheelfix("show", "--json", next(sample_wheels.glob(f"{sample}-*")))
        said = json.loads(out)
        assert (status, said["schema"]) == (0, "wheelfix/show/1")
        wheel: dict[str, object] = said["wheels"][0]
        return wheel

    return show


def test_the_objects_are_as_readelf_says(shown: Callable[[str], dict[str, object]]) -> None:
    objects = {o["member"]: o for o in shown("sample_dynamic_runtime")["objects"]}  # type: ignore[attr-defined]
    ext = objects["sample_dynamic_runtime/_ext.abi3.so"]
    assert {k: ext[k] for k in ("kind", "arch", "needed", "rpath", "runpath", "floor", "cxx_runtime")} == {
        "kind": "extension module",
        "arch": "x86_64",
        "needed": ["libstdc++.so.6", "libgcc_s.so.1", "libc.so.6"],
        "rpath": None,
        "runpath": None,
        "floor": ["CXXABI_1.3", "GCC_3.0", "GLIBC_2.14", "GLIBCXX_3.4.21"],
        "cxx_runtime": "shared",
    }


@pytest.mark.parametrize(
    ("sample", "best", "better", "because"),
    [
        # GLIBC_2.35 is newer than 2.34; GLIBCXX_3.4.21 came with GCC 5.1, which manylinux_2_17 does not have.
        ("sample_healthy", "manylinux_2_35_x86_64", "manylinux_2_34_x86_64", "GLIBC_2.35"),
        ("sample_dynamic_runtime", "manylinux_2_24_x86_64", "manylinux_2_17_x86_64", "GLIBCXX_3.4.21"),
        ("sample_registration_dropped", "manylinux_2_5_x86_64", None, None),
    ],
)
def test_the_best_true_tag_and_why_not_the_next_better_one(
    shown: Callable[[str], dict[str, object]], sample: str, best: str, better: str | None, because: str | None
) -> None:
    (reach,) = shown(sample)["reachable"]  # type: ignore[misc]
    assert (reach["best"], reach["next_better"]) == (best, better)
    assert bool(reach["why_not"]) == (because is not None)
    assert because is None or because in reach["why_not"][0]


def test_no_tag_is_true_for_a_wheel_that_lacks_a_library(shown: Callable[[str], dict[str, object]]) -> None:
    (reach,) = shown("sample_helper_missing")["reachable"]  # type: ignore[misc]
    assert reach["best"] is None
    assert "libhelper.so" in reach["why_not"][0]


def test_text_has_a_header_the_tags_and_every_object(wheelfix: Run, sample_wheels: Path) -> None:
    status, out, _ = wheelfix("show", next(sample_wheels.glob("sample_healthy-*")))
    squeezed = " ".join(out.split())
    assert status == 0
    for part in (
        "is sample-healthy 1.0 for cp310-abi3-manylinux_2_35_x86_64",
        "holds 6 files, 1 extension module, 1 library",
        "best tag manylinux_2_35_x86_64 why not manylinux_2_34_x86_64:",
        "sample_healthy/libhelper.so",
        "floor GLIBC_2.35",
    ):
        assert part in squeezed


def test_an_unreadable_wheel_hides_no_other(wheelfix: Run, sample_wheels: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad-1-py3-none-any.whl"
    bad.write_bytes(b"")
    status, out, err = wheelfix("show", bad, next(sample_wheels.glob("sample_healthy-*")))
    assert status == 3
    assert "sample-healthy 1.0" in out
    assert "bad-1-py3-none-any.whl cannot be read as a wheel" in err
    status, out, _ = wheelfix("show", "--json", bad)
    assert status == 3
    assert json.loads(out)["wheels"][0]["error"]


def test_the_floor_is_the_newest_version_by_number_and_without_the_wheels_own_libraries() -> None:
    def need(file: str, *names: str) -> VersionNeed:
        return VersionNeed(file, tuple(VersionRef(n) for n in names))

    facts = ElfFacts(
        verneed=(
            need("libc.so.6", "GLIBC_2.9", "GLIBC_2.14", "GLIBC_ABI_DT_RELR", "GLIBC_PRIVATE"),
            need("libpthread.so.0", "GLIBC_2.2.5"),
            need("libown.so", "OWN_9.9"),
        )
    )
    assert floor_of(facts, frozenset({"libown.so"})) == ("GLIBC_2.14",)
