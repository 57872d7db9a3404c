"""The HTML report in a real browser: it opens without a complaint, and what it shows can be filtered, searched and moved."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.report.browser import Tab, browser
from tests.report.objects import CORES, GROUPS, MODULES, compiled, many
from tests.test_audit import wheel


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def make(*wheels: Path) -> Path:
        target = tmp_path_factory.mktemp("page") / "report.html"
        command = [
            sys.executable,
            "-m",
            "wheelfix",
            "verify",
            "-q",
            "--report",
            f"html={target}",
            *map(str, wheels),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 3), done.stderr
        return target

    return make


@pytest.fixture(scope="module")
def large(page: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(many(tmp_path_factory.mktemp("many")))


@pytest.fixture(scope="module")
def samples(page: Callable[..., Path], sample_wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    broken = tmp_path_factory.mktemp("broken") / "broken-1-py3-none-any.whl"
    broken.write_bytes(b"PK")
    return page(*sorted(sample_wheels.glob("*.whl")), broken)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_a_complaint_in_both_schemes(
    tab: Tab, large: Path, samples: Path, scheme: str
) -> None:
    for page in (large, samples):
        tab.open(page, scheme)
        assert tab.complaints == []
        ground = tab.run("return getComputedStyle(document.body).backgroundColor")
        red, green, blue = (int(n) for n in ground.removeprefix("rgb(").removesuffix(")").split(","))
        assert (red + green + blue > 384) == (scheme == "light")


def test_every_wheel_of_several_can_be_shown(tab: Tab, samples: Path) -> None:
    tab.open(samples)
    links = tab.all("nav.wheels a")
    for number, link in enumerate(links):
        link.click()
        tab.until(f"!document.getElementById('wheel-{number}').hidden")
        assert [s.is_displayed() for s in tab.all("section.wheel")] == [
            n == number for n in range(len(links))
        ]
        if number < len(links) - 1:
            tab.until(f"document.querySelector('#wheel-{number} .table[data-ready]')")
            assert tab.one("svg.graph").is_displayed()
    assert tab.count("#wheel-6 svg") == 0  # unreadable: there is nothing to draw
    assert tab.complaints == []


def test_findings_are_filtered_by_any_word_of_theirs(tab: Tab, large: Path) -> None:
    tab.open(large)
    shown = "article.finding:not([hidden])"
    everything = tab.count(shown)
    tab.one(".find-findings").send_keys("_module134")
    tab.until("document.querySelector('.findings output').textContent")
    found = [e.get_attribute("textContent") or "" for e in tab.all(shown)]
    assert 0 < len(found) < everything
    assert all("_module134" in text for text in found)
    assert any("libgroup044.so" in text for text in found)


def test_the_graph_has_every_object_and_the_broken_edges(tab: Tab, large: Path) -> None:
    tab.open(large)
    assert tab.count("g.stage g.node.wheel") == MODULES + GROUPS + CORES
    assert tab.count("g.stage g.node.missing") == 1
    # Those whose number leaves 44 over 45: 44, 89, 134, 179 and 224.
    assert tab.count("g.stage path.edge.missing") == 5
    assert tab.count("g.stage path.edge.runpath") == MODULES - 5 + GROUPS


def test_boxes_do_not_overlap_and_lie_inside_the_picture(tab: Tab, large: Path, samples: Path) -> None:
    for page in (large, samples):
        tab.open(page, part="#wheel-0")
        boxes = tab.run(
            "return [...document.querySelectorAll('#wheel-0 g.stage g.node > rect:not(.mark)')]"
            ".map((b) => { const r = b.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })"
        )
        frame = tab.one("svg.graph").rect
        for left, top, right, bottom in boxes:
            assert frame["x"] <= left < right <= frame["x"] + frame["width"]
            assert bottom - top < frame["height"]
        ordered = sorted(boxes)
        for index, a in enumerate(ordered):
            for b in ordered[index + 1 :]:
                if b[0] >= a[2]:
                    break
                assert b[1] >= a[3] or b[3] <= a[1], (a, b)


def test_labels_can_be_read_at_300_objects_and_stay_in_their_boxes(tab: Tab, large: Path) -> None:
    tab.open(large)
    labels = tab.run(
        "return [...document.querySelectorAll('g.stage g.node')].map((n) => { const t = n.querySelector('text'), "
        "r = t.getBoundingClientRect(), b = n.querySelector('rect').getBoundingClientRect(); "
        "return [t.textContent, r.height, r.right <= b.right + 1]; })"
    )
    assert len(labels) > 300
    assert all(height >= 7 and inside for _, height, inside in labels)
    assert "_module000.so" in {text for text, _, _ in labels}


def test_the_graph_is_filtered_by_name(tab: Tab, large: Path) -> None:
    tab.open(large)
    field = tab.one(".find-objects")
    field.send_keys("libcore0003")
    tab.until("document.querySelector('.drawn output').textContent === '1 of 303'")
    assert tab.count("g.node.near") == 1
    field.send_keys(Keys.ENTER)
    told = tab.one(".detail").text
    assert "big/libs/libcore0003.so" in told
    # Of 44 libraries those whose number leaves 3 over 6: 3, 9, ... 39.
    assert "Needed by (7)" in told
    assert tab.count("g.node.near") == 1 + 7
    faint = float(
        tab.run("return getComputedStyle(document.querySelector('g.stage g.node:not(.near)')).opacity")
    )
    assert faint < 0.5


def test_pointing_at_an_object_shows_its_neighbours_and_a_click_the_reasons(tab: Tab, large: Path) -> None:
    tab.open(large)
    box = tab.one("g.stage g.node.missing")
    tab.run("document.querySelector('svg.graph').scrollIntoView({block: 'center'})")
    ActionChains(tab.driver).move_to_element(box).perform()
    assert tab.count("g.node.near") == 1 + 5
    ActionChains(tab.driver).click(box).perform()
    assert "missing; looked in" in tab.one(".detail").text
    found = tab.run(
        "return [...document.querySelectorAll('.detail button')].find((b) => b.textContent === '5 findings')"
    )
    assert found is not None
    # From a neighbour to its own neighbours.
    tab.one(".detail li button.link").click()
    assert "big/part" in tab.one(".detail h4.path").text
    tab.one("svg.graph").send_keys(Keys.ESCAPE)
    assert tab.count("g.node.near") == 0


def test_the_graph_zooms_and_moves(tab: Tab, large: Path) -> None:
    tab.open(large)

    def scale() -> float:
        return float(tab.run("return document.querySelector('svg.graph').dataset.scale"))

    whole = scale()
    tab.one("button.zoom-in").click()
    assert scale() > whole
    tab.one("button.full").click()
    assert scale() == 1
    svg = tab.one("svg.graph")
    tab.run("document.querySelector('svg.graph').scrollIntoView({block: 'center'})")
    before = tab.run("return document.querySelector('g.stage').getAttribute('transform')")
    ActionChains(tab.driver).drag_and_drop_by_offset(svg, 60, 40).perform()
    assert tab.run("return document.querySelector('g.stage').getAttribute('transform')") != before
    turn = "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -200, bubbles: true, cancelable: true, ctrlKey: arguments[1]}))"
    tab.run("document.activeElement.blur()")
    tab.driver.execute_script(turn, svg, False)
    assert scale() == 1  # the page must stay scrollable past the picture
    tab.driver.execute_script(turn, svg, True)
    assert scale() > 1
    tab.one("button.fit").click()
    assert scale() == whole


def test_symbols_are_searched_and_narrowed(tab: Tab, large: Path) -> None:
    tab.open(large)
    tab.one(".find-symbols").send_keys("core")
    tab.until("document.querySelector('.table output').textContent.startsWith('44 of')")
    cells = [
        [c.text for c in r.find_elements("css selector", "td")] for r in tab.all("table.symbols tbody tr")
    ]
    assert {row[0] for row in cells} == {"core"}
    assert {row[3] for row in cells} == {f"big/libs/libcore0{n:03}.so" for n in range(CORES)}
    Select(tab.one("select.of-provider")).select_by_value("big/libs/libcore0003.so")
    tab.until("document.querySelector('.table output').textContent.startsWith('7 of')")
    Select(tab.one("select.of-status")).select_by_value("bound")
    assert tab.count("table.symbols tbody tr") == 7


def test_a_cxx_name_finds_the_mangled_symbol(
    tab: Tab, page: Callable[..., Path], sample_wheels: Path
) -> None:
    tab.open(page(next(sample_wheels.glob("sample_dynamic_runtime-*"))))
    everything = tab.one(".table output").text
    tab.one(".find-symbols").send_keys("std::")
    tab.until(f"document.querySelector('.table output').textContent !== {json.dumps(everything)}")
    names = tab.run(
        "return [...document.querySelectorAll('table.symbols td:first-child code')].map((c) => c.textContent)"
    )
    assert names
    assert all(name.startswith("_Z") and "St" in name for name in names)


def test_the_treemap_opens_a_folder_and_leads_back(tab: Tab, large: Path) -> None:
    tab.open(large)
    tiles = tab.count(".treemap g.file")
    assert tiles >= MODULES + GROUPS + CORES
    # A folder is opened by the strip above its files.
    tab.run(
        "[...document.querySelectorAll('.treemap g.folder')].find((g) => g.querySelector('title').textContent.startsWith('big/libs'))"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert tab.count(".treemap g.file") == GROUPS + CORES
    assert "50 files" in tab.one(".way-back").text
    tab.one(".way-back button.link").click()
    assert tab.count(".treemap g.file") == tiles
    assert tab.complaints == []


def test_a_wheel_for_two_machines_has_a_picture_and_a_table_for_each(
    tab: Tab, page: Callable[..., Path], tmp_path: Path
) -> None:
    module = compiled(tmp_path)["module"]
    tags = "cp311-cp311-manylinux_2_17_x86_64.musllinux_1_2_x86_64"
    tab.open(page(wheel(tmp_path, "two", {"two/_module.so": module}, tag=tags)))
    tab.until("document.querySelectorAll('.table .tabs button').length === 2")
    glibc, musl = tab.all(".part .drawn")
    assert (glibc.is_displayed(), musl.is_displayed()) == (True, False)
    tab.all(".part .tabs button")[1].click()
    assert (glibc.is_displayed(), musl.is_displayed()) == (False, True)
    assert float(tab.one("svg.graph").get_attribute("data-scale") or 0) > 0
    assert tab.complaints == []


def test_names_out_of_a_wheel_are_text(tab: Tab, page: Callable[..., Path], tmp_path: Path) -> None:
    module = compiled(tmp_path)["module"]
    bad = "\"'><img src=x onerror=document.title=1><script>document.title=2</script>\u202e.so"
    title = page(wheel(tmp_path, "bad", {bad: module, f"bad/{bad}.py": b"x"}))
    tab.open(title)
    assert tab.count("img") == 0
    assert tab.count("script:not([type])") == 1
    assert tab.run("return document.title").startswith("FAIL bad-1.0-")
    assert tab.complaints == []
    # It goes by no other name either: a mark that turns the direction of writing is told as an escape.
    paths = tab.run("return [...document.querySelectorAll('g.node > title')].map((t) => t.textContent)")
    assert bad.replace("\u202e", "\\u202e") in paths


def test_buttons_lead_to_the_parts_of_the_page(tab: Tab, large: Path) -> None:
    tab.open(large)
    buttons = tab.all("nav.parts button")
    assert [b.text for b in buttons] == ["Findings", "Dependencies", "Symbols", "Sizes"]
    buttons[2].click()
    top = tab.run("return document.querySelector('.find-symbols').getBoundingClientRect().top")
    assert 0 < top < 200


def test_an_object_leads_to_its_findings(tab: Tab, large: Path) -> None:
    tab.open(large)
    tab.one(".find-objects").send_keys("libgroup044")
    tab.until("document.querySelector('.drawn output').textContent")
    tab.one(".find-objects").send_keys(Keys.ENTER)
    next(b for b in tab.all(".detail button") if b.text == "5 findings").click()
    tab.until("document.querySelector('.findings output').textContent.startsWith('5 of')")
    assert 0 <= tab.run("return document.querySelector('.findings').getBoundingClientRect().top") < 100


def test_a_chosen_object_is_brought_into_sight(tab: Tab, large: Path) -> None:
    tab.open(large)
    for _ in range(5):
        tab.one("button.zoom-in").click()
    for name in ("_module000", "libcore0003"):
        field = tab.one(".find-objects")
        field.clear()
        field.send_keys(name)
        tab.until("document.querySelectorAll('g.stage g.node.near').length === 1")
        field.send_keys(Keys.ENTER)
        frame = tab.one("svg.graph").rect
        left, right, top, bottom = tab.run(
            "const r = document.querySelector('g.node.pinned > rect').getBoundingClientRect(), y = scrollY; "
            "return [r.left, r.right, r.top + y, r.bottom + y]"
        )
        assert frame["x"] <= left < right <= frame["x"] + frame["width"]
        assert frame["y"] <= top < bottom <= frame["y"] + frame["height"]
