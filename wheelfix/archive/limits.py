"""Why a file is no wheel at all."""

from __future__ import annotations


class Unreadable(Exception):
    """The input cannot be read as a wheel at all; the text says why, for people (exit status 3)."""
