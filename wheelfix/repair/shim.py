"""The script that takes the place of a program of ``.data/scripts``.

Installers put scripts into a folder whose distance to site-packages differs between environments (``bin`` beside
``lib/python3.x/site-packages``, ``pip install --target``, user installs), so no ``$ORIGIN`` path of a program
there can lead to grafted libraries. The program itself moves into site-packages.
"""

from __future__ import annotations

import json


def shim(location: str) -> bytes:
    """A Python script that becomes the program at ``location``, a path relative to site-packages.

    ``#!python`` is what installers replace by the interpreter (binary distribution format, "Installing a
    wheel"). The program is looked for, in this order, in the folder above the script (``pip install
    --target``), where the scheme installs that has this folder of scripts, where this interpreter installs,
    and in ``sys.path``.
    """
    return f"""#!python
import os
import sys
import sysconfig

PROGRAM = {json.dumps(location)}


def places():
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.dirname(here)
    for scheme in sysconfig.get_scheme_names():
        if sysconfig.get_path("scripts", scheme) == here:
            yield sysconfig.get_path("platlib", scheme)
    yield sysconfig.get_path("platlib")
    yield sysconfig.get_path("purelib")
    yield from sys.path


if __name__ == "__main__":
    for place in places():
        program = os.path.join(place, PROGRAM)
        if os.path.isfile(program):
            os.execv(program, sys.argv)
    sys.exit(PROGRAM + " is not where this package was installed")
""".encode()
