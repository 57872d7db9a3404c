"""Small objects for the rules of the search, laid out as each test wants them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

#: ``shared("lib/libx.so", "liby.so", ...)``: a shared object at that place below the test's folder.
Shared = Callable[..., Path]

_OPENER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *handle = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (handle == 0) { printf("%s\\n", dlerror()); return 1; }
    puts("opened");
    return 0;
}
"""
_CALLER = """
#include <dlfcn.h>
void *call(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
"""
_OPENER_BY_CALLER = """
#include <dlfcn.h>
#include <stdio.h>
void *call(const char *path);
int main(int count, char **words) {
    if (call(words[1]) == 0) { printf("%s\\n", dlerror()); return 1; }
    puts("opened");
    return 0;
}
"""


_EMPTY = ("-shared", "-nostdlib")


def paths(rpath: str | None, runpath: str | None) -> list[str]:
    """The linker's options for DT_RPATH (old) or DT_RUNPATH (new); no linker writes both."""
    flags = []
    for path, tags in ((rpath, "--disable-new-dtags"), (runpath, "--enable-new-dtags")):
        if path is not None:
            flags += [f"-Wl,{tags}", "-Xlinker", "-rpath", "-Xlinker", path]
    return flags


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    """Makes objects without code, so that no C library is needed: the search is all that is tested.

    What one needs is linked against stubs of the names, not against the files that the loader will find. With
    ``program`` it is a program instead, which does need the C library.
    """
    stubs = tmp_path.with_name(f"{tmp_path.name}-stubs")

    def make(
        place: str,
        *needed: str,
        rpath: str | None = None,
        runpath: str | None = None,
        soname: str | None = None,
        flags: tuple[str, ...] = (),
        program: bool = False,
    ) -> Path:
        target = tmp_path / place
        target.parent.mkdir(parents=True, exist_ok=True)
        stubs.mkdir(exist_ok=True)
        source = stubs / ("program.c" if program else "empty.c")
        source.write_text("int main(void) { return 0; }" if program else "")
        command = ["gcc", *([] if program else _EMPTY), "-Wl,--no-as-needed", str(source), "-o", str(target)]
        for index, name in enumerate(needed):
            stub = str(stubs / f"{index}-{target.name}")
            link = ["gcc", *_EMPTY, str(source), "-o", stub, "-Xlinker", "-soname", "-Xlinker", name]
            subprocess.run(link, check=True, capture_output=True)
            command.append(stub)
        command += [*paths(rpath, runpath), *flags]
        if soname is not None:
            command.append(f"-Wl,-soname,{soname}")
        subprocess.run(command, check=True, capture_output=True)
        return target

    return make


@pytest.fixture
def opener(tmp_path: Path) -> Callable[..., Path]:
    """A program that opens its argument with RTLD_NOW | RTLD_LOCAL, as an interpreter opens an extension module.

    With ``caller`` options it does so through a library of its own, as a program that embeds libpython.
    """

    def make(*flags: str, caller: tuple[str, ...] | None = None) -> Path:
        folder = tmp_path / "opener"
        folder.mkdir(exist_ok=True)
        (folder / "opener.c").write_text(_OPENER if caller is None else _OPENER_BY_CALLER)
        more: list[str] = [*flags]
        if caller is not None:
            (folder / "caller.c").write_text(_CALLER)
            library = folder / "libcaller.so"
            command = [
                "gcc",
                "-shared",
                "-fPIC",
                folder / "caller.c",
                "-o",
                library,
                "-Wl,-soname,libcaller.so",
            ]
            subprocess.run([*command, *caller], check=True, capture_output=True)
            more += [str(library)]
            if not any("rpath" in f for f in flags):
                more += ["-Wl,-rpath,$ORIGIN"]
        subprocess.run(
            ["gcc", folder / "opener.c", "-o", folder / "opener", *more], check=True, capture_output=True
        )
        return folder / "opener"

    return make
