#!/usr/bin/env python3
"""Build the sample wheels: build.py [FOLDER]. Needs gcc, g++ and binutils; Python's headers are not needed.

Each wheel but the healthy one has exactly one fault; README.md in this folder says which and why.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
COMPILE = ["-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"]
LINK = ["-shared", "-s", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,-z,noexecstack"]
STATIC = ["-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"]
ORIGIN = "-Wl,-rpath,$ORIGIN"
BARE = ["-nodefaultlibs", "-lc"]  # no C++ runtime, for C++ that needs none
# gcc 12's unwinder, linked in statically, calls _dl_find_object of glibc 2.35: such a wheel cannot promise an
# older machine. What needs no C++ runtime needs nothing newer than glibc 2.2.5.
NEW, MIDDLE, OLD = (f"manylinux_2_{minor}_{platform.machine()}" for minor in (35, 28, 17))


def main(folder: Path) -> None:
    """Build everything into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for source in sorted(SOURCES.glob("*.c*")):
            run(work, "g++" if source.suffix == ".cpp" else "gcc", *COMPILE, "-c", source, "-o", f"{source.stem}.o")
        run(work, "ar", "rcsD", "libbackend.a", "demo_backend.o")
        run(work, "gcc", *LINK, "helper.o", "-o", "libhelper.so", "-Wl,-soname,libhelper.so")
        whole = ["-Wl,--whole-archive", "libbackend.a", "-Wl,--no-whole-archive"]
        links = {
            "healthy": ["g++", *LINK, "healthy.o", *whole, "libhelper.so", *STATIC, ORIGIN],
            # A dependency's flags name the library past the driver: -static-libstdc++ changes only what g++ adds.
            "dynamic_runtime": ["g++", *LINK, "-static-libstdc++", "runtime.o", *whole, "-Wl,-lstdc++"],
            # gcc adds no C++ runtime at all, and a shared object may keep undefined symbols: no error here.
            "no_runtime": ["gcc", *LINK, "runtime.o", *whole],
            "helper_missing": ["g++", *LINK, "helped.o", *whole, "libhelper.so", *BARE, ORIGIN],
            "helper_no_origin": ["g++", *LINK, "helped.o", *whole, "libhelper.so", *BARE],
            # Nobody refers to the archive's member, so the linker leaves it out without --whole-archive.
            "registration_dropped": ["g++", *LINK, "backends.o", "libbackend.a", *BARE],
        }
        tags = {"healthy": NEW, "dynamic_runtime": MIDDLE, "no_runtime": MIDDLE}
        for sample, command in links.items():
            run(work, *command, "-o", "_ext.abi3.so")
            members = {f"sample_{sample}/__init__.py": b"from ._ext import value\n"}
            members[f"sample_{sample}/_ext.abi3.so"] = (work / "_ext.abi3.so").read_bytes()
            if sample in ("healthy", "helper_no_origin"):
                members[f"sample_{sample}/libhelper.so"] = (work / "libhelper.so").read_bytes()
            print(write_wheel(folder, f"sample_{sample}", tags.get(sample, OLD), members))


def run(work: Path, *command: str | Path) -> None:
    """Run one tool in the work folder; its messages are the user's."""
    subprocess.run([*map(str, command), *([f"-I{SOURCES}"] if "-c" in command else [])], cwd=work, check=True)


def write_wheel(folder: Path, name: str, tag: str, members: Mapping[str, bytes]) -> Path:
    """A wheel of the stable ABI (PEP 427), the same bytes for the same members."""
    tag = f"cp310-abi3-{tag}"
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
    wheel = f"Wheel-Version: 1.0\nGenerator: wheelfix samples\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {**members, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()}
    rows = [f"{n},sha256={digest(data)},{len(data)}\n" for n, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    path = folder / f"{name}-1.0-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            entry = zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if ".so" in member else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
    return path


def digest(data: bytes) -> str:
    """As RECORD writes a hash: urlsafe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
