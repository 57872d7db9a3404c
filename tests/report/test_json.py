from __future__ import annotations

import json

from wheelfix import __version__
from wheelfix.model.finding import Report
from wheelfix.report.json import render


def test_the_report_is_the_documented_object(several: Report) -> None:
    said = json.loads(render(several))
    assert said["schema"] == "wheelfix/report/1"
    assert said["tool"] == {"name": "wheelfix", "version": __version__}
    assert said["wheels"][0] == {
        "path": "dist/demo-1.0-py3-none-linux_x86_64.whl",
        "name": "demo",
        "version": "1.0",
        "tags": ["py3-none-linux_x86_64"],
        "policies": ["static-cxx-runtime"],
        "verdict": "fail",
        "findings": said["wheels"][0]["findings"],
    }
    assert said["wheels"][0]["findings"][0] == {
        "rule": "cxx-runtime-dynamic",
        "severity": "error",
        "member": "pkg/_ext.so",
        "library": "libstdc++.so.6",
        "symbol": "_ZSt4cout",
        "message": "pkg/_ext.so needs libstdc++.so.6 of the machine; the policy wants the C++ runtime linked in",
        "evidence": {"needed": ["libstdc++.so.6"], "count": 1},
        "remedy": "Link with -static-libstdc++.",
        "policy": "static-cxx-runtime:cxx-runtime[0].linkage",
    }


def test_what_is_unknown_of_an_unreadable_wheel_is_null_or_empty(several: Report) -> None:
    wheel = json.loads(render(several))["wheels"][2]
    assert (wheel["name"], wheel["version"], wheel["tags"], wheel["verdict"]) == (
        None,
        None,
        [],
        "unreadable",
    )


def test_hostile_names_survive_and_are_printable(hostile: Report) -> None:
    text = render(hostile)
    assert all(c == "\n" or c.isprintable() for c in text)
    assert text.isascii()
    assert json.loads(text)["wheels"][0]["name"] == hostile.wheels[0].name
