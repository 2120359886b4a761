"""The Rademacher penalty of a kernel class under the generalised ramp loss, as a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from buttress._arrays import Array, BoolArray
from buttress._threads import one_blas_thread
from buttress.kernels import check_positive_semidefinite
from buttress.solvers.boxqp.box_qp import SharedMatrix, share_matrix
from buttress.theory._rademacher_loops import Draw, Grid, Kept, follow, signed_risk

# Sizes of the random functions among the starts: inside the kinks, across them, far out.
_START_SCALES = (1.0, 5.0, 30.0)
_GAP_TOLERANCE = 1e-12


class PenaltyAt(NamedTuple):
    """The penalty of the ball ``||w||² <= W``; unpacks as a tuple."""

    mean: Any
    standard_error: Any
    trace_bound: Any


@dataclass(frozen=True, eq=False)
class RademacherCurve:
    """Penalties of growing balls ``||w||² <= W``, for several sign vectors.

    The values are attained by the functions in `decision`, so each is a **lower bound** of
    the supremum it stands for: the problem is not concave, and no method of reasonable cost
    certifies its global maximum. What is certified: the objective of a returned function
    (recomputed from it), and that its last concave step was solved (`surrogate_gaps`). An
    upper bound of the *expected* centred penalty is the trace bound given by `at`.

    Attributes
    ----------
    betas : array of shape (B,)
        Weights of the norm, in the order given.
    sigmas : array of shape (D, n)
        The sign vectors.
    norms : array of shape (D, B)
        ``W = ||w||²`` of the function found.
    penalties : array of shape (D, B)
        ``R = (2/n) sum_i sigma_i phi(y_i f_i)``, not centred, without the norm term.
    objectives : array of shape (D, B)
        ``R - beta W``.
    decision : array of shape (D, B, n)
        Its values ``f = K alpha`` on the sample.
    surrogate_gaps : array of shape (D, B)
        Duality gap of the last concave step.
    jumps : bool array of shape (D, B)
        Where W(beta) leaps between the next larger beta of the grid and this one: no beta
        attains the norms in between, and `at` interpolates across them.
    gamma : float
        Slope of the loss below zero.
    trace : float
        ``tr K``.
    y : array of shape (n,)
        The labels.
    n_starts : int
        Starts per cell; the quality of the lower bound depends on it.
    """

    betas: Array
    sigmas: Array
    norms: Array
    penalties: Array
    objectives: Array
    decision: Array
    surrogate_gaps: Array
    jumps: BoolArray
    gamma: float
    trace: float
    y: Array
    n_starts: int

    @property
    def centres(self) -> Array:
        """``(2/n) sum_i sigma_i`` of every draw: the penalty of the class {0}, shape (D,)."""
        return np.asarray(2.0 * self.sigmas.mean(axis=1))

    def centred(self, W: Any) -> Array:
        """Centred penalty of every draw at the squared norms `W`; the draws are the first axis.

        At the norms of the path the values are attained. Between them the running maximum is
        interpolated linearly in ``sqrt(W)``; across a jump that can be above the truth, because
        the path only sees the concave envelope. Beyond the largest norm the last function is
        scaled up, which is attained.
        """
        wanted = np.asarray(W, dtype=float)
        if not np.all((wanted >= 0) & np.isfinite(wanted)):
            raise ValueError(f"W={W!r} is out of range: expected finite numbers in [0, inf).")
        values = np.empty((len(self.sigmas), wanted.size))
        for d, centre in enumerate(self.centres):
            order = np.argsort(self.norms[d], kind="stable")
            norm = np.concatenate([[0.0], self.norms[d, order]])
            height = np.maximum.accumulate(np.concatenate([[centre], self.penalties[d, order]]))
            radius = np.sqrt(np.maximum(norm, 0.0))
            values[d] = np.interp(np.sqrt(wanted.ravel()), radius, height)
            last = self.y * self.decision[d, order[-1]]
            for k in np.flatnonzero(wanted.ravel() > norm[-1]):
                scale = np.sqrt(wanted.ravel()[k] / norm[-1]) if norm[-1] > 0 else 0.0
                outer = signed_risk(scale * last, self.sigmas[d], self.gamma)
                values[d, k] = max(values[d, k], outer)
            values[d] -= centre
        return values.reshape(-1, *wanted.shape)

    def at(self, W: Any) -> PenaltyAt:
        """The penalty of the ball ``||w||² <= W``, averaged over the sign vectors.

        Parameters
        ----------
        W : float or array
            Squared norm bounds.

        Returns
        -------
        PenaltyAt
            ``mean`` of ``R - (2/n) sum sigma_i`` (same expectation as R, far less noise),
            its ``standard_error`` (nan with one draw), and ``trace_bound``
            ``(2/n) sqrt(W tr K)``, which the expectation cannot exceed because the loss is
            1-Lipschitz.
        """
        values = self.centred(W)
        n_draws = len(values)
        mean = values.mean(axis=0)
        error = np.full_like(mean, np.nan)
        if n_draws > 1:
            error = values.std(axis=0, ddof=1) / np.sqrt(n_draws)
        bound = 2.0 / self.sigmas.shape[1] * np.sqrt(np.asarray(W, dtype=float) * self.trace)
        if np.ndim(W) == 0:
            return PenaltyAt(float(mean), float(error), float(bound))
        return PenaltyAt(mean, error, bound)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the curve with `buttress.inspection.RademacherDisplay` and return the display."""
        # Pictures stand above the theory in the order of imports.
        display = import_module("buttress.inspection").RademacherDisplay
        return display(self).plot(ax=ax, **style)


def rademacher_penalty(
    K: Any,
    y: Any,
    *,
    gamma: float = 0.1,
    betas: Any = None,
    sigmas: Any = None,
    n_draws: int = 20,
    n_starts: int = 11,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> RademacherCurve:
    """Rademacher penalties of the balls of a kernel's function space.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix, positive semidefinite; it may be singular. The class has no bias: for
        one, add a constant to the kernel (``K + 1`` gives a bias of unit weight).
    y : array of shape (n,)
        Labels, -1 or +1.
    gamma : float in (0, 1], default=0.1
        Slope of the generalised ramp loss below zero (the paper's name; no kernel width).
    betas : array-like, optional
        Weights of the norm. Default: 20 values on a log grid over four decades, which lets
        the norm grow from ``kappa ||w|| = 0.1``, kappa² the largest ``K_ii``.
    sigmas : array of shape (D, n) or (n,), optional
        Sign vectors; drawn when not given.
    n_draws : int, default=20
        How many to draw.
    n_starts : int, default=11
        Starts of the concave-convex iteration for each sign vector and beta, besides the
        neighbouring betas' solutions. 1 is the paper's: from zero. Others are random
        functions; with more than one, up to ``n_starts - 1`` single-bit changes of the best
        linearisation are tried as well.
    random_state : int, RandomState or None
        For the sign vectors and the starts.
    n_jobs : int, optional
        Threads over the sign vectors (joblib's meaning).

    Returns
    -------
    RademacherCurve

    Notes
    -----
    For every sign vector sigma and every beta,

        maximise over alpha  (2/n) sum_i sigma_i phi(y_i (K alpha)_i) - beta alpha'K alpha,

    phi the generalised ramp loss, by the concave-convex procedure: the convex part is
    linearised, the concave rest is a box-constrained quadratic program in the dual. In the
    variable ``c = 2 beta alpha`` all of them, for all signs, betas and starts, have the same
    matrix K, and K is never inverted. The objective never falls along the iteration; its end
    point is critical, not always a global maximum (see `RademacherCurve`).

    One concave step costs a few Cholesky factorisations of the margins at a kink, about n²
    to n³/3 operations; from two to five steps are usual. Memory: D B n numbers for the
    decision values.

    References
    ----------
    C. P. Diehl, "Rademacher penalty optimization with the generalized ramp loss", 2009.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    >>> curve = rademacher_penalty(K, np.sign(X[:, 0]), n_draws=5, random_state=0)
    >>> curve.norms.shape
    (5, 20)
    >>> mean, error, bound = curve.at(1.0)
    >>> 0 < mean < bound
    True
    """
    shared, y = _checked_sample(K, y)
    n = len(y)
    rng = check_random_state(random_state)
    _check_slope(gamma)
    for name, count in (("n_draws", n_draws), ("n_starts", n_starts)):
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{name}={count!r} is out of range: expected a whole number >= 1.")
    signs = _checked_signs(sigmas, n, int(n_draws), rng)
    scale = float(np.max(np.diagonal(shared.K)))
    grid = _checked_betas(betas, n, scale)
    order = np.argsort(-grid, kind="stable")
    descending = np.ascontiguousarray(grid[order])
    # Rounding in f grows like kappa²/beta; no step can be certified below it.
    tols = _GAP_TOLERANCE * np.maximum(1.0, 1e-3 * scale / descending)
    codes = rng.randint(np.iinfo(np.int64).max, size=n, dtype=np.int64)
    starts = _start_patterns(shared.K, y, signs, int(n_starts), rng)

    def followed(d: int) -> Kept:
        draw = Draw(shared, y, signs[d], float(gamma), codes)
        kept = _empty(len(grid), signs[d])
        follow(draw, Grid(descending, tols), kept, starts[d], int(n_starts) - 1)
        return kept

    with one_blas_thread():
        per_draw: Sequence[Kept] = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(followed)(d) for d in range(len(signs))
        )
    return _curve(shared, y, signs, float(gamma), grid, order, per_draw, int(n_starts))


def _curve(
    shared: SharedMatrix,
    y: Array,
    signs: Array,
    gamma: float,
    grid: Array,
    order: Any,
    per_draw: Sequence[Kept],
    n_starts: int,
) -> RademacherCurve:
    """Put the results back into the caller's order of betas."""
    back = np.argsort(order, kind="stable")
    cells = np.stack([kept.cells for kept in per_draw])
    norms = np.maximum(cells[:, :, 1], 0.0)
    jumps = np.stack([kept.jumps for kept in per_draw])
    # On one branch W grows at most like beta^-2, so a faster growth proves a leap.
    ratio = (grid[order][:-1] / grid[order][1:]) ** 2
    jumps[:, 1:] |= norms[:, 1:] > ratio * norms[:, :-1] * (1.0 + 1e-6) + 1e-12
    return RademacherCurve(
        betas=grid,
        sigmas=signs,
        norms=norms[:, back],
        penalties=cells[:, back, 2],
        objectives=cells[:, back, 0],
        decision=np.stack([y * kept.margins for kept in per_draw])[:, back],
        surrogate_gaps=cells[:, back, 3],
        jumps=jumps[:, back],
        gamma=gamma,
        trace=float(np.trace(shared.K)),
        y=y,
        n_starts=n_starts,
    )


def _empty(n_betas: int, sigma: Array) -> Kept:
    n = len(sigma)
    return Kept(
        cells=np.zeros((n_betas, 4)),
        patterns=np.zeros((n_betas, n), dtype=np.bool_),
        duals=np.zeros((n_betas, n)),
        margins=np.zeros((n_betas, n)),
        centre=2.0 * float(sigma.mean()),
        jumps=np.zeros(n_betas, dtype=np.bool_),
    )


def _start_patterns(K: Array, y: Array, signs: Array, n_starts: int, rng: Any) -> BoolArray:
    """Where the convex part is linearised first, shape (D, n_starts, n).

    The zero function with either subgradient, then in turn a function pushed the way the
    signs ask for, a random one, and its negative; all draws by one matrix product.
    """
    n_draws, n = signs.shape
    patterns = np.empty((n_draws, n_starts, n), dtype=np.bool_)
    patterns[:, 0] = signs > 0
    if n_starts > 1:
        patterns[:, 1] = True
    n_random = max(n_starts - 2, 0)
    coefficients = rng.standard_normal((n_draws, n_random, n))
    for k in range(n_random):
        if k % 3 == 0:
            coefficients[:, k] = -np.abs(coefficients[:, k]) * signs * y
        elif k % 3 == 2:
            coefficients[:, k] = -coefficients[:, k - 1]
        coefficients[:, k] *= _START_SCALES[(k // 3 + k % 2) % 3]
    margins = (coefficients.reshape(-1, n) @ K).reshape(coefficients.shape) * y
    patterns[:, 2:] = np.where(signs[:, None] > 0, margins < 1.0, margins < 0.0)
    return patterns


def _checked_sample(K: Any, y: Any) -> tuple[SharedMatrix, Array]:
    K = np.asarray(K)
    K = K if K.dtype == np.float32 else K.astype(np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise ValueError(f"K must be a non-empty square matrix, got shape {K.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite: it contains NaN or infinity.")
    check_positive_semidefinite(K)
    K = K.astype(np.float64)
    return share_matrix((K + K.T) / 2.0), _checked_pm_one("y", y, (len(K),))


def _checked_pm_one(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
    if not np.isin(array, (-1.0, 1.0)).all():
        raise ValueError(f"{name} must contain -1 and +1 only.")
    return array


def _check_slope(gamma: Any) -> None:
    number = isinstance(gamma, Real) and not isinstance(gamma, bool)
    if not number or not 0.0 < float(gamma) <= 1.0:
        raise ValueError(f"gamma={gamma!r} is out of range: expected a number in (0, 1].")


def _checked_signs(sigmas: Any, n: int, n_draws: int, rng: Any) -> Array:
    if sigmas is None:
        return np.asarray(rng.choice([-1.0, 1.0], size=(n_draws, n)))
    signs = np.atleast_2d(np.asarray(sigmas))
    return _checked_pm_one("sigmas", signs, (len(signs), n))


def _checked_betas(betas: Any, n: int, scale: float) -> Array:
    if betas is None:
        unit = (scale if scale > 0.0 else 1.0) / np.sqrt(n)
        return np.geomspace(10.0 * unit, 1e-3 * unit, 20)
    grid = np.atleast_1d(np.array(betas, dtype=np.float64))
    if grid.ndim != 1 or grid.size == 0 or not np.all((grid > 0) & np.isfinite(grid)):
        raise ValueError(f"betas={betas!r} is out of range: expected finite numbers in (0, inf).")
    return grid
