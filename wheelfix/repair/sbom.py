"""The list of grafted files as a CycloneDX 1.6 document (PEP 770: ``.dist-info/sboms/``).

Deterministic: the serial number is a hash of what the document says and the time is the caller's, so that the
same wheel and the same libraries give the same bytes.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from wheelfix import __version__
from wheelfix.model.plan import Graft

# A name space of our own for version 5 UUIDs (RFC 9562, section 5.5).
_NAMESPACE = uuid.UUID("7b1a39e0-7f6c-5a0e-9a35-6d1c1f1c7a52")
MEMBER = "sboms/wheelfix.cdx.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """The package of the build host that installed a library; ``purl`` is its package URL."""

    name: str
    version: str
    purl: str


@dataclass(frozen=True, slots=True)
class Grafted:
    """One grafted file as the document tells it: ``soname`` is the one that it had on the build host."""

    graft: Graft
    soname: str | None
    origin: Origin | None


def document(
    name: str, version: str, grafted: Sequence[Grafted], timestamp: datetime.datetime | None = None
) -> bytes:
    """The document for one wheel, JSON in UTF-8. ``timestamp`` None: the beginning of 1980, ZIP's first."""
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import ToolRepository
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL
    from packaging.utils import canonicalize_name

    wheel_purl = PackageURL("pypi", None, canonicalize_name(name), version)
    wheel = Component(
        name=name, version=version, type=ComponentType.LIBRARY, purl=wheel_purl, bom_ref=str(wheel_purl)
    )
    tool = Component(name="wheelfix", version=__version__, type=ComponentType.APPLICATION, bom_ref="wheelfix")
    files = []
    for entry in grafted:
        graft, origin = entry.graft, entry.origin
        properties = [Property(name="wheelfix:member", value=graft.member)]
        if entry.soname is not None:
            properties.append(Property(name="wheelfix:soname", value=entry.soname))
        if origin is not None:
            properties.append(Property(name="wheelfix:source", value=graft.source))
        properties.append(Property(name="wheelfix:package", value=origin.name if origin else "unknown"))
        files.append(
            Component(
                name=origin.name if origin else graft.source.rpartition("/")[2],
                version=origin.version if origin else None,
                type=ComponentType.LIBRARY,
                purl=PackageURL.from_string(origin.purl) if origin else None,
                bom_ref=f"{graft.member}#{graft.sha256}",
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=graft.sha256)],
                properties=properties,
            )
        )
    facts = "\n".join([str(wheel_purl), *sorted(str(c.bom_ref.value) for c in files)])
    bom = Bom(
        components=files,
        serial_number=uuid.uuid5(_NAMESPACE, facts),
        metadata=BomMetaData(
            component=wheel,
            tools=ToolRepository(components=[tool]),
            timestamp=timestamp or datetime.datetime(1980, 1, 1, tzinfo=datetime.timezone.utc),
        ),
    )
    bom.register_dependency(wheel, files)
    return (JsonV1Dot6(bom).output_as_string(indent=1) + "\n").encode()
