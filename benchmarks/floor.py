"""The floor: inflate every member of a wheel, CRC and SHA-256 it, in two processes; nothing else.

python benchmarks/floor.py WHEEL
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile

from isal import isal_zlib

PIECE = 1 << 20


def consume(path: str, names: list[str]) -> None:
    """Inflate and digest the named members in pieces."""
    with open(path, "rb") as raw, zipfile.ZipFile(path) as archive:
        for name in names:
            info = archive.getinfo(name)
            raw.seek(info.header_offset + 26)
            lengths = raw.read(4)
            raw.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
            left, crc, digest = info.compress_size, 0, hashlib.sha256()
            inflater = isal_zlib.decompressobj(-15) if info.compress_type else None
            while left:
                piece = raw.read(min(PIECE, left))
                left -= len(piece)
                data = inflater.decompress(piece) if inflater else piece
                crc = isal_zlib.crc32(data, crc)
                digest.update(data)


def main(path: str) -> None:
    with zipfile.ZipFile(path) as archive:
        infos = sorted(archive.infolist(), key=lambda i: i.file_size, reverse=True)
    shares: tuple[list[str], list[str]] = ([], [])
    sizes = [0, 0]
    for info in infos:
        least = sizes.index(min(sizes))
        sizes[least] += info.file_size
        shares[least].append(info.filename)
    child = os.fork()
    consume(path, shares[0 if child else 1])
    if child:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1])
