"""The JSON program, followed by the reader of the documentation, answers as the model does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import buttress
from buttress.kernels import make_kernel
from buttress.noise import ForestWitness, KernelWitness
from buttress.persistence import to_json
from buttress.tables import TableClassifier

READER = Path(__file__).parents[2] / "docs" / "how_to" / "minimal_predictor.py"
X, Y = make_classification(90, 4, random_state=0, flip_y=0.1)
Y3 = np.where(X[:, 0] > 0.8, 2, Y)
# Rows of training are the edges of some bands; beside them rounding does not decide.
ROWS = X[:40] + 0.01
WITNESSES = [KernelWitness(), ForestWitness(n_estimators=10, random_state=0)]


@pytest.fixture(scope="module")
def predict():
    namespace = {"__name__": "reader"}
    exec(compile(READER.read_text(), str(READER), "exec"), namespace)
    return namespace["predict"]


def check(predict, model, rows=ROWS):
    """Labels and refusals equal, probabilities to 1e-9."""
    program = json.loads(json.dumps(to_json(model), allow_nan=False))
    values = rows.to_numpy().tolist() if hasattr(rows, "columns") else rows.tolist()
    answers = [predict(program, row) for row in values]
    refused = model.reject(rows) if hasattr(model, "reject") else np.zeros(len(rows), dtype=bool)
    assert [label is None for label, _ in answers] == refused.tolist()
    assert program["answer"]["may_refuse"] == hasattr(model, "reject")
    wanted = np.asarray(model.predict(rows))[~refused].tolist()
    assert [label for label, _ in answers if label is not None] == wanted
    if program["answer"]["probabilities"] is not None:
        got = np.array([proba for _, proba in answers])
        np.testing.assert_allclose(got, model.predict_proba(rows), atol=1e-9)
    return program


@pytest.mark.parametrize("labels", [Y, Y3], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "model",
    [
        buttress.LeakyHockeyStickClassifier(kernel="linear", probability=True),
        buttress.RampClassifier(),
        buttress.DoubleHingeClassifier(d=0.3),
        buttress.DoubleHingeClassifier(target_coverage=0.7, random_state=0),
        buttress.PARampClassifier(),
        buttress.MinimaxProbabilityMachine(),
        buttress.NoiseAwareClassifier(WITNESSES, d=0.2, random_state=0),
        buttress.NoiseAwareClassifier([RandomForestClassifier(5, random_state=0)], n_repeats=1),
        buttress.ChowRejector(LogisticRegression(), d=0.2),
        buttress.ChowRejector(LogisticRegression(), d=0.5),
        buttress.ChowRejector(
            HistGradientBoostingClassifier(max_iter=5), target_coverage=0.7, random_state=0
        ),
        buttress.ChowRejector(CalibratedClassifierCV(buttress.RampClassifier()), d=0.1),
        buttress.TwoStageRejector(LogisticRegression(), d=0.1, random_state=0),
        buttress.GroupwiseRejector(
            LogisticRegression(), target_coverage=0.7, by="class", random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_answers_are_those_of_the_model(predict, model, labels):
    check(predict, model.fit(X, labels))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
def test_every_kernel(predict, kernel):
    model = buttress.GeneralizedHingeClassifier().fit(X, Y)
    model.kernel_ = make_kernel(kernel, gamma=0.3, degree=2, coef0=1.0)
    check(predict, model)


def test_costs_decide_answers_and_refusals(predict):
    costs = [[0.0, 1.0, 0.2], [5.0, 0.0, 0.2]]
    check(predict, buttress.ChowRejector(LogisticRegression(), costs=costs).fit(X, Y))


def test_random_waves(predict):
    model = buttress.LeakyHockeyStickClassifier(
        approximation="fourier", n_components=20, random_state=0
    )
    check(predict, model.fit(X, Y))


def test_scaled_rows_and_support_vector_machines(predict):
    inner = make_pipeline(StandardScaler(), SVC())
    model = buttress.NoiseAwareClassifier(inner, n_repeats=1, d=0.2, random_state=0).fit(X, Y)
    check(predict, model)


def test_tables_with_categories_and_gaps(predict):
    table = pd.DataFrame({"size": X[:, 0], "city": np.where(X[:, 1] > 0, "a", "b")})
    table.loc[3, "size"] = np.nan
    labels = np.array(["no", "yes"])[Y]
    model = TableClassifier(buttress.DoubleHingeClassifier(), missing="impute")
    check(predict, model.fit(table, labels), table)


def test_the_reader_is_a_program_of_sixty_lines(tmp_path):
    model = buttress.NoiseAwareClassifier(KernelWitness(), d=0.1).fit(X, Y)
    to_json(model, tmp_path / "model.json")
    rows = "\n".join(json.dumps(row) for row in X[:3].tolist())
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(READER), str(tmp_path / "model.json")],
        input=rows,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    got = [json.loads(line) for line in done.stdout.splitlines()]
    np.testing.assert_allclose([p for _, p in got], model.predict_proba(X[:3]), atol=1e-9)
    lines = [line for line in READER.read_text().splitlines() if line.strip()]
    assert len(lines) <= 60


def test_what_has_no_translation_is_named():
    with pytest.raises(ValueError, match="GaussianNB cannot be exported as JSON"):
        to_json(buttress.ChowRejector(GaussianNB()).fit(X, Y))
    with pytest.raises(ValueError, match="kernel='cosine'"):
        to_json(buttress.GeneralizedHingeClassifier(kernel="cosine").fit(X, Y))
    with pytest.raises(ValueError, match="isotonic"):
        to_json(buttress.ChowRejector(SVC(), calibration="isotonic", cv=3).fit(X, Y))
