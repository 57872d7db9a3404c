"""What `policy show` prints is spelled as a policy file spells it."""

from __future__ import annotations

from wheelfix.model.policy import Policy, Size, SymbolContract
from wheelfix.report.policy import described


def test_each_entry_is_told_with_its_key_and_the_files_own_words() -> None:
    policy = Policy(
        names=("one", "two"),
        imports=(SymbolContract("two:import[0]", "pkg/*.so", "f*", "libf.so"),),
        size=Size("one:size", wheel_max=100),
    )
    assert described(policy).splitlines() == [
        "policies, later ones override: one, two",
        "two:import[0]: object = pkg/*.so, symbol = f*, from = libf.so",
        "one:size: wheel-max = 100",
    ]
