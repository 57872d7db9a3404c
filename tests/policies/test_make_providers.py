"""Provider rules from lists of files, as policies/make_providers.py makes them; no network."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wheelfix.policy.load import load_policies

POLICIES = Path(__file__).resolve().parents[2] / "policies"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_providers", POLICIES / "make_providers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make = _script()


def rows(
    distribution: str, *releases: tuple[str, list[str]], loads: str = "by-path"
) -> list[tuple[str, ...]]:
    read = [make.Release(distribution, version, tuple(names)) for version, names in releases]
    return [(r.library, r.path, r.versions, r.loads) for r in make.rows_of(read, loads)]


def test_what_counts_as_a_library_of_the_distribution() -> None:
    names = [
        "nvidia/cublas/lib/libcublas.so.12",
        "nvidia/nvshmem/lib/nvshmem_bootstrap_uid.so.3",
        "nvidia/cublas/lib/libcublas.a",
        "nvidia/cublas/include/cublas.h",
        "torch/_C.cpython-311-x86_64-linux-gnu.so",
        "pkg/_ext.abi3.so",
        "torch/lib/libgomp-a34b3233.so.1",  # grafted: the name is of one wheel
        "torch/lib/libgomp.so.1",  # the system's name
        "nvidia/cuda_runtime/lib/libOpenCL.so.1",
        "libtop.so",
    ]
    assert make.libraries_of(names) == (names[0], names[1])


def test_both_ends_of_each_major_without_previews_and_local_builds() -> None:
    versions = ["8.5.0.96", "9.10.2", "9.2.0", "8.9.7", "8.6.0", "9.11.0rc1", "9.12.0+cpu", "0.0.1.dev5"]
    assert make.ends(versions) == ("9.10.2", "9.2.0", "8.9.7", "8.5.0.96")


def test_a_soname_belongs_to_the_major_versions_that_hold_it() -> None:
    folder = "nvidia/cudnn/lib"
    found = rows(
        "nvidia-cudnn-cu12",
        ("9.10.2", [f"{folder}/libcudnn.so.9", f"{folder}/libcudnn_ops.so.9"]),
        ("9.0.0", [f"{folder}/libcudnn.so.9"]),
        ("8.9.7", [f"{folder}/libcudnn.so.8", f"{folder}/libcudnn_ops_infer.so.8"]),
    )
    assert found == [
        ("libcudnn*.so.8", folder, ">=8,<9", "by-path"),
        ("libcudnn*.so.9", folder, ">=9,<10", "by-path"),
    ]


def test_a_soname_that_does_not_follow_the_version_is_open_at_the_top() -> None:
    found = rows("nvidia-cufile", ("1.20.0", ["nvidia/cu13/lib/libcufile.so.0"]))
    assert found == [("libcufile.so.0", "nvidia/cu13/lib", ">=1", "by-path")]


def test_a_major_without_the_library_between_two_that_hold_it() -> None:
    held, none = ["d/lib/libx.so.5"], ["d/lib/liby.so.2"]
    found = rows("d", ("3.0", held), ("2.0", none), ("1.0", held))
    assert ("libx.so.5", "d/lib", ">=1,!=2.*", "by-path") in found
    assert ("liby.so.2", "d/lib", ">=2,<3", "by-path") in found


def test_a_soname_whose_minor_changes_is_one_glob_and_another_stays() -> None:
    found = rows(
        "nvidia-cuda-cupti-cu11",
        ("11.8.87", ["a/libcupti.so.11.8", "a/libcudart.so.11.0"]),
        ("11.7.101", ["a/libcupti.so.11.7", "a/libcudart.so.11.0"]),
    )
    assert [r[0] for r in found] == ["libcudart.so.11.0", "libcupti.so.11.*"]


def test_a_library_that_moved_has_both_folders() -> None:
    found = rows(
        "nvidia-cusparselt-cu13",
        ("0.10.0", ["nvidia/cu13/lib/libcusparseLt.so.0"]),
        ("0.8.0", ["nvidia/cusparselt/lib/libcusparseLt.so.0"]),
    )
    assert [r[1] for r in found] == ["nvidia/cu13/lib", "nvidia/cusparselt/lib"]


def test_importing_loads_all_but_what_is_opened_by_name() -> None:
    names = ["torch/lib/libc10.so", "torch/lib/libcaffe2_nvrtc.so", "torch/lib/libtorch_cpu.so"]
    found = rows("torch", ("2.15.0", names), loads="by-import")
    assert [(r[0], r[2], r[3]) for r in found] == [
        ("libc10*.so", None, "by-import"),
        ("libcaffe2_nvrtc.so", None, "by-path"),
        ("libtorch*.so", None, "by-import"),
    ]


def test_the_file_says_its_sources_and_is_a_policy(tmp_path: Path) -> None:
    releases = [
        make.Release("nvidia-cublas", v, ("nvidia/cu13/lib/libcublas.so.13",)) for v in ("13.2", "13.0")
    ]
    text = make.document("nvidia-pypi", make.rows_of(releases), releases)
    assert "#   nvidia-cublas 13.2 13.0\n" in text
    path = tmp_path / "nvidia-pypi.toml"
    path.write_text(text, "utf-8")
    (provider,) = load_policies([str(path)]).providers
    assert (provider.library, provider.path, provider.versions) == (
        "libcublas.so.13",
        "nvidia/cu13/lib",
        ">=13,<14",
    )


@pytest.mark.parametrize(("name", "extends"), [("nvidia-pypi", ""), ("torch-extension", "nvidia-pypi")])
def test_the_shipped_file_was_made_by_the_script(name: str, extends: str) -> None:
    """Made again from what it says, it is the same: nobody has changed it by hand."""
    text = (POLICIES / f"{name}.toml").read_text("utf-8")
    sources = [line[4:].split() for line in text.splitlines() if line.startswith("#   ")]
    releases = [make.Release(d, version, ()) for d, *versions in sources for version in versions]
    comments = [b.splitlines()[0] for b in text.split("\n\n")[1:]]
    rules = [p for p in load_policies([name]).providers if p.key.startswith(f"{name}:")]
    made = [
        make.Row(p.library, p.distribution, p.path, p.versions, p.loads, c[2:] if c[0] == "#" else None)
        for p, c in zip(rules, comments, strict=True)
    ]
    assert make.document(name, made, releases, extends) == text
    assert {p.distribution for p in rules} == {d for d, *_ in sources}
