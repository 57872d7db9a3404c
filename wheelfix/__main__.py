"""``python -m wheelfix``."""

from wheelfix.cli import run

run()
