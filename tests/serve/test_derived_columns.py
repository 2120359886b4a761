"""Dates and free text from the file to the service: one model, one answer everywhere."""

from __future__ import annotations

import json

import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier, load, save
from buttress.cli import main
from buttress.serve.errors import RequestError
from buttress.serve.model import ServedModel
from buttress.serve.rows import RequestRows
from buttress.tables import TableClassifier

pytest.importorskip("skops")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    late = rng.integers(0, 2, 120)
    return {
        "x": rng.normal(size=120).tolist(),
        "when": [f"2024-{1 + 6 * k + d % 6:02d}-{1 + d % 28:02d}" for d, k in enumerate(late)],
        "note": [f"{'late' if k else 'early'} visit {d % 110}" for d, k in enumerate(late)],
        "y": np.where(late, "b", "a"),
    }


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("derived") / "model.skops"
    save(TableClassifier(LeakyHockeyStickClassifier(), target="y").fit(table), path)
    return path


def test_the_service_encodes_as_the_model_does(model, table):
    served, fitted = ServedModel.load(model), load(model)
    names = ("note", "x", "when")
    values = [[table[name][i] for name in names] for i in range(10)]
    found = served.columns.encode(RequestRows(names, values, "json"))
    some = {name: table[name][:10] for name in ("x", "when", "note")}
    np.testing.assert_array_equal(found, fitted.encode(some))
    for row, reason in (
        (["n", 1.0, "soon"], "holds dates"),
        (["n", 1.0, None], "row 1: column 'when' has no value"),
        ([["n"], 1.0, "2024-01-01"], "is text, not a list"),
    ):
        with pytest.raises(RequestError, match=reason):
            served.columns.encode(RequestRows(names, [row], "json"))


def test_explanations_know_dates_and_texts(model, table, serving):
    fitted = load(model)
    rows = [{name: table[name][i] for name in ("x", "when", "note")} for i in (3, 8)]
    with serving(model) as client:
        told = client.post("/v1/explain", json=rows).json()["answers"]
    for row, each in zip(rows, told, strict=True):
        margin = fitted.decision_function({name: [value] for name, value in row.items()})[0]
        found = {one["column"]: one["effect"] for one in each["columns"]}
        assert set(found) == set(row)
        for name, effect in found.items():
            changed = row | {name: fitted.encoder_.fill_[name]}
            other = fitted.decision_function({name: [value] for name, value in changed.items()})[0]
            assert effect == pytest.approx(np.sign(margin) * (margin - other), abs=1e-9)


def test_from_a_file_to_predictions(table, tmp_path, capsys):
    columns = [map(str, column) for column in table.values()]
    lines = [",".join(table), *map(",".join, zip(*columns, strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    words = ["fit", "data.csv", "-t", "y", "--model", "leaky", "-o", "m.skops", "-q"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main(words) == 0, capsys.readouterr().err
        assert main(["predict", "m.skops", "data.csv", "--out", "answers.csv", "-q"]) == 0
        assert main(["inspect", "m.skops", "--json"]) == 0
        assert main(["export", "m.skops", "--onnx", "m.onnx"]) == 1
    out, err = capsys.readouterr()
    columns = {c["name"]: c["kind"] for c in json.loads(out)["model"]["columns"]}
    assert columns == {"x": "number", "when": "date", "note": "free text"}
    assert "have no ONNX translation" in err
    answers = [line.split(",")[0] for line in (tmp_path / "answers.csv").read_text().split()[1:]]
    assert np.mean(np.array(answers) == table["y"]) > 0.95
