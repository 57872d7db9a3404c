"""GPU device code: which architectures each object was compiled for, and one CUDA major a process.

Severities: what a policy's ``[cuda]`` asks for is an error when it does not hold; without a policy the
same facts are told as info, since nothing says which GPUs the wheel is meant for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from wheelfix.checks.linkflags import blocks
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Cuda
from wheelfix.model.resolution import Load

ARCH_MISSING = Rule(
    id="cuda-arch-missing",
    group="cuda",
    severity="error",
    what="An object with CUDA device code holds none for an architecture that it must support.",
    why=(
        "A GPU of that architecture runs the wheel's kernels only if the driver can compile PTX for it at"
        " first use; without PTX of the same or an older architecture every launch fails with"
        " `no kernel image is available for execution on the device`. Users of that GPU meet it at run time,"
        " never at import."
    ),
    fix=(
        "Name every architecture where the object is compiled:\n\n"
        + blocks(
            cmake="set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 120)",
            setuptools="# with torch: TORCH_CUDA_ARCH_LIST='8.0 9.0 12.0+PTX' pip wheel .\n"
            "CUDAExtension('pkg._ext', sources, extra_compile_args={'nvcc': [\n"
            "    '-gencode=arch=compute_80,code=sm_80', '-gencode=arch=compute_90,code=sm_90']})",
            meson="py.extension_module('_ext', 'kernels.cu', install: true, subdir: 'pkg', cuda_args: [\n"
            "  '-gencode=arch=compute_80,code=sm_80', '-gencode=arch=compute_90,code=sm_90'])",
            bazel="# with rules_cuda, in .bazelrc:\n"
            "#   build --@rules_cuda//cuda:archs=sm_80;sm_90\n"
            "cuda_library(name = 'kernels', srcs = ['kernels.cu'])",
        )
    ),
    example="The policy asks for `sm_80` and `sm_90`; `pkg/_kernels.so` was built with `-arch=sm_80` only.",
    remedy="Add the architecture to the compile line of this object (-gencode, CMAKE_CUDA_ARCHITECTURES).",
)
ARCH_UNEXPECTED = Rule(
    id="cuda-arch-unexpected",
    group="cuda",
    severity="error",
    what="An object holds CUDA device code that the policy does not list.",
    why=(
        "Each architecture costs its share of the wheel's size, for every user who downloads it, and code for"
        " a GPU that nobody tests is shipped as if it were supported. It is mostly a build machine's default"
        " or the GPU that happened to be in it."
    ),
    fix=(
        "Give the architectures by name instead of `native` or `all`:\n\n"
        "```cmake\nset(CMAKE_CUDA_ARCHITECTURES 80-real 90-real)\n```"
    ),
    example="The policy lists `sm_80` and `sm_90`; `pkg/_kernels.so` also holds cubins for `sm_52`.",
    remedy="Remove the architecture from the compile line of this object, or add it to [cuda] architectures.",
)
PTX_MISSING = Rule(
    id="cuda-ptx-missing",
    group="cuda",
    severity="error",
    what="An object holds machine code for its newest architecture but no PTX for it.",
    why=(
        "PTX is what the driver compiles for GPUs that are newer than the wheel. Without any the wheel stops"
        " at the generation of its newest cubin, and users of the next one get"
        " `no kernel image is available`; with older PTX they get kernels that know nothing of what the newest"
        " architecture added. PTX for one architecture (`compute_90a`) or family (`compute_100f`) is not"
        " compiled for any other."
    ),
    fix=(
        "Keep PTX for the newest architecture:\n\n"
        "```sh\nnvcc -gencode arch=compute_90,code=[sm_90,compute_90] ...\n```\n\n"
        "```cmake\nset(CMAKE_CUDA_ARCHITECTURES 80-real 90)   # without -real: machine code and PTX\n```"
    ),
    example="`pkg/_kernels.so` holds `sm_80` and `sm_90` cubins and no PTX.",
    remedy="Compile the newest architecture with code=[sm_XX,compute_XX].",
)
MAJOR_MIXED = Rule(
    id="cuda-major-mixed",
    group="cuda",
    severity="error",
    what="One process loads libraries of two CUDA major versions through this wheel.",
    why=(
        "Each major has a runtime of its own (`libcudart.so.12`, `libcudart.so.13`) with separate contexts,"
        " streams and allocators. Handles that pass from one to the other are invalid, which shows as"
        " crashes or wrong results far from the cause."
    ),
    fix="Build every object of the wheel, and choose every CUDA dependency of it, for one CUDA major.",
    example="`pkg/_a.so` needs `libcudart.so.13` and, through a helper, `libcublas.so.12`.",
    remedy="Build all objects against the same CUDA major version.",
)
RULES = (ARCH_MISSING, ARCH_UNEXPECTED, PTX_MISSING, MAJOR_MIXED)

# Libraries of the toolkit whose SONAME carries the toolkit's major version (cuFFT, cuRAND, cuSOLVER and
# cuSPARSE count on their own). One that was put into a wheel has a hash behind its name, after "-" or ".".
_TOOLKIT = re.compile(
    r"(?:libcudart|libcublas|libcublasLt|libnvrtc|libnvJitLink|libnvblas)(?:[-.][0-9a-f]{8})?\.so\.(\d+)"
)


def check(subject: Subject) -> Iterator[Finding]:
    """Device code of each object against the policy (or told as info), and mixed CUDA majors per root."""
    yield from _architectures(subject)
    yield from _mixed(subject)


def _architectures(subject: Subject) -> Iterator[Finding]:
    cuda = subject.policy.cuda
    for member, facts in subject.wheel.objects:
        cubins = _of(facts, "cubin")
        ptx = _of(facts, "ptx")
        if not cubins and not ptx:
            continue
        evidence = {"architectures": cubins, "ptx": ptx}
        if cuda is not None and cuda.architectures is not None:
            for lacking in sorted(set(cuda.architectures) - set(cubins), key=_number):
                yield ARCH_MISSING.finding(
                    f"{member.path} holds no device code for {lacking}; it has {_listed(cubins)}",
                    member=member.path,
                    policy=f"{cuda.key}.architectures",
                    evidence=evidence,
                )
            for extra in sorted(set(cubins) - set(cuda.architectures), key=_number):
                yield ARCH_UNEXPECTED.finding(
                    f"{member.path} holds device code for {extra}, which the policy does not list",
                    member=member.path,
                    policy=f"{cuda.key}.architectures",
                    evidence=evidence,
                )
        yield from _ptx(member.path, cubins, ptx, cuda, evidence)


def _ptx(
    path: str, cubins: list[str], ptx: list[str], cuda: Cuda | None, evidence: dict[str, list[str]]
) -> Iterator[Finding]:
    if cuda is not None and cuda.ptx == "none":
        for name in ptx:
            yield ARCH_UNEXPECTED.finding(
                f"{path} holds PTX for {name}; the policy wants none",
                member=path,
                policy=f"{cuda.key}.ptx",
                evidence=evidence,
            )
    if not cubins or (cuda is not None and cuda.ptx != "newest"):
        return
    newest = max(map(_number, cubins))
    # "a" and "f" at the end: for this architecture, this family alone (nvcc's manual, "GPU Feature List").
    forward = [p for p in ptx if not p.endswith(("a", "f"))]
    if not any(_number(p) >= newest for p in forward):
        yield PTX_MISSING.finding(
            f"{path} holds machine code up to sm_{newest} but no PTX for it that later GPUs can use"
            + (f" (PTX: {_listed(ptx)})" if ptx else "")
            + (
                f": they run what the driver compiles from {max(forward, key=_number)}"
                if forward
                else ": GPUs of a later generation cannot run it"
            ),
            member=path,
            severity="error" if cuda is not None else "info",
            policy=f"{cuda.key}.ptx" if cuda is not None else None,
            evidence=evidence,
        )


def _mixed(subject: Subject) -> Iterator[Finding]:
    told: set[tuple[str, ...]] = set()
    for scene in subject.scenes:
        for load in scene.loads:
            majors = _majors(load)
            if len(majors) < 2:
                continue
            libraries = tuple(sorted(name for names in majors.values() for name in names))
            if libraries in told:
                continue
            told.add(libraries)
            yield MAJOR_MIXED.finding(
                f"opening {load.root.path} loads libraries of CUDA {' and '.join(sorted(majors))}:"
                f" {', '.join(libraries)}",
                member=load.root.path,
                severity="error" if subject.policy.cuda is not None else "info",
                evidence={"majors": {major: sorted(names) for major, names in sorted(majors.items())}},
                policy=subject.policy.cuda.key if subject.policy.cuda is not None else None,
            )


def _majors(load: Load) -> dict[str, set[str]]:
    """CUDA major -> the library names of it that one root loads, found or not."""
    majors: dict[str, set[str]] = {}
    for edge in load.edges:
        match = _TOOLKIT.match(edge.needed.rpartition("/")[2])
        if match:
            majors.setdefault(match[1], set()).add(edge.needed)
    return majors


def _of(facts: ElfFacts, kind: Literal["cubin", "ptx"]) -> list[str]:
    return [row.architecture for row in facts.device_code if row.kind == kind]


def _number(architecture: str) -> int:
    """``sm_90a`` is 90; names of other makers (gfx942), which a policy may hold, have none."""
    return int("".join(c for c in architecture.partition("_")[2] if c.isdigit()) or 0)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
