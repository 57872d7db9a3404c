"""The HTML report of every real wheel, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.browser import Tab, browser

pytestmark = pytest.mark.real

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_every_page_is_small_and_can_be_used_within_two_seconds(
    wheelfix: Run,
    tab: Tab,
    real_wheel: dict[str, Any],
    real_path: Callable[[dict[str, Any]], Path],
    tmp_path: Path,
) -> None:
    page = tmp_path / "report.html"
    status, _, err = wheelfix("verify", "-q", "--report", f"html={page}", real_path(real_wheel))
    assert (status in (0, 1), err) == (True, "")
    assert page.stat().st_size < 5_000_000
    tab.open(page)
    # Milliseconds since the navigation began: pictures, and the table of symbols.
    assert float(tab.run("return document.documentElement.dataset.drawn")) < 2000
    assert float(tab.run("return document.documentElement.dataset.ready")) < 2000
    assert tab.complaints == []
