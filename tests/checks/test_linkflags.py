"""How linker flags are written for the build systems, by the rules of each for "$" and for lists."""

from __future__ import annotations

import pytest

from wheelfix.checks.linkflags import link_flags, search_path


def block(text: str, number: int) -> str:
    return text.split("\n\n")[number]


@pytest.mark.parametrize(
    ("flag", "argument"),
    [
        ("-Wl,-z,text", "-Wl,-z,text"),
        ("-Wl,-rpath,$ORIGIN", '"-Wl,-rpath,$ORIGIN"'),
        ("-Wl,a;b", '"-Wl,a;b"'),  # without the quotes ";" parts two arguments
    ],
)
def test_cmake_gets_quotes_around_what_it_would_take_apart(flag: str, argument: str) -> None:
    assert block(link_flags(flag), 0) == f"```cmake\ntarget_link_options(_ext PRIVATE {argument})\n```"


def test_setuptools_and_meson_get_lists_of_flags() -> None:
    text = link_flags("-Wl,-z,text", "-Wl,-z,now")
    assert "extra_link_args=['-Wl,-z,text', '-Wl,-z,now'])" in block(text, 1)
    assert "link_args: ['-Wl,-z,text', '-Wl,-z,now'])" in block(text, 2)
    assert [line for line in text.splitlines() if line.startswith("```") and line != "```"] == [
        "```cmake",
        "```python",
        "```meson",
        "```python",
    ]


def test_bazel_reads_two_dollars_as_one() -> None:
    # Bazel, "Make variables": "$$" stands for "$" in linkopts.
    text = search_path("$ORIGIN/lib")
    assert "linkopts = ['-Wl,-rpath,$$ORIGIN/lib'])" in block(text, 3)
    assert "extra_link_args=['-Wl,-rpath,$ORIGIN/lib'])" in block(text, 1)
    assert "install_rpath: '$ORIGIN/lib')" in block(text, 2)
    assert 'INSTALL_RPATH "$ORIGIN/lib")' in block(text, 0)
