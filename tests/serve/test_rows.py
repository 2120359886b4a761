"""The two readers of JSON, the fast one and the strict one, are one to the client."""

from __future__ import annotations

import json

import numpy as np
import pytest

from buttress.serve import rows as module
from buttress.serve.batching import Costs
from buttress.serve.errors import RequestError
from buttress.serve.rows import OptionalColumns, read_rows, write_json

BODIES = [
    b'{"rows": [{"a": 1, "b": "x"}]}',
    b'[{"a": 1, "b": null}, {"b": "y", "a": 2.5}]',
    b'{"rows": [[1, 2]], "columns": ["b", "a"]}',
    b"[[1, 2], [3, 4]]",
    b'[{"a": 1, "b": "12:30"}]',
    b'[{"a": 1, "b": "\\u00f8"}]',
    b"\xef\xbb\xbf[[1, 2]]",
    b'[{"a": 1, "a": 2}]',
    b'{"rows": [{"a": 1}], "rows": [{"a": 2}]}',
    b'[{"a": 1, "b": {"c": 1, "c": 2}}]',
    b'[{"a": 1, "a" :2}]',
    b'[{"a": 1}, [5]]',
    b'[{"a": 1, "a": 2}, [5]]',
    b'[{"a": 1}, {"a": 1, "b": 2}]',
    b'[{"a": 1, "b": 3}, {"a": 1}]',
    b'[{"a": 1}, 7]',
    b"[{}]",
    b"[]",
    b'{"rows": {"a": 1}}',
    b"[NaN]",
    b'[{"a": 1e999}]',
    b'[{"a": -1.5e-300}]',
    b'[{"a": 123456789012345678}]',
    b'["\\ud800"]',
    b"[" * 3000,
    b"{",
    b"\xff",
]


def outcome(body):
    try:
        found = read_rows(body, "json", ("a", "b"), 100)
    except RequestError as error:
        return error.status, str(error)
    return found.names, [list(row) for row in found.values], found.form


@pytest.mark.parametrize("body", BODIES)
def test_both_readers_agree(body, monkeypatch):
    pytest.importorskip("orjson")
    fast = outcome(body)
    monkeypatch.setattr(module, "orjson", None)
    assert outcome(body) == fast


def test_a_doubled_name_is_refused_with_and_without_the_fast_reader(monkeypatch):
    for reader in (module.orjson, None):
        monkeypatch.setattr(module, "orjson", reader)
        for body in (b'[{"a": 1, "b": 2, "a": 3}]', b'[{"a": 1}, {"a": 1, "a": 1}]'):
            assert outcome(body) == (400, "a name appears twice in one object")


def test_numbers_come_out_as_they_went_in(monkeypatch):
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    for writer in (module.orjson, None):
        monkeypatch.setattr(module, "orjson", writer)
        told = json.loads(write_json({"margins": values.tolist(), "label": "ø"}))
        assert told == {"margins": values.tolist(), "label": "ø"}


def test_costs_are_known_by_size():
    costs = Costs()
    assert costs.expected(1) == float("inf")
    for _ in range(20):
        costs.seen(1, 2e-4)
        costs.seen(1000, 3e-3)
    assert costs.expected(1) == pytest.approx(2e-4)
    # a size nobody has seen: in proportion to the nearest, never cheaper than a smaller one
    assert costs.expected(8) == pytest.approx(16e-4)
    assert costs.expected(900) == pytest.approx(3e-3)
    assert costs.expected(4000) == pytest.approx(12e-3)


def test_lines_of_json_end_where_files_of_them_do():
    found = read_rows('{"a": "x\u2028y"}\n\n{"a": "z\x85"}\n'.encode(), "jsonl", ["a"], 10)
    assert [value for (value,) in found.values] == ["x\u2028y", "z\x85"]


def test_blank_lines_of_csv_are_skipped_as_in_files():
    found = read_rows(b"\n  \na;b\n1;2\n \n3;4\n  \n", "csv", ["a", "b"], 10)
    assert found.names == ("a", "b")
    assert [list(row) for row in found.values] == [["1", "2"], ["3", "4"]]
    # one column: a blank line is a row without a value
    assert read_rows(b"a\n1\n  \n", "csv", ["a"], 10).values == [["1"], [None]]
    with pytest.raises(RequestError, match="not CSV: a quote is opened and not closed"):
        read_rows(b'a,"b\n1,2\n', "csv", ["a", "b"], 10)


def read_objects(rows, *, kept=(), lenient=False):
    """Rows of a model with the columns a and b, read from JSON and from lines of it."""
    optional = OptionalColumns(frozenset("ab"), kept, lenient)
    lines = "\n".join(json.dumps(row) for row in rows).encode()
    (found, again) = (
        read_rows(body, form, ["a", "b"], 100, optional)
        for body, form in ((json.dumps(rows).encode(), "json"), (lines, "jsonl"))
    )
    assert (found.names, list(found.values)) == (again.names, list(again.values))
    return found


def test_rows_may_lack_kept_columns():
    rows = [{"a": 1, "b": 2}, {"scan": "x.png", "b": 4, "a": 3}, {"a": 5, "id": 7, "b": 6}]
    found = read_objects(rows, kept=("id", "scan"))
    assert found.names == ("a", "b", "id", "scan")
    assert found.values == [(1, 2, None, None), (3, 4, None, "x.png"), (5, 6, 7, None)]
    with pytest.raises(RequestError, match="row 2 has the column 'scan', the first row has not"):
        read_objects(rows, kept=("id",))
    # a column of the model is one, kept or not
    with pytest.raises(RequestError, match="row 2 has no column 'b'"):
        read_objects([{"a": 1, "b": 2}, {"a": 1}], kept=("b",))


def test_lenient_rows_may_differ_in_all_but_the_columns_of_the_model():
    rows = [{"a": 1, "more": 0, "b": 2}, {"b": 4, "a": 3, "id": 7}]
    found = read_objects(rows, kept=("id",), lenient=True)
    assert found.names == ("a", "b", "id")
    assert found.values == [(1, 2, None), (3, 4, 7)]
    for odd, said in [
        ({"a": 1, "more": 1}, "row 2 has no column 'b'"),
        ([1, 2], "row 2 is not an object as the first row is"),
    ]:
        with pytest.raises(RequestError, match=said):
            read_objects([{"a": 1, "b": 2}, odd], lenient=True)
    with pytest.raises(RequestError, match="row 2 has the column 'b', the first row has not"):
        read_objects([{"a": 1, "more": 1}, {"a": 1, "b": 2}], lenient=True)


def test_many_names_that_one_row_has_make_no_large_table():
    rows = [{"a": 1, "b": 2, f"more{number}": 0} for number in range(100)]
    found = read_objects(rows, lenient=True)
    assert found.names == ("a", "b")
    assert set(found.values) == {(1, 2)}
