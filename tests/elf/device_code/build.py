"""Make the small CUDA objects of this folder and the table of what cuobjdump reads in them.

    python build.py --nvcc nvcc --cuobjdump cuobjdump

Both tools come with the packages nvidia-cuda-nvcc and nvidia-cuda-cuobjdump. The objects are linked
without the CUDA runtime and stripped, so that they stay small; they are never run.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL = "__global__ void scale(float *x) { x[threadIdx.x] = x[threadIdx.x] * 2.f + 1.f; }\n"
OBJECTS = {
    "several": "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_120,code=[sm_120,compute_120]",
    "specific": "-gencode arch=compute_90a,code=sm_90a -gencode arch=compute_100f,code=[sm_100f,compute_100f]",
    "zstd": "--compress-mode=size -gencode arch=compute_90,code=[sm_90,compute_90]",
    "lz4": "--compress-mode=speed -gencode arch=compute_90,code=[sm_90,compute_90]",
    "plain": "--compress-mode=none -gencode arch=compute_90,code=[sm_90,compute_90]",
    "relocatable": "-rdc=true -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=lto_90",
    "relocatable_ptx": "-rdc=true -gencode arch=compute_90,code=[sm_90,compute_90]",
    "linked": "-rdc=true -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]",
    "ptx": "-gencode arch=compute_80,code=compute_80",
    "majors": "-arch=all-major",
    "specific_ptx": "-gencode arch=compute_103a,code=[sm_103a,compute_103a] -gencode arch=compute_120f,code=sm_120f",
}
LINKED = "linked"  # by nvlink, too: code for the linker stays in __nv_relfatbin beside what it linked
KINDS = {"elf": "cubin sm_", "ptx": "ptx compute_", "nvvm": "lto lto_"}
ENTRY = re.compile(r"^Fatbin (elf|ptx|nvvm) code:\n=+\narch = (sm_\w+)", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    options = parser.parse_args()
    expected = {}
    for name, flags in OBJECTS.items():
        target = HERE / f"{name}.so"
        with tempfile.TemporaryDirectory() as folder:
            source, unlinked = Path(folder, "k.cu"), Path(folder, "k.o")
            source.write_text(KERNEL)
            compile_ = [
                options.nvcc,
                "-c",
                "-Xcompiler",
                "-fPIC",
                *flags.split(),
                str(source),
                "-o",
                str(unlinked),
            ]
            subprocess.run(compile_, check=True)
            parts = [str(unlinked)]
            if name == LINKED:
                parts.append(f"{folder}/linked.o")
                link = [
                    options.nvcc,
                    "-dlink",
                    "-Xcompiler",
                    "-fPIC",
                    *flags.split(),
                    parts[0],
                    "-o",
                    parts[1],
                ]
                subprocess.run(link, check=True)
            subprocess.run(["gcc", "-shared", "-s", "-nostdlib", *parts, "-o", str(target)], check=True)
        text = subprocess.run(
            [options.cuobjdump, "-all", str(target)], check=True, capture_output=True, text=True
        ).stdout
        counted = collections.Counter(f"{KINDS[kind]}{arch[3:]}" for kind, arch in ENTRY.findall(text))
        expected[name] = dict(sorted(counted.items()))
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
