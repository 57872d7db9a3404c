import pytest

from wheelfix.repair.names import graft_name, libs_folder, scripts_folder

SHA = "1a2b3c4d" + "0" * 56


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libz.so.1", "libz-1a2b3c4d.so.1"),
        ("libcurl.so.4.8.0", "libcurl-1a2b3c4d.so.4.8.0"),
        ("libodd", "libodd-1a2b3c4d"),
        ("libgio-2.0.so.0", "libgio-2.0-1a2b3c4d.so.0"),
        ("libplain.so", "libplain-1a2b3c4d.so"),
        ("libx.something.so", "libx.something-1a2b3c4d.so"),
        ("/opt/lib/libz.so.1", "libz-1a2b3c4d.so.1"),
    ],
)
def test_the_hash_stands_before_the_version(name: str, expected: str) -> None:
    assert graft_name(name, SHA) == expected


def test_a_name_that_carries_the_hash_already_gets_no_second_one() -> None:
    assert graft_name("libz-1a2b3c4d.so.1", SHA) == "libz-1a2b3c4d.so.1"


def test_the_hash_of_other_content_is_no_reason_to_leave_the_name() -> None:
    assert graft_name("libz-99999999.so.1", SHA) == "libz-99999999-1a2b3c4d.so.1"


def test_folders_are_named_after_the_distribution_part_of_the_file_name() -> None:
    assert libs_folder("foo_bar-1.0-cp311-cp311-linux_x86_64.whl") == "foo_bar.libs"
    assert libs_folder("foo_bar-1.0-cp311-cp311-linux_x86_64.whl", ".dylibs") == "foo_bar.dylibs"
    assert scripts_folder("foo_bar-1.0-1-cp311-cp311-linux_x86_64.whl") == "foo_bar.scripts"
