"""What each architecture costs, from literal facts: sums by hand."""

from __future__ import annotations

import json

import pytest

from wheelfix.model.elf import DeviceCode, ElfFacts
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.report.device_code import totals
from wheelfix.report.show import Object, Shown, as_json, as_text


def shown(*codes: tuple[DeviceCode, ...], size: int = 2_000_000, path: str = "pkg/k{}.so") -> Shown:
    members = tuple(
        Member(path.format(n), path.format(n), content="elf", size=size, elf=ElfFacts(device_code=code))
        for n, code in enumerate(codes)
    )
    objects = tuple(Object(m, m.elf, (), "none") for m in members if m.elf is not None)
    return Shown("x.whl", WheelFacts("x.whl", members=members), objects)


TWO = (
    (DeviceCode("cubin", "sm_80", 3, 300_000), DeviceCode("cubin", "sm_90a", 3, 400_000, True)),
    (DeviceCode("cubin", "sm_80", 1, 200_000, True), DeviceCode("ptx", "compute_90", 1, 500)),
    (),
)


def test_an_architecture_costs_the_sum_over_all_objects_largest_first() -> None:
    wheel = shown(*TWO).wheel
    assert wheel is not None
    assert totals(wheel.elves) == (
        DeviceCode("cubin", "sm_80", 4, 500_000, True),
        DeviceCode("cubin", "sm_90a", 3, 400_000, True),
        DeviceCode("ptx", "compute_90", 1, 500),
    )


def test_programs_get_the_totals_with_their_share_of_the_installed_size() -> None:
    (wheel,) = json.loads(as_json([shown(*TWO)], cuda=True))["wheels"]
    assert [(r["architecture"], r["size"], r["share"]) for r in wheel["device_code"]] == [
        ("sm_80", 500_000, 0.0833),
        ("sm_90a", 400_000, 0.0667),
        ("compute_90", 500, 0.0001),
    ]
    assert [len(o["device_code"]) for o in wheel["objects"]] == [2, 2, 0]
    assert "device_code" not in json.loads(as_json([shown(*TWO)]))["wheels"][0]


def test_people_see_each_object_then_all() -> None:
    lines = as_text([shown(*TWO)], cuda=True).splitlines()
    table = [line.split() for line in lines[lines.index("device code in 2 of 3 objects") :]]
    assert table[1:] == [
        ["sm_80", "cubin,", "compressed", "4", "0.5", "MB", "8.3", "%"],
        ["sm_90a", "cubin,", "compressed", "3", "0.4", "MB", "6.7", "%"],
        ["compute_90", "ptx", "1", "0.5", "kB", "<0.1", "%"],
        ["all", "8", "0.9", "MB", "15.0", "%"],
        ["%:", "of", "the", "installed", "size"],
    ]


def test_the_longest_names_fit_80_columns() -> None:
    codes = tuple(
        DeviceCode("cubin" if n % 2 else "hip", f"gfx90{n}:sramecc+:xnack-", 999_999, 999_900_000, True)
        for n in range(30)
    )
    text = as_text([shown(codes, codes, size=10**11)], cuda=True)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("code", [(), (DeviceCode("cubin", "sm_90", 1, 100),)])
def test_a_wheel_with_none_or_one_needs_no_sum(code: tuple[DeviceCode, ...]) -> None:
    text = as_text([shown(code)], cuda=True)
    assert ("no device code" in text, " all " in text) == (not code, False)


def test_sections_that_hold_the_same_bytes_are_no_more_than_the_whole() -> None:
    twice = (DeviceCode("cubin", "sm_90", 2, 200), DeviceCode("ptx", "compute_90", 1, 1))
    (wheel,) = json.loads(as_json([shown(twice, size=100)], cuda=True))["wheels"]
    assert [r["share"] for r in wheel["device_code"]] == [1, 0.01]


def test_names_from_the_wheel_cannot_steer_a_terminal() -> None:
    code = (DeviceCode("hip", "gfx\x1b[2J", 1, 100),)
    assert "\x1b" not in as_text([shown(code, path="p/\x1b[2J{}.so")], cuda=True)
