"""A wheel's tag and what stands against a better one, as ``auditwheel show --json`` tells it.

auditwheel looks for libraries on the machine it runs on, and counts what it finds there. It is given an empty folder
in place of the machine's, so that its answer is the wheel's alone and the same everywhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.second_opinion.table import Facts

# auditwheel reads every object's undefined symbols anew for each of its policies. The answers are the same, one reading
# kept: a tenth of the time on objects with 100,000 symbols.
_SHOW = """
import functools, sys
from auditwheel import elfutils
from auditwheel.main import main
elfutils.get_undefined_symbols = functools.lru_cache(elfutils.get_undefined_symbols)
sys.exit(main())
"""


def by_auditwheel(wheel: Path) -> Facts:
    """Its JSON in the form of ``tags.by_wheelfix``; facts of a policy for each one that is better than its verdict."""
    kept = {k: v for k, v in os.environ.items() if "LD_LIBRARY_PATH" not in k}
    with tempfile.TemporaryDirectory() as nothing:
        command = [sys.executable, "-c", _SHOW, "show", "--json", "--ldpaths", nothing, str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept)
    said = json.loads(done.stdout)
    found: dict[str, object] = {
        "tag": said["overall_tag"],
        "tag-by-versions": said["sym_tag"],
        "isa-too-new": said["unsupported_isa"],
        "versions": frozenset(
            f"{library} {version}"
            for library, names in said["versioned_symbols"].items()
            for version in names
        ),
        "external": frozenset(said["external_libs"]),
    }
    for tag, against in said["policy_upgrades"].items():
        found[f"external for {tag}"] = frozenset(against.get("libs_to_eliminate", ()))
        found[f"denied for {tag}"] = frozenset(
            f"{library} {symbol}"
            for library, symbols in against.get("blacklisted_symbols", {}).items()
            for symbol in symbols
        )
    return found
