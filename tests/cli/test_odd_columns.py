"""A column that is text by accident is pointed out before a model is made of it."""

from __future__ import annotations

import warnings

import pytest

from buttress.cli._inputs import read_data


def write(path, first):
    lines = [f"{value};{'no' if i % 2 else 'yes'}" for i, value in enumerate(first)]
    path.write_text("a;y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["n/k", *(f"{i / 7:.4f}" for i in range(59))], "most are numbers, 'n/k' is not"),
        ([f"0,{1000 + i}" for i in range(60)], "most are numbers with decimal commas"),
        ([f"user{i}" for i in range(60)], "60 different values in 60 rows: each becomes a feature"),
    ],
    ids=["one bad value", "decimal commas", "names"],
)
def test_a_column_with_a_text_for_every_row_is_a_warning(tmp_path, values, reason):
    path = write(tmp_path / "odd.csv", values)
    with pytest.warns(UserWarning, match=rf"odd.csv: the column 'a' is text.*{reason}"):
        read_data(path, "y")


def test_categories_and_columns_named_as_such_are_not(tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read_data(write(tmp_path / "few.csv", ["u", "v", "w"] * 20), "y")
        names = write(tmp_path / "names.csv", [f"user{i}" for i in range(60)])
        read_data(names, "y", categorical="a")
    assert [str(warning.message) for warning in told] == []
