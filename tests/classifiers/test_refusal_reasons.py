"""Why rows are refused, and refusing what is unlike the training rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from buttress import ChowRejector
from buttress.classifiers import explain_held_out, explain_reject


@pytest.fixture(scope="module")
def rows():
    """A clean boundary at 0 on the left half, coin tosses in a patch on the right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(1500, 2))
    y = (X[:, 1] > 0).astype(int)
    patch = (X[:, 0] > 1.5) & (np.abs(X[:, 1]) < 1.5)
    y[patch] = rng.integers(0, 2, patch.sum())
    return X, y


class Everything(LogisticRegression):
    """Refuses every row."""

    def reject(self, X):
        return np.ones(len(X), dtype=bool)


def test_the_three_reasons_are_told_apart(rows):
    X, y = rows
    model = Everything().fit(X, y)
    asked = [[-1.5, 0.0], [2.2, 0.0], [0.0, 40.0]]
    found = explain_reject(model, asked, X, y)
    assert [one.reason for one in found] == [
        "near the boundary",
        "among rows whose labels contradict each other",
        "far from all training rows",
    ]
    assert found[2].distance > 20 * found[0].distance
    assert found[0].agreement < 0.95


def test_the_nearest_rows_of_each_class_are_the_nearest(rows):
    X, y = rows
    model = Everything().fit(X, y)
    (one,) = explain_reject(model, [[-1.0, 0.3]], X, y, n_nearest=4)
    scaled = (X - np.array([-1.0, 0.3])) / X.std(axis=0)
    for label in (0, 1):
        places = np.flatnonzero(y == label)
        order = places[np.argsort((scaled[places] ** 2).sum(axis=1))]
        assert one.nearest[label].tolist() == order[:4].tolist()


def test_answered_rows_have_no_reason_and_pipelines_work(rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), ChowRejector(LogisticRegression(), d=0.2)).fit(X, y)
    found = explain_reject(model, X[:200], X, y)
    refused = np.flatnonzero(model[-1].reject(model[0].transform(X[:200])))
    assert [one.row for one in found] == refused.tolist()
    assert explain_reject(model, [[0.0, 3.0]], X, y) == []


def test_wrong_use_is_named(rows):
    X, y = rows
    model = Everything().fit(X, y)
    with pytest.raises(ValueError, match="n_neighbors=0"):
        explain_reject(model, X[:2], X, y, n_neighbors=0)
    with pytest.raises(ValueError, match="y_train has 3 entries"):
        explain_reject(model, X[:2], X, y[:3])
    with pytest.raises(ValueError, match="At least two training rows"):
        explain_reject(model, X[:2], X[:1], y[:1])


def test_rows_unlike_the_training_rows_are_refused(rows):
    X, y = rows
    model = ChowRejector(LogisticRegression(), d=0.4, novelty=0.02).fit(X, y)
    plain = ChowRejector(LogisticRegression(), d=0.4).fit(X, y)
    strange = np.random.default_rng(1).uniform(-3, 3, size=(50, 2))
    strange[:, 1] += 12.0
    assert model.reject(strange).all()
    assert not plain.reject(strange).any()
    extra = model.reject(X) & ~plain.reject(X)
    assert extra.mean() <= 0.03
    assert (plain.reject(X) <= model.reject(X)).all()
    with pytest.raises(ValueError, match="novelty=2"):
        ChowRejector(LogisticRegression(), novelty=2).fit(X, y)
    with pytest.raises(ValueError, match="novelty cannot be combined"):
        ChowRejector(LogisticRegression(), novelty=0.1, target_risk=0.1).fit(X, y)


def test_a_class_that_was_held_out_is_refused_more_often():
    """Three clusters, one of them unknown to the training."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 6.0]])
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 2)) * 0.7 + centres[y]
    known = y < 2
    model = ChowRejector(LogisticRegression(), d=0.3, novelty=0.05).fit(X[known], y[known])
    assert model.reject(X[~known]).mean() > 0.95
    assert model.reject(X[known]).mean() < 0.15


def test_the_method_is_the_function(rows):
    X, y = rows
    model = ChowRejector(LogisticRegression(), d=0.2).fit(X, y)
    mine = model.explain_reject(X[:200], X, y, n_nearest=2)
    expected = explain_reject(model, X[:200], X, y, n_nearest=2)
    assert [(one.row, one.reason) for one in mine] == [(one.row, one.reason) for one in expected]
    assert len(mine) == model.reject(X[:200]).sum() > 0
    with pytest.raises(ValueError, match="needs X_train and y_train"):
        model.explain_reject(X[:5])
    keeping = ChowRejector(LogisticRegression(), d=0.2, novelty=0.01).fit(X, y)
    alone = keeping.explain_reject(X[:200])
    told = keeping.explain_reject(X[:200], X, y)
    assert [one.reason for one in alone] == [one.reason for one in told]


def test_held_out_rows_are_not_their_own_neighbours(rows):
    X, y = rows
    refused = np.zeros(len(y), dtype=bool)
    refused[::50] = True
    found = explain_held_out(X, y, refused, n_neighbors=8, n_nearest=2)
    assert [one.row for one in found] == np.flatnonzero(refused).tolist()
    for one in found:
        assert all(one.row not in near and len(near) == 2 for near in one.nearest.values())
        # as if the row had been asked about from outside
        others = np.arange(len(y)) != one.row
        distance = np.linalg.norm((X[others] - X[one.row]) / X.std(axis=0), axis=1)
        label = int(y[one.row])
        mine = np.flatnonzero(others)[y[others] == label]
        order = mine[np.argsort(distance[y[others] == label])]
        assert one.nearest[label].tolist() == order[:2].tolist()
    assert explain_held_out(X, y, np.zeros(len(y), dtype=bool)) == []
