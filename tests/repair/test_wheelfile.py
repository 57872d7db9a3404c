from wheelfix.repair.wheelfile import retagged

BEFORE = b"Wheel-Version: 1.0\nGenerator: g\nRoot-Is-Purelib: true\nTag: py3-none-any\nTag: py2-none-any\nBuild: 1\n"


def test_new_tags_stand_where_the_old_ones_stood_and_the_rest_stays() -> None:
    assert retagged(BEFORE, ("py3-none-a", "py3-none-b"), False) == (
        b"Wheel-Version: 1.0\nGenerator: g\nRoot-Is-Purelib: true\nTag: py3-none-a\nTag: py3-none-b\nBuild: 1\n"
    )


def test_a_root_of_pure_python_becomes_platlib_where_asked() -> None:
    assert b"Root-Is-Purelib: false\n" in retagged(BEFORE, ("py3-none-a",), True)


def test_line_ends_are_kept() -> None:
    text = b"Wheel-Version: 1.0\r\nTag: py3-none-any\r\n\r\n"
    assert retagged(text, ("py3-none-a",), False) == b"Wheel-Version: 1.0\r\nTag: py3-none-a\r\n\r\n"


def test_a_last_line_without_line_end_is_a_line() -> None:
    assert (
        retagged(b"Wheel-Version: 1.0\nTag: x-y-z", ("a-b-c",), False) == b"Wheel-Version: 1.0\nTag: a-b-c\n"
    )


def test_a_file_without_tags_gets_them_behind_its_fields() -> None:
    assert retagged(b"Wheel-Version: 1.0\n\n", ("a-b-c",), False) == b"Wheel-Version: 1.0\nTag: a-b-c\n"


def test_the_same_tags_leave_the_bytes() -> None:
    assert retagged(BEFORE, ("py3-none-any", "py2-none-any"), False) == BEFORE
