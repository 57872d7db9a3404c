"""The pages made from the code are those of this code, and all pages become a site without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wheelfix.checks import RULES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def pages_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*.md")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What docs/make.py writes into an empty folder."""
    folder: Path = tmp_path_factory.mktemp("made")
    subprocess.run([sys.executable, DOCS / "make.py", folder], check=True)
    return folder


def build(folder: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    """Build the site of the checkout in a folder by the very command of `make site`.

    --quiet, for one, would keep --strict from seeing a warning.
    """
    (command,) = re.findall(r"mkdocs (build .*)", (ROOT / "Makefile").read_text("utf-8"))
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *command.split(), *more],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning (a dead link, a page outside the nav) fails the build."""
    folder: Path = tmp_path_factory.mktemp("site")
    done = build(ROOT, "-d", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_pages_made_from_the_code_are_up_to_date(made: Path) -> None:
    # argparse lays help out differently from one version of Python to the next; the page is made by 3.11.
    for name in pages_in(made) - ({"reference/commands.md"} if sys.version_info[:2] != (3, 11) else set()):
        assert (DOCS / name).read_text("utf-8") == (made / name).read_text("utf-8"), f"{name}: run make docs"


def test_every_rule_has_a_page_and_no_page_is_left_over() -> None:
    assert pages_in(DOCS / "rules") == {f"{rule}.md" for rule in RULES} | {"index.md"}


def test_every_rule_but_that_of_bugs_shows_what_the_tool_prints() -> None:
    silent = {
        r for r in RULES if "## What wheelfix prints" not in (DOCS / "rules" / f"{r}.md").read_text("utf-8")
    }
    assert silent == {"internal-error"}


def test_every_page_is_in_the_site_and_reached_from_its_navigation(site: Path) -> None:
    start = (site / "index.html").read_text("utf-8")
    reached = {h.removesuffix(".html") for h in re.findall(r'href="([^"#:]+\.html)"', start)}
    wanted = {p.removesuffix(".md") for p in pages_in(DOCS)} - {"index"}
    assert {p for p in wanted if not (site / f"{p}.html").is_file()} == set()
    assert wanted - reached == set()


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n[A page](that-is-not-there.md)\n")
    done = build(tmp_path)
    assert done.returncode == 1
    assert "that-is-not-there.md" in done.stderr


def test_a_reader_of_the_site_loads_nothing_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*rel="(?:stylesheet|icon|preconnect)"[^>]*href="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*href="([^"]+)"[^>]*rel="(?:stylesheet|icon|preconnect)"', text)
        assert [u for u in loaded if "//" in u] == [], page.name
