"""Make system-libraries.txt.gz: which of Debian's packages holds a library, by the name in DT_NEEDED.

    python policies/make_system_libraries.py

Reads the Contents indexes of two releases through apt, in a private folder. One line a library:
NAME PACKAGE; the newer release wins. Only libraries in the loader's default folders count.
"""

from __future__ import annotations

import datetime
import gzip
import re
import subprocess
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().with_name("system-libraries.txt.gz")
MIRROR = "http://deb.debian.org/debian"
SUITES = ("bullseye", "bookworm")
LINE = re.compile(r"(?:usr/)?lib/(?:x86_64-linux-gnu/)?(lib[^/\s]+\.so(?:\.\d+)+)\s+(\S+)")


def contents(suite: str) -> str:
    """The Contents index of one suite, main, amd64."""
    with tempfile.TemporaryDirectory(prefix="contents.") as name:
        folder = Path(name)
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "etc").mkdir()
        (folder / "status").touch()
        (folder / "sources.list").write_text(f"deb [trusted=yes arch=amd64] {MIRROR} {suite} main\n")
        target = "Acquire::IndexTargets::deb::Contents-deb"
        options = [
            f"Dir::State::lists={folder}/lists",
            f"Dir::State::status={folder}/status",
            f"Dir::Cache={folder}",
            f"Dir::Etc::sourcelist={folder}/sources.list",
            f"Dir::Etc::sourceparts={folder}/etc",
            "APT::Sandbox::User=root",
            "Acquire::Languages=none",
            f"{target}::MetaKey=$(COMPONENT)/Contents-$(ARCHITECTURE)",
            f"{target}::ShortDescription=Contents",
            f"{target}::Description=$(RELEASE) Contents",
        ]
        words = [word for option in options for word in ("-o", option)]
        subprocess.run(["apt-get", *words, "-qq", "update"], check=True)
        (index,) = (folder / "lists").glob("*Contents-amd64*")
        done = subprocess.run(
            ["/usr/lib/apt/apt-helper", "cat-file", str(index)], check=True, capture_output=True
        )
        return done.stdout.decode("utf-8", "replace")


def main() -> None:
    found: dict[str, str] = {}
    for suite in SUITES:
        for line in contents(suite).splitlines():
            match = LINE.fullmatch(line)
            if match:
                found[match[1]] = match[2].split(",")[0].rpartition("/")[2]
    head = f"# Debian {' and '.join(SUITES)}, main, amd64, {datetime.date.today()}\n"
    text = head + "".join(f"{name} {package}\n" for name, package in sorted(found.items()))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(len(found), TARGET.stat().st_size)


if __name__ == "__main__":
    main()
