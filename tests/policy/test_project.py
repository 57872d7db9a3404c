"""The table ``[tool.wheelfix]`` as a value: every key, every error with its path, which override counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelfix.policy.data import data_folder
from wheelfix.policy.project import Project, Wishes, read_project

RULES = ("needed-missing", "rpath-dead")
MANY = ("manylinux_2_17_x86_64", "manylinux2014_x86_64")


def errors(section: object, folder: Path = Path("/nowhere")) -> dict[str, str]:
    _, wrong = read_project(section, folder, "pyproject.toml", RULES)
    assert all(e.file == "pyproject.toml" for e in wrong)
    return {e.key.removeprefix("tool.wheelfix").removeprefix("."): e.message for e in wrong}


def test_every_key_arrives_and_paths_lie_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("schema = 1\n")
    table = {
        "policies": ["manylinux", "own.toml"],
        "with": ["wheels", "../torch.whl"],
        "exclude": ["libcuda.so*"],
        "severity": {"needed-missing": "warning", "rpath-dead": "off"},
    }
    section = {**table, "override": [{"platform": "musllinux_*", **table}]}
    project, wrong = read_project(section, tmp_path, "pyproject.toml", RULES)
    expected = Wishes(
        policies=(str(data_folder() / "manylinux.toml"), str((tmp_path / "own.toml").resolve())),
        with_=(tmp_path / "wheels", tmp_path / "../torch.whl"),
        exclude=("libcuda.so*",),
        severity=(("needed-missing", "warning"), ("rpath-dead", "off")),
    )
    assert (project, wrong) == (Project(expected, (("musllinux_*", expected),)), [])


def test_an_empty_section_asks_for_nothing() -> None:
    assert read_project({}, Path("/nowhere"), "pyproject.toml", RULES) == (Project(), [])


STRINGS, LEVELS = "must be an array of strings", "must be one of error, warning, info, off"


@pytest.mark.parametrize(
    ("section", "key", "message"),
    [
        (1, "", "must be a table: [tool.wheelfix]"),
        ([{}], "", "must be a table: [tool.wheelfix]"),
        ({"policies": "manylinux"}, "policies", STRINGS),
        ({"with": 1}, "with", STRINGS),
        ({"exclude": [""]}, "exclude", STRINGS),
        ({"polices": []}, "polices", "unknown key; did you mean policies?"),
        ({"overide": []}, "overide", "unknown key; did you mean override?"),
        ({"a b": 1}, "'a b'", "unknown key"),
        (
            {"policies": ["manylinx"]},
            "policies[0]",
            "there is no policy or file 'manylinx'; did you mean manylinux?",
        ),
        (
            {"severity": "off"},
            "severity",
            "must be a table of rules and severities: [tool.wheelfix.severity]",
        ),
        (
            {"severity": {"rpath-ded": "off"}},
            "severity.rpath-ded",
            "there is no rule 'rpath-ded'; did you mean rpath-dead?",
        ),
        ({"severity": {"rpath-dead": "loud"}}, "severity.rpath-dead", LEVELS),
        ({"severity": {"rpath-dead": ["off"]}}, "severity.rpath-dead", LEVELS),
        ({"override": {}}, "override", "must be an array of tables: [[tool.wheelfix.override]]"),
        ({"override": [1]}, "override", "must be an array of tables: [[tool.wheelfix.override]]"),
        (
            {"override": [{}]},
            "override[0].platform",
            'is required: a glob over platform tags, like "musllinux_*"',
        ),
        (
            {"override": [{"platform": "*"}, {"platform": 1}]},
            "override[1].platform",
            "must be a string that is not empty",
        ),
        (
            {"override": [{"platform": "*", "platfrom": 1}]},
            "override[0].platfrom",
            "unknown key; did you mean platform?",
        ),
        ({"override": [{"platform": "*", "override": []}]}, "override[0].override", "unknown key"),
        ({"override": [{"platform": "*", "with": [1]}]}, "override[0].with", STRINGS),
        (
            {"override": [{"platform": "*", "severity": {"rpath-dead": 1}}]},
            "override[0].severity.rpath-dead",
            LEVELS,
        ),
    ],
)
def test_an_error_stands_at_its_key_and_says_what_it_takes(section: object, key: str, message: str) -> None:
    assert errors(section) == {key: message}


def test_a_policy_that_is_nowhere_is_told_with_those_that_are_shipped() -> None:
    message = errors({"policies": ["manylinux", "ci/absent.toml"]})["policies[1]"]
    assert message.startswith("there is no policy or file 'ci/absent.toml'; shipped: ")
    assert all(p.stem in message for p in data_folder().glob("*.toml"))


def test_all_errors_of_all_tables_are_told() -> None:
    section = {
        "x": 1,
        "exclude": 1,
        "override": [{"policies": ["a"]}, {"platform": "*", "severity": {"y": 1}}],
    }
    assert list(errors(section)) == [
        "x",
        "exclude",
        "override[0].platform",
        "override[0].policies[0]",
        "override[1].severity.y",
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(key=st.sampled_from(["policies", "with", "exclude", "severity", "override", "platform"]), value=VALUES)
def test_wrong_types_give_errors_and_never_raise(key: str, value: object) -> None:
    for section in (value, {key: value}, {"override": [{key: value}]}):
        errors(section)


def test_an_override_counts_where_it_matches_any_tag_of_the_name() -> None:
    project = Project(Wishes(), (("manylinux2014_*", Wishes(exclude=("a",))),))
    assert project.wishes(MANY).exclude == ("a",)
    assert project.wishes(("musllinux_1_2_x86_64",)).exclude is None
    assert project.wishes(()).exclude is None


def test_case_and_the_whole_tag_count() -> None:
    project = Project(Wishes(), (("Manylinux*", Wishes(exclude=("a",))), ("x86_64", Wishes(exclude=("b",)))))
    assert project.wishes(MANY) == Wishes()


def test_later_overrides_win_lists_are_replaced_even_by_none_and_severities_merge() -> None:
    base = Wishes(("p",), (Path("w"),), ("a", "b"), (("needed-missing", "info"), ("rpath-dead", "info")))
    project = Project(
        base,
        (
            ("*_x86_64", Wishes(exclude=("c",), severity=(("needed-missing", "error"),))),
            ("manylinux*", Wishes(policies=(), exclude=("d",), severity=(("needed-missing", "off"),))),
            ("musllinux*", Wishes(exclude=("e",))),
        ),
    )
    assert project.wishes(MANY) == Wishes(
        (), (Path("w"),), ("d",), (("needed-missing", "off"), ("rpath-dead", "info"))
    )


def test_what_the_command_line_replaces_is_dropped_from_every_table() -> None:
    whole = Wishes(("p",), (Path("w"),), ("a",), (("rpath-dead", "off"),))
    project = Project(whole, (("*", whole),))
    for lists, rest in (
        (["policies"], Wishes(None, (Path("w"),), ("a",), whole.severity)),
        (["with"], Wishes(("p",), None, ("a",), whole.severity)),
        (["exclude"], Wishes(("p",), (Path("w"),), None, whole.severity)),
        (["policies", "with", "exclude"], Wishes(severity=whole.severity)),
    ):
        assert project.without(lists) == Project(rest, (("*", rest),))


def test_with_is_needed_only_where_a_wheel_gets_it() -> None:
    base, first, last = (Wishes(with_=(Path(n),)) for n in ("base", "first", "last"))
    project = Project(base, (("manylinux*", first), ("musllinux*", last)))
    none = Wishes()
    assert project.needed([MANY]) == Project(none, (("manylinux*", first), ("musllinux*", none)))
    assert project.needed([MANY, ()]) == Project(base, (("manylinux*", first), ("musllinux*", none)))
    assert project.needed([("musllinux_1_2_x86_64",)]).overrides[1] == ("musllinux*", last)
    beaten = Project(base, (("manylinux*", first), ("*", last)))
    assert beaten.needed([MANY]) == Project(none, (("manylinux*", none), ("*", last)))
