"""The archive: what any installer or loader would stumble over before a symbol is looked at."""

from __future__ import annotations

from collections.abc import Iterator

from wheelfix.checks.linkflags import blocks
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding

_REBUILD = "Build the wheel again with a current build backend; do not repack it by hand."
_REPACK = "```sh\nwheel unpack x.whl && wheel pack x-1.0/    # writes RECORD anew\n```"

ZIP_SLIP = Rule(
    id="zip-slip",
    group="archive",
    severity="error",
    what="A member's name leads out of the folder that the wheel is installed into.",
    why=(
        "An installer that trusts the name writes outside site-packages; one that does not refuses the wheel."
        " Either way users get an attack or an error, and an index may remove the file."
    ),
    fix="Find the step that writes absolute or `..` names into the archive and give it relative ones.",
    example="A member is named `../evil.so`.",
    remedy=_REBUILD,
)
ZIP_DUPLICATE = Rule(
    id="zip-duplicate",
    group="archive",
    severity="error",
    what="Two members of the archive have one name.",
    why=(
        "Which one is installed depends on the installer: some write the first, some the last. What was tested"
        " is not what every user gets, and the index rejects such uploads."
    ),
    fix="Write each file once; a repacking step mostly appended a file instead of replacing it (`zip -u`).",
    example="`pkg/_ext.so` stands twice, the first copy is an older build.",
    remedy=_REBUILD,
)
ZIP_SYMLINK = Rule(
    id="zip-symlink",
    group="archive",
    severity="error",
    what="A member is stored as a symbolic link.",
    why=(
        "Wheels cannot hold links: installers write a small text file that contains the target's name. A loader"
        " that finds it in place of a library stops with `file too short` or `invalid ELF header`."
    ),
    fix="Ship one real file under the name that DT_NEEDED asks for (the SONAME), and no links to it.",
    example="`pkg/lib/libdep.so.1` is a link to `libdep.so.1.2.3`.",
    remedy="Replace the link by the file itself, under the SONAME that is asked for.",
)
ZIP_LOCAL_CENTRAL = Rule(
    id="zip-local-central",
    group="archive",
    severity="error",
    what="The archive's directory and its local entries do not tell the same story.",
    why=(
        "Python's zipfile reads the central directory, other tools read the entries as a stream: the two install"
        " different files from one wheel. Indexes reject such archives since 2025."
    ),
    fix="Write the archive with an ordinary ZIP library; do not append to it or splice it.",
    example="A complete entry `pkg/hidden.py` is in the archive's body and not in its directory.",
    remedy=_REBUILD,
)
ZIP_CRC = Rule(
    id="zip-crc",
    group="archive",
    severity="error",
    what="The bytes of a member are damaged or missing.",
    why="Every installer stops at it: nobody can install the wheel.",
    fix="Build or download the file again; compare its hash with the one that the build printed.",
    example="`pkg/_ext.so` inflates to other bytes than its CRC says.",
    remedy="Build or copy the wheel again.",
)
ZIP_UNSUPPORTED = Rule(
    id="zip-unsupported",
    group="archive",
    severity="error",
    what="A member is encrypted, or compressed by a method that installers do not know.",
    why="Wheels hold stored and deflated members only; pip fails on anything else.",
    fix="Write the archive with deflate (`zipfile.ZIP_DEFLATED`).",
    example="`pkg/data.bin` is compressed with LZMA.",
    remedy="Write the member stored or deflated.",
)
ARCHIVE_LIMIT = Rule(
    id="archive-limit",
    group="archive",
    severity="error",
    what="The archive claims more than the tool reads.",
    why=(
        "Sizes, counts and names far beyond those of any published wheel are a mistake or an attack on whoever"
        " unpacks it. What lies beyond the limit was not judged."
    ),
    fix="Look at the member that is named; a run of zeros or a lying header is the usual reason.",
    example="One member claims to inflate to 70 GB.",
    remedy="Remove or correct the member.",
)
RECORD_MISSING = Rule(
    id="record-missing",
    group="archive",
    severity="error",
    what="A file of the archive is not listed in RECORD.",
    why=(
        "Installers that go by RECORD leave it out, others install it and never remove it; the binary"
        " distribution format requires every file to be listed."
    ),
    fix=f"Write RECORD after the last file was added:\n\n{_REPACK}",
    example="A step after the build added `pkg/libextra.so` with `zip`.",
    remedy="Write RECORD anew (`wheel unpack`, `wheel pack`).",
)
RECORD_HASH = Rule(
    id="record-hash",
    group="archive",
    severity="error",
    what="RECORD's hash or size of a file is missing, weak or wrong.",
    why=(
        "Installers that check RECORD refuse the wheel, and the package index rejects the upload. The file was"
        " changed after the wheel was built: what was tested may not be what is shipped."
    ),
    fix=f"Change files before the wheel is built, or write RECORD anew afterwards:\n\n{_REPACK}",
    example="`patchelf` or `strip` ran on a library inside the finished wheel.",
    remedy="Write RECORD anew (`wheel unpack`, `wheel pack`) after checking why the file changed.",
)
RECORD_PATH = Rule(
    id="record-path",
    group="archive",
    severity="error",
    what="A row of RECORD is absolute, leaves the wheel, or names a file that the archive does not hold.",
    why=("Installers stop at it, or uninstall what is not theirs: RECORD is what `pip uninstall` deletes."),
    fix=f"Write RECORD from the files that are really there:\n\n{_REPACK}",
    example="RECORD lists `/usr/lib/libx.so`.",
    remedy="Write RECORD anew (`wheel unpack`, `wheel pack`).",
)
METADATA_MISMATCH = Rule(
    id="metadata-mismatch",
    group="archive",
    severity="error",
    what="File name, .dist-info folder, METADATA and WHEEL contradict each other.",
    why=(
        "Resolvers choose by the file name and installers go by the files inside: pip stops with"
        " `has inconsistent name` or installs what nobody asked for. A wheel that was renamed to another"
        " platform still says in WHEEL what it was built for."
    ),
    fix="Let the tool that changes the tag change both:\n\n```sh\nwheel tags --platform-tag manylinux_2_28_x86_64 x.whl\n```",
    example="The file is `pkg-1.0-...whl`, METADATA says version 1.0.1.",
    remedy="Change file name and metadata together (`wheel tags`, or build again).",
)
ELF_IN_PURELIB = Rule(
    id="elf-in-purelib",
    group="archive",
    severity="error",
    what="An ELF object is installed into purelib.",
    why=(
        "On distributions that keep pure Python in /usr/lib and compiled code in /usr/lib64 it lands in another"
        " folder than the rest of its package, and neither finds the other."
    ),
    fix=(
        "Tell the backend that the wheel is not pure:\n\n"
        + blocks(
            cmake="# pyproject.toml, with scikit-build-core: [tool.scikit-build] wheel.platlib = true\n"
            "install(TARGETS x LIBRARY DESTINATION pkg)",
            setuptools="from setuptools.dist import Distribution\n\n"
            "class Binary(Distribution):\n    def has_ext_modules(self):\n        return True\n\n"
            "setup(..., distclass=Binary)",
            meson="py = import('python').find_installation(pure: false)",
            bazel="py_wheel(name = 'wheel', distribution = 'pkg', version = '1.0', deps = [':pkg'],\n"
            "         python_tag = 'cp311', abi = 'cp311', platform = 'manylinux_2_28_x86_64')",
        )
    ),
    example="`pkg-1.0.data/purelib/pkg/libx.so` lands in /usr/lib, the extension that needs it in /usr/lib64.",
    remedy="Install the object into platlib: Root-Is-Purelib: false, and no .data/purelib for it.",
)
ANY_TAG_WITH_ELF = Rule(
    id="any-tag-with-elf",
    group="archive",
    severity="error",
    what="The platform tag is `any`, and the wheel holds an ELF object.",
    why="pip installs it on every system and processor; on all but one the object cannot be loaded.",
    fix="Build with a platform tag; see `elf-in-purelib` for setuptools, `wheel tags --platform-tag` for a finished one.",
    example="`pkg-1.0-py3-none-any.whl` with `pkg/libthing.so` for x86-64.",
    remedy="Give the wheel the platform tag of its objects.",
)
ZIP_RATIO = Rule(
    id="zip-ratio",
    group="archive",
    severity="warning",
    what="A large member inflates to a great multiple of its packed size.",
    why=(
        "A file of zeros, or an attack: whoever unpacks it pays with disk and memory, and malware scanners"
        " of indexes refuse it."
    ),
    fix="Do not ship what can be made at first use; check sparse files and preallocated databases.",
    example="200 MiB of zeros packed into 200 KiB.",
    remedy="Remove the member or make it at run time.",
)
EXEC_BIT = Rule(
    id="exec-bit",
    group="archive",
    severity="warning",
    what="An ELF program inside a package has no execute permission.",
    why="Installers keep the mode that the archive gives: starting the program fails with EACCES.",
    fix="Keep the mode when the archive is written; `wheelfix repair` puts it back.",
    example="`pkg/bin/tool` has mode 0644 after the wheel was repacked by a script.",
    remedy="Give the member mode 0755; `wheelfix repair` does.",
)
DUPLICATE_ELF = Rule(
    id="duplicate-elf",
    group="archive",
    severity="warning",
    what="The same ELF object is in the wheel under several names.",
    why=(
        "The links `libx.so -> libx.so.1 -> libx.so.1.2` became copies: the wheel is as many times larger, and a"
        " process that opens two of them has two instances of the library's state."
    ),
    fix="Ship one file under its SONAME; in CMake install it with `NAMELINK_SKIP`.",
    example="`libplug.so`, `libplug.so.1` and `libplug.so.1.0.0` are equal.",
    remedy="Keep the copy that carries the SONAME as its name.",
)
UNREADABLE = Rule(
    id="unreadable",
    group="archive",
    severity="error",
    what="The file cannot be read as a wheel at all.",
    why="Nothing in it could be judged; no installer accepts it.",
    fix="Check the path. If it is right, build or download the file again; `unzip -t` tells whether it is a whole ZIP archive.",
    example="A download that stopped half-way.",
    remedy="Check the path, or build or download the file again; `unzip -t` tells whether it is a whole ZIP archive.",
)
INTERNAL_ERROR = Rule(
    id="internal-error",
    group="archive",
    severity="error",
    what="wheelfix itself failed on this wheel.",
    why="The wheel was not judged to its end. The fault is the tool's, whatever the wheel holds.",
    fix="Run the command again with `WHEELFIX_TRACEBACK=1` and report what it prints, with the wheel if you may.",
    example="An object of a kind that was never met before.",
    remedy="Report it with the output of the same command under WHEELFIX_TRACEBACK=1.",
)
RULES = (
    ZIP_SLIP,
    ZIP_DUPLICATE,
    ZIP_SYMLINK,
    ZIP_LOCAL_CENTRAL,
    ZIP_CRC,
    ZIP_UNSUPPORTED,
    ARCHIVE_LIMIT,
    RECORD_MISSING,
    RECORD_HASH,
    RECORD_PATH,
    METADATA_MISMATCH,
    ELF_IN_PURELIB,
    ANY_TAG_WITH_ELF,
    ZIP_RATIO,
    EXEC_BIT,
    DUPLICATE_ELF,
    UNREADABLE,
    INTERNAL_ERROR,
)
_BY_ID = {r.id: r for r in RULES}


def check(subject: Subject) -> Iterator[Finding]:
    """The reader's faults of this group as findings, then what the members themselves show."""
    for fault in subject.wheel.faults:
        rule = _BY_ID.get(fault.rule)
        if rule is not None:
            yield rule.finding(fault.message, member=fault.member, evidence=fault.evidence)
    yield from _places(subject)
    yield from _modes(subject)
    yield from _copies(subject)


def _places(subject: Subject) -> Iterator[Finding]:
    any_platform = "any" in subject.wheel.platforms
    for member in subject.wheel.members:
        if member.content != "elf":
            continue
        if member.scheme == "purelib":
            # A wheel that is purelib as a whole at least stays together.
            whole = ".data/" not in member.name
            where = "Root-Is-Purelib: true" if whole else ".data/purelib"
            yield ELF_IN_PURELIB.finding(
                f"{member.path} is an ELF object and goes to purelib ({where})",
                member=member.path,
                severity="warning" if whole else None,
            )
        if any_platform:
            arch = member.elf.arch if member.elf else None
            yield ANY_TAG_WITH_ELF.finding(
                f"{member.path} is an ELF object{f' for {arch}' if arch else ''}, but the wheel's tag promises"
                " that it runs on any platform",
                member=member.path,
            )


def _modes(subject: Subject) -> Iterator[Finding]:
    for member, elf in subject.wheel.objects:
        lost = member.mode is not None and not member.mode & 0o111
        # Installers make files of the scripts scheme executable themselves.
        if lost and member.scheme != "scripts" and elf.is_program:
            yield EXEC_BIT.finding(
                f"{member.path} is a program, but its mode in the archive is {member.mode:04o}:"
                " starting it fails with EACCES",
                member=member.path,
                evidence={"mode": f"{member.mode:04o}"},
            )


def _copies(subject: Subject) -> Iterator[Finding]:
    """Equal libraries with a SONAME: links that became copies. Equal programs or modules split no state."""
    same: dict[tuple[str, str, int], list[str]] = {}
    for member, elf in subject.wheel.objects:
        if elf.soname is not None and member.sha256:
            same.setdefault((member.sha256, elf.soname, member.size), []).append(member.path)
    for (_, soname, size), names in same.items():
        if len(names) > 1:
            yield DUPLICATE_ELF.finding(
                f"{', '.join(names)} are the same file (SONAME {soname}): a process that opens two of them has"
                " the library's state twice",
                member=names[0],
                library=soname,
                evidence={"members": names, "size": size},
            )
