import json

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from wheelfix.model.plan import Graft
from wheelfix.repair.sbom import Grafted, Origin, document

Z = Graft("/usr/lib/libz.so.1.3", "ab" * 32, ("libz.so.1",), "x.libs/libz-abababab.so.1", "")
Y = Graft("/home/me/build/liby.so", "cd" * 32, ("liby.so",), "x.libs/liby-cdcdcdcd.so", "")
ORIGIN = Origin("zlib1g", "1:1.3", "pkg:deb/debian/zlib1g@1:1.3?arch=amd64")
ENTRIES = [Grafted(Z, "libz.so.1", ORIGIN), Grafted(Y, None, None)]


def test_the_document_is_valid_cyclonedx() -> None:
    text = document("Some.Name", "1.0", ENTRIES).decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_each_file_stands_with_hash_soname_and_package() -> None:
    told = {c["bom-ref"]: c for c in json.loads(document("x", "1.0", ENTRIES))["components"]}
    z = told[f"{Z.member}#{Z.sha256}"]
    assert (z["name"], z["version"], z["purl"]) == ("zlib1g", "1:1.3", ORIGIN.purl)
    assert z["hashes"] == [{"alg": "SHA-256", "content": Z.sha256}]
    assert {"name": "wheelfix:soname", "value": "libz.so.1"} in z["properties"]
    assert {"name": "wheelfix:member", "value": Z.member} in z["properties"]


def test_an_unknown_owner_is_said_and_the_path_of_a_build_folder_is_not() -> None:
    text = document("x", "1.0", ENTRIES).decode()
    told = {c["bom-ref"]: c for c in json.loads(text)["components"]}
    y = told[f"{Y.member}#{Y.sha256}"]
    assert y["name"] == "liby.so"
    assert {"name": "wheelfix:package", "value": "unknown"} in y["properties"]
    assert "/home/me" not in text


def test_the_wheel_depends_on_every_file() -> None:
    told = json.loads(document("x", "1.0", ENTRIES))
    (wheel,) = (d for d in told["dependencies"] if d["ref"] == "pkg:pypi/x@1.0")
    assert set(wheel["dependsOn"]) == {f"{g.member}#{g.sha256}" for g in (Y, Z)}


def test_the_same_facts_give_the_same_bytes_and_others_another_serial_number() -> None:
    assert document("x", "1.0", ENTRIES) == document("x", "1.0", ENTRIES)
    serials = {json.loads(document("x", "1.0", e))["serialNumber"] for e in (ENTRIES, ENTRIES[:1])}
    assert len(serials) == 2
