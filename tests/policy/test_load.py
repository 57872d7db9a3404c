"""The policy language: every key, every error with the path of its key, and what overrides what."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelfix.model.policy import Cuda, Policy, Size
from wheelfix.policy.load import PolicyErrors, load_policies, shipped_policies
from wheelfix.policy.schema import SECTIONS

HEAD = 'schema = 1\nname = "p"\n'


def loaded(folder: Path, text: str, *, rules: tuple[str, ...] = ()) -> Policy:
    path = folder / "p.toml"
    path.write_text(text)
    return load_policies([str(path)], known_rules=rules)


def errors(folder: Path, text: str, *, rules: tuple[str, ...] = ()) -> dict[str, str]:
    with pytest.raises(PolicyErrors) as caught:
        loaded(folder, text, rules=rules)
    return {e.key: e.message for e in caught.value.errors}


WHOLE = (
    HEAD
    + """
[platform]
tag = "manylinux_2_28"
[[cxx-runtime]]
objects = ["a/**"]
linkage = "static"
libgcc = "static"
exports = "forbid"
[[require-file]]
path = "a"
[[require-needed]]
object = "o"
library = "l"
[[deny]]
object = "o"
library = "l"
reach = "direct"
[[import]]
object = "o"
symbol = "s"
from = "f"
[[export]]
object = "o"
symbol = "s"
[[sole-definer]]
object = "o"
symbol = "s"
[[registration]]
object = "o"
string = "x"
[[provider]]
library = "l"
distribution = "d"
path = "p"
loads = "by-import"
versions = ">=12,<13"
[[rpath]]
objects = ["o"]
required = ["$ORIGIN"]
allowed = ["$ORIGIN"]
[cuda]
architectures = ["sm_80", "sm_90a"]
ptx = "newest"
[size]
wheel-max = "1.5 MB"
member-max = 7
[[waive]]
rule = "r"
member = "m"
library = "l"
symbol = "s"
reason = "why"
until = 2027-06-30
[severity]
r = "off"
"""
)


def test_every_key_arrives_with_the_name_of_its_entry(tmp_path: Path) -> None:
    policy = loaded(tmp_path, WHOLE)
    assert (policy.names, policy.tag, policy.tag_key) == (("p",), "manylinux_2_28", "p:platform.tag")
    (runtime,) = policy.cxx_runtime
    assert (runtime.key, runtime.objects, runtime.linkage) == ("p:cxx-runtime[0]", ("a/**",), "static")
    assert (runtime.libgcc, runtime.exports) == ("static", "forbid")
    assert policy.require_files[0].path == "a"
    assert policy.require_needed[0].library == "l"
    assert (policy.deny[0].key, policy.deny[0].reach) == ("p:deny[0]", "direct")
    assert policy.imports[0].provider == "f"
    assert policy.exports[0].symbol == policy.sole_definers[0].symbol == "s"
    assert policy.registrations[0].string == "x"
    assert policy.providers[0].loads == "by-import"
    assert policy.providers[0].versions == ">=12,<13"
    assert policy.rpaths[0].allowed == policy.rpaths[0].required == ("$ORIGIN",)
    assert policy.cuda == Cuda("p:cuda", ("sm_80", "sm_90a"), "newest")
    assert policy.size == Size("p:size", 1_500_000, 7)
    assert policy.waivers[0].until == datetime.date(2027, 6, 30)
    assert policy.severities == {"r": "off"}


def test_one_table_is_read_as_one_runtime_entry(tmp_path: Path) -> None:
    policy = loaded(tmp_path, HEAD + '[cxx-runtime]\nlinkage = "host"\n')
    assert [r.linkage for r in policy.cxx_runtime] == ["host"]


PROVIDER = '[[provider]]\nlibrary = "l"\ndistribution = "d"\npath = "p"\n'


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ('name = "p"\n', "schema", "required"),
        ("schema = 2\n", "schema", "must be 1"),
        ("schema = true\n", "schema", "must be 1"),
        ("schema = 1\nname = 3\n", "name", "string"),
        (HEAD + "denny = 1\n", "denny", "did you mean deny?"),
        (HEAD + "deny = 1\n", "deny", "array of tables"),
        (HEAD + "deny = [1]\n", "deny[0]", "must be a table"),
        (HEAD + "[[deny]]\n", "deny[0].object", "required"),
        (HEAD + '[[deny]]\nobject = "o"\nlibrary = ""\n', "deny[0].library", "string"),
        (HEAD + '[[deny]]\nobject = "o"\nlibrary = "l"\nreach = "x"\n', "deny[0].reach", "closure, direct"),
        (
            HEAD + '[[deny]]\nobject = "o"\nlibrary = "l"\nreech = "x"\n',
            "deny[0].reech",
            "did you mean reach?",
        ),
        (HEAD + '[[cxx-runtime]]\nobjects = "x"\n', "cxx-runtime[0].objects", "array of strings"),
        (HEAD + PROVIDER + 'versions = "12"\n', "provider[0].versions", ">=12,<13"),
        (HEAD + PROVIDER + 'versions = ""\n', "provider[0].versions", ">=12,<13"),
        (HEAD + PROVIDER + "versions = 12\n", "provider[0].versions", ">=12,<13"),
        (HEAD + '[platform]\ntag = "manylinux_2_28_x86_64"\n', "platform.tag", "without architecture"),
        (HEAD + "platform = 1\n", "platform", "must be a table"),
        (HEAD + '[size]\nwheel-max = "1 XB"\n', "size.wheel-max", "100 MB"),
        (HEAD + "[size]\nwheel-max = -1\n", "size.wheel-max", "bytes"),
        (HEAD + '[cuda]\narchitectures = ["8.0"]\n', "cuda.architectures", "sm_90"),
        (HEAD + '[[waive]]\nrule = "needed-missing"\n', "waive[0].reason", "required"),
        (HEAD + '[[waive]]\nrule = "r"\nreason = "w"\nuntil = "2027"\n', "waive[0].until", "without quotes"),
        (
            HEAD + '[[waive]]\nrule = "needed-missin"\nreason = "w"\n',
            "waive[0].rule",
            "did you mean needed-missing?",
        ),
        (HEAD + '[severity]\nneeded-missin = "error"\n', "severity.needed-missin", "did you mean"),
        (
            HEAD + '[severity]\nneeded-missing = "fatal"\n',
            "severity.needed-missing",
            "error, warning, info, off",
        ),
        (HEAD + "severity = 1\n", "severity", "must be a table"),
        (HEAD + 'extends = "x"\n', "extends", "array of strings"),
        (HEAD + 'extends = ["nope"]\n', "extends", "no policy or file 'nope'"),
        (HEAD + 'extends = ["p.toml"]\n', "extends", "circle"),
        ("a = \n", "", "line 1"),
    ],
)
def test_each_error_names_its_key_and_what_is_right(tmp_path: Path, text: str, key: str, words: str) -> None:
    found = errors(tmp_path, text, rules=("needed-missing", "r"))
    assert key in found
    assert words in found[key]


def test_all_errors_of_a_file_come_together(tmp_path: Path) -> None:
    text = 'schema = 2\nx = 1\n[[deny]]\nobject = 1\n[[export]]\n[severity]\nr = "x"\n'
    assert set(errors(tmp_path, text)) == {
        "schema", "x", "deny[0].object", "deny[0].library", "export[0].object", "export[0].symbol", "severity.r",
    }  # fmt: skip


def test_later_files_add_entries_and_override_values(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        'schema = 1\nname = "base"\n[platform]\ntag = "manylinux_2_17"\n[[require-file]]\npath = "a"\n'
        '[cuda]\narchitectures = ["sm_80"]\nptx = "newest"\n[severity]\nr = "off"\nq = "info"\n'
    )
    policy = loaded(
        tmp_path,
        HEAD + 'extends = ["base.toml"]\n[platform]\ntag = "manylinux_2_28"\n[[require-file]]\npath = "b"\n'
        '[cuda]\narchitectures = ["sm_90"]\n[severity]\nr = "error"\n',
    )
    assert policy.names == ("base", "p")
    assert (policy.tag, policy.tag_key) == ("manylinux_2_28", "p:platform.tag")
    assert [f.key for f in policy.require_files] == ["base:require-file[0]", "p:require-file[0]"]
    assert policy.cuda == Cuda("p:cuda", ("sm_90",), "newest")
    assert policy.severities == {"r": "error", "q": "info"}


def test_a_policy_that_two_others_extend_counts_once(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('schema = 1\nname = "base"\n[[require-file]]\npath = "a"\n')
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(f'schema = 1\nname = "{name}"\nextends = ["base.toml"]\n')
    policy = load_policies([str(tmp_path / "one.toml"), str(tmp_path / "two.toml")])
    assert len(policy.require_files) == 1
    assert policy.names == ("base", "one", "two")


def test_every_shipped_policy_is_valid() -> None:
    from wheelfix.checks import RULES

    for name in shipped_policies():
        assert name in load_policies([name], known_rules=RULES).names


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a" * (2 << 20), b"a=" + b"[" * 100_000, b"a=" + b"9" * 5000])
def test_files_that_are_no_policy_are_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(data)
    with pytest.raises(PolicyErrors):
        load_policies([str(path)])


VALUES = st.recursive(
    st.one_of(st.integers(-5, 5), st.text(max_size=5), st.booleans(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc-", min_size=1), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(section=st.sampled_from([*SECTIONS, "extends", "severity", "name", "schema"]), value=VALUES)
def test_wrong_types_give_errors_and_never_raise(section: str, value: object) -> None:
    from wheelfix.policy.load import _policy, _Reading

    reading = _Reading((), 1 << 20)
    policy = _policy(reading, {"schema": 1, section: value}, "f.toml", "f")
    assert isinstance(policy, Policy)
    assert all(e.file == "f.toml" for e in reading.errors)
