"""The function that is returned keeps its bound, and its certificate is its own.

Rows that repeat, radii up to ten thousand, scales of nine orders of magnitude: everything is
recomputed from the stored numbers.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from buttress import UncertaintySetClassifier

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from random_problems import random_problem

LOSSES = ("ellipsoid", "truncated_quadratic", "exponential", "logistic", "reduced_hull")


def judged(model, X, y):
    """Norm, primal and dual value of a fitted model, from what it stores."""
    X = X.astype(float)
    b = float(model.intercept_[0])
    signed = y * model.set_weights_
    if hasattr(model, "coef_"):
        w = model.coef_[0].astype(float)
        f, norm = X @ w + b, float(np.linalg.norm(w))
        distance = float(np.linalg.norm((X - X.mean(axis=0)).T @ signed))
    else:
        K = np.exp(-model.gamma_ * ((X[:, None] - X[None]) ** 2).sum(-1))
        c = np.zeros(len(X))
        c[model.support_] = model.dual_coef_[0].astype(float)
        f, norm = K @ c + b, float(np.sqrt(max(c @ K @ c, 0.0)))
        distance = float(np.sqrt(max(signed @ K @ signed, 0.0)))
    loss, n = model.loss_, len(y)
    primal = -2.0 * model.rho_ + float(np.mean(loss.value(model.rho_ - y * f)))
    bound = getattr(loss, "slope_bound", np.inf)
    conjugate = loss.conjugate(np.minimum(n * model.set_weights_, bound))
    return norm, primal, -float(np.mean(conjugate)) - model.radius * distance


def failure(seed, dtype):
    given = random_problem(seed, (8, 60), extreme=True)
    loss = LOSSES[seed % len(LOSSES)]
    model = UncertaintySetClassifier(
        loss=loss, h=given.h, omega=given.omega, nu=min(given.nu, 0.4), radius=given.radius,
        bias="primal", **given.kernel,
    )  # fmt: skip
    X = given.X.astype(dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, given.y)
        except ValueError as error:  # nu too large for the smaller class
            return None if "2 * min(m_+, m_-) / m" in str(error) else str(error)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    norm, primal, dual = judged(model, X, given.y)
    if norm > given.radius * (1 + 1e-7):
        return f"seed {seed}: norm {norm:g} beyond radius {given.radius:g}"
    off, gap = {"float64": (1e-7, 1e-6), "float32": (1e-4, 1e-3)}[dtype]
    scale = 1 + abs(primal)
    if not warned and abs(primal - model.objective_) > off * scale:
        return f"seed {seed}: objective_ {model.objective_:g}, recomputed {primal:g}"
    # the distance of the sets is a root: its rounding is that of a square
    if not warned and primal - dual > gap * scale + 2e-8 * given.radius:
        return f"seed {seed}: recomputed gap {primal - dual:g}, objective {primal:g}"
    return None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_silent_failure(dtype):
    found = [failure(seed, dtype) for seed in range(40)]
    assert [text for text in found if text] == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_silent_failure_in_a_thousand(dtype):
    found = [failure(seed, dtype) for seed in range(100, 1100)]
    assert [text for text in found if text] == []


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("radius", [100.0, 1e4])
def test_repeated_rows_keep_the_bound(loss, radius):
    """Classes that share their rows: the sets meet, and the function is known by its values."""
    for seed in (10, 17, 39, 52):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.normal(size=(9, 2)), 10, axis=0)
        y = np.tile([1.0, -1.0], 45)
        y[:3] = -y[:3]
        model = UncertaintySetClassifier(
            loss=loss, radius=radius, bias="primal", gamma=1.0, nu=0.3, h=2.0 * (seed % 2)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        norm, primal, dual = judged(model, X, y)
        assert norm <= radius * (1 + 1e-9)
        assert model.objective_ == pytest.approx(primal, rel=1e-6, abs=1e-6)
        assert primal - dual <= model.duality_gap_ + 2e-8 * radius + 1e-6
