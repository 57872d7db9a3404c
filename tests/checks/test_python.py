"""abi3-violation on literal facts, and its ground on a real interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wheelfix.checks.python import RULES, check
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import LOOKUP_PLT, STB_WEAK, ElfFacts, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy, Policy
from wheelfix.model.resolution import Edge, Load, Node, Owner, World
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.policy.python_api import interpreter_node

INIT = Symbol("PyInit__ext", section=1, value=1)


def wants(*names: str) -> tuple[Symbol, ...]:
    return tuple(Symbol(n, lookups=LOOKUP_PLT) for n in names)


def judged(
    tag: str,
    files: dict[str, ElfFacts],
    *,
    library: ElfFacts | None = None,
    owner: Owner = "wheel",
    process: Node | None = None,
    more_tags: tuple[str, ...] = (),
) -> list[Finding]:
    """Each file is a root; ``library`` is what every root loads. ``process`` is a real interpreter."""
    platform = PlatformPolicy("manylinux_2_28_x86_64", "x86_64", "glibc", (2, 28), frozenset(), {})
    python, abi, *_ = tag.split("-")
    world = World(
        {}, frozenset(), interpreter=(process or interpreter_node(python, abi),), libc_version=(2, 36)
    )
    nodes = [Node(path, f"/x/{path}", elf) for path, elf in files.items()]
    shared = (Node("pkg/libshared.so", "/x/pkg/libshared.so", library, owner),) if library else ()
    loads = tuple(
        Load(n, (n, *shared), tuple(Edge(n.path, n.path, "libshared.so", "found", s.path) for s in shared))
        for n in nodes
    )
    members = tuple(
        Member(n.path, n.path, content="elf", elf=n.elf) for n in (*nodes, *shared) if n.owner == "wheel"
    )
    wheel = WheelFacts("x.whl", tags=(f"{tag}-manylinux_2_28_x86_64", *more_tags), members=members)
    return list(check(Subject(wheel, (platform,), (Scene(platform, world, loads),), Policy())))


def reasons(findings: list[Finding]) -> list[tuple[str | None, object, object]]:
    assert {f.rule for f in findings} <= {"abi3-violation"}
    assert {f.severity for f in findings} <= {"error"}
    return [(f.member, f.evidence["reason"], f.evidence.get("symbols")) for f in findings]


def ext(*names: str) -> dict[str, ElfFacts]:
    return {"pkg/_ext.abi3.so": ElfFacts(symbols=(INIT, *wants(*names)))}


@pytest.mark.rule("abi3-violation", fires=True)
def test_names_outside_the_stable_abi_are_one_error_for_each_object() -> None:
    assert reasons(judged("cp39-abi3", ext("PyUnicode_New", "_PyDict_GetItem_KnownHash", "PyList_New"))) == [
        ("pkg/_ext.abi3.so", "not-stable", ["PyUnicode_New", "_PyDict_GetItem_KnownHash"])
    ]


def test_names_that_became_stable_after_the_tags_python_are_another_error() -> None:
    assert reasons(judged("cp310-abi3", ext("PyType_GetName", "PyUnicode_New"))) == [
        ("pkg/_ext.abi3.so", "not-stable", ["PyUnicode_New"]),
        ("pkg/_ext.abi3.so", "later", ["PyType_GetName"]),
    ]
    assert judged("cp311-abi3", ext("PyType_GetName")) == []


def test_private_names_that_are_part_of_the_stable_abi_are_right() -> None:
    assert judged("cp38-abi3", ext("_Py_Dealloc", "_PyArg_ParseTuple_SizeT", "_Py_NoneStruct")) == []


@pytest.mark.parametrize(("version", "told"), [((3, 10), True), ((3, 11), False)])
def test_a_name_is_stable_from_the_version_on_that_brought_it(version: tuple[int, int], told: bool) -> None:
    # docs.python.org, "C API: PyType_GetName": part of the stable ABI since 3.11; PyUnicode_AsUTF8AndSize since 3.10.
    names = ("PyUnicode_AsUTF8AndSize", "PyType_GetName")
    found = judged(f"cp{version[0]}{version[1]}-abi3", ext(*names))
    assert [f.evidence["symbols"] for f in found] == ([["PyType_GetName"]] if told else [])
    (both,) = judged("cp39-abi3", ext(*names))
    assert both.symbol == "PyType_GetName"
    assert both.evidence["since"] == {"PyType_GetName": "3.11", "PyUnicode_AsUTF8AndSize": "3.10"}
    assert "only since Python 3.11, and the tag cp39-abi3 promises Python 3.9" in both.message


def test_the_first_three_names_are_told_and_the_number_of_the_others() -> None:
    names = ("PyUnicode_New", "PyUnicode_READY", "_PyA", "_PyB")
    (three,) = judged("cp39-abi3", ext(*names[:3]))
    (four,) = judged("cp39-abi3", ext(*names))
    assert "uses PyUnicode_New, PyUnicode_READY, _PyA, not part" in three.message
    assert "uses PyUnicode_New, PyUnicode_READY, _PyA and 1 more, not part" in four.message
    assert four.symbol == "PyUnicode_New"


@pytest.mark.parametrize("has", [("PyUnicode_New",), ()])
def test_what_one_real_interpreter_has_or_lacks_says_nothing_of_the_others(has: tuple[str, ...]) -> None:
    symbols = tuple(Symbol(n, section=1, value=1) for n in has)
    process = Node("interpreter", "/usr/bin/python3", ElfFacts(symbols=symbols), "interpreter")
    assert reasons(judged("cp39-abi3", ext("PyUnicode_New"), process=process)) == [
        ("pkg/_ext.abi3.so", "not-stable", ["PyUnicode_New"])
    ]


@pytest.mark.rule("abi3-violation", fires=False)
def test_a_wheel_of_one_version_may_use_what_that_version_has() -> None:
    assert judged("cp311-cp311", ext("PyUnicode_New")) == []
    assert judged("py3-none", ext("PyUnicode_New")) == []


def test_a_weak_reference_is_no_demand() -> None:
    weak = Symbol("PyUnicode_New", bind=STB_WEAK, lookups=LOOKUP_PLT)
    assert judged("cp39-abi3", {"pkg/_ext.abi3.so": ElfFacts(symbols=(INIT, weak))}) == []


def test_a_name_that_no_relocation_uses_is_never_looked_up() -> None:
    assert judged("cp39-abi3", {"pkg/_ext.abi3.so": ElfFacts(symbols=(INIT, Symbol("PyUnicode_New")))}) == []


def test_a_name_that_the_wheel_itself_supplies_is_not_the_interpreters() -> None:
    library = ElfFacts(soname="libshared.so", symbols=(Symbol("PyBridge_Make", section=1, value=1),))
    assert judged("cp39-abi3", ext("PyBridge_Make"), library=library) == []
    assert judged("cp39-abi3", ext("PyBridge_Make"), library=library, owner="given") == []


def test_names_that_are_not_the_interpreters_to_give_are_no_matter_of_the_abi() -> None:
    assert judged("cp39-abi3", ext("malloc", "_ZN5boost6python3apiE")) == []


def test_a_helper_library_is_judged_like_a_module() -> None:
    library = ElfFacts(soname="libshared.so", symbols=wants("PyUnicode_New"))
    assert reasons(judged("cp39-abi3", ext("PyList_New"), library=library)) == [
        ("pkg/libshared.so", "not-stable", ["PyUnicode_New"])
    ]
    assert judged("cp39-abi3", ext("PyList_New"), library=library, owner="given") == []


@pytest.mark.parametrize(
    "suffix",
    ["cpython-311-x86_64-linux-gnu", "cpython-37m-x86_64-linux-gnu", "cpython-313t-x86_64-linux-gnu", "pypy310-pp73-x86_64-linux-gnu"],
)  # fmt: skip
def test_a_module_named_for_one_python_is_found_by_no_other(suffix: str) -> None:
    (finding,) = judged(
        "cp37-abi3", {f"pkg/_ext.{suffix}.so": ElfFacts(symbols=(INIT, *wants("PyUnicode_New")))}
    )
    assert (finding.rule, finding.severity, finding.member) == (
        "abi3-violation",
        "error",
        f"pkg/_ext.{suffix}.so",
    )
    assert finding.evidence["reason"] == "file-name"
    assert finding.evidence["suffix"] == f".{suffix}.so"
    assert "Name the module _ext.abi3.so," in finding.remedy


@pytest.mark.parametrize("name", ["_ext.so", "_ext.abi3.so"])
def test_names_that_every_python_looks_for_are_right(name: str) -> None:
    assert judged("cp37-abi3", {f"pkg/{name}": ElfFacts(symbols=(INIT,))}) == []


def test_a_faster_copy_for_one_python_beside_the_general_one_is_right() -> None:
    one = ElfFacts(symbols=(INIT, *wants("PyUnicode_New")))
    for general in ("_ext.so", "_ext.abi3.so", "_ext.abi3t.so"):
        files = {"pkg/_ext.cpython-311-x86_64-linux-gnu.so": one, f"pkg/{general}": ElfFacts(symbols=(INIT,))}
        assert judged("cp37-abi3", files) == []


def test_a_module_named_for_one_python_does_not_spare_the_others() -> None:
    one = ElfFacts(symbols=(INIT, *wants("PyUnicode_New")))
    found = judged("cp37-abi3", {"pkg/_a.cpython-311-x86_64-linux-gnu.so": one, "pkg/_b.abi3.so": one})
    assert [(f.member, f.evidence["reason"]) for f in found] == [
        ("pkg/_a.cpython-311-x86_64-linux-gnu.so", "file-name"),
        ("pkg/_b.abi3.so", "not-stable"),
    ]


def test_a_library_with_such_a_name_is_no_module() -> None:
    assert judged("cp37-abi3", {"pkg/libx.cpython-311-x86_64-linux-gnu.so": ElfFacts()}) == []


def test_the_oldest_of_several_tags_counts() -> None:
    more = ("cp310-abi3-manylinux_2_28_x86_64", "cp39-abi3-manylinux_2_28_x86_64", "cp36-cp36m-linux_x86_64")
    (finding,) = judged("cp311-abi3", ext("PyType_GetName"), more_tags=more)
    assert finding.evidence["tag"] == "cp39-abi3"
    assert judged("cp311-abi3", ext("PyType_GetName"), more_tags=("py3-abi3-linux_x86_64",)) == []
    assert reasons(judged("cp315-abi3t", ext("PyUnicode_New")))


def test_the_interpreter_does_not_look_for_the_name_of_another_version(tmp_path: Path) -> None:
    """The ground of the file-name reason: importlib.machinery.EXTENSION_SUFFIXES of the running Python."""
    (tmp_path / "_ext.c").write_text(
        "#include <Python.h>\n"
        'static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "_ext", 0, -1, 0};\n'
        "PyMODINIT_FUNC PyInit__ext(void) { return PyModule_Create(&d); }\n"
    )
    import sysconfig

    include = sysconfig.get_paths()["include"]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", f"-I{include}", "_ext.c", "-o", "x.so"], check=True, cwd=tmp_path
    )

    def imported(name: str) -> int:
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_bytes((tmp_path / "x.so").read_bytes())
        return subprocess.run(
            [sys.executable, "-c", "import _ext"], cwd=folder, capture_output=True, check=False
        ).returncode

    assert imported("_ext.abi3.so") == 0
    assert imported("_ext.so") == 0
    assert imported("_ext.cpython-399-x86_64-linux-gnu.so") != 0


def test_the_rule_says_what_why_and_how() -> None:
    (rule,) = RULES
    assert rule.group == "platform"
    for text in (rule.what, rule.why, rule.fix, rule.example, rule.remedy):
        assert text.endswith((".", "`")) or "```" in text
