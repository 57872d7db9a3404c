"""The C API that the interpreter of a Python tag gives to extension modules.

For an ABI of one version (cp311-cp311, cp313-cp313t) the names are those that interpreters of that version really
export (``policies/baseline/python.zip``, made by build.py). For the stable ABI (abi3, PEP 384) they are those
of ``abi3info`` up to the tag's version, which every later Python has as well.
"""

from __future__ import annotations

import re
import zipfile
from functools import cache

from wheelfix.model.elf import STT_FUNC, STT_OBJECT, ElfFacts, Symbol
from wheelfix.model.resolution import Node
from wheelfix.policy.data import data_folder
from wheelfix.policy.exports import columns_of, parse

#: A release of CPython as the first two parts of a tag write it, with the ABI flags behind it (cp311, cp313t, cp37m).
_CPYTHON = re.compile(r"cp([23])(\d+)([a-z]*)")
#: The stable ABI of the interpreter with the GIL (PEP 384), and of the one without (PEP 803).
STABLE_ABIS = ("abi3", "abi3t")
# The macros of Misc/stable_abi.toml that no build for Linux sets, or only a debug build.
_NEVER_ON_LINUX = ("MS_WINDOWS", "USE_STACKCHECK", "Py_REF_DEBUG")


def interpreter_node(python_tag: str, abi_tag: str) -> Node:
    """The interpreter of a tag (``cp311``, ``abi3``) as the first object of the global scope.

    Its facts hold the names of the C API, and are ``complete`` only where all are known. Where they are not, a
    Py* or _Py* name that they lack is undecided: no list exists for the version or the implementation; the tag names no ABI
    (py3-none); or it is a stable ABI, where a later Python may have the name (whether an extension may count on
    that is for ``abi3-violation`` to say).
    """
    symbols = _symbols(python_tag, abi_tag)
    complete = symbols is not None and abi_tag not in STABLE_ABIS
    facts = ElfFacts(symbols=symbols or (), complete=complete)
    return Node("interpreter", "/interpreter", facts, "interpreter", None, "/interpreter")


@cache
def stable_abi() -> dict[str, tuple[int, int]]:
    """Every name of the stable ABI on Linux, and the Python version that brought it.

    Names that no ordinary build for Linux has are left out.
    """
    from abi3info import DATAS, FUNCTIONS

    return {
        symbol.name: (item.added.major, item.added.minor)
        for table in (FUNCTIONS, DATAS)
        for symbol, item in table.items()
        if item.ifdef is None or item.ifdef.name not in _NEVER_ON_LINUX
    }


def version_of(python_tag: str) -> tuple[int, int] | None:
    """The Python version of a CPython tag: ``cp311`` is (3, 11). None for any other tag."""
    match = _CPYTHON.fullmatch(python_tag)
    return (int(match[1]), int(match[2])) if match else None


@cache
def _symbols(python_tag: str, abi_tag: str) -> tuple[Symbol, ...] | None:
    version = version_of(python_tag)
    if version is None:
        return None
    if abi_tag in STABLE_ABIS:
        from abi3info import DATAS

        data = {symbol.name for symbol in DATAS}
        return tuple(
            Symbol(name, kind=STT_OBJECT if name in data else STT_FUNC, section=1, value=1)
            for name, added in sorted(stable_abi().items())
            if added <= version
        )
    match = _CPYTHON.fullmatch(abi_tag)
    if match is None or (int(match[1]), int(match[2])) != version:
        return None
    # cp37m is what cp38 and later write without a letter: pymalloc, which every build has had since.
    flags = match[3].replace("m", "")
    column = f"cp{version[0]}{version[1]}{flags}"
    text = _table()
    return parse(text, column).symbols if column in columns_of(text) else None


@cache
def _table() -> str:
    path = data_folder() / "baseline" / "python.zip"
    if not path.is_file():
        return ""
    with zipfile.ZipFile(path) as archive:
        return archive.read("python").decode()
