"""System libraries are known by their exact name, and by their stem in any version."""

from __future__ import annotations

import pytest

from wheelfix.policy.system import packaged_stem, system_library


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("libpng16.so.16", "libpng16-16"),
        ("libssl.so.1.1", "libssl1.1"),
        ("libssl.so", None),
        ("libpng16.so.1", None),
        ("ibpng16.so.16", None),
        ("libnobody.so.1", None),
        ("", None),
        ("#", None),
    ],
)
def test_exact_names(name: str, package: str | None) -> None:
    assert system_library(name) == package


def test_stems() -> None:
    assert packaged_stem("libnuma.so")
    assert packaged_stem("libnuma.so.99")
    assert not packaged_stem("libnobody.so")
    assert not packaged_stem("numa.so")
