"""Make nvidia-pypi.toml and torch-extension.toml: which distribution installs which library, and where.

    python policies/make_providers.py

Asks the index that pip is configured for. Of each distribution below it reads the lists of files of the newest and
of the oldest release of each major version; pip's ``LazyZipOverHTTP`` fetches the end of a wheel and no more where
the index answers ranges. An index that does not sends the whole wheel, which is not done above ``MOST_BYTES``. The
same releases give the same files, byte for byte.

A library is named by its file, which bears its SONAME (so in all 75 of NVIDIA's below 3 MB that were read). Not
learnt but written here: the distributions, the folds, what is only opened with dlopen, and that importing torch
loads its libraries.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST_BYTES = 700 * 10**6  # of a wheel that can only be had whole

_CUDA = (
    *("cublas", "cuda-cupti", "cuda-nvcc", "cuda-nvrtc", "cuda-runtime", "cufft", "cufile", "curand"),
    *("cusolver", "cusparse", "npp", "nvfatbin", "nvjitlink", "nvjpeg", "nvtx", "nvvm"),
)
_ONLY_13, _NOT_11, _NOT_13 = {"nvvm"}, {"cufile", "nvfatbin", "nvjitlink"}, {"cuda-nvcc"}
_BESIDE = ("cudnn", "nccl", "nvshmem", "cusparselt")
#: In the order of the files, newest CUDA first. TensorRT is not here: the index has no wheels of tensorrt-*-libs.
NVIDIA = (
    *(f"nvidia-{n}" for n in _CUDA if n not in _NOT_13),
    *(f"nvidia-{n}-cu13" for n in _BESIDE),
    *(f"nvidia-{n}-cu12" for n in _CUDA if n not in _ONLY_13),
    *(f"nvidia-{n}-cu12" for n in _BESIDE),
    *(f"nvidia-{n}-cu11" for n in _CUDA if n not in _ONLY_13 | _NOT_11),
    "nvidia-cudnn-cu11",
    "nvidia-nccl-cu11",
)
TORCH = ("torch",)
#: What torch's libraries need of NVIDIA's, whichever CUDA they were built for (readelf -d on those of torch 2.14.1):
#: loading them loads these, so that an extension finds them by name.
BROUGHT = (
    "cublas", "cublasLt", "cudart", "cudnn", "cufft", "cufile", "cupti", "curand", "cusolver", "cusparse",
    "cusparseLt", "nccl", "nvJitLink", "nvrtc", "nvshmem_host",
)  # fmt: skip
#: Families that a release extends or renames within: one glob for all. torch's builds for other GPUs (libtorch_hip.so,
#: libc10_xpu.so) are on other indexes.
FOLDS = ("libcudnn*.so*", "libnpp*.so*", "libtorch*.so", "libc10*.so")
#: Libraries that stand in no DT_NEEDED: what is named beside them opens them with dlopen.
DLOPENED = {
    "libcudnn_*": "libcudnn.so",
    "libnvrtc-builtins.so.*": "libnvrtc.so",
    "libnvrtc-builtins.alt.so.*": "libnvrtc.alt.so",
    "libcufile_rdma.so.*": "libcufile.so",
    "libnvperf_host.so": "libcupti.so",
    "nvshmem_bootstrap_*": "libnvshmem_host.so",
    "nvshmem_transport_*": "libnvshmem_host.so",
    "libnvvm.so*": "compilers at run time",
    "libcaffe2_nvrtc.so": "libtorch_cuda.so",
}
#: Libraries of a system that a distribution carries under the system's name. A provider rule for such a name would
#: excuse every wheel that takes the library from the machine which built it.
NOT_OWN = (
    "libgomp.so.*",
    "libgfortran.so.*",
    "libquadmath.so.*",
    "libgcc_s.so.*",
    "libstdc++.so.*",
    "libOpenCL.so.*",
)

_GRAFTED = re.compile(
    r".+-[0-9a-f]{8}\.so[.\d]*"
)  # auditwheel's names: of one wheel, and needed by nobody else
_LIBRARY = re.compile(r"(?P<stem>[^/]+?)\.so(?P<version>(?:\.\d+)*)")
_NOTE = {
    "nvidia-pypi": """\
# Which of NVIDIA's distributions installs which library, and where.
# CUDA 11 and 12: a folder for each library under nvidia/. CUDA 13: one folder, nvidia/cu13.
""",
    "torch-extension": """\
# An extension of torch: which libraries torch brings and loads.
# `import torch` loads torch's own libraries, so that an extension that is imported after it needs no path to
# them (loads = "by-import": torch/__init__.py imports torch._C, whose closure they are; no list of files tells
# that). It also loads what those need of NVIDIA's, wherever that lies: torch stands for it, beside the distribution
# that nvidia-pypi names.
""",
}


@dataclass(frozen=True, slots=True)
class Release:
    """The libraries of one wheel, as paths below site-packages."""

    distribution: str
    version: str
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One [[provider]]."""

    library: str
    distribution: str
    path: str
    versions: str | None = None
    loads: str = "by-path"
    note: str | None = None


def libraries_of(names: Iterable[str]) -> tuple[str, ...]:
    """The shared libraries among the members of a wheel: no extension modules, none grafted."""
    found = []
    for name in names:
        folder, _, file = name.rpartition("/")
        other = re.search(r"\.(?:cpython-|abi3\.so)", file) or _GRAFTED.fullmatch(file)
        if folder and not other and not _is_one_of(file, NOT_OWN) and _LIBRARY.fullmatch(file):
            found.append(name)
    return tuple(sorted(found))


def _is_one_of(file: str, globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(file, g) for g in globs)


def rows_of(releases: Sequence[Release], loads: str = "by-path") -> tuple[Row, ...]:
    """The provider rules of one distribution, from releases at both ends of each of its major versions.

    What stands at either end of a major version counts for the whole of it, so that ``versions`` never says too
    few.
    """
    majors: dict[tuple[str, str], set[int]] = {}
    members: dict[tuple[str, str], set[str]] = {}
    minors = _changing_minors(releases)
    for release in releases:
        for library in release.libraries:
            folder, _, file = library.rpartition("/")
            key = (folder, _folded(file, minors))
            majors.setdefault(key, set()).add(int(release.version.partition(".")[0]))
            members.setdefault(key, set()).add(file)
    seen = {int(r.version.partition(".")[0]) for r in releases}
    rows = []
    for (folder, name), held in sorted(majors.items(), key=lambda item: (item[0][1], item[0][0])):
        files = members[folder, name]
        opened = all(_is_one_of(f, DLOPENED) for f in files)  # an import has not opened them yet
        versions = _specifier(name, held, seen) if loads == "by-path" else None
        how = "by-path" if opened else loads
        rows.append(Row(name, releases[0].distribution, folder, versions, how, _opened(files)))
    return tuple(rows)


def _changing_minors(releases: Sequence[Release]) -> set[tuple[str, str]]:
    """Stem and major of the libraries whose SONAME has a minor that differs among releases (libcupti.so.11.7)."""
    found: dict[tuple[str, str], set[str]] = {}
    for library in {n.rpartition("/")[2] for r in releases for n in r.libraries}:
        match = _LIBRARY.fullmatch(library)
        if match and match["version"].count(".") > 1:
            found.setdefault((match["stem"], match["version"].split(".")[1]), set()).add(library)
    return {key for key, names in found.items() if len(names) > 1}


def _folded(file: str, minors: set[tuple[str, str]]) -> str:
    match = _LIBRARY.fullmatch(file)
    assert match is not None  # libraries_of took it
    fold = next((g for g in FOLDS if fnmatch.fnmatchcase(file, g)), None)
    if fold is not None:
        return f"{fold.partition('*')[0]}*.so{match['version']}"
    major = match["version"].split(".")[1] if match["version"] else ""
    return f"{match['stem']}.so.{major}.*" if (match["stem"], major) in minors else file


def _specifier(library: str, held: set[int], seen: set[int]) -> str | None:
    """The versions of the distribution that hold a library, where its SONAME has a version.

    The newest major is closed upwards only where it is the SONAME's own: libcublas.so.12 ends with 12, but whether
    libcufile.so.0 ends with 1 nobody knows.
    """
    match = re.search(r"\.so\.(\d+)", library)
    if match is None:
        return None
    parts = [f">={min(held)}"]
    parts += [f"!={n}.*" for n in sorted(seen) if min(held) < n < max(held) and n not in held]
    later = [n for n in seen if n > max(held)]
    if later or int(match[1]) == max(held):
        parts.append(f"<{max(held) + 1}")
    return ",".join(parts)


def _opened(files: Iterable[str]) -> str | None:
    """A comment on libraries that are only ever opened by name."""
    openers = {next((by for g, by in DLOPENED.items() if fnmatch.fnmatchcase(f, g)), "") for f in files}
    named = ", ".join(sorted(openers - {""}))
    if not named:
        return None
    return (
        f"some of these are only opened with dlopen, by {named}"
        if "" in openers
        else f"only opened with dlopen, by {named}"
    )


def document(name: str, rows: Iterable[Row], releases: Iterable[Release], extends: str = "") -> str:
    """One policy file."""
    parts = [f'{_NOTE[name]}schema = 1\nname = "{name}"\n']
    if extends:
        parts[0] += f'extends = ["{extends}"]\n'
    seen: dict[str, list[str]] = {}
    for release in releases:
        seen.setdefault(release.distribution, []).append(release.version)
    head = "# Made by policies/make_providers.py: change that, not this.\n# SOURCES, x86_64:\n"
    head += "".join(f"#   {distribution} {' '.join(versions)}\n" for distribution, versions in seen.items())
    for row in rows:
        lines = [f"# {row.note}"] if row.note else []
        lines += ["[[provider]]", f'library = "{row.library}"', f'distribution = "{row.distribution}"']
        lines.append(f'path = "{row.path}"')
        if row.versions:
            lines.append(f'versions = "{row.versions}"')
        if row.loads != "by-path":
            lines.append(f'loads = "{row.loads}"')
        parts.append("\n".join(lines) + "\n")
    return head + "\n".join(parts)


def ends(versions: Iterable[str]) -> tuple[str, ...]:
    """The newest and the oldest release of each major version, newest first; no pre-releases, no local builds."""
    from packaging.version import Version

    found: dict[int, list[Version]] = {}
    for version in map(Version, versions):
        if not version.is_prerelease and version.local is None:
            found.setdefault(version.major, []).append(version)
    both = {v for group in found.values() for v in (min(group), max(group))}
    return tuple(str(v) for v in sorted(both, reverse=True))


def main() -> None:
    from make_providers_index import Index  # the only part that needs pip and the network

    index = Index(MOST_BYTES)
    for name, distributions, loads, extends in (
        ("nvidia-pypi", NVIDIA, "by-path", ""),
        ("torch-extension", TORCH, "by-import", "nvidia-pypi"),
    ):
        rows: list[Row] = []
        seen: list[Release] = []
        for distribution in distributions:
            found = index.versions(distribution)
            releases = []
            chosen = ends(found)[
                : 1 if loads == "by-import" else None
            ]  # what importing an older one loads differs
            for version in chosen:
                members = index.members(distribution, version)
                libraries = libraries_of(members or ())
                if libraries:
                    releases.append(Release(distribution, version, libraries))
            if not releases:
                raise SystemExit(f"{distribution}: no wheel with libraries")
            rows += rows_of(releases, loads)
            seen += releases
        if distributions is TORCH:
            rows += [Row(f"lib{stem}.so.*", "torch", "nvidia", loads=loads) for stem in BROUGHT]
        (HERE / f"{name}.toml").write_text(document(name, rows, seen, extends), "utf-8")
        print(f"{name}.toml: {len(rows)} rules of {len({r.distribution for r in seen})} distributions")


if __name__ == "__main__":
    main()
