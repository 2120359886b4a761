"""Ramp losses and norm bounds by passes over blocks."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.blocks.base import ArrayBlocks
from buttress.kernels import make_kernel
from buttress.kernels.approximate import nystroem_map, transform
from buttress.losses.smooth import EllipsoidError, Exponential, TruncatedQuadratic
from buttress.losses.smoothed import SmoothedRamp
from buttress.solvers.blockwise.columns import (
    Folds,
    column_grid,
    margin_rows,
    reject_rows,
    set_rows,
)
from buttress.solvers.blockwise.objective import make_objective
from buttress.solvers.blockwise.outer import solve_radius_columns, solve_ramp_columns
from buttress.solvers.blockwise.scan import scan
from buttress.solvers.hinge.kernel_rows import KernelMatrix
from buttress.solvers.hinge.ramp import RampTerms, solve_ramp

RNG = np.random.default_rng(0)
N = 250
X = RNG.standard_normal((N, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] ** 2 - 0.3 + 0.3 * RNG.standard_normal(N) > 0).astype(int)
Y[:20] = 1 - Y[:20]
SIGNS = np.where(Y == 1, 1.0, -1.0)
MAP = nystroem_map(make_kernel("rbf", gamma=0.3), X[:30])
PHI = transform(MAP, X)


def problem(rows, columns, folds=None, block_size=60):
    source = ArrayBlocks(X, Y, block_size=block_size)
    folds = folds or Folds()
    return make_objective(source, MAP, scan(source, folds), rows, columns, folds)


@pytest.mark.smoke
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_rounded_ramp_ends_near_the_sharp_one(C: float) -> None:
    width = 0.01
    rows = margin_rows(SmoothedRamp(width=width))
    found = solve_ramp_columns(problem(rows, column_grid(1, [0], [1 / (2 * C * N)])))
    assert found.solution.converged.all()
    assert (np.diff(found.objective_path[:, 0]) <= 1e-12).all()
    sharp = solve_ramp(
        KernelMatrix(PHI @ PHI.T),
        SIGNS,
        RampTerms(s=-1.0, weight=None, fit_intercept=True),
        C=C,
        tol=1e-9,
        max_iter=100,
    )
    theta = found.solution.theta[:, 0]
    u = SIGNS * (PHI @ theta[:-1] + theta[-1])
    true = 0.5 * theta[:-1] @ theta[:-1] + C * np.minimum(np.maximum(1 - u, 0), 2).sum()
    # From the same start both end in the same valley; its floor moves by C n width / 4 at most.
    assert abs(true - sharp.objective) <= C * N * width / 4
    reached = C * N * found.solution.certificates()[0].objective
    assert reached == pytest.approx(true, abs=C * N * width / 4)


def test_columns_of_the_ramp_ride_together_and_alone() -> None:
    folds = Folds(2, seed=4)
    rows = margin_rows(SmoothedRamp(width=0.05))
    alphas = [1 / (2 * C * N) for C in (0.5, 5.0)]
    together = solve_ramp_columns(problem(rows, column_grid(1, range(3), alphas), folds))
    for c in range(6):
        columns = column_grid(1, [c // 2], [alphas[c % 2]])
        alone = solve_ramp_columns(problem(rows, columns, folds, block_size=250))
        assert together.solution.objective[c] == pytest.approx(
            alone.solution.objective[0], abs=1e-8
        )
    assert together.objective_path.shape[1] == 6


def test_a_start_is_where_the_first_tangent_is_taken() -> None:
    rows = margin_rows(SmoothedRamp(width=0.05))
    objective = problem(rows, column_grid(1, [0], [1e-3]))
    first = solve_ramp_columns(objective)
    again = solve_ramp_columns(objective, start=first.solution.theta)
    assert again.n_outer[0] <= 2
    assert again.solution.objective[0] == pytest.approx(first.solution.objective[0], abs=1e-9)


def test_two_thresholds_split_into_costs_of_both_classes() -> None:
    from buttress.solvers.hinge.reject import DoubleRampTerms, solve_double_ramp

    mu, d, C, width = 1.0, 0.2, 1.0, 0.01
    rows = reject_rows(SmoothedRamp(mu, -mu * mu, 1 / mu, width), d)
    found = solve_ramp_columns(problem(rows, column_grid(1, [0], [1 / (2 * C * N)])))
    sharp = solve_double_ramp(KernelMatrix(PHI @ PHI.T), SIGNS, DoubleRampTerms(d=d, mu=mu), C=C)
    low, high = found.solution.theta[-2:, 0]
    assert found.solution.objective[0] * C * N == pytest.approx(
        sharp.objective, abs=C * N * width / (4 * mu)
    )
    assert (high - low) / 2 == pytest.approx(sharp.rho, abs=0.05)


@pytest.mark.parametrize("radius", [1.0, 10.0, 1e4])
@pytest.mark.parametrize("name", ["truncated", "exponential", "ellipsoid"])
def test_norm_bound_agrees_with_a_conic_solver(name: str, radius: float) -> None:
    cp = pytest.importorskip("cvxpy")
    loss, shape = {
        "truncated": (TruncatedQuadratic(), lambda z: cp.square(cp.pos(1 + z))),
        "exponential": (Exponential(), cp.exp),
        "ellipsoid": (EllipsoidError(), lambda z: cp.square(cp.pos(z / 2 + 1))),
    }[name]
    objective = problem(set_rows(loss), column_grid(1, [0], [1.0]))
    found = solve_radius_columns(objective, np.array([radius]))
    assert found.solution.converged.all()
    w, b, rho = cp.Variable(PHI.shape[1]), cp.Variable(), cp.Variable()
    mean = cp.sum(shape(rho - cp.multiply(SIGNS, PHI @ w + b))) / N
    reference = cp.Problem(cp.Minimize(-2 * rho + mean), [cp.norm(w) <= radius])
    reference.solve(solver="CLARABEL")
    assert found.solution.objective[0] == pytest.approx(reference.value, abs=1e-5)
    norm = np.linalg.norm(found.solution.theta[:-2, 0])
    assert norm <= radius * (1 + 1e-9)
    assert found.active[0] == (radius < 1e3)
    if found.active[0]:
        assert norm == pytest.approx(radius, rel=1e-5)
        assert found.solution.gap[0] < 1e-7


def test_radii_and_folds_ride_together() -> None:
    folds = Folds(2, seed=0)
    columns = column_grid(1, range(3), [1.0, 5.0])
    objective = problem(set_rows(TruncatedQuadratic()), columns, folds)
    found = solve_radius_columns(objective, columns.alpha)
    assert found.solution.converged.all()
    norms = np.linalg.norm(found.solution.theta[:-2], axis=0)
    np.testing.assert_allclose(norms, columns.alpha, rtol=1e-5)
    assert (found.solution.objective[1::2] < found.solution.objective[::2]).all()
