#!/usr/bin/env python3
"""Write the pages that are made from the code: docs/rules.md."""

from __future__ import annotations

from pathlib import Path

from wheelfix.checks import RULES
from wheelfix.report.rules import page

if __name__ == "__main__":
    Path(__file__).with_name("rules.md").write_text(page(RULES.values()), "utf-8")
