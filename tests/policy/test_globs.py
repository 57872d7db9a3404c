"""Globs over member paths keep folders apart; ``**`` crosses them."""

from __future__ import annotations

import pytest

from wheelfix.policy.globs import matches_name, matches_path


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("pkg/x.so", "pkg/*.so", True),
        ("pkg/lib/x.so", "pkg/*.so", False),
        ("pkg/lib/x.so", "pkg/**", True),
        ("pkg/x.so", "pkg/**", True),
        ("pkg/lib/x.so", "**/x.so", True),
        ("x.so", "**/x.so", True),
        ("x.so", "**", True),
        ("a/b/c", "**", True),
        ("pkg/x.so", "*.so", False),
        ("pkg/x1.so", "pkg/x?.so", True),
        ("pkg/xa.so", "pkg/x[0-9].so", False),
        ("pkg/xa.so", "pkg/x[!0-9].so", True),
        ("pkg/x.so", "pkg/X.so", False),
        ("pkg/x+y.so", "pkg/x+y.so", True),
        ("pkg/x.so\nevil", "pkg/x.so", False),
        ("pkg/[", "pkg/[", True),
    ],
)
def test_paths(path: str, pattern: str, expected: bool) -> None:
    assert matches_path(path, pattern) is expected


def test_names_are_case_sensitive() -> None:
    assert matches_name("libFoo.so.1", "libFoo.so*")
    assert not matches_name("libFoo.so.1", "libfoo.so*")
