"""The gate of an ExecuTorch CUDA wheel in fewer than 60 lines, each of which one broken wheel breaks alone."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_audit import wheel

Run = Callable[..., tuple[int, str, str]]
POLICY = Path(__file__).parents[2] / "policies" / "executorch-cuda.toml"
TAG = "cp311-cp311-manylinux_2_34_x86_64"
STREAM, GUARD = "_ZN2et15getCallerStreamEv", "_ZN2et17CallerStreamGuardC1Ev"
PORTABLE = "pkg/_portable_lib.cpython-311-x86_64-linux-gnu.so"
EXTENSION, SHIMS = "pkg/libextension_cuda.so", "pkg/libaoti_cuda_shims.so"
NAMES = '__attribute__((used)) static const char *n[] = {"CudaBackend", "TensorRTBackend", "XnnpackBackend"};'
C, CXX = "gcc", "g++"

#: Member -> compiler, source and flags; in the order in which they are linked.
GOOD: dict[str, tuple[str, str, list[str]]] = {
    EXTENSION: (
        C,
        f"void *{STREAM}(void) {{ return 0; }} void {GUARD}(void) {{}}",
        ["-Wl,-soname,libextension_cuda.so"],
    ),
    SHIMS: (
        C,
        f"void *{STREAM}(void); void *shim(void) {{ return {STREAM}(); }}",
        ["-Wl,-soname,libaoti_cuda_shims.so", "libextension_cuda.so", "-Wl,-rpath,$ORIGIN"],
    ),
    PORTABLE: (
        C,
        f"{NAMES} void *{STREAM}(void); void *PyInit__portable_lib(void) {{ return {STREAM}(); }}",
        ["-Wl,--no-as-needed", "libextension_cuda.so", "libaoti_cuda_shims.so", "-Wl,-rpath,$ORIGIN"],
    ),
}


def changed(
    member: str, source: str | None = None, flags: list[str] | None = None, compiler: str = C
) -> dict[str, tuple[str, str, list[str]]]:
    _, old, given = GOOD[member]
    return {**GOOD, member: (compiler, old if source is None else source, given if flags is None else flags)}


def renamed(member: str, name: str, rpaths: str) -> dict[str, tuple[str, str, list[str]]]:
    """A member under another name, found there by everybody."""
    made = {}
    for key, (compiler, source, flags) in GOOD.items():
        made[name if key == member else key] = (
            compiler,
            source,
            [f.replace("$ORIGIN", rpaths) for f in flags],
        )
    return made


BROKEN: dict[str, tuple[dict[str, tuple[str, str, list[str]]], dict[str, bytes], str]] = {
    "cxx-runtime.linkage": (
        changed(SHIMS, f'extern "C" void *{STREAM}(void); #include <new>\nextern "C" void *shim(void) {{ return new int[3] + (long){STREAM}(); }}'.replace("; #include <new>", ";\n#include <new>"), compiler=CXX),
        {}, "cxx-runtime[0]",
    ),
    "cxx-runtime.exports": (
        changed(SHIMS, f'#include <string>\nextern "C" void *{STREAM}(void);\nextern "C" void *shim(int n) {{ return new std::string(n + (long){STREAM}(), \'x\'); }}',
                [*GOOD[SHIMS][2], "-static-libstdc++", "-static-libgcc"], CXX),
        {}, "cxx-runtime[0]",
    ),
    "require-file[0]": (renamed(PORTABLE, "pkg/portable.cpython-311-x86_64-linux-gnu.so", "$ORIGIN"), {}, "require-file[0]"),
    "require-file[1]": (renamed(EXTENSION, "pkg/sub/libextension_cuda.so", "$ORIGIN/sub"), {}, "require-file[1]"),
    "require-file[2]": (renamed(SHIMS, "pkg/sub/libaoti_cuda_shims.so", "$ORIGIN:$ORIGIN/sub:$ORIGIN/.."), {}, "require-file[2]"),
    "require-needed[0]": (changed(PORTABLE, flags=["-Wl,--no-as-needed", "libaoti_cuda_shims.so", "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined"]), {}, "require-needed[0]"),
    "require-needed[1]": (changed(PORTABLE, flags=["libextension_cuda.so", "-Wl,-rpath,$ORIGIN"]), {}, "require-needed[1]"),
    "import[0]": (changed(PORTABLE, f"{NAMES} void *PyInit__portable_lib(void) {{ return n; }}"), {}, "import[0]"),
    "import[1]": (changed(SHIMS, "void *shim(void) { return 0; }", ["-Wl,--no-as-needed", *GOOD[SHIMS][2]]), {}, "import[1]"),
    "sole-definer[0]": ({**GOOD, "pkg/libother.so": (C, f"void *{STREAM}(void) {{ return 0; }}", [])}, {}, "sole-definer[0]"),
    "sole-definer[1]": (changed(EXTENSION, f"void *{STREAM}(void) {{ return 0; }} static void {GUARD}(void) {{}} void *g(void) {{ return {GUARD}; }}"), {}, "sole-definer[1]"),
    "registration[0]": (changed(PORTABLE, GOOD[PORTABLE][1].replace('"CudaBackend", ', "")), {}, "registration[0]"),
    "registration[1]": (changed(PORTABLE, GOOD[PORTABLE][1].replace('"TensorRTBackend", ', "")), {}, "registration[1]"),
    "registration[2]": (changed(PORTABLE, GOOD[PORTABLE][1].replace(', "XnnpackBackend"', "")), {}, "registration[2]"),
    "rpath[0]": (changed(SHIMS, flags=[*GOOD[SHIMS][2][:2], "-Wl,-rpath,$ORIGIN:/opt/cuda/lib64"]), {}, "rpath[0]"),
}  # fmt: skip


def built(folder: Path, objects: dict[str, tuple[str, str, list[str]]]) -> Path:
    """A wheel of these objects, linked in their order."""
    folder.mkdir()
    members = {"pkg/__init__.py": b""}
    ordered = sorted(objects, key=lambda m: ("portable" in m, "shims" in m))
    for member in ordered:
        compiler, source, flags = objects[member]
        text = folder / ("s.cpp" if compiler == CXX else "s.c")
        text.write_text(source)
        output = member.rpartition("/")[2]
        command = [compiler, "-shared", "-fPIC", "-w", "-O1", text.name, "-o", output, *flags]
        subprocess.run(command, check=True, cwd=folder)
        members[member] = (folder / output).read_bytes()
    return wheel(folder, "pkg", members, tag=TAG)


def broken_lines(run: Run, path: Path) -> set[str]:
    """The entries of the policy that errors name."""
    status, out, err = run("verify", "--policy", POLICY, "--format", "json", path)
    assert status in (0, 1), err
    (judged,) = json.loads(out)["wheels"]
    keys = {f["policy"] for f in judged["findings"] if f["policy"] and f["severity"] == "error"}
    return {re.sub(r"(\])\..*", r"\1", key.removeprefix("executorch-cuda:")) for key in keys}


def test_the_policy_has_fewer_than_60_lines() -> None:
    assert len(POLICY.read_text("utf-8").splitlines()) < 60


def test_the_good_wheel_breaks_no_line(wheelfix: Run, tmp_path: Path) -> None:
    path = built(tmp_path / "w", GOOD)
    assert broken_lines(wheelfix, path) == set()
    assert wheelfix("verify", "--policy", POLICY, path)[0] == 0


@pytest.mark.parametrize("line", BROKEN)
def test_a_wheel_that_breaks_one_line_breaks_no_other(wheelfix: Run, tmp_path: Path, line: str) -> None:
    objects, _, expected = BROKEN[line]
    found = broken_lines(wheelfix, built(tmp_path / "w", objects))
    assert found == {expected}


def test_a_second_owner_in_a_given_wheel_breaks_its_line(wheelfix: Run, tmp_path: Path) -> None:
    """torch-tensorrt ships a libextension_cuda.so of its own."""
    path = built(tmp_path / "w", GOOD)
    other = built(tmp_path / "o", {"other/libextension_cuda.so": GOOD[EXTENSION]})
    other = other.rename(other.with_name(f"other-1.0-{TAG}.whl"))
    status, out, _ = wheelfix("verify", "--policy", POLICY, "--with", other, "--format", "json", path)
    assert status == 1
    rules = {f["rule"] for f in json.loads(out)["wheels"][0]["findings"] if f["severity"] == "error"}
    assert "contract-sole-definer" in rules


def test_a_library_of_tensorrt_needs_a_path_to_its_folder(wheelfix: Run, tmp_path: Path) -> None:
    """The provider line: without it, the library would be one that nobody has."""
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "s.c").write_text("int nv(void) { return 0; }")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "s.c", "-o", "libnvinfer.so.11", "-Wl,-soname,libnvinfer.so.11"],
        check=True,
        cwd=stub,
    )
    _, source, flags = GOOD[PORTABLE]
    for number, (path, rule) in enumerate(
        (("$ORIGIN", "needed-unreachable"), ("$ORIGIN:$ORIGIN/../tensorrt_libs", "needed-external"))
    ):
        more = [*(f.replace("$ORIGIN", path) for f in flags), str(stub / "libnvinfer.so.11")]
        objects = {**GOOD, PORTABLE: (C, source, more)}
        _, out, _ = wheelfix(
            "verify", "--policy", POLICY, "--format", "json", built(tmp_path / f"w{number}", objects)
        )
        found = {
            f["rule"] for f in json.loads(out)["wheels"][0]["findings"] if f["library"] == "libnvinfer.so.11"
        }
        assert rule in found
