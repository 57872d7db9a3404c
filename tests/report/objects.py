"""A wheel with many objects, for what must stay readable: a few are compiled, the others are made from them by names of
the same length in DT_NEEDED and DT_SONAME."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.test_audit import wheel

GROUPS, CORES, MODULES = 44, 6, 250


def many(folder: Path) -> Path:
    """250 extension modules in 10 packages, 44 libraries, one of which nobody ships, over 6 others: 300 objects."""
    made = compiled(folder)
    module, group, core = made["module"], made["group"], made["core"]
    members = {}
    for number in range(MODULES):
        asked = _name("group", number % (GROUPS + 1))  # the last of them is in no wheel
        members[f"big/part{number % 10}/_module{number:03}.so"] = module.replace(
            b"libgroup000.so", asked.encode()
        )
    for number in range(GROUPS):
        renamed = group.replace(b"libgroup000.so", _name("group", number).encode())
        members[f"big/libs/{_name('group', number)}"] = renamed.replace(
            b"libcore0000.so", _name("core0", number % CORES).encode()
        )
    for number in range(CORES):
        members[f"big/libs/{_name('core0', number)}"] = core.replace(
            b"libcore0000.so", _name("core0", number).encode()
        )
    return wheel(folder, "big", members)


def _name(kind: str, number: int) -> str:
    return f"lib{kind}{number:03}.so"


def compiled(folder: Path) -> dict[str, bytes]:
    """An extension module that needs ``group``, which needs ``core``."""
    (folder / "core.c").write_text("int core(void) { return 1; }\n")
    (folder / "group.c").write_text("int core(void); int group(void) { return core(); }\n")
    (folder / "module.c").write_text("int group(void); int PyInit__module(void) { return group(); }\n")

    def gcc(*arguments: str) -> None:
        subprocess.run(["gcc", "-shared", "-fPIC", "-s", *arguments], cwd=folder, check=True)

    gcc("core.c", "-o", "core.so", "-Wl,-soname,libcore0000.so", "-nostdlib")
    gcc("group.c", "-o", "group.so", "core.so", "-Wl,-soname,libgroup000.so,-rpath,$ORIGIN", "-nostdlib")
    gcc("module.c", "-o", "module.so", "group.so", "-Wl,-rpath,$ORIGIN/../libs,-rpath-link,.,--no-as-needed")
    return {name: (folder / f"{name}.so").read_bytes() for name in ("module", "group", "core")}
