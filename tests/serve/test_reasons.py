"""Why rows are refused: on the page, and for programs, by the rows the model was trained on."""

from __future__ import annotations

import csv
import html

import numpy as np
import pytest

import buttress
from buttress.classifiers import explain_reject
from buttress.serve.model import ServedModel
from buttress.serve.rows import RequestRows
from buttress.tables import read_table
from buttress.tables.grammar import class_labels


@pytest.fixture
def training(models, rows, tmp_path):
    """A file of the training rows, with a column that the model does not know."""
    path = tmp_path / "training.csv"
    made = rows(120, seed=0)
    model = buttress.load(models / "reject.skops")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*made[0], "remark", "y"])
        table = {name: np.array([row[name] for row in made]) for name in made[0]}
        for row, label in zip(made, model.predict(table), strict=True):
            writer.writerow(
                [*(v if isinstance(v, str) else repr(v) for v in row.values()), "", label]
            )
    return path


def asked(rows):
    """Rows of every kind, one of them far from all others."""
    made = rows(40)
    made[7] = made[7] | {"x0": 90.0}
    return made


def test_reasons_are_those_of_the_library(models, rows, serving, training):
    given = asked(rows)
    settings = {"training": training, "refuse_below": 0.4}
    with serving(models / "impute.skops", **settings) as client:
        told = client.post("/v1/explain", json=given).json()["answers"]
    served = ServedModel.load(models / "impute.skops")
    table = read_table(training, target="y")
    X_train = served.encoded(table.without("remark", "y"))
    X = served.columns.encode(
        RequestRows(tuple(given[0]), [list(r.values()) for r in given], "json")
    )
    refused = [index for index, each in enumerate(told) if each["refused"]]
    assert refused
    assert all("reason" not in each for each in told if not each["refused"])

    class Refusing:
        """The same rows are refused."""

        classes_ = served.classes

        def predict(self, X):
            return served.answer(X).labels

        def reject(self, X):
            return np.isin(np.arange(len(X)), refused)

        def predict_or_reject(self, X, reject_label=None):
            raise NotImplementedError

    expected = explain_reject(Refusing(), X, X_train, class_labels(table["y"]))
    for index, reason in zip(refused, expected, strict=True):
        found = told[index]["reason"]
        assert found["reason"] == reason.reason
        assert found["distance"] == pytest.approx(reason.distance)
        assert found["agreement"] == pytest.approx(reason.agreement)
        for label, near in reason.nearest.items():
            assert found["nearest"][str(label)] == (near + 1).tolist()


def test_the_page_says_why_and_shows_what_is_near(models, rows, serving, training, tmp_path):
    settings = {
        "training": training,
        "review": tmp_path / "review.sqlite",
        "kept": ("story", "scan"),
        "files": tmp_path,
    }
    (tmp_path / "a b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    more = {"story": "long <b>story</b> " * 30, "scan": "a b.png"}
    given = [row | more for row in rows(40)]
    with serving(models / "reject.skops", **settings) as client:
        told = client.post("/v1/predict", json=given).json()["answers"]
        n_refused = sum(each["refused"] for each in told)
        assert n_refused
        store = client.service.refused.store
        assert store.counts()["open"] == n_refused
        client.post("/review/enter", data={"name": "ada"})
        page = client.get("/review/").text
        item = store.next("ada")[0]
        assert "Refused because it lies" in page
        assert "Usual of <q>no</q>" in page
        assert "Usual of <q>yes</q>" in page
        assert "Nearest rows" in page
        assert 'aria-label="margin ' in page
        assert f"P(wrong) {item.wrong:.2f}" in page
        assert html.escape(more["story"]) in page
        assert '<img src="/review/files/a%20b.png"' in page
        assert client.get("/review/files/a%20b.png").status_code == 200
        assert client.get("/review/files/training.csv").status_code == 404
        # a column that nobody announced is still refused
        assert client.post("/v1/predict", json=[rows(1)[0] | {"other": 1}]).status_code == 422


def test_the_risk_of_a_refused_answer(models, rows):
    given = rows(60)
    as_rows = RequestRows(tuple(given[0]), [list(r.values()) for r in given], "json")
    served = ServedModel.load(models / "reject.skops")
    answers = served.answer(served.columns.encode(as_rows))
    low, high = served.band
    assert (low < answers.margins[answers.refused]).all()
    assert (answers.margins[answers.refused] < high).all()
    chances = served.chance_of_error(answers)[answers.refused]
    # inside the band an answer is wrong more often than refusing costs, at worst in one of two
    assert ((chances >= 0.3) & (chances <= 0.5)).all()
    order = np.argsort(-np.abs(answers.margins[answers.refused] - (low + high) / 2))
    assert (np.diff(chances[order]) >= 0).all()
    three = ServedModel.load(models / "three.skops", refuse_below=0.3)
    answers = three.answer(three.columns.encode(as_rows))
    assert three.band is None
    assert ((0 < three.chance_of_error(answers)) & (three.chance_of_error(answers) <= 0.5)).all()


def test_reasons_follow_a_new_model(models, rows, serving, training):
    with serving(models / "reject.skops", training=training) as client:
        service = client.service
        other = ServedModel.load(models / "impute.skops", refuse_below=10.0)
        X = other.columns.encode(
            RequestRows(tuple(rows(1)[0]), [list(r.values()) for r in rows(2)], "json")
        )
        assert len(service.training.reasons(other, X)) == 2


def test_rows_without_a_value_are_left_out(models, serving, training):
    lines = training.read_text().splitlines()
    lines[3] = "," + lines[3].split(",", 1)[1]
    training.write_text("\n".join(lines) + "\n")
    with serving(models / "reject.skops", training=training) as client:
        training_rows = client.service.training
        assert 3 not in training_rows.numbers
        assert len(training_rows.numbers) == 119
        # the rows are called by their place in the file
        last = {name: values[-1] for name, values in training_rows.table.columns.items()}
        label = str(training_rows.labels[-1])
        assert training_rows.evidence.neighbours_of(last, label, 1)[0].row == 120
    with serving(models / "impute.skops", training=training) as client:
        assert len(client.service.training.numbers) == 120
