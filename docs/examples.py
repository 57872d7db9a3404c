"""Runs of wheelfix for the pages of rules, on the sample wheels and on faulty copies of them. Run by docs/make.py."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from faults import (
    SAMPLES,
    Example,
    archive,
    copied,
    in_turn,
    listed,
    other_library,
    patched,
    replaced,
    second,
    without_crc,
)
from objects import OBJECTS

from wheelfix.cli import main


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """The folder as working directory (contextlib.chdir came with Python 3.11)."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


_P = "sample_healthy/"
EXAMPLES: dict[str, Example] = {
    "needed-missing": Example("helper_missing"),
    "needed-unreachable": Example("helper_no_origin"),
    "cxx-runtime-missing": Example("no_runtime"),
    "cxx-runtime-dynamic": Example("dynamic_runtime", policy='[cxx-runtime]\nlinkage = "static"\n'),
    "contract-registration": Example(
        "registration_dropped",
        policy='[[registration]]\nobject = "sample_*/_ext*.so"\nstring = "DemoBackend"\n',
    ),
    "symbol-version-too-new": Example(options=("--plat", "manylinux_2_28_x86_64")),
    "exclude-unused": Example(options=("--exclude", "libbig.so")),
    "contract-file": Example(policy='[[require-file]]\npath = "sample_healthy/libextension_cuda.so"\n'),
    "contract-needed": Example(
        policy='[[require-needed]]\nobject = "**/_ext*.so"\nlibrary = "libextension_cuda.so"\n'
    ),
    "contract-deny": Example(policy='[[deny]]\nobject = "**/_ext*.so"\nlibrary = "libhelper.so"\n'),
    "contract-import": Example(
        policy='[[import]]\nobject = "**/_ext*.so"\nsymbol = "helper_value"\nfrom = "libother.so"\n'
    ),
    "contract-export": Example(policy='[[export]]\nobject = "**/libhelper.so"\nsymbol = "helper_name"\n'),
    "contract-rpath": Example(policy='[[rpath]]\nobjects = ["**/_ext*.so"]\nrequired = ["$ORIGIN/lib"]\n'),
    "contract-size": Example(policy='[size]\nwheel-max = "10 KB"\n'),
    "waiver-unused": Example(policy='[[waive]]\nrule = "rpath-absolute"\nreason = "binary of a vendor"\n'),
    "waiver-expired": Example(
        "helper_missing",
        policy='[[waive]]\nrule = "needed-missing"\nreason = "until the next build"\nuntil = 2026-01-31\n',
    ),
    "zip-duplicate": Example(
        change=lambda m: [*m, next(x for x in m if x[0].endswith(".so"))],
        lists=False,
        done="An object was appended again.",
    ),
    "zip-slip": Example(change=lambda m: [*m, ("../evil.so", b"")], done="A member `../evil.so` was added."),
    "zip-crc": Example(raw=without_crc, done="One byte in the archive was changed."),
    "unreadable": Example(
        raw=lambda data: data[: len(data) // 2], done="The second half of the file is gone."
    ),
    "record-missing": Example(
        change=lambda m: [*m, (f"{_P}extra.py", b"")],
        lists=False,
        done="`extra.py` was added and RECORD left as it was.",
    ),
    "record-hash": Example(
        change=replaced("libhelper.so", lambda d: d + b"\0"),
        lists=False,
        done="`libhelper.so` was changed after RECORD was written.",
    ),
    "record-path": Example(
        change=lambda m: [x for x in m if not x[0].endswith("__init__.py")],
        lists=False,
        done="`__init__.py` was taken out, its row in RECORD stayed.",
    ),
    "metadata-mismatch": Example(
        name=lambda n: n.replace("-1.0-", "-1.1-"), done="The file was renamed from version 1.0 to 1.1."
    ),
    "not-elf": Example(
        change=replaced("libhelper.so", lambda _: b"INPUT ( libhelper.so.1 )\n"),
        done="`libhelper.so` is a linker script.",
    ),
    "elf-truncated": Example(
        change=replaced("libhelper.so", lambda d: d[:6000]),
        done="`libhelper.so` was cut after 6,000 bytes.",
    ),
    "any-tag-with-elf": Example(
        name=lambda n: n.replace("manylinux_2_35_x86_64", "any"),
        done="The file was renamed to the tag `any`.",
    ),
    "duplicate-elf": Example(
        change=copied("lib/libhelper.so"),
        done="`libhelper.so` stands in a second folder, too.",
    ),
    "wrong-machine": Example(
        name=lambda n: n.replace("x86_64", "aarch64"), done="The file was renamed to an aarch64 tag."
    ),
    "needed-not-allowed": Example(
        change=patched("--add-needed", "libpng16.so.16"),
        done="The module needs `libpng16.so.16`, too.",
    ),
    "needed-external": Example(
        options=("--policy", "torch-extension"),
        change=patched("--add-needed", "libtorch_cpu.so"),
        done="The module needs `libtorch_cpu.so`, too.",
    ),
    "needed-has-slash": Example(
        change=patched("--replace-needed", "libhelper.so", "/build/out/libhelper.so"),
        done="The module needs the library by its path in the build tree.",
    ),
    "driver-lib": Example(
        change=patched("--add-needed", "libcuda.so.1"),
        done="The module needs `libcuda.so.1`, too.",
    ),
    "libpython-linked": Example(
        change=patched("--add-needed", "libpython3.11.so.1.0"),
        done="The module needs `libpython3.11.so.1.0`, too.",
    ),
    "rpath-absolute": Example(
        change=patched("--set-rpath", "$ORIGIN:/home/ci/build/lib"),
        done="The module's RUNPATH is `$ORIGIN:/home/ci/build/lib`.",
    ),
    "rpath-dead": Example(
        options=("-v",),
        change=patched("--set-rpath", "$ORIGIN:$ORIGIN/parts"),
        done="The module's RUNPATH is `$ORIGIN:$ORIGIN/parts`.",
    ),
    "rpath-empty-element": Example(
        change=patched("--set-rpath", "$ORIGIN::$ORIGIN/lib"),
        done="The module's RUNPATH is `$ORIGIN::$ORIGIN/lib`.",
    ),
    "execstack": Example(
        change=patched("--set-execstack"),
        done="The module asks for an executable stack.",
    ),
    "zip-symlink": Example(
        change=lambda m: [*m, (f"{_P}libother.so", b"libhelper.so")],
        modes=(("libother.so", 0o120777),),
        done="A link to `libhelper.so` was added.",
    ),
    "zip-unsupported": Example(
        change=lambda m: [*m, (f"{_P}data.bin", b"data" * 100)],
        method=zipfile.ZIP_LZMA,
        done="A member that is compressed with LZMA was added.",
    ),
    "zip-ratio": Example(
        change=lambda m: [*m, (f"{_P}data.bin", bytes(40 << 20))], done="40 MiB of zeros were added."
    ),
    "archive-limit": Example(options=("--limit", "total=50K")),
    "elf-limit": Example(options=("--limit", "symbols=5")),
    "elf-in-purelib": Example(
        change=replaced("/WHEEL", lambda d: d.replace(b"Purelib: false", b"Purelib: true")),
        done="WHEEL says `Root-Is-Purelib: true`.",
    ),
    "libc-mixed": Example(
        name=lambda n: n.replace("manylinux_2_35", "musllinux_1_2"),
        done="The file was renamed to a musllinux tag.",
    ),
    "undefined-symbol": Example(
        change=replaced("libhelper.so", lambda _: other_library()),
        done="`libhelper.so` is another library of that name, which lacks a function.",
    ),
    "contract-sole-definer": Example(
        policy='[[sole-definer]]\nobject = "**/libhelper.so"\nsymbol = "helper_value"\n',
        change=copied("libsecond.so"),
        done="A second library with the same content was added.",
    ),
    "requires-dist-missing": Example(
        options=("--policy", "nvidia-pypi"),
        change=patched("--add-needed", "libcudart.so.13"),
        done="The module needs `libcudart.so.13`, and METADATA requires nothing.",
    ),
    "cxx-runtime-bundled": Example(
        change=in_turn(second("libstdc++.so.6"), patched("--add-needed", "libstdc++.so.6")),
        done="A library with the SONAME `libstdc++.so.6` was added.",
    ),
    "openmp-duplicate": Example(
        change=in_turn(
            second("libgomp.so.1"),
            second("libiomp5.so"),
            patched("--add-needed", "libgomp.so.1", "--add-needed", "libiomp5.so"),
        ),
        done="The module needs two libraries that stand for `libgomp.so.1` and `libiomp5.so`.",
    ),
    "needed-unused": Example(
        options=("-v",),
        change=in_turn(second("libother.so"), patched("--add-needed", "libother.so")),
        done="The module needs a copy of `libhelper.so` that stands before it and supplies the same function.",
    ),
    "load-order-dependent": Example(
        change=in_turn(
            second("libother.so", "--add-needed", "libhelper.so"), patched("--add-needed", "libother.so")
        ),
        done="The module needs a second library, which needs `libhelper.so` and has no path.",
    ),
    "data-scheme-rpath": Example(
        change=in_turn(
            lambda m: [
                (n.replace(f"{_P}libhelper", "sample_healthy-1.0.data/data/lib/libhelper"), d) for n, d in m
            ],
            patched("--set-rpath", "$ORIGIN/../../../../lib"),
        ),
        done="`libhelper.so` was moved to the `data` scheme, and the module's RUNPATH leads there.",
    ),
    "zip-local-central": Example(
        raw=lambda data: data.replace(b"__init__.py", b"__main__.py", 1),
        done="The first entry calls its file `__main__.py`, the directory at the end calls it `__init__.py`.",
    ),
    "soname-clash": Example(
        change=in_turn(
            lambda m: [*m, *((n.replace(_P, f"{_P}old/"), d) for n, d in m if n.endswith(".so"))],
            replaced("old/libhelper.so", lambda d: d + b"\0"),
        ),
        done="A second package holds the module and another build of `libhelper.so`.",
    ),
    **OBJECTS,
}


def shown(rule: str) -> str:
    """The part of a rule's page with a run of the command; empty where there is no example that can be run.

    Raises ``RuntimeError`` where the rule does not report on its own example.
    """
    example = EXAMPLES.get(rule)
    if example is None:
        return ""
    (sample,) = SAMPLES.glob(f"sample_{example.sample}-*.whl")
    data = sample.read_bytes()
    if example.change is not None or example.modes or example.method != zipfile.ZIP_DEFLATED:
        with zipfile.ZipFile(sample) as wheel:
            members = [(i.filename, wheel.read(i)) for i in wheel.infolist()]
        if example.change is not None:
            members = example.change(members)
            members = listed(members) if example.lists else members
        data = archive(members, example.modes, example.method)
    data = example.raw(data) if example.raw else data
    name = example.name(sample.name)
    command = ["wheelfix", "verify", "--select", rule, *example.options]
    command += ["--policy", "policy.toml"] if example.policy else []
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        Path(name).write_bytes(data)
        policy = f'schema = 1\nname = "example"\n\n{example.policy}'
        Path("policy.toml").write_text(policy, "utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main([*command[1:], name])
    output = said.getvalue().rstrip()
    if f": {rule}" not in output:
        raise RuntimeError(f"{rule} does not report on its example:\n{output}")
    text = "\n## What wheelfix prints\n\n"
    text += f"`{sample.name.split('-')[0]}` of the sample wheels. {example.done}".rstrip() + "\n\n"
    if example.policy:
        text += f"```toml\n{policy.rstrip()}\n```\n\n"
    return text + f"```text\n$ {' '.join(command)} {name}\n{output}\n```\n"
