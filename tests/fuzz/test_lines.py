"""Any bytes as a table or a stream: an answer for every row, a reason for every other line."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress import PARampClassifier
from buttress.tables import TableError, iter_table, read_table
from buttress.tables.stream import (
    Columns,
    LineReader,
    Lines,
    RowParser,
    StreamPlan,
    StreamRun,
)

from .conftest import LONG, SHORT

NASTY = [
    "", " ", "0", "-0", "007", "1e5", "1e999", "-1e-999", "NaN", "nan", "inf", "-Infinity", "NA",
    "?", "null", "None", "1_000", "1,5", "1.5", "０", "\x00", "\ufeff", "\ud7ff", '"', '""', "'",
    "a\tb", "\\", "=1+1", "@x", "yes", "no", "é", "[", "{}", "9" * 25, "x" * 300, "\r",
]  # fmt: skip

cells = st.one_of(st.sampled_from(NASTY), st.text(max_size=6), st.floats().map(repr))
csv_lines = st.lists(cells, max_size=5).map(",".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(NASTY),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
json_lines = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "label", "id", ""]), values).map(json.dumps),
    st.text(max_size=20),
    st.integers(1, 3000).map(lambda n: "[" * n),
    st.integers(1, 3000).map(lambda n: '{"a":' * n),
)
raw_lines = st.binary(max_size=30).map(lambda data: data.replace(b"\n", b""))


def as_bytes(line):
    return line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")


def check_table(folder, suffix, header, lines):
    path = folder / f"table{suffix}"
    content = b"\n".join(as_bytes(line) for line in [header, *lines])
    path.write_bytes(content)
    table, reason = None, ""
    try:
        table = read_table(path, target="label", block_rows=3)
    except TableError as error:
        reason = str(error)
    if table is None:
        assert str(path) in reason
        return
    for values_ in table.columns.values():
        assert len(values_) == len(table)
    again = read_table(path, target="label", block_rows=1000)
    assert again.names == table.names
    for name in table.names:
        np.testing.assert_array_equal(table[name], again[name])
    assert sum(len(block) for block in iter_table(path, block_rows=2)) == len(table)


TABLES = {
    "header": st.one_of(st.just("a,b,label"), csv_lines, raw_lines),
    "lines": st.lists(st.one_of(csv_lines, raw_lines, st.just("1,2,yes")), max_size=8),
}


@SHORT
@given(**TABLES)
def test_any_bytes_as_csv(folder, header, lines):
    check_table(folder, ".csv", header, lines)


@SHORT
@given(lines=st.lists(st.one_of(json_lines, raw_lines), max_size=6))
def test_any_bytes_as_json_lines(folder, lines):
    check_table(folder, ".jsonl", '{"a": 1, "label": "yes"}', lines)


@pytest.mark.slow
@LONG
@given(suffix=st.sampled_from([".csv", ".jsonl"]), **TABLES)
def test_any_bytes_as_a_table_for_longer(folder, suffix, header, lines):
    check_table(folder, suffix, header, lines)


GOOD = {
    "csv": [f"{i % 7 - 3},{i % 5 - 2},{'yes' if i % 2 else 'no'}" for i in range(12)],
    "jsonl": [
        json.dumps({"a": i % 7 - 3, "b": i % 5 - 2, "label": "yes" if i % 2 else "no"})
        for i in range(12)
    ],
}


def check_stream(folder, kind, lines):
    """Every line that is not blank is answered or put aside, and says so in order."""
    header = ["a,b,label"] if kind == "csv" else []
    data = b"".join(as_bytes(line) + b"\n" for line in [*header, *GOOD[kind], *lines])
    out, rejects = folder / "out", folder / "rejects"
    run = StreamRun(
        learner=PARampClassifier(gamma=0.5),
        parser=RowParser(kind, "label", None, Columns(["a", "b"])),
        reader=LineReader(io.BytesIO(data), seekable=True),
        out=Lines(out),
        rejects=Lines(rejects),
        plan=StreamPlan(warm_up=12, classes=["no", "yes"], block_rows=5),
    )
    run.run()
    texts = [part.decode("utf-8", "surrogateescape") for part in data.split(b"\n")[:-1]]
    filled = sum(bool(text.strip()) for text in texts) - len(header)
    answered = [json.loads(line) for line in out.read_text().splitlines()]
    aside = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert len(answered) + len(aside) == filled
    places = [record["line"] for record in answered]
    assert places == sorted(set(places))
    assert not set(places) & {record["line"] for record in aside}
    assert all(np.isfinite(record["score"]) for record in answered)
    assert {record["answer"] for record in answered} <= {"yes", "no"}
    assert all(record["label"] in ("yes", "no", None) for record in answered)


@SHORT
@given(lines=st.lists(st.one_of(csv_lines, raw_lines), max_size=10))
def test_any_lines_in_a_csv_stream(folder, lines):
    check_stream(folder, "csv", lines)


@SHORT
@given(lines=st.lists(st.one_of(json_lines, raw_lines), max_size=10))
def test_any_lines_in_a_stream_of_json(folder, lines):
    check_stream(folder, "jsonl", lines)


@pytest.mark.slow
@LONG
@given(
    kind=st.sampled_from(["csv", "jsonl"]),
    lines=st.lists(st.one_of(csv_lines, json_lines, raw_lines), max_size=20),
)
def test_any_lines_in_a_stream_for_longer(folder, kind, lines):
    check_stream(folder, kind, lines)
