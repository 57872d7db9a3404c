"""What the build systems want to hear for a linker flag, as Markdown for the texts of rules."""

from __future__ import annotations

from collections.abc import Sequence


def link_flags(*flags: str) -> str:
    """Code blocks that give ``flags`` to the linker of a module ``_ext`` in CMake, setuptools, meson and Bazel."""
    return blocks(
        cmake=f"target_link_options(_ext PRIVATE {' '.join(map(_cmake, flags))})",
        setuptools=f"Extension('pkg._ext', sources,\n          extra_link_args={_quoted(flags)})",
        meson=f"py.extension_module('_ext', sources, install: true, subdir: 'pkg',\n  link_args: {_quoted(flags)})",
        bazel=_bazel(flags),
    )


def static_cxx_runtime() -> str:
    """Code blocks that link a C++ module ``_ext`` with a hidden runtime of its own."""
    return blocks(
        cmake="target_link_options(_ext PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL)",
        setuptools="Extension('pkg._ext', sources, language='c++',\n"
        "          extra_link_args=['-static-libstdc++', '-static-libgcc', '-Wl,--exclude-libs,ALL'])",
        meson="py.extension_module('_ext', 'ext.cpp', install: true, subdir: 'pkg',\n"
        "  link_args: ['-static-libstdc++', '-static-libgcc', '-Wl,--exclude-libs,ALL'])",
        # It links with gcc and names the library itself: github.com/bazelbuild/bazel, issue 2840 and pull request 8660.
        bazel="# .bazelrc: the toolchain adds -lstdc++ itself, on which -static-libstdc++ has no effect.\n"
        "#   build --repo_env=BAZEL_LINKOPTS=-static-libgcc\n"
        "#   build --repo_env=BAZEL_LINKLIBS=-l%:libstdc++.a:-lm\n" + _bazel(["-Wl,--exclude-libs,ALL"]),
    )


def search_path(folder: str) -> str:
    """Code blocks that give a module ``_ext`` the RUNPATH ``folder``, which starts with ``$ORIGIN``."""
    flag = f"-Wl,-rpath,{folder}"
    return blocks(
        cmake=f'set_target_properties(_ext PROPERTIES INSTALL_RPATH "{folder}")',
        setuptools=f"Extension('pkg._ext', sources, extra_link_args={_quoted([flag])})",
        meson=f"py.extension_module('_ext', sources, install: true, subdir: 'pkg',\n  install_rpath: '{folder}')",
        bazel=_bazel([flag]),
    )


def blocks(*, cmake: str, setuptools: str, meson: str, bazel: str) -> str:
    """The four as code blocks in the order in which the pages have them."""
    code = [
        ("cmake", cmake),
        ("python", f"# setuptools\n{setuptools}"),
        ("meson", meson),
        ("python", f"# Bazel\n{bazel}"),
    ]
    return "\n\n".join(f"```{kind}\n{text}\n```" for kind, text in code)


def _bazel(flags: Sequence[str]) -> str:
    """A module with linker flags; "$" begins a make variable in Bazel, and "$$" stands for it."""
    return (
        "cc_binary(name = '_ext.so', srcs = sources, linkshared = True,\n"
        f"          linkopts = {_quoted([f.replace('$', '$$') for f in flags])})"
    )


def _cmake(flag: str) -> str:
    """A flag as one argument of CMake."""
    return f'"{flag}"' if "$" in flag or ";" in flag else flag


def _quoted(flags: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{f}'" for f in flags) + "]"
