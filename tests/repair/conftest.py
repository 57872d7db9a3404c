"""Small real objects and wheels: compiled with the C compiler, packed by hand, loaded by a real interpreter."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

MODULE = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
%(before)s
static PyObject *f(PyObject *self, PyObject *args) { return PyLong_FromLong(%(value)s); }
static PyMethodDef methods[] = {{"f", f, METH_NOARGS, 0}, {0}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "%(name)s", 0, -1, methods};
PyMODINIT_FUNC PyInit_%(name)s(void) { return PyModule_Create(&def); }
"""
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"


class Forge:
    """Compiles into one folder and packs wheels there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suffix = SUFFIX

    def compile(self, output: str, source: str, *flags: str) -> Path:
        """One object from C source; ``output`` may name a folder. Extra ``flags`` go to the link."""
        target = self.folder / output
        target.parent.mkdir(parents=True, exist_ok=True)
        text = self.folder / "source.c"
        text.write_text(source)
        shared = [] if "-no-shared" in flags else ["-shared"]
        rest = [f for f in flags if f != "-no-shared"]
        include = f"-I{sysconfig.get_path('include')}"
        command = ["gcc", "-O1", "-fPIC", "-w", include, *shared, str(text), "-o", str(target), *rest]
        subprocess.run(command, check=True, cwd=self.folder)
        return target

    def library(self, output: str, function: str, value: str, *flags: str, soname: str | None = None) -> Path:
        """A library with one function that gives ``value``, an expression; SONAME is the file's name by default."""
        name = Path(output).name if soname is None else soname
        named = [f"-Wl,-soname,{name}"] if name else []
        return self.compile(
            output, f"{value_declarations(value)}long {function}(void) {{ return {value}; }}", *named, *flags
        )

    def module(self, output: str, value: str, *flags: str) -> Path:
        """An extension module whose ``f()`` gives ``value``, an expression of constants and calls."""
        name = Path(output).name.split(".")[0]
        text = MODULE % {"before": value_declarations(value), "value": value, "name": name}
        return self.compile(output, text, *flags)

    def wheel(
        self,
        name: str,
        members: Mapping[str, Path | str | bytes],
        tag: str = f"{TAG}-{TAG}-linux_x86_64",
        modes: Mapping[str, int] | None = None,
        purelib: bool = False,
        requires: tuple[str, ...] = (),
        folder: str = "dist",
    ) -> Path:
        """A wheel of version 1.0; members are files of this folder, texts or bytes. Everything has a date of 2020."""
        info = f"{name}-1.0.dist-info"
        python, abi, platforms = tag.split("-")
        tags = "".join(f"Tag: {python}-{abi}-{p}\n" for p in platforms.split("."))
        entries = {k: v.read_bytes() if isinstance(v, Path) else v for k, v in members.items()}
        entries = {k: v.encode() if isinstance(v, str) else v for k, v in entries.items()}
        asked = "".join(f"Requires-Dist: {r}\n" for r in requires)
        entries[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{asked}".encode()
        root = "true" if purelib else "false"
        entries[f"{info}/WHEEL"] = (
            f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {root}\n{tags}".encode()
        )
        rows = []
        for member, data in entries.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{member},sha256={digest},{len(data)}\n")
        entries[f"{info}/RECORD"] = ("".join(rows) + f"{info}/RECORD,,\n").encode()
        target = self.folder / folder / f"{name}-1.0-{tag}.whl"
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in entries.items():
                entry = zipfile.ZipInfo(member, (2020, 1, 1, 0, 0, 0))
                entry.create_system = 3
                executable = member.endswith(".so") or ".data/scripts/" in member
                mode = (modes or {}).get(member, 0o755 if executable else 0o644)
                entry.external_attr = (0o100000 | mode) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data)
        return target

    def wheel_to_graft(self, megabytes: int) -> Path:
        """A wheel whose repair grafts a library of ``ext`` and has so many megabytes to copy, which do not compress much."""
        library = self.library("ext/libbig.so.5", "big", "41")
        extension = self.module(f"_e{self.suffix}", "big()", str(library))
        noise = random.Random(1).randbytes(megabytes << 20).hex()
        return self.wheel("x", {f"pkg/_e{self.suffix}": extension, "pkg/noise.txt": noise})

    def command_to_graft(self, source: Path, out: Path) -> list[str]:
        """The command that repairs the wheel above."""
        words = ["repair", "--ldpaths", str(self.folder / "ext"), "-w", str(out), str(source)]
        return [sys.executable, "-B", "-m", "wheelfix", *words]

    def repair(self, *arguments: Path | str, **env: str) -> tuple[int, str]:
        """Exit code and output of ``wheelfix repair``; results go to ``out`` unless -w says otherwise."""
        clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "SOURCE_DATE_EPOCH")}
        words = [str(a) for a in arguments]
        if "-w" not in words:
            words += ["-w", str(self.folder / "out")]
        command = [sys.executable, "-m", "wheelfix", "repair", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**clean, **env}, cwd=self.folder, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def repaired(self, wheel: Path, *arguments: Path | str, away: str | None = None, **env: str) -> Path:
        """The one wheel that a repair writes. ``away`` names a folder of this machine that exists for repair alone."""
        if away is not None:
            env["LD_LIBRARY_PATH"] = str(self.folder / away)
        code, text = self.repair(wheel, *arguments, **env)
        if away is not None:
            (self.folder / away).rename(self.folder / f"{away}.away")
        found = sorted((self.folder / "out").glob("*"))
        if code or len(found) != 1:
            raise AssertionError(f"exit {code}, wrote {[f.name for f in found]}: {text}")
        return found[0]

    def install(self, wheel: Path, target: str = "site") -> Path:
        """Unpack a wheel as ``pip install --target`` does."""
        site = self.folder / target
        command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-deps"]
        subprocess.run([*command, "--no-index", "--target", str(site), str(wheel)], check=True)
        return site

    def unpack(self, wheel: Path, target: str) -> Path:
        """The members of a wheel as they are, for tags that this machine's pip refuses."""
        site = self.folder / target
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        return site

    def run(self, site: Path, code: str, **env: str) -> str:
        """What a fresh interpreter prints; only ``site`` is on its path and no library path is set."""
        clean = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site), **env}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=clean, cwd="/", check=False
        )
        return done.stdout + done.stderr


def value_declarations(value: str) -> str:
    """``extern long g(void);`` for each call in an expression such as ``g() + h()``."""
    names = dict.fromkeys(re.findall(r"([A-Za-z_]\w*)\(", value))
    return "".join(f"extern long {n}(void);\n" for n in names)


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)
