"""What the real loader of this machine does with one root: its scope, every binding, and whether it loads.

The root is opened in a process of its own, by the interpreter that would import it, with
RTLD_NOW | RTLD_LOCAL, under LD_DEBUG. ``_imp.create_dynamic`` with a name that no module has is the
interpreter's own dlopen and nothing more: no PyInit function runs, and no ctypes is in the process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

_OPEN = """
import _imp, os, sys
from importlib.machinery import ModuleSpec
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL)
_imp.create_dynamic(ModuleSpec("no_module_has_this_name", None, origin=sys.argv[1]))
"""
_OPENED = "does not define module export function"
_BINDING = re.compile(
    r"binding file (.+?) \[\d+\] to (.+?) \[\d+\]: (?:normal|protected) symbol `(.*?)'(?: \[(.*)\])?$"
)
_SCOPE = re.compile(r" scope (\d+): (.*)$")
_TRACED = re.compile(r"\s(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)

Key = tuple[str, str, "str | None"]  # object, symbol, version


@dataclass
class Observation:
    """Paths are real ones; the scopes are in the order of look-up, the root first in its own."""

    root: str
    given: str  # the path that the loader was given
    loads: bool
    error: str = ""
    process: tuple[str, ...] = ()  # the global scope: the interpreter and its closure
    scope: tuple[str, ...] = ()
    bindings: dict[Key, tuple[str, ...]] = field(default_factory=dict)  # providers, each once


def observe(root: Path, interpreter: str = sys.executable, opener: Path | None = None) -> Observation:
    """Open one shared object, or resolve one program (ET_EXEC or PIE with an interpreter), and listen.

    ``opener`` is a program that opens its first argument and says what ``_OPENED`` has; an interpreter else.
    """
    program = _is_program(root)
    with tempfile.TemporaryDirectory() as folder:
        debug = {"LD_DEBUG": "bindings,scopes,files", "LD_DEBUG_OUTPUT": f"{folder}/ld"}
        base = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "PYTHON"))}
        if program:  # what ldd -r does: relocate everything, run nothing
            debug |= {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
            command = [str(root)]
        else:
            command = (
                [str(opener), str(root)] if opener else [interpreter, "-I", "-S", "-c", _OPEN, str(root)]
            )
        done = subprocess.run(
            command, env=base | debug, capture_output=True, text=True, errors="replace", cwd="/"
        )
        log = "".join(p.read_text(errors="replace") for p in sorted(Path(folder).iterdir()))
    said = done.stderr.strip().splitlines()
    if program:
        loads = (
            done.returncode == 0
            and "undefined symbol" not in done.stdout + done.stderr
            and "not found" not in done.stdout
        )
        error = done.stderr + done.stdout if not loads else ""
    else:
        loads = bool(said) and _OPENED in said[-1]
        error = "" if loads else (said[-1] if said else f"died with status {done.returncode}")
    seen = Observation(os.path.realpath(root), str(root), loads, error)
    if program:
        seen.scope = (seen.root, *(os.path.realpath(p) for p in _TRACED.findall(done.stdout)))
    _listen(seen, log.splitlines(), command[0], program)
    return seen


def _is_program(root: Path) -> bool:
    with root.open("rb") as file:
        head = file.read(18)
    if head[16] == 2:  # ET_EXEC
        return True
    if not os.access(root, os.X_OK):
        return False
    # A PIE has a program interpreter and no SONAME; readelf knows both.
    said = subprocess.run(["readelf", "-ld", str(root)], capture_output=True, text=True).stdout
    return "INTERP" in said and "SONAME" not in said


def _listen(seen: Observation, lines: list[str], started: str, program: bool) -> None:
    """Read the loader's words from the moment at which it opens the root to the first constructor."""

    def real(name: str) -> str:
        return os.path.realpath(started if name in ("", "<main program>") else name)

    listening = program
    current = ""
    providers: dict[Key, dict[str, None]] = {}
    for raw in lines:
        line = raw.partition(":\t")[2]
        if line.startswith("object="):
            current = real(line[7:].partition(" [")[0])
        elif match := _SCOPE.match(line):
            names = tuple(real(n) for n in match[2].split())
            if names[0] == os.path.realpath(started):
                seen.process = seen.process or names
            elif current == seen.root and (len(names) > 1 or match[1] != "0"):  # else that of DT_SYMBOLIC
                seen.scope = names
        elif not listening:
            listening = "dynamically loaded by" in line and real(line[5:].partition(" [")[0]) == seen.root
        elif line.startswith("calling init: ") and not (program and "/ld-" in line):
            break
        elif match := _BINDING.match(line):
            key = (real(match[1]), match[3], match[4])
            providers.setdefault(key, {})[real(match[2])] = None
    seen.bindings = {key: tuple(names) for key, names in providers.items()}
