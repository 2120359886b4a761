"""Random problems with wild scales: no machine may stop short of the optimum in silence.

Every fit is judged from its stored numbers alone: the objective is recomputed from the definition
of the loss, and the last convex step is solved a second time by Clarabel.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    RampClassifier,
)
from buttress.losses import DoubleHinge, DoubleRamp, GeneralizedHinge, Ramp
from buttress.solvers.hinge import _double_ramp, certificate, ramp

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from random_problems import random_problem

FAMILIES = ("ramp", "double_ramp", "double_hinge", "generalized_hinge")


def machine(family, given):
    common = {**given.kernel, "C": given.C, "fit_intercept": given.fit_intercept}
    if family == "ramp":
        return RampClassifier(s=given.s, **common)
    if family == "double_ramp":
        return DoubleRampClassifier(d=given.d, mu=given.mu, **common)
    if family == "double_hinge":
        return DoubleHingeClassifier(d=given.d, **common)
    return GeneralizedHingeClassifier(d=given.d, **common)


def stored_function(model, X):
    """Scores, squared norm and points of the rows, from the stored numbers in float64."""
    b = float(model.intercept_[0])
    if hasattr(model, "coef_"):
        w = model.coef_[0].astype(float)
        return X @ w + b, float(w @ w), X
    K = np.exp(-model.gamma_ * ((X[:, None] - X[None]) ** 2).sum(-1))
    c = np.zeros(len(X))
    c[model.support_] = model.dual_coef_[0].astype(float)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-15 * values[-1]
    return K @ c + b, float(c @ K @ c), vectors[:, kept] * np.sqrt(values[kept])


def stated_loss(family, given, model, t):
    if family == "ramp":
        return Ramp(given.s).value(t).sum() if np.isfinite(given.s) else np.maximum(1 - t, 0).sum()
    if family == "double_ramp":
        return DoubleRamp(d=given.d, mu=given.mu, rho=model.rho_).value(t).sum()
    return (DoubleHinge if family == "double_hinge" else GeneralizedHinge)(given.d).value(t).sum()


def hinges(family, given, model, f):
    """Terms of the machine: margin, clip, weight, the sign in front of rho."""
    n = len(f)
    if family == "ramp":
        return [(1.0, given.s, np.full(n, given.C), 0.0)]
    if family == "double_ramp":
        mu, unit = given.mu, np.full(n, given.C / given.mu)
        return [(mu, -mu * mu, given.d * unit, -1.0), (mu, -mu * mu, (1 - given.d) * unit, 1.0)]
    terms = (DoubleHinge if family == "double_hinge" else GeneralizedHinge)(given.d).terms
    return [(m, -np.inf, np.full(n, w * given.C), 0.0) for w, m in terms if w > 0]


def convex_step(F, y, terms, clipped, bias, band):
    """Its least value by Clarabel over a vector, a bias and the width of the band."""
    clarabel = pytest.importorskip("clarabel")
    scale = max(float(np.abs(F).max()), 1e-300)
    unit = max(float(weight.max()) for _, _, weight, _ in terms)
    blocks = []
    for _, _, _, side in terms:
        free = [y] * bias + [np.full(len(y), side)] * band
        blocks.append(np.column_stack([y[:, None] * F / scale, *free]))
    T = np.vstack(blocks)
    weight = np.concatenate([term[2] for term in terms]) / unit
    margin = np.concatenate([np.full(len(y), term[0]) for term in terms])
    m, k = T.shape
    beta = weight * np.concatenate(clipped)
    norm = np.r_[np.full(F.shape[1], 1.0 / (scale**2 * unit)), np.zeros(k - F.shape[1] + m)]
    eye = sparse.identity(m)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(
        sparse.diags(norm, format="csc"),
        np.r_[beta @ T, weight],
        sparse.bmat([[sparse.csc_matrix(-T), -eye], [None, -eye]], format="csc"),
        np.r_[-margin, np.zeros(m)],
        [clarabel.NonnegativeConeT(2 * m)],
        settings,
    ).solve()
    x = np.asarray(solution.x)
    t = T @ x[:k]
    value = 0.5 * norm @ x**2 + weight @ np.maximum(margin - t, 0.0) + beta @ t
    return unit * float(value)


@pytest.fixture
def recorded(monkeypatch):
    """The certificates of the ramp machines, which know where the last tangents were taken."""
    found = []

    def keep(*given):
        found.append(certificate.certificate_of(*given))
        return found[-1]

    for module in (ramp, _double_ramp):
        monkeypatch.setattr(module, "certificate_of", keep)
    return found


def failure(family, seed, dtype, accepted, recorded):
    """What is wrong with one fit, or None."""
    recorded.clear()
    given = random_problem(seed, (8, 60), extreme=True)
    X, y = given.X.astype(dtype), given.y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = machine(family, given).fit(X, y)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    f, norm, F = stored_function(model, X.astype(float))
    stated = 0.5 * norm + given.C * stated_loss(family, given, model, y * f)
    # a rounding error of f costs its size in every loss
    rounding = 1e-13 * given.C * len(y) * (1 + np.abs(f).max())
    if abs(model.objective_ - stated) > 1e-8 * abs(stated) + rounding:
        return f"seed {seed}: objective_ {model.objective_:g}, recomputed {stated:g}"
    if warned:
        return None
    rho = getattr(model, "rho_", 0.0)
    terms = hinges(family, given, model, f)
    band = bool(family == "double_ramp" and given.d < 0.5)
    F = F - F.mean(axis=0) if given.fit_intercept else F
    clipped = [np.zeros(len(y), dtype=bool)] * len(terms)
    if recorded:  # where the solver took its tangents; ours is their least value or it is not
        clipped = np.resize(recorded[-1].pattern, (len(terms), len(y)))
    t = [y * f + side * rho for _, _, _, side in terms]
    ours = 0.5 * norm + sum(
        weight @ (np.maximum(margin - u, 0.0) + c * u)
        for (margin, _, weight, _), u, c in zip(terms, t, clipped, strict=True)
    )
    above = ours - convex_step(F, y, terms, list(clipped), given.fit_intercept, band)
    allowed = accepted * (1 + abs(stated))
    if dtype == "float32":  # scores are promised to 1e-4, and what that leaves in every term
        allowed = max(allowed, 2e-4 * sum(float(weight.sum()) for _, _, weight, _ in terms))
    if above > allowed:
        return f"seed {seed}: {above:g} above the optimum, objective {stated:g}"
    return None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_silent_failure(family, dtype, recorded):
    accepted = {"float64": 1e-6, "float32": 1e-4}[dtype]
    found = [failure(family, seed, dtype, accepted, recorded) for seed in range(12)]
    assert [text for text in found if text] == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_silent_failure_in_a_thousand(family, dtype, recorded):
    accepted = {"float64": 1e-6, "float32": 1e-4}[dtype]
    found = [failure(family, seed, dtype, accepted, recorded) for seed in range(100, 1100)]
    assert [text for text in found if text] == []


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_features_of_sixty_thousand_are_solved_to_the_end(family, dtype):
    """Sums of products keep no digit here; the vector does."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = (6e4 * rng.normal(size=(40, 3))).astype(dtype)
        y = np.where(X[:, 0] + 3e4 * rng.normal(size=40) > 0, 1, -1)
        given = random_problem(0, (8, 8))
        given = given.__class__(
            **{**vars(given), "C": 1e4, "kernel": {"kernel": "linear"}, "fit_intercept": True,
               "s": -1.0, "d": 0.2}
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            model = machine(family, given).fit(X, y)
        assert model.duality_gap_ <= (1e-9 if dtype == "float64" else 1e-5) * model.objective_
        f = X.astype(float) @ model.coef_[0].astype(float) + float(model.intercept_[0])
        norm = float(np.sum(model.coef_[0].astype(float) ** 2))
        stated = 0.5 * norm + 1e4 * stated_loss(family, given, model, y * f)
        assert model.objective_ == pytest.approx(stated, rel=1e-10)
