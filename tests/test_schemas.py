"""What each command prints for programs, held against docs/schemas, and those against the pages that describe it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.repair.test_show import PLAN
from wheelfix.model.elf import DeviceCode, ElfFacts
from wheelfix.model.finding import Finding, Report, WheelReport
from wheelfix.model.plan import Blocked, Plan
from wheelfix.model.resolution import Binding
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.repair.show import as_json as plan_json
from wheelfix.report import json as report_json
from wheelfix.report.show import Object, Shown
from wheelfix.report.show import as_json as show_json
from wheelfix.report.symbols import as_json as symbols_json

Run = Callable[..., tuple[int, str, str]]
DOCS = Path(__file__).resolve().parent.parent / "docs"
NAMES = ("report-1", "symbols-1", "tree-1", "show-1", "plan-1", "diff-1")
TAG = "cp311-cp311-manylinux_2_17_x86_64"

# A module that loads its own library, a symbol of libc, a weak one that nobody has and one without a relocation.
GOOD = """
int helper(void); void *malloc(unsigned long); extern int maybe(void) __attribute__((weak));
int PyInit_good(void) { return helper() + (malloc(1) != 0) + (maybe ? maybe() : 0); }
"""
# Modules that ask for a library that nobody has, and for a symbol that nobody defines.
BAD = "int gone(void); int PyInit_bad(void) { return gone(); }\n"
LOST = "int nowhere(void); int PyInit_lost(void) { return nowhere(); }\n"


def schema(name: str) -> dict[str, Any]:
    return dict(json.loads((DOCS / "schemas" / f"{name}.json").read_text("utf-8")))


def closed(part: Any) -> Any:
    """The schema with no additions allowed: wheelfix itself prints nothing that its schema does not describe."""
    if isinstance(part, list):
        return [closed(p) for p in part]
    if not isinstance(part, dict):
        return part
    shut = {key: closed(value) for key, value in part.items()}
    return (
        shut | {"unevaluatedProperties": False}
        if part.get("type") == "object" and "properties" in part
        else shut
    )


def hold(name: str, said: str | Mapping[str, Any], *, additions: bool = False) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(said) if isinstance(said, str) else dict(said)
    wanted = schema(name) if additions else closed(schema(name))
    assert [f"{e.json_path}: {e.message}" for e in Draft202012Validator(wanted).iter_errors(answer)] == []
    return answer


def pack(folder: Path, name: str, members: Mapping[str, bytes]) -> Path:
    info = f"{name}-1.0.dist-info"
    files = dict(members)
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()
    )
    rows = [f"{info}/RECORD,,\n"]
    for member, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{member},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join(rows).encode()
    path = folder / f"{name}-1.0-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in files.items():
            archive.writestr(member, data)
    return path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A wheel that loads, one that does not, and a file that is no wheel."""
    folder = tmp_path_factory.mktemp("wheels")

    def compile(output: str, source: str, *flags: str) -> bytes:
        (folder / "source.c").write_text(source)
        command = ["gcc", "-shared", "-fPIC", "-w", "source.c", "-o", output, *flags]
        subprocess.run(command, cwd=folder, check=True)
        return (folder / output).read_bytes()

    helper = compile("libhelper.so", "int helper(void) { return 1; }\n", "-Wl,-soname,libhelper.so")
    good = compile("good.so", GOOD, "libhelper.so", "-Wl,-rpath,$ORIGIN")
    compile("libgone.so", "int gone(void) { return 1; }\n", "-Wl,-soname,libgone.so")
    bad = compile("bad.so", BAD, "libgone.so", "-Wl,-rpath,/build/lib")
    lost = compile("lost.so", LOST)
    broken = folder / f"broken-1.0-{TAG}.whl"
    broken.write_bytes(b"no archive")
    return (
        pack(folder, "good", {"good/good.so": good, "good/libhelper.so": helper}),
        pack(folder, "bad", {"bad/bad.so": bad, "bad/lost.so": lost}),
        broken,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_allows_additions(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["title"] == f"wheelfix/{name.replace('-', '/')}"
    assert "additionalProperties" not in json.dumps(schema(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_schema_is_in_the_page_that_describes_it(name: str) -> None:
    page = (DOCS / ("repair.md" if name == "plan-1" else "json.md")).read_text("utf-8")
    section = page.partition(f"wheelfix/{name.replace('-', '/')}")[2]
    told = set(re.findall(r"[`\"](\w+)[`\"]", section)) | {"name", "version"}

    def fields(part: Any) -> set[str]:
        if isinstance(part, list):
            return set().union(*map(fields, part))
        if not isinstance(part, dict):
            return set()
        own = set(part.get("properties", ()))
        return own.union(*(fields(v) for v in part.values()))

    assert fields(schema(name)) - told == set()


def test_verify(wheelfix: Run, wheels: tuple[Path, ...]) -> None:
    said = hold("report-1", wheelfix("verify", "--format", "json", *wheels)[1])
    assert [w["verdict"] for w in said["wheels"]] == ["pass", "fail", "unreadable"]


def test_show(wheelfix: Run, wheels: tuple[Path, ...]) -> None:
    said = hold("show-1", wheelfix("show", "--json", "--cuda", *wheels)[1])
    assert [w["error"] is None for w in said["wheels"]] == [True, True, False]


@pytest.mark.parametrize(("which", "statuses"), [(0, {"found", "host"}), (1, {"missing"})])
def test_tree(wheelfix: Run, wheels: tuple[Path, ...], which: int, statuses: set[str]) -> None:
    said = hold("tree-1", wheelfix("tree", "--json", wheels[which])[1])
    assert statuses <= {e["status"] for e in said["edges"]}


@pytest.mark.parametrize(
    ("which", "statuses"), [(0, {"bound", "weak-unbound"}), (1, {"missing", "undecided"})]
)
def test_symbols(wheelfix: Run, wheels: tuple[Path, ...], which: int, statuses: set[str]) -> None:
    said = hold("symbols-1", wheelfix("symbols", "--json", wheels[which])[1])
    assert statuses <= {b["status"] for b in said["bindings"]}


def test_diff(wheelfix: Run, wheels: tuple[Path, ...]) -> None:
    said = hold("diff-1", wheelfix("diff", "--json", *wheels[:2])[1])
    assert said["added"] == ["bad/bad.so", "bad/lost.so"]
    assert hold("diff-1", wheelfix("diff", "--json", wheels[0], wheels[0])[1])["same"] == 2


def test_repair(wheelfix: Run, wheels: tuple[Path, ...]) -> None:
    said = hold("plan-1", wheelfix("repair", "--dry-run", "--json", *wheels)[1])
    assert [w["status"] for w in said["wheels"]] == ["planned", "blocked", "blocked"]


def test_a_plan_with_every_action() -> None:
    said = hold(
        "plan-1",
        plan_json([("w.whl", PLAN), ("x.whl", Plan("x", "x", "p")), ("y.whl", Blocked("y", ("no",)))]),
    )
    listed = re.findall(
        r"^\| `([a-z-]+)` \|", (DOCS / "repair.md").read_text("utf-8").partition("| action |")[2], re.M
    )
    assert {a["action"] for a in said["wheels"][0]["actions"]} == set(listed)


@pytest.mark.parametrize("kind", ["cubin", "ptx", "lto", "tile", "other", "hip"])
def test_device_code(kind: Any) -> None:
    facts = ElfFacts(device_code=(DeviceCode(kind, "sm_90a", 2, 100, True),))
    member = Member("w/_e.so", "w/_e.so", content="elf", elf=facts)
    shown = Shown(
        "w.whl", WheelFacts(filename="w.whl", members=(member,)), (Object(member, facts, (), "none"),)
    )
    hold("show-1", show_json([shown], cuda=True))


def test_every_status_of_a_binding() -> None:
    rows = [
        Binding("r", "o", "s", None, False, "bound", "interpreter", ("libx.so",), "host:libc.so.6"),
        *(
            Binding("r", "o", "s", "V_1", True, s)
            for s in ("missing", "undecided", "weak-unbound", "unreferenced")
        ),
    ]
    hold("symbols-1", symbols_json([("manylinux_2_28_x86_64", b) for b in rows]))


def _wheel(verdict: Any, severity: Any) -> dict[str, Any]:
    finding = Finding("needed-missing", severity, "m")
    return dict(
        json.loads(report_json.render(Report((WheelReport("w", "w", "1", (), (), verdict, (finding,)),))))
    )


@pytest.mark.parametrize(
    "lie",
    [
        _wheel("pass", "error"),
        _wheel("fail", "warning"),
        _wheel("unreadable", "error"),
        _wheel("ok", "error"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(lie: dict[str, Any]) -> None:
    assert not Draft202012Validator(schema("report-1")).is_valid(lie)


def test_an_addition_is_no_break() -> None:
    said = _wheel("fail", "error")
    said["wheels"][0]["findings"][0]["new"] = 1
    hold("report-1", said, additions=True)
    assert not Draft202012Validator(closed(schema("report-1"))).is_valid(said)
