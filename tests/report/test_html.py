"""The HTML report as text: all is said in it, nothing is loaded by it, nothing out of a wheel is markup in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from wheelfix.checks import RULES
from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Finding, Report, WheelReport
from wheelfix.model.resolution import Binding, Bound, Edge, Load, Node
from wheelfix.report import html
from wheelfix.report.html_blocks import Blocks, packed
from wheelfix.report.html_findings import prose
from wheelfix.report.html_graph import graph
from wheelfix.report.html_symbols import symbols

Run = Callable[..., tuple[int, str, str]]
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;`]]>-->\u202e\n</style>"


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.inside: list[str] = []
        self.sources: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.sources:
            self.inside.append(tag)
            self.sources[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.sources:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.sources[self.inside[-1]][-1] += data
        else:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def loads_nothing(page: Page) -> None:
    """No attribute and no style makes a browser fetch or run anything."""
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "srcset", "poster", "data", "formaction", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,")), (tag, attributes)
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    for style in page.sources["style"]:
        assert "url(" not in style
        assert "@import" not in style


def unpacked(block: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(block)))


def rendered(report: Report) -> Page:
    return Page(html.render(report, RULES))


def test_every_finding_is_there_with_all_that_it_says(several: Report) -> None:
    page = rendered(several)
    articles = [a for tag, a in page.elements if tag == "article"]
    assert len(articles) == sum(len(w.findings) for w in several.wheels)
    for wheel in several.wheels:
        for f in wheel.findings:
            for part in (f.rule, f.severity, f.message, f.member, f.library, f.symbol, f.remedy, f.policy):
                assert (part or "") in page.words
            for key in f.evidence:
                assert key in page.words


def test_the_verdict_stands_before_the_findings(failed: Report) -> None:
    words = rendered(failed).words
    places = [
        words.index(w) for w in ("FAIL demo-1.0-", "2 errors, 1 warning, 1 note", "cxx-runtime-dynamic")
    ]
    assert places == sorted(places)


def test_rules_with_errors_come_first_and_notes_are_folded(failed: Report) -> None:
    page = rendered(failed)
    rules = [a for tag, a in page.elements if tag == "details" and a.get("class") == "rule"]
    assert ["open" in a for a in rules] == [True, True, True, False]
    words = page.words
    assert (
        words.index("error cxx-runtime-dynamic")
        < words.index("warning rpath-dead")
        < words.index("info needed-unused")
    )


def test_several_wheels_begin_with_a_table_of_verdicts(several: Report) -> None:
    page = rendered(several)
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    sections = [f"#{a['id']}" for tag, a in page.elements if tag == "section"]
    assert links == sections
    assert len(links) == 3
    words = page.words
    assert words.index("UNREADABLE c.whl") < words.index("2 errors, 1 warning")


def test_a_wheel_without_findings_says_so(passed: Report) -> None:
    assert "PASS b.whl no findings" in rendered(passed).words


def _about(text: str) -> Report:
    """A report in which everything that a wheel or a policy can name is this text."""
    evidence = {text: text, "list": [text], "deep": [[text]]}
    finding = Finding(text, "error", text, text, text, text, evidence, text, text)
    return Report((WheelReport(text, text, text, (text,), (text,), "fail", (finding,)),))


def test_nothing_out_of_a_wheel_is_markup() -> None:
    def shape(page: Page) -> list[tuple[str, list[str]]]:
        # Remedies are written in Markdown, whose backquotes make a code element; long evidence is folded.
        return [(tag, sorted({*a} - {"open"})) for tag, a in page.elements if tag != "code"]

    page = rendered(_about(HOSTILE))
    assert shape(page) == shape(rendered(_about("a")))
    assert len(page.sources["script"]) == 1
    assert "\u202e" not in page.words


def test_data_of_a_wheel_cannot_end_their_block() -> None:
    block = packed({"path": "</script><script>alert(1)</script>"})
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", block)
    assert unpacked(block) == {"path": "</script><script>alert(1)</script>"}


def test_nothing_is_loaded_from_anywhere(several: Report) -> None:
    text = html.render(several, RULES, [Blocks(packed({}), packed([])), None, None])
    page = Page(text)
    loads_nothing(page)
    for script in page.sources["script"]:
        for word in (
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "import(",
            "sendBeacon",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ):
            assert word not in script


def test_the_security_policy_admits_this_script_and_this_style_alone(failed: Report) -> None:
    page = rendered(failed)
    (policy,) = [
        a["content"] or "" for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    for kind in ("script", "style"):
        (source,) = page.sources[kind]
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_text_of_rules_keeps_its_code() -> None:
    assert prose("Use `-z <x>`:\n\n```sh\nld -z x\n  y\n```\n\nand\nso on.") == (
        "<p>Use <code>-z &lt;x&gt;</code>:</p><pre>ld -z x\n  y</pre><p>and so on.</p>"
    )


def _node(path: str, owner: Any = "wheel") -> Node:
    return Node(path, f"/{path}", ElfFacts(size=10), owner)


def test_an_edge_has_the_colour_of_its_gravest_way_and_tells_all() -> None:
    ext, other, dep = _node("pkg/_ext.so"), _node("pkg/_other.so"), _node("pkg/libdep.so")
    found = Edge(
        ext.path, dep.path, "libx.so", "found", "pkg/libx.so", "rpath", ext.path, ("pkg/libx.so",), "$ORIGIN"
    )
    needs = Edge(ext.path, ext.path, "libdep.so", "found", dep.path, "runpath", ext.path, (), "$ORIGIN")
    again = Edge(other.path, dep.path, "libx.so", "missing", tried=("lib/libx.so",))
    seen = graph(
        [
            Load(ext, (ext, dep, _node("pkg/libx.so")), (needs, found)),
            Load(other, (other, dep), (again,)),
        ]
    )
    paths = [n["path"] for n in seen["nodes"]]
    assert paths == ["pkg/_ext.so", "pkg/libdep.so", "pkg/libx.so", "pkg/_other.so", "libx.so"]
    told = {(paths[e["from"]], paths[e["to"]]): e["how"] for e in seen["edges"]}
    assert told == {
        ("pkg/_ext.so", "pkg/libdep.so"): "runpath",
        ("pkg/libdep.so", "pkg/libx.so"): "rpath",
        ("pkg/libdep.so", "libx.so"): "missing",
    }
    (broken,) = [e for e in seen["edges"] if e["how"] == "missing"]
    assert broken["ways"][0]["roots"] == ["pkg/_other.so"]
    assert "looked in lib/libx.so" in broken["ways"][0]["told"]
    assert [n["path"] for n in seen["nodes"] if n.get("root")] == ["pkg/_ext.so", "pkg/_other.so"]


def test_every_binding_can_be_unpacked_again() -> None:
    bindings = [
        Binding("a.so", "a.so", "_Zfoo", "V1", False, "bound", "libb.so"),
        Binding("a.so", "a.so", "bar", None, True, "weak-unbound"),
        Binding("a.so", "libb.so", "baz", None, False, "undecided", None, ("libx.so",)),
        Binding("c.so", "libb.so", "baz", None, False, "undecided", None, ("libx.so",)),
        Binding("a.so", "a.so", "_Zfoo2", "V1", False, "bound", "libb.so"),
        Binding("a.so", "a.so", "both", None, False, "bound", "libb.so", ("libx.so",), "interpreter"),
    ]
    # What a.so binds in libb.so is taken over for c.so, as it is where nothing differs.
    shared = (bindings[2],)
    own = tuple(b for b in bindings if b.object == "a.so")
    bound = [Bound("a.so", own, own), Bound("a.so", shared, shared), Bound("c.so", shared, ())]
    seen = symbols(bound, lambda name: f"words of {name}")
    names, texts = seen["names"].split("\n"), [*seen["texts"]]
    text = [*texts, None].__getitem__
    rows = set()
    for object_, version, weak, status, provider, unless, also, roots, steps in seen["groups"]:
        at = 0
        for step in steps:
            at += step
            for root in roots:
                rows.add(
                    Binding(
                        texts[root],
                        texts[object_],
                        names[at],
                        None if version is None else text(version),
                        weak == 1,
                        status,
                        None if provider is None else text(provider),
                        tuple(texts[u] for u in unless),
                        None if also is None else text(also),
                    )
                )
    assert rows == set(bindings)
    assert seen["readable"] == {names.index("baz"): "words of baz"}


def test_the_command_writes_pages_that_name_no_folder_of_the_host(
    wheelfix: Run, sample_wheels: Path, tmp_path: Path
) -> None:
    for path in sample_wheels.glob("*.whl"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "broken-1-py3-none-any.whl").write_bytes(b"PK")
    names = sorted(p.name for p in tmp_path.iterdir())
    status, out, err = wheelfix(
        "verify", "--report", "html=all.html", "--format", "html", "-j", "2", *names, cwd=tmp_path
    )
    assert (status, err) == (3, "")
    assert (tmp_path / "all.html").read_text() == out
    page = Page(out)
    plain = [page.words, *(json.dumps(unpacked(s)) for s in page.sources["script"][:-1])]
    assert len(plain) == 1 + 2 * (len(names) - 1)
    for text in plain:
        assert str(tmp_path) not in text
        assert not re.search(r"/tmp\b|/home/|/var/folders", text)


def test_the_order_of_jobs_changes_nothing(wheelfix: Run, sample_wheels: Path) -> None:
    wheels = sorted(sample_wheels.glob("*.whl"))
    one = wheelfix("verify", "--format", "html", "-j", "1", *wheels)
    assert one == wheelfix("verify", "--format", "html", "-j", "3", *wheels)
