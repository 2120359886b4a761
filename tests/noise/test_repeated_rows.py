"""Equal rows that carry different labels: held out together, answers not turned round."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from buttress import NoiseAwareClassifier
from buttress.noise.core import kernel_witness
from buttress.noise.core.copies import distinct_rows, shared_places
from buttress.noise.core.forest_witness import ForestWitness
from buttress.noise.core.kernel_witness import _FACTORS, _PENALTIES, KernelWitness


def few_points(n, seed):
    """Rows at twelve points only, each with both labels, as a table of a few categories has."""
    rng = np.random.default_rng(seed)
    points = np.array([[a, b, c] for a in (0, 1, 2) for b in (0, 1) for c in (0, 1)], dtype=float)
    at = rng.integers(len(points), size=n)
    chance = 1 / (1 + np.exp(-(2.5 * points[at, 1] - 1.0 * points[at, 0] + 0.2)))
    return points[at], (rng.random(n) < chance).astype(int), chance > 0.5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_answers_are_not_turned_round(seed):
    X, y, best = few_points(300, seed)
    model = NoiseAwareClassifier(random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == best) > 0.75


def test_a_place_is_held_out_whole():
    X, y, _ = few_points(60, 3)
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
    found = kernel_witness._held_out(
        vectors, shrink, image, target[:, None], scale, None, shared_places(kept.place)
    )[0][:, 0]
    for place in np.unique(kept.place):
        out = kept.place == place
        W = np.diag(kept.weight[~out])
        inner = K[np.ix_(~out, ~out)]
        dual = np.linalg.solve(W @ inner + penalty * np.eye(len(W)), W @ target[~out])
        np.testing.assert_allclose(found[out], K[np.ix_(out, ~out)] @ dual, atol=1e-6)


def test_trees_with_a_row_of_the_place_in_their_bag_do_not_vote():
    X, y, _ = few_points(80, 4)
    held = ForestWitness(n_estimators=60, random_state=0).fit_held_out(X, y)[:, 0]
    for point in np.unique(X, axis=0):
        assert np.ptp(held[(X == point).all(axis=1)]) < 1e-9
