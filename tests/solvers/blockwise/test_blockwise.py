"""Parts of the blockwise solver that nothing else measures directly."""

from __future__ import annotations

import numba
import numpy as np

from buttress.blocks.base import ArrayBlocks, take_rows
from buttress.kernels.approximate import LinearMap
from buttress.losses import LeakyHockeyStick
from buttress.losses.logarithm import log_from_one
from buttress.solvers.blockwise import _sample, reduction
from buttress.solvers.blockwise.columns import Folds, column_grid, margin_rows
from buttress.solvers.blockwise.objective import make_objective
from buttress.solvers.blockwise.scan import scan


@numba.njit
def _logarithm(x):
    return log_from_one(x)


def test_the_logarithm_is_that_of_the_library() -> None:
    x = np.concatenate([[1.0, 1.0 + 1e-12, 2.0], np.exp(np.linspace(0.0, 80.0, 2000))])
    for value in x:
        np.testing.assert_allclose(_logarithm(value), np.log(value), rtol=1e-14, atol=1e-16)
        single = np.float32(value)
        np.testing.assert_allclose(
            _logarithm(single), np.log(np.float64(single)), rtol=1e-6, atol=1e-7
        )


def nearly_balanced(n: int = 6000):
    """Classes whose majority a sample of the rows would often get wrong."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((n, 6))
    y = (np.arange(n) < n // 2 + 4).astype(int)
    X[:, 0] += 0.2 * y
    drawn = rng.permutation(n)
    return X[drawn], y[drawn]


def objective_of(X, y, alphas):
    source, folds = ArrayBlocks(X, y), Folds(3, seed=0)
    columns = column_grid(1, range(4), alphas)
    rows = margin_rows(LeakyHockeyStick())
    return make_objective(source, LinearMap(X.shape[1]), scan(source, folds), rows, columns, folds)


def test_a_sample_has_the_classes_of_all_rows_in_every_fold() -> None:
    X, y = nearly_balanced()
    objective = objective_of(X, y, [1.0])
    sample = objective.on_sample(take_rows(objective.source, np.arange(0, len(X), 7)))
    assert sample is not None
    share = objective.class_folds / objective.class_folds.sum(axis=0)
    np.testing.assert_allclose(sample.class_folds / sample.class_folds.sum(axis=0), share)


def test_strong_penalties_take_few_passes_whichever_class_is_the_larger(monkeypatch) -> None:
    monkeypatch.setattr(_sample, "_FEWEST_SAMPLE", 300)
    X, y = nearly_balanced()
    objective = objective_of(X, y, np.logspace(1, -3, 6))
    found = reduction.solve_columns(objective, tol=1e-10)
    assert found.method.startswith("sample")
    assert found.converged.all()
    assert found.n_iter <= 40
    whole = reduction.solve_columns(objective, tol=1e-10, method="newton", max_passes=2000)
    np.testing.assert_allclose(found.objective, whole.objective, atol=1e-9)
