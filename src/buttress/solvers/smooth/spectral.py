"""Smooth convex losses with a squared norm penalty: all penalties and all folds together.

The problem, for every binary problem (a class, a fold) and every penalty alpha, is

    mean_i L(y_i (f(x_i) + b)) + alpha ||f||^2

with weighted mean. Two exact methods serve it. *Newton's method* down the path of penalties
(`newton`) suits small samples, few features and single penalties. *Conjugate directions* on
all problems and penalties as columns of one matrix suit everything larger, and their work is
matrix products in single precision (`columns`): in kernel form with the Gram matrix and a model
of its leading part, in feature form with one eigenbasis for all of them. For the leaky hockey
stick family both stop at the scaling tail: once all margins are at least one, the solution at
smaller penalties is a known multiple.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._threads import in_threads, one_blas_thread
from buttress.losses import SmoothLoss, require
from buttress.solvers.smooth.columns.driver import batched
from buttress.solvers.smooth.geometry import ScaledGeometry
from buttress.solvers.smooth.margins import compiled_loss
from buttress.solvers.smooth.newton import NewtonTask, newton, small_steps
from buttress.solvers.smooth.paths import Paths
from buttress.solvers.smooth.problems import NEWTON_ITERATIONS, Problems

__all__ = ["NEWTON_FEATURES", "Paths", "polish", "solve_problems"]

# Newton's method alone up to this many rows in kernel form (measured, benchmarks/path_cv.py).
_NEWTON_ROWS = 260
NEWTON_FEATURES = 200
# Problems times penalties that are few: whether columns pay is a question of rows and penalties.
_FEW_COLUMNS = 20
# Problems times Newton steps times n³ from which on they do, a fifth of a second of Newton's.
# One problem of 2000 rows takes them twice as long at 1e-1, and a third of the time at 1e-5; but
# the first use of columns takes five seconds for compiling them.
_MUCH_WORK = 8e10
# Largest step from one penalty to the next on the way to a few: as between those of a path that are
# solved first.
_LARGEST_STEP = 10.0**0.45
# Penalties of a path's piece, at least: it begins with some that lead to its first one.
_LEAST_PIECE = 40


def solve_problems(
    problems: Problems,
    *,
    method: str = "auto",
    n_threads: int = 1,
    advance: Callable[[int], None] = lambda steps: None,
) -> Paths:
    """Solve every problem at every penalty.

    Parameters
    ----------
    method : {"auto", "newton", "batched"}
    n_threads : int
        Problems (or columns) are divided among so many threads.
    advance : callable
        Told the number of problems finished.

    Returns
    -------
    Paths
    """
    require(problems.loss, SmoothLoss, f"method {method!r}")
    count = len(problems.Y)
    if method == "auto":
        method = _cheaper_method(problems)
    if method == "batched":
        few = count * len(problems.lambdas) < _FEW_COLUMNS
        down = _down_to if few and problems.geometry.kernel_form else batched
        paths = down(problems, n_threads)
        advance(count)
        return paths
    return _newton_paths(problems, n_threads, advance)


def _newton_paths(problems: Problems, n_threads: int, advance: Callable[[int], None]) -> Paths:
    """Newton's method down every path, or down two halves of one where a thread would wait."""
    count, loose = len(problems.Y), problems.signs_only
    longest_first = np.argsort(loose, kind="stable").tolist()
    pieces = _pieces(longest_first, len(problems.lambdas), n_threads)
    ladders = {end: small_steps(problems.lambdas[slice(*end)]) for _, end in pieces}

    def run(piece: tuple[int, tuple[int, int]]) -> Paths:
        problem, ends = piece
        ladder, wanted = ladders[ends]
        task = NewtonTask.of(
            problems, problem, ladder, wanted=wanted, signs_only=bool(loose[problem])
        )
        paths = newton(task).at(wanted)
        if ends[0] == 0:
            advance(1)
        return paths

    with one_blas_thread() if count > 1 else nullcontext():
        solved = in_threads(run, pieces, n_threads)
    of_problem: list[list[Paths]] = [[] for _ in range(count)]
    for (problem, _), paths in zip(pieces, solved, strict=True):
        of_problem[problem].append(paths)
    return Paths.joined([Paths.chained(paths) for paths in of_problem])


def _pieces(
    problems: list[int], n_penalties: int, n_threads: int
) -> list[tuple[int, tuple[int, int]]]:
    """Problems with ends of their penalties: the last are cut so that all threads have work."""
    left = len(problems) % n_threads
    cuts = min(n_threads // left if left else 1, n_penalties // _LEAST_PIECE) or 1
    ends = np.linspace(0, n_penalties, cuts + 1).astype(int).tolist()
    whole = [(problem, (0, n_penalties)) for problem in problems[: len(problems) - left]]
    cut = [(problem, end) for problem in problems[len(problems) - left :] for end in pairwise(ends)]
    return whole + cut


def polish(
    geometry: ScaledGeometry,
    y: Array,
    omega: Array,
    penalty: float,
    loss: Any,
    start: tuple[Array, float],
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int = NEWTON_ITERATIONS,
) -> Paths:
    """Newton's method for one problem and penalty from a point near the solution.

    Parameters
    ----------
    start : tuple of array of shape (m,) and float
        Coefficients in the geometry's coordinates, and the intercept.
    """
    lambdas = np.array([penalty / geometry.scale])
    problem = (geometry, y, omega, lambdas, loss, fit_intercept, tol, max_iter, start)
    return newton(NewtonTask(*problem))


def _down_to(problems: Problems, n_threads: int) -> Paths:
    """Columns at a few penalties, and at larger ones that lead to them."""
    ladder, wanted = small_steps(problems.lambdas, _LARGEST_STEP)
    paths = batched(replace(problems, lambdas=ladder), n_threads)
    refine, scores = paths.refine, paths.given_scores
    assert refine is not None
    assert scores is not None
    return replace(
        paths.at(wanted),
        given_scores=scores[:, wanted],
        refine=lambda some, index, tol: refine(some, int(wanted[index]), tol),
    )


def _cheaper_method(problems: Problems) -> str:
    geometry, lambdas, count = problems.geometry, problems.lambdas, len(problems.Y)
    n, small = geometry.matrix.shape[1], NEWTON_FEATURES
    many = count * len(lambdas) >= _FEW_COLUMNS
    if geometry.kernel_form:
        small = _NEWTON_ROWS
        # about what Newton's method takes, on its way down and at the penalty (1000, 2000 rows)
        steps = 2.0 + 1.5 * max(0.0, float(-np.log10(lambdas[-1]))) ** 2
        many = many or count * steps * n**3 >= _MUCH_WORK
    worth = many and n > small and compiled_loss(problems.loss) is not None
    return "batched" if worth else "newton"
