"""Where the data that ships with the tool lies: beside the package, or in the checkout it is run from."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def data_folder() -> Path:
    """The folder ``policies/``: inside the installed package, else at the top of a checkout.

    Raises ``FileNotFoundError`` where an installation lost it.
    """
    for folder in (_PACKAGE / "policies", _PACKAGE.parent / "policies"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("the folder policies/ is missing from this installation of wheelfix")
