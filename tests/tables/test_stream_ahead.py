"""Lines that are put down before they are written can be told from all others."""

from __future__ import annotations

import pytest

from buttress.tables.stream._ahead import WriteAhead

LINES = [b"one\n", b"two\n", b"three\n"]


@pytest.fixture
def record(tmp_path):
    ahead = WriteAhead(tmp_path / "ahead")
    ahead.begin(10)
    for line in LINES:
        ahead.add(line)
    return ahead


def in_common(record, tmp_path, text, start=10):
    (tmp_path / "out").write_bytes(bytes(start) + text)
    with (tmp_path / "out").open("rb") as file:
        file.seek(start)
        return record.length_in_common(file)


def test_every_beginning_is_known_and_nothing_else(record, tmp_path):
    whole = b"".join(LINES)
    for length in range(len(whole) + 1):
        assert in_common(record, tmp_path, whole[:length]) == length
        assert in_common(record, tmp_path, whole[:length] + b"#") == length
    # from a later checkpoint on, when the record was not begun anew before the crash
    assert in_common(record, tmp_path, whole[4:], start=14) == len(whole) - 4
    # from an older checkpoint nothing is known
    assert in_common(record, tmp_path, whole, start=9) == 0


def test_the_file_stays_only_with_lines_that_no_checkpoint_has(record, tmp_path):
    record.close()
    assert (tmp_path / "ahead").exists()
    record.begin(23)
    record.close()
    assert not (tmp_path / "ahead").exists()


def test_a_record_of_this_life_of_the_machine_is_whole(record, tmp_path):
    assert not record.is_of_another_life()
    assert not WriteAhead(tmp_path / "none").is_of_another_life()
