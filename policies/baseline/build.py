"""Makes the baseline: what the libraries of the promised hosts export, from Debian's packages.

    python policies/baseline/build.py [--cache DIR] [--mirror URI] [--interpreter PYTHON]...

Every architecture's packages can be had on any host: apt downloads them with a root of its own, so that
neither the configuration nor the packages of this machine change, and ``dpkg-deb`` unpacks them. The same
packages give the same bytes. Written beside this script: ``ARCH.zip`` (one table per library, see
``wheelfix/policy/exports.py``), ``python.zip`` (the C API of each Python) and ``SOURCES.toml``.

``--interpreter`` adds a CPython that Debian does not package, built from its own release; what was read from one is
kept when it is not given again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from wheelfix.elf.read import read  # noqa: E402
from wheelfix.policy.exports import RELEASES, Exports, exports_of, parse, render  # noqa: E402
from wheelfix.policy.interpreters import LIBC, MUSL, interpreters_of  # noqa: E402
from wheelfix.policy.platform import candidates  # noqa: E402

# Oldest first: glibc 2.31 is the last in Debian before libpthread, libdl, librt, libutil and libanl merged into libc.
# Of bookworm the architectures are taken of which the mirrors no longer hold bullseye.
SUITES = ("bullseye", "bookworm", "trixie", "sid")
STAND_IN = "bookworm"
BEFORE_MERGE = "2.33"
# The architecture whose first release tells which library had which symbol before the merge.
MODEL = "aarch64"
# Platform tags' architectures, Debian's names for them, what a mirror has of each suite follows.
DEBIAN = {
    "x86_64": "amd64",
    "i686": "i386",
    "aarch64": "arm64",
    "armv7l": "armhf",
    "ppc64le": "ppc64el",
    "s390x": "s390x",
    "riscv64": "riscv64",
    "loongarch64": "loong64",
}
AVAILABLE = {
    "bullseye": ("x86_64", "i686", "aarch64", "armv7l"),
    "bookworm": ("ppc64le", "s390x"),
    "trixie": ("x86_64", "i686", "aarch64", "armv7l", "ppc64le", "s390x", "riscv64"),
    "sid": tuple(DEBIAN),
}
# Regular expressions over package names; the first match of each that a suite has is taken.
PACKAGES = (
    "libc6",
    "libstdc[+][+]6",
    "libgcc-s1",
    "libatomic1",
    "zlib1g",
    "libexpat1",
    "libgl1",
    "libice6",
    "libsm6",
    "libx11-6",
    "libxext6",
    "libxrender1",
    "libglib2.0-0(t64)?",
    "musl",
    "libc[+][+]1-[0-9]+(t64)?",
    "libc[+][+]abi1-[0-9]+(t64)?",
)
# Only x86-64: the C API does not depend on the architecture.
PYTHON_PACKAGES = {
    "bullseye": ("libpython3.9", "python3.9-minimal"),
    "bookworm": ("libpython3.11", "python3.11-minimal"),
    "trixie": ("libpython3.13", "python3.13-minimal"),
    "sid": (
        "libpython3.13",
        "python3.13-minimal",
        "libpython3.14",
        "python3.14-minimal",
        "libpython3.15",
        "python3.15-minimal",
    ),
}
# The runtime of the other C++ compiler, promised by no tag, but a C++ runtime all the same.
OTHER_RUNTIMES = ("libc++.so.1", "libc++abi.so.1")
# What an interpreter says of itself: version, ABI tag, and the files that may export the C API.
ASK = """
import os, platform, sys, sysconfig
config = sysconfig.get_config_var
print(platform.python_version())
print("cp%d%d%s" % (*sys.version_info[:2], "t" if config("Py_GIL_DISABLED") else ""))
print(os.path.realpath(sys.executable), os.path.join(config("LIBDIR"), config("INSTSONAME")), sep="\\t")
"""
# Merged into libc.so.6 by glibc 2.34.
MERGED = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libanl.so.1")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--mirror", default="http://deb.debian.org/debian", help="a mirror of Debian")
    parser.add_argument("--cache", type=Path, help="where downloads are kept (default: a temporary folder)")
    parser.add_argument("--interpreter", type=Path, action="append", default=[], metavar="PYTHON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        cache: Path = options.cache or Path(scratch)
        suites = {name: Suite(name, options.mirror, cache.resolve() / name) for name in SUITES}
        for suite in suites.values():
            suite.update()
        sources = [suite.source() for suite in suites.values()]
        split: Mapping[str, Exports] = {}
        for arch in sorted(DEBIAN, key=lambda a: a != MODEL):
            columns: dict[str, Mapping[str, Exports]] = {}
            reach: list[str] = []
            for suite in suites.values():
                if arch not in AVAILABLE[suite.name]:
                    continue
                debs = suite.download(DEBIAN[arch], PACKAGES)
                sources.append(packages_source(suite.name, DEBIAN[arch], debs))
                found = libraries_in(debs, arch)
                if LIBC not in found:
                    print(f"{suite.name}: left out for {arch}, for want of glibc", file=sys.stderr)
                    continue
                glibc = next(d.version.partition("-")[0] for d in debs if d.package == "libc6")
                if suite.name == STAND_IN:
                    found, glibc = unmerged(found, split), BEFORE_MERGE
                if (arch, suite.name) == (MODEL, SUITES[0]):
                    split = found
                columns[suite.name] = found
                reach.append(f"{suite.name}\t{glibc}\n")
            names = sorted({library for found in columns.values() for library in found})
            tables = {n: render({c: found[n] for c, found in columns.items() if n in found}) for n in names}
            write_zip(HERE / f"{arch}.zip", {RELEASES: "".join(reach)} | tables)
        sources += interpreters(suites, options.interpreter)
    (HERE / "SOURCES.toml").write_text(HEADER + "\n".join(sources))
    return 0


HEADER = """\
# Where the tables of this folder come from. Written by build.py.
#
# The mirror no longer holds bullseye for ppc64el and s390x. Bookworm (glibc 2.36) stands in, with the symbols that glibc
# 2.34 moved into libc.so.6 put back into the libraries in which bullseye's arm64 has them. A suite for which no libc6
# stands here is not used for that architecture.

"""


@dataclass(frozen=True)
class Deb:
    package: str
    version: str
    sha256: str
    path: Path


@dataclass(frozen=True)
class Suite:
    """One release with an apt root of its own."""

    name: str
    mirror: str
    root: Path

    def _apt(self, program: str, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        settings = {
            "Dir": str(self.root),
            "Dir::State::status": str(self.root / "status"),
            "Dir::Etc::trustedparts": "/etc/apt/trusted.gpg.d",
            "Dir::Bin::methods": "/usr/lib/apt/methods",
            # Images of containers turn this cache off.
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
        }
        flags = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
        flags += [part for a in AVAILABLE[self.name] for part in ("-o", f"APT::Architectures::={DEBIAN[a]}")]
        done = subprocess.run(
            [program, "-q", *flags, *arguments], check=check, capture_output=True, text=True, cwd=cwd
        )
        return done.stdout

    def update(self) -> None:
        """Fetch the package lists; apt checks their signatures."""
        for folder in (
            "etc/apt/apt.conf.d",
            "etc/apt/preferences.d",
            "etc/apt/sources.list.d",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/log/apt",
            "debs",
        ):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        # The C API is read from amd64's packages.
        archs = ",".join(dict.fromkeys(["amd64", *(DEBIAN[a] for a in AVAILABLE[self.name])]))
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (self.root / "etc/apt/sources.list").write_text(
            f"deb [arch={archs} signed-by={keys}] {self.mirror} {self.name} main\n"
        )
        self._apt("apt-get", "update")

    def source(self) -> str:
        """The [[suite]] entry of SOURCES.toml."""
        release = next((self.root / "var/lib/apt/lists").glob("*_InRelease"))
        date = re.search(r"^Date: (.+)$", release.read_text(), re.MULTILINE)
        return (
            f"[[suite]]\nname = {self.name!r}\nuri = {self.mirror!r}\nrelease = {date[1] if date else ''!r}\n"
        ).replace("'", '"')

    def download(self, arch: str, wanted: Sequence[str]) -> list[Deb]:
        """The packages of an architecture whose names match, where the suite has them, in the order of ``wanted``.

        Of several that one expression matches, the one with the highest number in its name.
        """
        known = self._apt("apt-cache", "pkgnames").split()
        matching = [[n for n in known if re.fullmatch(pattern, n)] for pattern in wanted]
        # apt-cache takes seconds to start with this many lists, and shows what it knows of the rest.
        shown = self._apt(
            "apt-cache",
            "show",
            "--no-all-versions",
            *(f"{n}:{arch}" for ns in matching for n in ns),
            check=False,
        )
        entries = (dict(re.findall(r"^(\S+): (.*)$", e, re.MULTILINE)) for e in shown.split("\n\n"))
        by_name = {e["Package"]: e for e in entries if "Package" in e}
        folder = self.root / "debs"
        debs = []
        for names in matching:
            held = [n for n in names if n in by_name]
            if held:
                name = max(held, key=lambda n: [int(x) for x in re.findall(r"\d+", n)])
                version = by_name[name]["Version"]
                file = f"{name}_{version.replace(':', '%3a')}_{arch}.deb"
                debs.append(Deb(name, version, by_name[name]["SHA256"], folder / file))
        absent = [f"{d.package}:{arch}={d.version}" for d in debs if not d.path.exists()]
        if absent:
            self._apt("apt-get", "download", *absent, cwd=folder, check=False)
        for deb in debs:
            if not deb.path.exists():
                print(f"{self.name}: the mirror has no {deb.path.name}", file=sys.stderr)
        return [deb for deb in debs if deb.path.exists()]


def packages_source(suite: str, arch: str, debs: Iterable[Deb]) -> str:
    """The table of SOURCES.toml that says which packages were read."""
    rows = "".join(f'"{d.package}" = {{ version = "{d.version}", sha256 = "{d.sha256}" }}\n' for d in debs)
    return f"[{suite}.{arch}]\n{rows}"


def unpacked(deb: Deb) -> Path:
    """The folder with the files of a package; unpacked once."""
    folder = deb.path.with_suffix("")
    if not folder.exists():
        subprocess.run(["dpkg-deb", "-x", str(deb.path), str(folder)], check=True)
    return folder


def libraries_in(debs: Iterable[Deb], arch: str) -> dict[str, Exports]:
    """What the promised libraries among the files of some packages export, by SONAME."""
    wanted = set(OTHER_RUNTIMES) | set(interpreters_of(arch))
    for libc in ("glibc", "musl"):
        for policy in candidates(arch, libc):
            wanted |= policy.libraries
    found: dict[str, Exports] = {}
    for deb in debs:
        files = sorted(unpacked(deb).rglob("*.so*"), key=lambda p: (len(p.parts), p))
        for path in files:
            if path.is_symlink() or not path.is_file():
                continue
            facts = read(path).facts
            if facts is None or not facts.dynamic or facts.arch != arch:
                continue
            if deb.package == "musl":
                found.setdefault(MUSL, exports_of(facts, soname=MUSL))
            elif facts.soname in wanted:
                found.setdefault(facts.soname, exports_of(facts))
    return found


def unmerged(found: Mapping[str, Exports], model: Mapping[str, Exports]) -> dict[str, Exports]:
    """Libraries of glibc 2.34 or newer, with the symbols that it merged into libc.so.6 put back.

    ``model`` says which library had which name before, on another architecture.
    """
    libc = found[LIBC]
    own = {s.name for s in model[LIBC].symbols}
    moved: dict[str, Exports] = {}
    left = {s.name for s in libc.symbols}
    for library in MERGED:
        names = {s.name for s in model[library].symbols}
        indexes = {d.name: d.index for d in found[library].verdef}
        back = [s for s in libc.symbols if s.name in names and s.version in indexes]
        symbols = [s._replace(version_index=indexes[s.version or ""]) for s in back]
        held = {(s.name, s.version) for s in symbols}
        symbols += [s for s in found[library].symbols if (s.name, s.version) not in held]
        moved[library] = replace(found[library], symbols=tuple(symbols))
        left -= names - own
    kept = replace(libc, symbols=tuple(s for s in libc.symbols if s.name in left))
    return {**found, **moved, LIBC: kept}


def write_zip(path: Path, tables: Mapping[str, str]) -> None:
    """An archive with one member for each table; no date and no mode of this run in it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, text in tables.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED, 9)


def interpreters(suites: Mapping[str, Suite], others: Sequence[Path]) -> list[str]:
    """Write python.zip; the entries for SOURCES.toml."""
    columns: dict[str, Exports] = {}
    sources: list[str] = []
    for name, packages in PYTHON_PACKAGES.items():
        debs = suites[name].download("amd64", packages)
        sources.append(packages_source(f"python.{name}", "amd64", debs))
        for deb in debs:
            for path in sorted(unpacked(deb).rglob("*")):
                match = re.fullmatch(r"(?:lib)?python3\.(\d+)(t?)(?:\.so\.1\.0)?", path.name)
                if match and path.is_file() and not path.is_symlink() and is_elf(path):
                    add_interpreter(columns, f"cp3{match[1]}{match[2]}", path)
    # What was read from other interpreters in an earlier run stays until they are given again.
    built: dict[str, str] = {}
    earlier = HERE / "SOURCES.toml"
    if earlier.exists() and (HERE / "python.zip").exists():
        built = tomllib.loads(earlier.read_text()).get("python", {}).get("release", {})
        with zipfile.ZipFile(HERE / "python.zip") as archive:
            text = archive.read("python").decode()
        for tag in built:
            add_exports(columns, tag, parse(text, tag))
    for path in others:
        told = subprocess.run([str(path), "-c", ASK], check=True, capture_output=True, text=True).stdout
        version, tag, files = told.splitlines()
        for file in files.split("\t"):
            if Path(file).is_file():
                add_interpreter(columns, tag, Path(file))
        built[tag] = version
    ordered = sorted(columns, key=lambda tag: [int(n) for n in re.findall(r"\d+", tag)] + [len(tag)])
    write_zip(HERE / "python.zip", {"python": render({tag: columns[tag] for tag in ordered})})
    rows = "".join(f'"{tag}" = "{version}"\n' for tag, version in sorted(built.items()))
    return [*sources, f"[python.release]\n{rows}"]


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def add_interpreter(columns: dict[str, Exports], tag: str, path: Path) -> None:
    """Add the C API that one interpreter or libpython exports to what is known of its version."""
    facts = read(path).facts
    if facts is None:
        raise SystemExit(f"{path} is no ELF object that can be read")
    add_exports(columns, tag, exports_of(facts))


def add_exports(columns: dict[str, Exports], tag: str, more: Exports) -> None:
    known = columns.get(tag, Exports(tag))
    names = {s.name for s in known.symbols}
    added = [
        s._replace(version=None, version_index=1, hidden=False)
        for s in more.symbols
        if s.name.startswith(("Py", "_Py")) and s.name not in names
    ]
    columns[tag] = replace(known, symbols=(*known.symbols, *added))


if __name__ == "__main__":
    raise SystemExit(main())
