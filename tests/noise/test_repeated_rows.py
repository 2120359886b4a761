"""Equal rows: copies are held out together, different records alone, answers not turned round."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from buttress import NoiseAwareClassifier
from buttress.noise.core import kernel_witness
from buttress.noise.core.copies import differ_like_records, distinct_rows, shared_places
from buttress.noise.core.forest_witness import ForestWitness
from buttress.noise.core.kernel_witness import _FACTORS, _PENALTIES, KernelWitness, LeftOut


def few_points(n, seed):
    """Rows at twelve points only, each with both labels, as a table of a few categories has."""
    rng = np.random.default_rng(seed)
    points = np.array([[a, b, c] for a in (0, 1, 2) for b in (0, 1) for c in (0, 1)], dtype=float)
    at = rng.integers(len(points), size=n)
    chance = 1 / (1 + np.exp(-(2.5 * points[at, 1] - 1.0 * points[at, 0] + 0.2)))
    return points[at], (rng.random(n) < chance).astype(int), chance > 0.5


def copied_points(n, seed):
    """Rows at the same points that are copies of one another, but for one label in ten."""
    X, y, best = few_points(n, seed)
    y[:] = best
    y[::10] = 1 - y[::10]
    return X, y


def taken_apart(X, y):
    kept = distinct_rows(X, y, np.ones(len(y)))
    return kept, differ_like_records(kept, y[kept.rows])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_answers_are_not_turned_round(seed):
    X, y, best = few_points(300, seed)
    model = NoiseAwareClassifier(random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == best) > 0.75


def test_a_place_is_held_out_whole():
    X, y = copied_points(60, 3)
    X = np.vstack([X, [[0.5, 0.5, 0.5]]])
    y = np.append(y, 1)
    held = KernelWitness().fit_held_out(X, y)[:, 0]
    for point in np.unique(X, axis=0):
        here = (X == point).all(axis=1)
        assert np.ptp(held[here]) < 1e-6
    # by hand: one candidate, the rows of one place left out, scaling as in the whole

    kept = distinct_rows(X, y, np.ones(len(y)))
    rows = KernelWitness().fit(X, y).scaler_.transform(X[kept.rows])
    target = np.where(y[kept.rows] == 1, 1.0, -1.0)
    gamma, penalty = _FACTORS[2] / rows.shape[1], _PENALTIES[5]
    K = rbf_kernel(rows, gamma=gamma) + 1.0
    scale = np.sqrt(kept.weight)
    values, vectors = np.linalg.eigh(scale[:, None] * K * scale)
    shrink = (values / (values + penalty))[:, None]
    image = vectors.T @ (scale * target)[:, None]
    out = LeftOut(None, np.ones(len(target)), shared_places(kept.point))
    found = kernel_witness._held_out(vectors, shrink, image, target[:, None], scale, out)[0][:, 0]
    for place in np.unique(kept.point):
        out = kept.point == place
        W = np.diag(kept.weight[~out])
        inner = K[np.ix_(~out, ~out)]
        dual = np.linalg.solve(W @ inner + penalty * np.eye(len(W)), W @ target[~out])
        np.testing.assert_allclose(found[out], K[np.ix_(out, ~out)] @ dual, atol=1e-6)


def test_trees_with_a_row_of_the_place_in_their_bag_do_not_vote():
    X, y = copied_points(80, 4)
    held = ForestWitness(n_estimators=60, random_state=0).fit_held_out(X, y)[:, 0]
    for point in np.unique(X, axis=0):
        assert np.ptp(held[(X == point).all(axis=1)]) < 1e-9


def test_labels_of_equal_rows_tell_records_from_copies():
    X, y, _ = few_points(200, 5)
    assert taken_apart(X, y)[1]
    assert not taken_apart(*copied_points(200, 5))[1]
    # a table written twice, weights instead of copies, and too few equal rows to tell
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((100, 2)), rng.integers(2, size=100)
    assert not taken_apart(np.vstack([rows, rows]), np.tile(labels, 2))[1]
    kept = distinct_rows(rows, labels, np.full(100, 2.0))
    assert not differ_like_records(kept, labels[kept.rows])
    assert not taken_apart(np.vstack([rows, rows[:9]]), np.append(labels, 1 - labels[:9]))[1]


def test_one_of_several_records_is_left_out():
    X, y, _ = few_points(60, 3)
    kept, apart = taken_apart(X, y)
    assert apart
    rows = KernelWitness().fit(X, y).scaler_.transform(X[kept.rows])
    target = np.where(y[kept.rows] == 1, 1.0, -1.0)
    K = rbf_kernel(rows, gamma=0.3) + 1.0
    scale = np.sqrt(kept.weight)
    values, vectors = np.linalg.eigh(scale[:, None] * K * scale)
    kinds = values > 1e-10
    values, vectors = values[kinds], vectors[:, kinds]
    shrink = (values / (values + 0.5))[:, None]
    image = vectors.T @ (scale * target)[:, None]
    (found,) = kernel_witness._held_out(
        vectors, shrink, image, target[:, None], scale, LeftOut(None, 1.0 / kept.weight, [])
    )
    for i in range(len(target)):
        fewer = kept.weight - (np.arange(len(target)) == i)
        dual = np.linalg.solve(fewer[:, None] * K + 0.5 * np.eye(len(K)), fewer * target)
        assert found[i, 0] == pytest.approx(K[i] @ dual, abs=1e-7)


def test_a_tree_with_another_record_of_the_place_votes():
    X, y, _ = few_points(80, 4)
    forest = ForestWitness(n_estimators=60, random_state=0)
    held = forest.fit_held_out(X, y)[:, 0]
    at = [(X == point).all(axis=1) for point in np.unique(X, axis=0)]
    both = [here for here in at if len(np.unique(y[here])) == 2]
    # records with one label share their score; the other label, of which one more was seen, differs
    for here in both:
        scores = [held[here & (y == label)] for label in (0, 1)]
        assert max(map(np.ptp, scores)) < 1e-9
        assert scores[0][0] != scores[1][0]
    # an integer weight is that many records
    kept, _ = taken_apart(X, y)
    merged = ForestWitness(n_estimators=60, random_state=0).fit_held_out(
        X[kept.rows], y[kept.rows], sample_weight=kept.weight
    )
    np.testing.assert_allclose(merged[kept.source, 0], held, atol=1e-12)
