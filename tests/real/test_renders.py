"""Every format of the report on every real wheel is well formed and says what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.renders import check, rendered

pytestmark = pytest.mark.real


def test_every_format_of_a_real_wheel_says_what_was_found(
    real_wheel: dict[str, Any], real_path: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    check(rendered(tmp_path, real_path(real_wheel)))
