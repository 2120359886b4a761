"""What the leaky hockey stick classifier and its cross-validated version share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from buttress._arrays import Array, BoolArray, IntArray
from buttress._threads import in_threads, one_blas_thread
from buttress.classifiers.kernel_source import gram_matrix
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel
from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.duality import certify, few_models, has_dual, kkt_residuals
from buttress.solvers.smooth.geometry import ScaledGeometry, from_gram, from_rows
from buttress.solvers.smooth.mm import majorise_minimise_path
from buttress.solvers.smooth.problems import Problems
from buttress.solvers.smooth.spectral import Paths, polish, solve_problems

SOLVERS = ("auto", "newton", "batched", "mm")
# A model whose duality gap is above the tolerance is solved on to these shares of it, in at most so
# many steps: where rounding is what remains, more of them gain nothing.
_TIGHTER = (1e-3, 1e-6)
_MORE_STEPS = 4
# A thread that computes certificates has at least so many scores to do.
_MANY_SCORES = 30_000


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Models of one binary problem at L penalties, with certificates.

    Attributes
    ----------
    alphas, intercepts, objectives, gaps : arrays of shape (L,)
        `gaps` are duality gaps, or KKT residuals when the loss has no conjugate.
    intervals : array of shape (L, 2)
        Where the intercept may lie.
    dual_coefs : array of shape (L, n)
    coefs : array of shape (L, p) or None
        Weights of the columns of X (linear kernel).
    n_iter : array of shape (L,)
        Zero on the scaling tail, where solutions are known multiples.
    converged : array of shape (L,)
    """

    alphas: Array
    intercepts: Array
    intervals: Array
    dual_coefs: Array
    coefs: Array | None
    objectives: Array
    gaps: Array
    n_iter: IntArray
    converged: BoolArray

    def at(self, index: int) -> RegularizationPath:
        """The path of the one penalty at `index`."""
        pick = slice(index, index + 1) if index >= 0 else slice(index, None)
        values: dict[str, Any] = {
            name: None if value is None else value[pick] for name, value in vars(self).items()
        }
        return RegularizationPath(**values)

    @classmethod
    def joined(cls, paths: list[RegularizationPath]) -> RegularizationPath:
        """One path of several that follow each other."""
        columns = {name: [getattr(path, name) for path in paths] for name in vars(paths[0])}
        whole: dict[str, Any] = {
            name: None if values[0] is None else np.concatenate(values)
            for name, values in columns.items()
        }
        return cls(**whole)

    # what the estimator base reads of a solution
    @property
    def objective(self) -> float:
        """The objective at the last penalty."""
        return float(self.objectives[-1])

    @property
    def gap(self) -> float:
        """The certificate at the last penalty."""
        return float(self.gaps[-1])


@dataclass(frozen=True, eq=False)
class LeakyProblem:
    """Rows, labels and loss of a fit, ready for the solvers."""

    data: TrainingSet
    kernel: Kernel
    geometry: ScaledGeometry
    loss: Any
    fit_intercept: bool
    tol: float
    path_tol: float
    max_iter: int
    solver: str
    n_jobs: int | None

    @property
    def omega(self) -> Array:
        """Row weights that sum to one."""
        return np.asarray(self.data.weights / self.data.weights.sum())

    def solve(
        self,
        targets: Array,
        omegas: Array,
        alphas: Array,
        advance: Callable[[int], None] = lambda steps: None,
        answers: IntArray | None = None,
    ) -> Paths:
        """All problems (rows of `targets` and `omegas`) at all penalties."""
        if self.solver == "mm":
            return self._majorise_minimise(targets, omegas, alphas, advance)
        return solve_problems(
            Problems.at(
                self.geometry,
                targets,
                omegas,
                alphas,
                self.loss,
                weight=self.data.weight,
                fit_intercept=self.fit_intercept,
                tol=self.path_tol,
                max_iter=self.max_iter,
                answers=answers,
            ),
            method=self.solver,
            n_threads=effective_n_jobs(self.n_jobs),
            advance=advance,
        )

    def _majorise_minimise(
        self, targets: Array, omegas: Array, alphas: Array, advance: Callable[[int], None]
    ) -> Paths:
        paths = []
        for y, omega in zip(targets, omegas, strict=True):
            paths.append(
                majorise_minimise_path(
                    self.geometry,
                    y,
                    omega,
                    alphas,
                    self.loss,
                    weight=self.data.weight,
                    fit_intercept=self.fit_intercept,
                    tol=self.tol,
                    max_iter=self.max_iter,
                )
            )
            advance(1)
        return Paths.joined(paths)

    def refit(self, targets: Array, alphas: Array, folds: Paths, index: int) -> list[Paths]:
        """Solutions of all problems at ``alphas[index]``, on all rows and to full precision.

        `folds` are paths without some of the rows each, fold by fold. The mean of what they have
        at the penalty is near the solution.
        """
        count, alpha = len(targets), float(alphas[index])
        omegas = np.tile(self.omega, (count, 1))
        of_class = [np.array([coef[index] for coef in folds.coefs[k::count]]) for k in range(count)]
        near = np.array([coefs.mean(axis=0, dtype=np.float64) for coefs in of_class])
        intercept = folds.intercept[:, index].reshape(-1, count).mean(axis=0)
        if folds.solve_near is not None:
            whole = folds.solve_near(targets, omegas, index, (near, intercept))
            solutions = self.refined(targets, alpha, whole, 0)
        else:
            whole = replace(folds, coefs=list(near[:, None]), intercept=intercept[:, None])

            def polished(problem: int) -> Paths:
                return self._polished(
                    targets[problem], alpha, whole, problem, 0, self.tol, self.max_iter
                )

            with one_blas_thread() if count > 1 else nullcontext():
                solutions = in_threads(polished, range(count), effective_n_jobs(self.n_jobs))
        if all(each.converged.all() for each in solutions):
            return solutions
        # from larger penalties, then
        down = self.solve(targets, omegas, alphas[: index + 1])
        return self.refined(targets, alpha, down, index)

    def refined(self, targets: Array, alpha: float, paths: Paths, index: int) -> list[Paths]:
        """Solutions of all problems at one penalty of a path, brought to full precision."""
        refined: list[Paths | None] = [None] * len(targets)
        if paths.refine is not None:
            refined = paths.refine(np.arange(len(targets)), index, self.tol)
        return [
            one or self._polished(y, alpha, paths, problem, index, self.tol, self.max_iter)
            for problem, (y, one) in enumerate(zip(targets, refined, strict=True))
        ]

    def finished(
        self, y: Array, alpha: float, solved: Paths, problem: int = 0
    ) -> RegularizationPath:
        """The model of one problem of solutions at one penalty, and its certificate.

        Slopes can be right to the tolerance and the duality gap not be: it counts their errors
        times the largest rows, over the penalty. Then the model is solved more precisely.
        """
        alphas = np.array([alpha])
        model = self.certified(y, alphas, solved, problem)
        steps = min(self.max_iter, _MORE_STEPS)
        for share in _TIGHTER:
            if model.gap <= self.tol * (1.0 + abs(model.objective)):
                break
            solved = self._polished(y, alpha, solved, problem, 0, share * self.tol, steps)
            problem = 0
            better = self.certified(y, alphas, solved, problem)
            if better.gap < model.gap:
                model = replace(better, converged=model.converged | better.converged)
        return model

    def _polished(
        self,
        y: Array,
        alpha: float,
        paths: Paths,
        problem: int,
        index: int,
        tol: float,
        max_iter: int,
    ) -> Paths:
        """Newton's method for one problem at one penalty, from the solution that there is."""
        return polish(
            self.geometry,
            y,
            self.omega,
            alpha,
            self.loss,
            (paths.coefficients(problem)[index], float(paths.intercept[problem, index])),
            fit_intercept=self.fit_intercept,
            tol=tol,
            max_iter=max_iter,
        )

    def certified(self, y: Array, alphas: Array, paths: Paths, problem: int) -> RegularizationPath:
        """Models of one problem on all rows, with certificates recomputed in float64."""
        n_threads = effective_n_jobs(self.n_jobs)
        n_threads = min(n_threads, len(alphas), len(alphas) * len(y) // _MANY_SCORES)
        if n_threads <= 1:
            return self._certified(y, alphas, paths, problem, slice(None))
        ends = np.linspace(0, len(alphas), n_threads + 1).astype(int).tolist()
        with one_blas_thread():
            stretches = in_threads(
                lambda k: self._certified(y, alphas, paths, problem, slice(ends[k], ends[k + 1])),
                range(n_threads),
                n_threads,
            )
        return RegularizationPath.joined(stretches)

    def _certified(
        self, y: Array, alphas: Array, paths: Paths, problem: int, span: slice
    ) -> RegularizationPath:
        """The part of the path that has the penalties ``alphas[span]``."""
        geometry, omega, alphas = self.geometry, self.omega, alphas[span]
        intercepts: Array = np.asarray(paths.intercept[problem, span], dtype=np.float64)
        intervals = paths.interval[problem, span]
        weights = paths.coefficients(problem, span)
        dual: Array
        coefs = None
        if geometry.kernel_form:
            dual = weights / geometry.scale
        else:
            scores: Array = np.asarray(paths.scores_at(problem, penalties=span), dtype=np.float64)
            dual = np.empty(scores.shape)
            for few in few_models(scores.shape):
                slopes = self.loss.derivative(y * (scores[few] + intercepts[few, None]))
                np.divide(-omega * y * slopes, 2.0 * alphas[few, None], out=dual[few])
            if geometry.back is not None:
                coefs = weights @ geometry.back.T
            else:
                # At tiny penalties rounding of the slopes is magnified: the smallest change of
                # the coefficients that gives exactly the solver's feature weights undoes it.
                missing = weights - geometry.scale * dual @ geometry.matrix
                change, *_ = np.linalg.lstsq(geometry.matrix.T, missing.T, rcond=None)
                dual = dual + change.T / geometry.scale
        if coefs is None:
            if geometry.center is not None and self.fit_intercept:
                # Exactly balanced coefficients: rows far from the origin must not move b.
                dual = dual - omega * dual.sum(axis=1, keepdims=True)
            scores = geometry.scale * geometry.similarity_product(dual.T).T
            squared_norms = np.maximum(np.einsum("ij,ij->i", dual, scores), 0.0)
        else:
            squared_norms = np.einsum("ij,ij->i", coefs, coefs)

        def similarity_norms(v: Array) -> Array:
            if not geometry.kernel_form:
                projected = v @ geometry.matrix
                return np.asarray(geometry.scale * np.einsum("ij,ij->i", projected, projected))
            return np.asarray(
                geometry.scale * np.einsum("ij,ij->i", v, geometry.similarity_product(v.T).T)
            )

        if has_dual(self.loss):
            certificate = certify(
                self.loss,
                y,
                omega,
                alphas,
                scores,
                intercepts,
                squared_norms,
                similarity_norms,
                fit_intercept=self.fit_intercept,
            )
            objectives, gaps = certificate.primal, certificate.gap
        else:
            u = y * (scores + intercepts[:, None])
            objectives = self.loss.value(u) @ omega + alphas * squared_norms
            gaps = kkt_residuals(self.loss, y, omega, alphas, scores + intercepts[:, None], dual)
        if geometry.center is not None and coefs is not None:
            shift = coefs @ geometry.center
            intercepts, intervals = intercepts - shift, intervals - shift[:, None]
        elif geometry.center is not None:
            # Scores of rows as given, not centred, differ by the centre's own score.
            shift = dual @ (self.data.X @ geometry.center)
            intercepts, intervals = intercepts - shift, intervals - shift[:, None]
        return RegularizationPath(
            alphas=alphas,
            intercepts=intercepts,
            intervals=intervals,
            dual_coefs=dual,
            coefs=coefs,
            objectives=objectives,
            gaps=gaps,
            n_iter=paths.iterations[problem, span],
            converged=paths.converged[problem, span]
            | (gaps <= self.tol * (1.0 + np.abs(objectives))),
        )


def make_problem(
    estimator: Any,
    data: TrainingSet,
    kernel: Kernel,
    loss: Any,
    path_tol: float = 0.0,
    most_features: int | None = None,
) -> LeakyProblem:
    """Compute the Gram matrix (or features) of the rows, once for the whole fit.

    `most_features` is the largest rank at which the Gram matrix becomes features.
    """
    return LeakyProblem(
        data,
        kernel,
        make_geometry(kernel, data, estimator.fit_intercept, most_features),
        loss,
        estimator.fit_intercept,
        estimator.tol,
        max(estimator.tol, path_tol),
        estimator.max_iter,
        estimator.solver,
        estimator.n_jobs,
    )


def make_geometry(
    kernel: Kernel, data: TrainingSet, fit_intercept: bool, most_features: int | None
) -> ScaledGeometry:
    """The rows as the solvers take them; see `make_problem`."""
    X = data.X
    if kernel.name == "linear" and not (sparse.issparse(X) and X.shape[1] > X.shape[0]):
        dense = X.toarray() if sparse.issparse(X) else X
        return from_rows(dense, data.weight, fit_intercept=fit_intercept)
    return from_gram(gram_matrix(kernel, X), most_features)


def make_loss(loss: Any, r: float) -> Any:
    """The loss object of a fit: the user's own, or the leaky family's."""
    return LeakyHockeyStick(float(r)) if loss is None else loss
