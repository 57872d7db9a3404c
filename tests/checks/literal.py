"""Subjects as literals, for the tests of the checks."""

from __future__ import annotations

from typing import Any

from wheelfix.checks.subject import Scene, Subject
from wheelfix.loader.closure import loads
from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy, Policy
from wheelfix.model.resolution import Node, World
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.world import _folders, wheel_nodes

GLIBC = {"GLIBC": frozenset({"2.2.5", "2.17", "2.28"}), "GLIBCXX": frozenset({"3.4"})}
MANYLINUX = PlatformPolicy(
    "manylinux_2_28_x86_64", "x86_64", "glibc", (2, 28), frozenset({"libc.so.6", "libm.so.6"}), GLIBC
)
MODULE = "pkg/_ext.so"


def member(path: str, elf: ElfFacts | None, **given: Any) -> Member:
    name = given.pop("name", path)
    return Member(
        name, path, content="elf" if elf else "text", elf=elf, sha256=given.pop("sha256", path), **given
    )


def wheel_of(*members: Member, **given: Any) -> WheelFacts:
    tags = given.pop("tags", ("cp311-cp311-manylinux_2_28_x86_64",))
    return WheelFacts("demo-1.0-x.whl", name=given.pop("name", "demo"), tags=tags, members=members, **given)


def subject_of(
    wheel: WheelFacts,
    *,
    platforms: tuple[PlatformPolicy, ...] = (MANYLINUX,),
    policy: Policy | None = None,
    given: tuple[WheelFacts, ...] = (),
    world: dict[str, Any] | None = None,
    **options: Any,
) -> Subject:
    """A subject whose world holds the members of the wheels and the host's libc and libm, without symbols."""
    files: dict[str, Node] = {}
    for other in given:
        files.update((n.location, n) for n in wheel_nodes(other, "given"))
    own = {n.location: n for n in wheel_nodes(wheel, "wheel")}
    files.update(own)
    host = {
        name: Node(f"host:{name}", f"/host/{name}", ElfFacts(soname=name, complete=False), "host")
        for name in ("libc.so.6", "libm.so.6")
    }
    scene_world = World(files, _folders(files), host, **(world or {}))
    scenes = tuple(Scene(p, scene_world, loads(scene_world, own.values())) for p in platforms[:1])
    return Subject(wheel, platforms, scenes, policy or Policy(), given=given, **options)


def told(findings: list[Finding]) -> list[tuple[str, str, str | None]]:
    return [(f.rule, f.severity, f.member) for f in findings]
