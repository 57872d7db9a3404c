"""Every format of one run of ``verify``, each read back by somebody else's parser and held against the findings."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt
from xmlschema import XMLSchema

from tests.report.test_html import Page, loads_nothing
from tests.report.test_sarif import run_in
from wheelfix import cli
from wheelfix.report.escape import plain

FORMATS = ("json", "markdown", "html", "sarif", "junit", "github")
JUNIT = XMLSchema(Path(__file__).parent / "schemas" / "junit-10.xsd")
#: Elements that have no end tag (HTML standard, "Void elements").
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
#: Elements that end where their parent or the file does (HTML standard, "Optional tags").
ENDED_BY_PARENT = {"html", "body", "p", "li", "dt", "dd", "thead", "tbody", "tr", "th", "td", "option"}
#: What a workflow command's property and message mean (github.com/actions/toolkit, packages/core/src/command.ts).
PERCENT = {"%3A": ":", "%2C": ",", "%25": "%", "%0A": "\n", "%0D": "\r"}
ANNOTATION = re.compile(r"::(error|warning|notice) file=([^:,]*),title=([^:,]*)::(.*)")


def rendered(folder: Path, wheel: Path, *options: str) -> dict[str, str]:
    """One run in this process that writes all formats into the folder; the text of each."""
    made = {form: folder / f"report.{form}" for form in FORMATS}
    asked = [word for form, path in made.items() for word in ("--report", f"{form}={path}")]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            status = cli.main(
                ["verify", "-q", "-j", "1", "-o", str(folder / "verdict"), *asked, *options, str(wheel)]
            )
    finally:
        gc.enable()  # the command is a process of its own elsewhere
    assert status in (0, 1, 3), said.getvalue()
    return {form: path.read_text("utf-8") for form, path in made.items()}


def check(texts: dict[str, str]) -> None:
    """All formats of one report are well formed, and say what its JSON says."""
    (wheel,) = json.loads(texts["json"])["wheels"]
    for form in ("markdown", "html", "junit", "github"):
        assert [c for c in texts[form] if not (c.isprintable() or c == "\n")] == [], form
    check_markdown(texts["markdown"], wheel)
    check_html(texts["html"], wheel)
    check_github(texts["github"], wheel)
    assert len(run_in(texts["sarif"])["results"]) == len(wheel["findings"])
    check_junit(texts["junit"], wheel)


def check_markdown(text: str, wheel: dict[str, Any]) -> None:
    """A CommonMark parser with tables sees two tables and a heading, and no other markup: each cell is the field's text."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    # What is a link without markup: GitHub Flavored Markdown, "Autolinks (extension)".
    assert not re.search(r"(?i)[a-z]://|www\.", text)
    inline = [t for t in tokens if t.type == "inline"]
    assert {child.type for t in inline for child in t.children or ()} <= {"text"}
    assert {t.tag for t in tokens if t.tag} <= {"table", "thead", "tbody", "tr", "th", "td", "h3"}
    seen = ["".join(child.content for child in t.children or ()) for t in inline]
    counts = [sum(f["severity"] == s for f in wheel["findings"]) for s in ("error", "warning", "info")]
    mark = "✅" if wheel["verdict"] == "pass" else "❌"
    path = plain(wheel["path"])
    wanted = ["wheel", "verdict", "errors", "warnings", "notes", path, f"{mark} {wheel['verdict']}"]
    wanted += map(str, counts)
    if wheel["findings"]:
        wanted += [path, "severity", "rule", "member", "what", "fix"]
    for f in wheel["findings"]:
        wanted += [
            f["severity"],
            f["rule"],
            plain(f["member"] or ""),
            plain(f["message"]),
            plain(f["remedy"]),
        ]
    # A parser takes blanks off the ends of a cell, and an empty cell has no text.
    assert [s.strip() for s in seen] == [w.strip() for w in wanted]


class _Balance(HTMLParser):
    """What is wrong with the nesting of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> stays open" for tag in self.open if tag not in ENDED_BY_PARENT]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of SVG that is closed at once."""

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in ENDED_BY_PARENT:
            self.open.pop()
        if self.open[-1:] == [tag]:
            self.open.pop()
        else:
            self.wrong.append(f"</{tag}> in {self.open[-3:]} at {self.getpos()}")


def check_html(text: str, wheel: dict[str, Any]) -> None:
    """The tags are balanced, nothing is loaded, and every finding is there as text."""
    assert _Balance(text).wrong == []
    page = Page(text)
    loads_nothing(page)
    # The others are data: a browser runs none of a type that it does not know.
    assert [a for tag, a in page.elements if tag == "script" and a.get("type") != "text/plain"] == [{}]
    assert len(page.sources["style"]) == 1
    words = page.words
    for f in wheel["findings"]:
        for said in (f["member"] or "", f["message"]):
            assert " ".join(plain(said).split()) in words
            if set(said) & set("<>&"):
                assert said not in text


def check_github(text: str, wheel: dict[str, Any]) -> None:
    """A line is a command for each finding, and one more the verdict; decoded, they say what was found."""
    *commands, verdict = text.removesuffix("\n").split("\n")
    assert verdict == f"{wheel['verdict']}: {plain(wheel['path'])}"
    seen = []
    for line in commands:
        match = ANNOTATION.fullmatch(line)
        assert match, line
        seen.append((match[1], *map(_decoded, match.group(2, 3, 4))))
    wanted = []
    for f in wheel["findings"]:
        title = f"{f['rule']}: {f['member']}" if f["member"] else f["rule"]
        fix = f" Fix: {f['remedy']}" if f["remedy"] else ""
        level = "notice" if f["severity"] == "info" else f["severity"]
        wanted.append((level, *map(plain, (wheel["path"], title, f["message"] + fix))))
    assert seen == wanted


def check_junit(text: str, wheel: dict[str, Any]) -> None:
    """Valid by Jenkins' schema; a rule fails where it has an error, and every finding is told under its rule."""
    JUNIT.validate(text)
    cases = {c.get("name"): c for c in ET.fromstring(text).iter("testcase")}
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {f["rule"] for f in wheel["findings"] if f["severity"] == "error"}
    for f in wheel["findings"]:
        told = "".join(cases[f["rule"]].itertext())
        assert plain(f["message"]) in told


def _decoded(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda m: PERCENT[m[0]], text)
