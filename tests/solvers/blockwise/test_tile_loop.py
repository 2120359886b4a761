"""The compiled loop over tiles says what the loss's own methods say, for every loss and row."""

from __future__ import annotations

import math

import numpy as np
import pytest

from buttress.blocks.base import ArrayBlocks
from buttress.kernels.approximate import LinearMap
from buttress.losses import LeakyHockeyStick, Logistic, OfNegative, ScalarLoss, TruncatedQuadratic
from buttress.losses.smoothed import ClippingHinge, SmoothedHinge
from buttress.solvers.blockwise.columns import (
    Folds,
    ProblemColumns,
    RowLoss,
    margin_rows,
    reject_rows,
)
from buttress.solvers.blockwise.columns import set_rows as rows_of_sets
from buttress.solvers.blockwise.objective import make_objective
from buttress.solvers.blockwise.scan import scan


class InNumPy:
    """A loss that has nothing for compiled loops."""

    def __init__(self, loss: object) -> None:
        self.value, self.derivative = loss.value, loss.derivative


def squared_hinge() -> ScalarLoss:
    return ScalarLoss(
        lambda u: max(0.0, 1.0 - u) ** 2,
        lambda u: -2.0 * max(0.0, 1.0 - u),
        lambda u: 2.0 if u < 1.0 else 0.0,
        curvature_bound=2.0,
    )


LOSSES = {
    "leaky": LeakyHockeyStick(),
    "power": LeakyHockeyStick(2.5),
    "own": squared_hinge(),
    "logistic": OfNegative(Logistic()),
    "truncated": OfNegative(TruncatedQuadratic()),
    "smoothed": SmoothedHinge(width=0.3),
    "clipping": ClippingHinge(),
}
ROWS = {
    "margin": margin_rows,
    "no offset": lambda loss: margin_rows(loss, fit_intercept=False),
    "two thresholds": lambda loss: reject_rows(loss, 0.2),
}


def columns(n_classes: int, n_columns: int) -> ProblemColumns:
    rng = np.random.default_rng(2)
    problem = np.zeros(n_columns, dtype=int)
    if n_classes > 2:
        problem = np.sort(rng.integers(n_classes, size=n_columns))
    return ProblemColumns(problem, rng.integers(3, size=n_columns), np.full(n_columns, 0.1))


def parts(rows: RowLoss, dtype: type, n_classes: int, n_columns: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)).astype(dtype)
    source, folds = ArrayBlocks(X, rng.integers(n_classes, size=300), rng.random(300)), Folds(2)
    objective = make_objective(
        source, LinearMap(4), scan(source, folds), rows, columns(n_classes, n_columns), folds
    )
    theta = 2.0 * rng.normal(size=(objective.n_parameters, n_columns))
    return list(objective.parts(theta, np.arange(n_columns)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_takes_the_compiled_loop(name: str, dtype: type) -> None:
    loss = LOSSES[name]
    assert loss.scalars is not None
    for kind in ROWS.values():
        for n_classes, n_columns in ((2, 1), (3, 40)):
            shape = (dtype, n_classes, n_columns)
            ours, theirs = parts(kind(loss), *shape), parts(kind(InNumPy(loss)), *shape)
            for mine, other in zip(ours, theirs, strict=True):
                scale = 1.0 + np.abs(other).max()
                precision = 1e-11 if dtype is np.float64 else 1e-5
                np.testing.assert_allclose(mine, other, atol=precision * scale)


@pytest.mark.parametrize("name", ["logistic", "truncated"])
def test_two_offsets_on_one_term_take_it_too(name: str) -> None:
    inner = LOSSES[name].loss
    slow = rows_of_sets(inner)
    slow = RowLoss(InNumPy(slow.loss), slow.terms, slow.n_offsets, slow.slope)
    ours, theirs = (parts(rows, np.float64, 3, 40) for rows in (rows_of_sets(inner), slow))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-11 * (1.0 + np.abs(other).max()))


def test_scalars_of_the_smoothed_hinges_are_their_methods() -> None:
    u = np.linspace(-3.0, 3.0, 61)
    for loss in (SmoothedHinge(width=0.3), ClippingHinge()):
        scalars = loss.scalars
        np.testing.assert_allclose([scalars.value(v) for v in u], loss.value(u), atol=1e-14)
        minus = [-scalars.slopes(v)[0] for v in u]
        np.testing.assert_allclose(minus, loss.derivative(u), atol=1e-14)
        assert all(math.isfinite(scalars.slopes(v)[1]) for v in u)
