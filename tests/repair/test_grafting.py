"""A wheel with a deep tree of system libraries, repaired, works where there is nothing but Python and glibc."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_audit import wheel

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("libgdal")]  # it is installed once

#: libgdal: geometry, images, databases and network in one; nearly a hundred libraries of Debian behind it.
MODULE = """
#include <Python.h>
extern const char *GDALVersionInfo(const char *); extern void GDALAllRegister(void);
extern int GDALGetDriverCount(void);
/* proj.h: what proj_info() gives by value */
typedef struct { int major, minor, patch; const char *release, *version, *path; const char *const *paths; size_t count; } PJ_INFO;
extern PJ_INFO proj_info(void);
static PyObject *use(PyObject *self, PyObject *no) {
    GDALAllRegister();
    return Py_BuildValue("sis", GDALVersionInfo("RELEASE_NAME"), GDALGetDriverCount(), proj_info().release);
}
static PyMethodDef methods[] = {{"use", use, METH_NOARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_deep", 0, -1, methods};
PyMODINIT_FUNC PyInit__deep(void) { return PyModule_Create(&module); }
"""
GLIBC = re.compile(r"(ld-linux|lib(c|m|pthread|dl|rt|util|resolv|nss_\w+|anl|mvec|BrokenLocale)\.so)")
#: Promised by the tag that this machine's glibc gives, and so not grafted; nothing else may come from the machine.
PROMISED = re.compile(r"lib(gcc_s|stdc\+\+|z|expat)\.so\.")
USE = "import sys; sys.path.insert(0, '/site'); import _deep; print(*_deep.use(), sep='|')"


@pytest.fixture(scope="module")
def gdal() -> Path:
    """The library, installed by root where it is missing."""

    def found() -> list[Path]:
        return sorted(Path("/usr/lib").glob("*-linux-gnu/libgdal.so.*"), key=lambda p: len(p.name))

    if not found():
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        names = subprocess.run(
            ["apt-cache", "pkgnames", "libgdal"], check=True, capture_output=True, text=True
        )
        package = next(n for n in sorted(names.stdout.split()) if re.fullmatch(r"libgdal\d+(t64)?", n))
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    return found()[0]


@pytest.fixture(scope="module")
def wheels(gdal: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    """The wheel as it was built, as it was repaired, and the plan of the repair."""
    folder = tmp_path_factory.mktemp("grafting")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (folder / "deep.c").write_text(MODULE)
    proj = next(gdal.parent.glob("libproj.so.*"))
    command = f"gcc -shared -fPIC -I{sysconfig.get_path('include')} deep.c -o _deep{suffix}".split()
    subprocess.run([*command, str(gdal), str(proj)], check=True, cwd=folder)
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    module = (folder / f"_deep{suffix}").read_bytes()
    source = wheel(folder, "deep", {f"_deep{suffix}": module}, tag=f"{tag}-{tag}-linux_{os.uname().machine}")
    wheelfix = [sys.executable, "-m", "wheelfix"]
    flags = ["-w", "out", str(source)]
    plan = subprocess.run(
        [*wheelfix, "repair", "--dry-run", "--json", *flags], check=True, capture_output=True, cwd=folder
    )
    subprocess.run([*wheelfix, "repair", *flags], check=True, capture_output=True, cwd=folder)
    (repaired,) = (folder / "out").iterdir()
    return source, repaired, json.loads(plan.stdout)["wheels"][0]


def needed_by(path: Path) -> Iterator[Path]:
    """What the loader of this machine opens for a program or library."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        match = re.search(r"(/\S+) \(0x", line)
        if match:
            yield Path(match[1])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root directory with this interpreter, its standard library, glibc, and the few promised libraries."""
    new = tmp_path / "root"
    python = Path(sys.base_prefix)
    program = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(
        library,
        new / library.relative_to("/"),
        ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__"),
    )
    (new / program.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, new / program.relative_to("/"))
    machine = next(p for p in needed_by(program) if p.name.startswith("libc.so")).parent
    files = set(needed_by(program))
    for name in ("c.so.6", "m.so.6", "pthread.so.0", "dl.so.2", "rt.so.1", "util.so.1", "resolv.so.2"):
        files |= set(machine.glob(f"lib{name}"))
    for name in ("libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libexpat.so.1"):
        files |= {*machine.parent.glob(f"**/{name}"), *Path("/usr/lib").glob(f"*-linux-gnu/{name}")}
    for file in files:
        assert GLIBC.match(file.name) or PROMISED.match(file.name) or python in file.parents, file
        (new / file.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.resolve(), new / file.relative_to("/"))
    (new / "site").mkdir()
    return new


def inside(root: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Use the module of a wheel in that root; LD_DEBUG tells what was loaded."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(root / "site")
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert chroot is not None
    change = [chroot] if os.geteuid() == 0 else ["/usr/bin/unshare", "-r", chroot]
    command = [*change, str(root), os.path.realpath(sys.executable), "-B", "-S", "-c", USE]
    env = {"PYTHONHOME": sys.base_prefix, "LD_DEBUG": "libs"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_sixty_grafts_work_where_there_is_nothing_but_python_and_glibc(
    wheels: tuple[Path, Path, dict[str, Any]], root: Path
) -> None:
    _, repaired, plan = wheels
    grafts = [a for a in plan["actions"] if a["action"] == "graft"]
    assert len(grafts) >= 60
    done = inside(root, repaired)
    assert done.returncode == 0, done.stderr[-2000:]
    release, drivers, projection = done.stdout.strip().split("|")
    assert re.fullmatch(r"\d+\.\d+\.\d+", release)
    assert int(drivers) > 100
    assert "Rel. " in projection or re.search(r"\d+\.\d+\.\d+", projection)
    loaded = [Path(p) for p in re.findall(r"calling init: (\S+)", done.stderr)]
    ours = [p for p in loaded if p.is_relative_to("/site")]
    others = [p for p in loaded if not p.is_relative_to("/site") and not p.is_relative_to(sys.base_prefix)]
    assert len(ours) >= len(grafts)
    assert [p for p in others if not GLIBC.match(p.name) and not PROMISED.match(p.name)] == []
    with zipfile.ZipFile(repaired) as archive:
        names = archive.namelist()
        (bom,) = (n for n in names if n.endswith("wheelfix.cdx.json"))
        listed = json.loads(archive.read(bom))["components"]
    assert len(listed) == len(grafts)
    assert sum(n.startswith("deep.libs/") for n in names) == len(grafts)


def test_the_wheel_as_it_was_built_does_not_work_there(
    wheels: tuple[Path, Path, dict[str, Any]], root: Path
) -> None:
    """The control: nothing in that root helps."""
    done = inside(root, wheels[0])
    assert done.returncode != 0
    assert "ImportError: libgdal.so" in done.stderr


def test_the_repaired_wheel_verifies_and_a_second_repair_changes_nothing(
    wheels: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    _, repaired, _ = wheels
    wheelfix = [sys.executable, "-m", "wheelfix"]
    done = subprocess.run([*wheelfix, "verify", repaired], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    subprocess.run([*wheelfix, "repair", "-w", tmp_path, repaired], check=True, capture_output=True)
    assert (tmp_path / repaired.name).read_bytes() == repaired.read_bytes()
