"""How sure the noise rates are: a grid over the rates, draws from what the labels leave open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from buttress._arrays import Array, IntArray
from buttress._threads import in_threads, workers
from buttress.noise.core._curves import (
    Curves,
    Design,
    class_probabilities,
    maximise,
    objective,
    true_class_posterior,
)

# Rates of one half and more would say that labels mean the opposite.
LARGEST_RATE = 0.49
# Equally weighted draws from the posterior: Monte Carlo error of a probability below .02 of its
# own uncertainty.
N_DRAWS = 200
# Candidates per draw, and how much wider than the normal approximation they are spread.
_SURPLUS, _SPREAD = 5, 1.3
_POINTS, _POINTS_PER_SIDE, _FEWEST_PER_SIDE = 31, 15, 9
# A grid is narrowed while one point holds more than this share of the posterior.
_COARSE = 0.35
_MOST_ZOOMS = 6
# Points whose posterior is below exp(-12) of the best are of no account.
_NEGLIGIBLE = 12.0
# Rows that place the first grid; on the narrow one all rows are used.
_ROWS_FOR_PLACING = 4000
_EM_STEPS = 30
# Rows times draws that are looked at together: their numbers stay in the cache.
_BLOCK_ENTRIES = 100_000


# The two parameters of a Beta distribution; matrices of the points of a grid.
Prior: TypeAlias = tuple[float, float]
Transition: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the labels say about rates and curve.

    Attributes
    ----------
    transition : array of shape (n_draws, n_classes, n_classes)
    coefficients : array of shape (n_draws, n_parameters)
    log_evidence : float
        Logarithm of the marginal likelihood, up to the constant that all models share.
    mode_transition, mode_coefficients : arrays
        The most probable point.
    rate_axis, rate_mass : arrays
        Marginal posterior of every rate: grid points (n_classes, m) and their shares.
    """

    transition: Array
    coefficients: Array
    log_evidence: float
    mode_transition: Array
    mode_coefficients: Array
    rate_axis: Array
    rate_mass: Array

    def rate_intervals(self, level: float) -> Array:
        """The shortest interval of every rate that holds `level` of the posterior."""
        return np.array(
            [_shortest(a, m, level) for a, m in zip(self.rate_axis, self.rate_mass, strict=True)]
        )

    def share_above(self, rate: float) -> float:
        """The largest posterior share, over the classes, of rates above `rate`."""
        return float(np.max(np.sum(self.rate_mass * (self.rate_axis > rate), axis=1)))


def uniform_transition(rates: Array, n_classes: int) -> Array:
    """Matrices of noise that is the same for all classes, one for every rate."""
    rates = np.asarray(rates, dtype=float)[:, None]
    return per_class_transition(np.repeat(rates, n_classes, axis=1))


def per_class_transition(rates: Array) -> Array:
    """Matrices in which class j keeps its label with 1 - rate_j and else takes any other."""
    k = rates.shape[1]
    matrices = np.repeat(rates[:, :, None] / (k - 1), k, axis=2)
    matrices[:, np.arange(k), np.arange(k)] = 1.0 - rates
    return np.asarray(matrices)


def uniform_posterior(design: Design, prior: Prior, random: np.random.Generator) -> Posterior:
    """The posterior when all classes share one rate."""

    def transition(rates: Array) -> Array:
        return uniform_transition(rates[:, 0], design.features.shape[1] + 1)

    return _rates_posterior(design, transition, 1, _POINTS, prior, random)


def two_rate_evidence(design: Design, prior: Prior) -> float:
    """Log evidence of two classes whose rates may differ, from a coarse grid."""
    return _grid_posterior(design, per_class_transition, 2, _FEWEST_PER_SIDE, prior).log_evidence


def two_rate_posterior(design: Design, prior: Prior, random: np.random.Generator) -> Posterior:
    """The posterior with two classes whose rates may differ."""
    return _rates_posterior(design, per_class_transition, 2, _POINTS_PER_SIDE, prior, random)


def _rates_posterior(
    design: Design,
    transition: Transition,
    n_rates: int,
    n_points: int,
    prior: Prior,
    random: np.random.Generator,
) -> Posterior:
    """The posterior of one rate that all classes share, or of one for each."""
    grid = _grid_posterior(design, transition, n_rates, n_points, prior)
    rates, coefficients, mass = _sampled(design, grid, transition, random)
    sides = [len(axis) for axis in grid.axes]
    best = np.unravel_index(grid.best, sides)
    mode = np.array([[axis[i] for axis, i in zip(grid.axes, best, strict=True)]])
    every = range(n_rates)
    shares = [mass.reshape(sides).sum(axis=tuple(j for j in every if j != k)) for k in every]
    # one rate stands for all classes
    copies = (design.features.shape[1] + 1) // n_rates
    return Posterior(
        transition=transition(rates),
        coefficients=coefficients,
        log_evidence=grid.log_evidence,
        mode_transition=transition(mode)[0],
        mode_coefficients=grid.curves.coefficients[grid.best],
        rate_axis=np.repeat(np.array(grid.axes), copies, axis=0),
        rate_mass=np.repeat(np.array(shares), copies, axis=0),
    )


@dataclass(frozen=True, eq=False)
class FreeMode:
    """The most probable free transition matrix (more than two classes), and its evidence."""

    transition: Array
    coefficients: Array
    log_evidence: float


def free_mode(design: Design, shared: Posterior) -> FreeMode:
    """By expectation and maximisation from the shared rate; Schwarz's criterion as evidence."""
    mode, theta = _expectation_maximisation(
        design, shared.mode_transition, shared.mode_coefficients, design.weight
    )
    value = objective(design, mode[None], theta[None])[0]
    before = objective(design, shared.mode_transition[None], shared.mode_coefficients[None])[0]
    n_free = len(mode) * (len(mode) - 1) - 1
    penalty = 0.5 * n_free * np.log(design.weight.sum())
    return FreeMode(mode, theta, shared.log_evidence + float(value - before - penalty))


def free_posterior(design: Design, mode: FreeMode, random: np.random.Generator) -> Posterior:
    """The posterior of a free transition matrix by reweighted fits.

    Every draw is the most probable point under exponential weights of the rows (the Bayesian
    bootstrap).
    """
    n_draws, k = N_DRAWS // 4, len(mode.transition)
    fits = [
        _expectation_maximisation(
            design,
            mode.transition,
            mode.coefficients,
            design.weight * random.exponential(size=len(design.weight)),
        )
        for _ in range(n_draws)
    ]
    matrices = np.array([matrix for matrix, _ in fits])
    rates = 1.0 - matrices[:, np.arange(k), np.arange(k)]
    return Posterior(
        transition=matrices,
        coefficients=np.array([theta for _, theta in fits]),
        log_evidence=mode.log_evidence,
        mode_transition=mode.transition,
        mode_coefficients=mode.coefficients,
        rate_axis=np.sort(rates.T, axis=1),
        rate_mass=np.full((k, n_draws), 1.0 / n_draws),
    )


# -- the grid --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Grid:
    """Posterior shares of the points of a grid, the first axis slowest."""

    axes: list[Array]
    mass: Array
    log_mass: Array
    curves: Curves

    @property
    def log_evidence(self) -> float:
        best = float(self.log_mass.max())
        return best + float(np.log(np.exp(self.log_mass - best).sum()))

    @property
    def best(self) -> int:
        return int(self.mass.argmax())


def _grid_posterior(
    design: Design, transition: Transition, n_rates: int, n_points: int, prior: Prior
) -> _Grid:
    """A grid that is narrowed until it is fine enough; a part of the rows places the first."""
    axes: list[Array] = [LARGEST_RATE * np.linspace(0.0, 1.0, n_points) ** 1.5] * n_rates
    rows = _part_of(design, _ROWS_FOR_PLACING)
    start = maximise(
        rows, transition(np.full((1, n_rates), 0.1)), np.zeros(design.n_parameters)
    ).coefficients[0]
    for _ in range(_MOST_ZOOMS):
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, n_rates)
        curves = maximise(rows, transition(points), start)
        log_mass = curves.log_evidence + _log_beta(points, prior) + np.log(_trapezoid(axes))
        mass = np.exp(log_mass - log_mass.max())
        grid = _Grid(axes, mass / mass.sum(), log_mass, curves)
        start = curves.coefficients[grid.best]
        if rows is design and grid.mass.max() < _COARSE:
            break
        # where many rows make every point dear the posterior is normal and a few points do
        fewer = (
            min(n_points, _FEWEST_PER_SIDE) if len(design.codes) > _ROWS_FOR_PLACING else n_points
        )
        axes = _narrowed(axes, log_mass - log_mass.max(), fewer)
        rows = design
    return grid


def _narrowed(axes: list[Array], log_mass: Array, n_points: int) -> list[Array]:
    """Axes over the points that count, and one more on either side."""
    counts = log_mass.reshape([len(axis) for axis in axes]) > -_NEGLIGIBLE
    narrowed: list[Array] = []
    for k, axis in enumerate(axes):
        across = tuple(i for i in range(len(axes)) if i != k)
        counted = np.flatnonzero(counts.any(axis=across))
        low, high = max(counted[0] - 1, 0), min(counted[-1] + 1, len(axis) - 1)
        narrowed.append(np.linspace(axis[low], axis[high], n_points))
    return narrowed


def _trapezoid(axes: list[Array]) -> Array:
    volume = np.ones(1)
    for axis in axes:
        width = np.zeros(len(axis))
        width[:-1] += 0.5 * np.diff(axis)
        width[1:] += 0.5 * np.diff(axis)
        volume = np.multiply.outer(volume, width)
    return np.maximum(volume.ravel(), 1e-300)


def _log_beta(points: Array, prior: Prior) -> Array:
    """Logarithm of the Beta prior of every rate, truncated at the largest rate."""
    a, b = prior
    fine = np.linspace(0.0, LARGEST_RATE, 2001)[1:]
    # in logarithms: the densities of a prior worth thousands of rows are no numbers
    masses = (a - 1.0) * np.log(fine) + (b - 1.0) * np.log1p(-fine)
    log_total = logsumexp(masses) + np.log(LARGEST_RATE / len(fine))
    inner = np.clip(points, 1e-4, 1.0)
    density = (a - 1.0) * np.log(inner) + (b - 1.0) * np.log1p(-points)
    return np.asarray(density.sum(axis=1) - points.shape[1] * log_total)


def _part_of(design: Design, most: int) -> Design:
    n = len(design.codes)
    if n <= most:
        return design
    rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return Design(design.features[rows], design.codes[rows], design.weight[rows], design.precision)


# -- draws -----------------------------------------------------------------------------------------


def _sampled(
    design: Design, grid: _Grid, transition: Transition, random: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Rates and coefficients drawn from the posterior, and the shares of the grid's points.

    Normal draws around every point's best coefficients are weighted by how much the true
    posterior differs from the normal one; with many rows it does not.
    """
    exact = len(design.codes) <= _ROWS_FOR_PLACING
    draws = systematic(grid.mass, N_DRAWS * (_SURPLUS if exact else 1), random)
    factor = np.linalg.cholesky(grid.curves.curvature[draws])
    noise = _SPREAD * random.standard_normal((len(draws), design.n_parameters))
    shift = np.linalg.solve(np.swapaxes(factor, 1, 2), noise[:, :, None])[:, :, 0]
    coefficients = grid.curves.coefficients[draws] + shift
    mass = grid.mass
    if exact:
        points = np.stack(np.meshgrid(*grid.axes, indexing="ij"), axis=-1)
        matrices = transition(points.reshape(-1, len(grid.axes))[draws])
        reached = _in_blocks(design, matrices, coefficients)
        normal = grid.curves.objective[draws] - 0.5 * (noise**2).sum(axis=1) / _SPREAD**2
        log_weight = reached - normal
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mass = np.zeros(len(grid.mass))
        np.add.at(mass, draws, weight)
        kept = systematic(weight, N_DRAWS, random)
        draws, coefficients = draws[kept], coefficients[kept]
    return _jitter(grid.axes, draws, random), coefficients, mass


def _in_blocks(design: Design, matrices: Array, coefficients: Array) -> Array:
    step = max(1, _BLOCK_ENTRIES // len(design.codes))

    def block(a: int) -> Array:
        return objective(design, matrices[a : a + step], coefficients[a : a + step])

    return np.concatenate(in_threads(block, range(0, len(matrices), step), workers()))


def systematic(mass: Array, count: int, random: np.random.Generator) -> IntArray:
    """Points by systematic sampling: the least scatter for their number."""
    levels = (np.arange(count) + random.random()) / count
    return np.asarray(np.minimum(np.searchsorted(np.cumsum(mass), levels), len(mass) - 1))


def _jitter(axes: list[Array], draws: IntArray, random: np.random.Generator) -> Array:
    """Rates of the draws, spread over their cell of the grid."""
    sides = [len(axis) for axis in axes]
    rates = []
    cells: tuple[IntArray, ...] = np.unravel_index(draws, sides)
    for axis, index in zip(axes, cells, strict=True):
        low = axis[np.maximum(index - 1, 0)]
        high = axis[np.minimum(index + 1, len(axis) - 1)]
        centre = axis[index]
        spread = random.random(len(draws)) - 0.5
        rates.append(
            centre + np.where(spread < 0, spread * (centre - low), spread * (high - centre))
        )
    return np.column_stack(rates)


def _shortest(axis: Array, mass: Array, level: float) -> tuple[float, float]:
    """The shortest interval with the posterior share `level`; ends of the axis count as reached."""
    edges = np.concatenate([axis[:1], 0.5 * (axis[1:] + axis[:-1]), axis[-1:]])
    below = np.concatenate([[0.0], np.cumsum(mass)])
    below /= below[-1]
    starts = np.linspace(0.0, 1.0 - level, 101)
    low, high = np.interp(starts, below, edges), np.interp(starts + level, below, edges)
    best = int(np.argmin(high - low))
    return float(low[best]), float(high[best])


def _expectation_maximisation(
    design: Design, transition: Array, theta: Array, weight: Array
) -> tuple[Array, Array]:
    rows = Design(design.features, design.codes, weight, design.precision)
    k = transition.shape[0]
    given = np.eye(k)[design.codes] * weight[:, None]
    before = -np.inf
    for _ in range(_EM_STEPS):
        fitted = maximise(rows, transition[None], theta)
        theta = fitted.coefficients[0]
        proba = class_probabilities(design.features, theta[None])
        posterior, _ = true_class_posterior(proba, design.codes, transition[None])
        # half a row of the uniform kind in every cell keeps empty cells open
        counts = posterior[0].T @ given + 0.5 * np.where(np.eye(k) > 0, k - 1.0, 1.0 / (k - 1))
        transition = _dominant(counts / counts.sum(axis=1, keepdims=True))
        if fitted.objective[0] - before < 1e-4:
            break
        before = fitted.objective[0]
    return transition, theta


def _dominant(transition: Array) -> Array:
    """The matrix with every diagonal entry at least one minus the largest rate."""
    off = 1.0 - np.diag(transition)
    factor = np.minimum(1.0, LARGEST_RATE / np.maximum(off, 1e-12))
    matrix = transition * factor[:, None]
    matrix[np.arange(len(off)), np.arange(len(off))] = 1.0 - off * factor
    return np.asarray(matrix)
