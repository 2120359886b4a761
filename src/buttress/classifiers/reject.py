"""The interface of every classifier that may give no answer."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from buttress._arrays import Array, BoolArray, IntArray
from buttress.classifiers.base import BaseKernelClassifier
from buttress.classifiers.kernel_source import kernel_source
from buttress.classifiers.parameters import check_noise_rates, check_number, check_option
from buttress.classifiers.refusal_reasons import RefusalReason, explain_reject
from buttress.classifiers.stored_hinge import store_hinge_models
from buttress.classifiers.training import TrainingSet
from buttress.metrics.scorer import final_classifier, half_gap

# Share of the rows kept out of training when the band is set for a coverage.
HELD_OUT = 0.25


class RejectMixin:
    """`reject`, `predict_or_reject` and the rule for more than two classes.

    A class that uses it has `decision_function`, `classes_` and `thresholds_`, the two ends of
    the band on the scale of `decision_function`: shape (2,), or (n_classes, 2) with one band
    for every one-vs-rest problem. It comes before the base class in the list of bases.
    """

    classes_: NDArray[Any]
    thresholds_: Array
    d: float
    target_coverage: float | None
    target_risk: float | None = None
    # Whether one band, for half the distance of the two largest scores, serves all classes.
    _one_band = False

    def reject(self, X: Any) -> BoolArray:
        """Which rows get no answer.

        Two classes: the score lies in the closed band ``thresholds_``; a band of no width
        rejects nothing. More classes: no class, or more than one, is accepted, where a class
        is accepted when its score lies above its band. With ``target_coverage`` or
        ``target_risk`` the rule is one band for half the distance of the two largest scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool of shape (n_samples,)
        """
        return self._judge(X)[1]

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row, also of those that `reject` names.

        With more than two classes it is the accepted class when there is exactly one, else
        the class of the largest score. A score of exactly zero is ``classes_[0]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._judge(X)[0]

    def predict_or_reject(self, X: Any, reject_label: Any = None) -> NDArray[Any]:
        """The label of every row, or no answer.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        reject_label : object, optional
            Stands for "no answer"; must not be one of ``classes_``.

        Returns
        -------
        masked array of shape (n_samples,), or ndarray
            Without `reject_label`, a masked array whose masked entries are rejected;
            otherwise an array with `reject_label` in their place.
        """
        return labels_or_refusals(*self._judge(X), reject_label, self.classes_)

    def explain_reject(
        self,
        X: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        n_neighbors: int = 10,
        n_nearest: int = 3,
    ) -> list[RefusalReason]:
        """Why rows get no answer, by the training rows around them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to ask about; those that are answered have no reason.
        X_train, y_train : array-like, optional
            The training rows and their labels. A model does not keep them (files of models hold
            no more of the data than they need); only ``ChowRejector(novelty=...)`` does, and needs
            none here.
        n_neighbors, n_nearest : int
            As in `buttress.classifiers.explain_reject`, which this is.

        Returns
        -------
        list of RefusalReason
        """
        if X_train is None or y_train is None:
            kept = self._kept_rows()
            if kept is None or X_train is not None or y_train is not None:
                raise ValueError(
                    f"{type(self).__name__}.explain_reject needs X_train and y_train, the training "
                    "rows with their labels: the model does not keep them."
                )
            X_train, y_train = kept
        sizes = {"n_neighbors": n_neighbors, "n_nearest": n_nearest}
        return explain_reject(self, X, X_train, y_train, **sizes)

    def _kept_rows(self) -> tuple[Array, NDArray[Any]] | None:
        """Training rows and labels, where the model keeps them."""
        return None

    # -- the rule --------------------------------------------------------------------------

    def _may_refuse(self) -> bool:
        """Whether the fitted model has a rule that can name a row; for rules beside the band."""
        return self._has_band()

    def _has_band(self) -> bool:
        """Whether a band has a width: one without refuses nothing."""
        return bool((self.thresholds_[..., 0] < self.thresholds_[..., 1]).any())

    def _judge(self, X: Any) -> tuple[NDArray[Any], BoolArray]:
        """Labels and rejections of the rows `X`."""
        scores = self.decision_function(X)  # type: ignore[attr-defined]
        return self._labels(scores), self._rejected(scores)

    def _rejected(self, scores: Array) -> BoolArray:
        if not self._has_band():
            return np.zeros(len(scores), dtype=bool)
        if self._one_band or self.target_coverage is not None or self.target_risk is not None:
            return np.asarray(half_gap(scores) <= self.thresholds_[1])
        if scores.ndim == 1:
            low, high = self.thresholds_
            return np.asarray((scores >= low) & (scores <= high))
        return np.asarray(self._accepted(scores).sum(axis=1) != 1)

    def _labels(self, scores: Array) -> NDArray[Any]:
        if scores.ndim == 1:
            return np.asarray(self.classes_[(scores > 0).astype(int)])
        index = scores.argmax(axis=1)
        if self.thresholds_.ndim == 2:
            accepted = self._accepted(scores)
            index = np.where(accepted.sum(axis=1) == 1, accepted.argmax(axis=1), index)
        return np.asarray(self.classes_[index])

    def _accepted(self, scores: Array) -> BoolArray:
        return np.asarray(scores > self.thresholds_[:, 1])

    def _check_coverage(self) -> None:
        if self.target_coverage is not None:
            check_number("target_coverage", self.target_coverage, "(0, 1]")
        # Only target_risk uses them; without it they are checked too, so that slips are told.
        given = vars(self)
        if "confidence" in given:
            check_number("confidence", given["confidence"], "(0, 1)")
            check_option("certify_on", given["certify_on"], ["held_out", "folds"])
            check_noise_rates(given["noise_rates"])


class BaseRejectClassifier(RejectMixin, BaseKernelClassifier):
    """A kernel machine with a rejection band, trained by the solvers of `solvers.reject`.

    A subclass checks its own parameters (`_check_own`), solves one binary problem (`_solve`)
    and says where the band of a solution ends (`_band`).
    """

    C: float
    fit_intercept: bool
    tol: float
    max_iter: int
    cache_size: float
    random_state: Any
    _centres_rows = True
    _check_own: Callable[[], None]
    # Of a kernel, targets, weights, a tolerance, and a solution of the same rows for another `d`.
    _solve: Callable[..., Any]
    _band: Callable[[Any], tuple[float, float]]

    def _set_bands(self, solutions: list[Any]) -> None:
        bands = np.array([self._band(solution) for solution in solutions])
        self.thresholds_ = bands[0] if len(solutions) == 1 else bands

    def _answers(
        self, solutions: list[Any], classes: NDArray[Any], K: Array
    ) -> tuple[NDArray[Any], BoolArray]:
        """Labels and rejections of rows whose similarities to the training rows are `K`."""
        judge = copy(self)
        judge.classes_ = classes
        judge._set_bands(solutions)
        scores = np.column_stack([K @ solution.c + solution.b for solution in solutions])
        values = scores[:, 0] if len(solutions) == 1 else scores
        return judge._labels(values), judge._rejected(values)

    def _check_parameters(self) -> None:
        check_number("d", self.d, "(0, 0.5]")
        check_number("C", self.C, "(0, inf)")
        self._check_coverage()
        self._check_own()

    def _solve_all(self, data: TrainingSet) -> tuple[TrainingSet, list[Any]]:
        """Train, and store everything that all such machines share."""
        everything = data
        if getattr(self, "costs", None) is not None and data.n_problems > 1:
            raise ValueError(
                f"costs of {type(self).__name__} are for two classes, and y has "
                f"{len(data.classes)}: put ChowRejector(costs=...) around a classifier."
            )
        precomputed = self.kernel == "precomputed"
        held: IntArray | None = None
        if self.target_coverage is not None:
            kept, held = held_out_rows(data.codes, self.random_state)
            data = data.subset(kept, precomputed=precomputed)
        kernel = self._make_kernel(data)
        K = kernel_source(kernel, data, self.cache_size)
        tol = self._tolerance(data)
        solutions = [self._solve(K, target, data.weight, tol) for target in data.targets.T]
        solutions = store_hinge_models(self, data, kernel, solutions, tol)
        self._store_certificates(solutions, kind="duality_gap")
        if held is None:
            self._set_bands(solutions)
        else:
            if precomputed:
                dual = np.array([solution.c for solution in solutions])
                scores = everything.X[np.ix_(held, kept)] @ dual.T + self.intercept_
            else:
                scores = self._scores(everything.X[held])
            width = coverage_threshold(half_gap(scores), float(self.target_coverage or 0.0))
            self.thresholds_ = np.array([-width, width])
        fitted = np.column_stack([solution.g + solution.b for solution in solutions])
        rejected = self._rejected(fitted[:, 0] if len(solutions) == 1 else fitted)
        self.rejection_rate_ = float(np.average(rejected, weights=data.weights))
        return data, solutions


def coverage_threshold(confidence: Array, target_coverage: float) -> float:
    """The largest confidence rejected, for a coverage of at least `target_coverage`.

    Parameters
    ----------
    confidence : array of shape (m,)
        Confidences of held-out rows, which the model has not seen.
    target_coverage : float in (0, 1]

    Returns
    -------
    float
        ``t`` such that a new row has confidence above ``t`` with probability at least
        `target_coverage`, over the draw of the held-out rows and the new one; 0 (rejects
        nothing) when the rows are too few to reject any.

    Notes
    -----
    At most ``r = floor((1 - target_coverage)(m + 1))`` held-out rows are at or below ``t``.
    All ranks of an exchangeable new row are equally likely, so it is rejected with
    probability at most ``r / (m + 1) <= 1 - target_coverage``, and exactly ``r / (m + 1)``
    when no two confidences are equal.

    Examples
    --------
    >>> coverage_threshold(np.arange(1.0, 10.0), 0.8)
    2.0
    """
    ordered = np.sort(confidence)
    allowed = int(np.floor((1.0 - target_coverage) * (len(ordered) + 1) + 1e-9))
    if allowed == 0:
        return 0.0
    threshold = float(ordered[min(allowed, len(ordered)) - 1])
    # Rows tied with the next one would all be rejected: step below the tie.
    if allowed < len(ordered) and ordered[allowed] == threshold:
        below = ordered[ordered < threshold]
        threshold = float(below[-1]) if len(below) else 0.0
    return threshold


def held_out_rows(
    codes: IntArray,
    random_state: Any,
    wanted_by: str = "target_coverage",
    most: int | None = None,
) -> tuple[IntArray, IntArray]:
    """Positions to train on and positions kept out, a quarter of every class.

    Parameters
    ----------
    codes : integer array of shape (n,)
        Index of every row's label.
    random_state : int, RandomState or None
    wanted_by : str
        The parameter that asks for it, for the message.
    most : int, optional
        Limit on the rows kept out.

    Raises
    ------
    ValueError
        When the rows are too few.
    """
    n, counts = len(codes), np.bincount(codes)
    if n < 8 or counts.min() < 2:
        raise ValueError(
            f"{wanted_by} sets the band on held-out rows and needs at least 8 rows and 2 of "
            f"every class; got n_samples={n} with class counts {counts.tolist()}."
        )
    held = int(np.ceil(HELD_OUT * n))
    held = max(held if most is None else min(held, most), len(counts))
    train, out = train_test_split(
        np.arange(n), test_size=held, stratify=codes, random_state=random_state
    )
    return np.sort(train), np.sort(out)


def may_refuse(model: Any) -> bool:
    """Whether a fitted classifier has a rule for giving no answer, and one that is asked for.

    Pipelines and searches are asked for the classifier inside. Learners of streams without `d`,
    `target_coverage` and `target_risk`, a `NoiseAwareClassifier` without `d`, and batch machines
    that were fitted with ``d=0.5`` for two classes, have the interface of refusing and answer
    every row. Of other classifiers no more is known than that they have it.
    """
    model = final_classifier(model)
    if isinstance(model, RejectMixin) and hasattr(model, "thresholds_"):
        return model._may_refuse()
    return hasattr(model, "reject")


def labels_or_refusals(
    labels: NDArray[Any], rejected: BoolArray, reject_label: Any, classes: NDArray[Any]
) -> NDArray[Any]:
    """A masked array of labels, or `reject_label` in the rejected places when it is not None."""
    if reject_label is None:
        return np.ma.MaskedArray(labels, mask=rejected)
    return _with_label(labels, rejected, reject_label, classes)


def _with_label(
    labels: NDArray[Any], rejected: BoolArray, reject_label: Any, classes: NDArray[Any]
) -> NDArray[Any]:
    if np.ndim(reject_label) != 0:
        raise ValueError(f"reject_label={reject_label!r} must be a single label.")
    if any(label == reject_label for label in classes.tolist()):
        raise ValueError(
            f"reject_label={reject_label!r} is one of the classes {classes.tolist()}; "
            "choose another label."
        )
    given = np.asarray(reject_label)
    numbers = "biuf"
    if (labels.dtype.kind in numbers and given.dtype.kind in numbers) or (
        labels.dtype.kind == given.dtype.kind == "U"
    ):
        answer = labels.astype(np.result_type(labels.dtype, given.dtype))
    else:
        answer = labels.astype(object)
    answer[rejected] = reject_label
    return answer
