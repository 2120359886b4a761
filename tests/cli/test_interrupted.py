"""What a command that was interrupted says it leaves."""

from buttress._files import forget_published, note_written, replacing
from buttress.cli._interrupt import what_is_left


def test_files_in_their_place_and_stores_are_named(tmp_path):
    forget_published()
    assert what_is_left() == "interrupted; no output file was changed"
    note_written(tmp_path / "data.csv.review.sqlite")
    with replacing(tmp_path / "out.csv", "w") as file:
        file.write("x\n")
    said = what_is_left()
    forget_published()
    assert said.startswith("interrupted; written before that: ")
    assert "data.csv.review.sqlite" in said
    assert "out.csv" in said


def test_an_error_that_knows_better_says_it_itself():
    assert what_is_left(KeyboardInterrupt("300 rows were written")) == "300 rows were written"
