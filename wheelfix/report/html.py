"""A report as one HTML file that loads nothing from anywhere. Pure.

Verdicts and findings are plain HTML, there to be read before any script runs; the pictures are drawn by the page's own
script from packed data. A content security policy forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, get_args

from wheelfix import __version__
from wheelfix.checks.rule import Rule
from wheelfix.model.finding import Report, Severity, Verdict, WheelReport
from wheelfix.report.html_findings import findings, safe

if TYPE_CHECKING:
    from wheelfix.report.html_blocks import Blocks

#: One script, in the order in which its parts stand in the page.
_SCRIPTS = ("base.js", "layout.js", "graph.js", "symbols.js", "charts.js", "page.js")
_COUNTED: tuple[tuple[Severity, str, str], ...] = (
    ("error", "error", "errors"),
    ("warning", "warning", "warnings"),
    ("info", "note", "notes"),
)


def render(report: Report, rules: Mapping[str, Rule], blocks: Sequence[Blocks | None] = ()) -> str:
    """The page. ``rules`` are those that ran, by id; ``blocks`` what is known of each wheel beside its verdict, in
    the order of the report, None for one that could not be read.
    """
    known = [*blocks, *([None] * (len(report.wheels) - len(blocks)))]
    style = _page("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_page, _SCRIPTS)) + "\n})();\n"
    wheels = list(enumerate(zip(report.wheels, known, strict=True)))
    return Template(_page("page.html")).substitute(
        policy="default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hashed(style)}; script-src {_hashed(script)}",
        title=safe(_title(report)),
        style=style,
        script=script,
        version=safe(__version__),
        summary="\n".join(_summary(report)),
        wheels="\n".join(_wheel(n, wheel, packed, rules) for n, (wheel, packed) in wheels),
        data="\n".join(_data(n, packed) for n, (_, packed) in wheels if packed is not None),
    )


def _page(name: str) -> str:
    return files("wheelfix.report").joinpath("page").joinpath(name).read_text("utf-8")


def _hashed(text: str) -> str:
    """The source expression of Content Security Policy 3 that admits this very text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _title(report: Report) -> str:
    verdicts = Counter(w.verdict for w in report.wheels)
    if len(report.wheels) == 1:
        return f"{report.wheels[0].verdict.upper()} {_name(report.wheels[0].path)}"
    return ", ".join(f"{verdicts[v]} {v.upper()}" for v in get_args(Verdict) if verdicts[v])


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _summary(report: Report) -> Iterator[str]:
    """The verdict on every wheel, where there are several."""
    if len(report.wheels) == 1:
        return
    yield '<nav class="wheels" aria-label="wheels"><table><thead><tr><th>verdict<th>wheel'
    yield "".join(f'<th class="number">{many}' for _, _, many in _COUNTED) + "<tbody>"
    for number, wheel in enumerate(report.wheels):
        counts = Counter(f.severity for f in wheel.findings)
        cells = "".join(f'<td class="number">{counts[severity]}' for severity, _, _ in _COUNTED)
        yield (
            f'<tr><td><b class="verdict {wheel.verdict}">{wheel.verdict.upper()}</b>'
            f'<td><a href="#wheel-{number}">{safe(wheel.path)}</a>{cells}'
        )
    yield "</table></nav>"


def _wheel(number: int, wheel: WheelReport, packed: Blocks | None, rules: Mapping[str, Rule]) -> str:
    counts = Counter(f.severity for f in wheel.findings)
    told = [
        f"{counts[severity]} {one if counts[severity] == 1 else many}"
        for severity, one, many in _COUNTED
        if counts[severity]
    ]
    about = [
        ("file", wheel.path),
        ("is", " ".join(filter(None, (wheel.name, wheel.version)))),
        ("tags", ", ".join(wheel.tags)),
        ("policies", ", ".join(wheel.policies)),
    ]
    rows = "".join(f"<dt>{label}<dd>{safe(text)}" for label, text in about if text)
    return (
        f'<section class="wheel" id="wheel-{number}">\n'
        f'<header class="{wheel.verdict}"><h2><b class="verdict {wheel.verdict}">{wheel.verdict.upper()}</b> '
        f"<span>{safe(_name(wheel.path))}</span></h2>\n"
        f'<p class="counts">{", ".join(told) or "no findings"}</p><dl>{rows}</dl></header>\n'
        f"{findings(wheel.findings, rules)}\n"
        f"{'<div class=pictures></div>' if packed is not None else ''}</section>"
    )


def _data(number: int, packed: Blocks) -> str:
    return (
        f'<script type="text/plain" id="overview-{number}">{packed.overview}</script>\n'
        f'<script type="text/plain" id="symbols-{number}">{packed.symbols}</script>'
    )
