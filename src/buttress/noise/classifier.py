"""A classifier of true labels, trained on labels that are partly wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array, BoolArray
from buttress._documented import DocumentedMixin
from buttress._frames import collected, is_frame, validate_data
from buttress.classifiers.callbacks import CallbackSupportMixin, watched
from buttress.classifiers.parameters import (
    check_common,
    check_number,
    check_splits,
)
from buttress.classifiers.reject import RejectMixin
from buttress.noise.core.belief import believed
from buttress.noise.core.crossfit import check_repeats
from buttress.noise.core.fitting import (
    DEFAULT_PRIOR,
    FEWEST_ROWS,
    check_prior,
    estimate_label_noise,
)
from buttress.noise.core.label_noise import LabelNoise, LabelNoiseWarning
from buttress.noise.core.suspects import LabelSuspects
from buttress.noise.witnesses import TakenRows, checked_estimators, cross_fit, stacked_scores


class NoiseAwareClassifier(
    DocumentedMixin,
    RejectMixin,
    CallbackSupportMixin,
    MetaEstimatorMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Cross-fit witnesses, model the noise of the labels, and decide by true probabilities.

    Parameters
    ----------
    estimators : "auto", classifier or list of classifiers, default="auto"
        The witnesses, as in `LabelAudit`; their scores enter one curve.
    d : float in (0, 0.5] or None, default=None
        Cost of no answer when a wrong one costs 1: `reject` refuses where the largest clean
        probability is at most ``1 - d``. None refuses nothing.
    cv, n_repeats
        As in `LabelAudit`.
    fdr : float in (0, 1), default=0.1
        Wanted share of correct labels among the rows that `suspects_` names.
    prior : pair of floats, default=(1, 3)
        Beta prior of the noise rates, as in `fit_label_noise`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    noise_ : LabelNoise
        Rates with intervals and the curve.
    belief_ : LabelNoise
        What probabilities come from: `noise_`, averaged with models under which all labels are
        right (see Notes).
    suspects_ : LabelSuspects
        The training rows whose labels are probably wrong.
    estimators_ : list of classifiers
        The witnesses, fitted to all rows.
    thresholds_ : ndarray of shape (2,)
        The band of `reject` on the scale of `decision_function` (two classes).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``predict_proba`` is P(true class), not P(given label): under noise that is not the same in all
    classes the two have different boundaries. `score` still compares with the labels it is given;
    see `clean_score` for an estimate on true ones. Labels alone do not tell wrong labels from
    classes that overlap everywhere. Probabilities are therefore averaged over three models, equally
    likely beforehand: all labels are right and the curve goes from 0 to 1; they are right and it
    ends short of 0 and 1, by overlap; it ends short by wrong labels. The labels weigh the first
    against the others, and of these the last is the less likely the shorter the curve ends, and the
    likelier the more unequal its ends are. Rates and `suspects_` assume noise.

    An integer weight equals that many copies of a row: the default witnesses merge equal rows with
    equal labels. Equal rows are held out together, as copies of one record, unless their labels
    differ at least half as often as labels of any two rows do: then they are different records, and
    every one is held out alone.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on
    Information Theory 16(1), 1970.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.15, random_state=0)
    >>> given = y[:200].copy()
    >>> given[(given == 1) & (np.arange(200) % 3 == 0)] = 0
    >>> model = NoiseAwareClassifier(random_state=0).fit(X[:200], given)
    >>> bool(model.score(X[200:], y[200:]) > 0.9), model.noise_.kind
    (True, 'per_class')
    """

    target_coverage = None

    def __init__(
        self,
        estimators: Any = "auto",
        d: float | None = None,
        *,
        cv: Any = 5,
        n_repeats: Any = "auto",
        fdr: float = 0.1,
        prior: tuple[float, float] = DEFAULT_PRIOR,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.d = d  # type: ignore[assignment]
        self.cv = cv
        self.n_repeats = n_repeats
        self.fdr = fdr
        self.prior = prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @watched
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> NoiseAwareClassifier:
        """Cross-fit the witnesses, fit the noise model, refit the witnesses on all rows.

        scikit-learn's callbacks are told of every witness, of its folds where it has some, and of
        the noise model; one that asks for an end leaves the witnesses that are done.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels as given.
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Rows of one group are held out together.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, labels = self._validated(X, y)
        rows = TakenRows.of(X, labels, sample_weight, groups)
        classes, counts = np.unique(rows.labels, return_counts=True)
        if len(classes) < 2:
            raise ValueError(
                "NoiseAwareClassifier needs samples of at least 2 classes in the data, but the "
                f"data contains only one class: {classes.tolist()}."
            )
        fewest = int(counts.min())
        fits = cross_fit(self, rows, self._folds(rows, fewest), refit=True)
        with fits.tasks.task("noise model"):
            self.noise_: LabelNoise = self._estimated(fits.scores, rows, fewest)
        self.belief_ = believed(self.noise_, fits.scores, rows.labels, rows.weight)
        self.estimators_ = fits.models
        self.classes_ = classes
        self.suspects_: LabelSuspects = rows.suspects(fits.scores, self.noise_, self.fdr)
        band = 0.0 if self.d is None else 1.0 - 2.0 * float(self.d)
        self.thresholds_ = np.array([-band, band])
        fits.tasks.end()
        return self

    def predict_proba(self, X: Any) -> Array:
        """P(true class) of every row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        witnessed = self._witnessed(X)
        return self.belief_.clean_proba(witnessed)

    def predict_proba_draws(self, X: Any) -> Iterator[Array]:
        """P(true class) of every row under one draw of rates and curve after the other.

        Noise is assumed (`noise_`); the spread is what the labels leave open about it.
        `predict_proba` also allows for labels that are all right.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
        """
        witnessed = self._witnessed(X)
        yield from self.noise_.clean_proba_draws(witnessed)

    def decision_function(self, X: Any) -> Array:
        """``P(second class) - P(first class)``, or ``2 P - 1`` of every class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        p = self.predict_proba(X)
        return np.asarray(p[:, 1] - p[:, 0] if p.shape[1] == 2 else 2.0 * p - 1.0)

    def _witnessed(self, X: Any) -> Array:
        """What the witnesses say of new rows."""
        check_is_fitted(self)
        X = collected(X)
        if self._as_table(X):
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=False, **self._row_checks())
        return stacked_scores(self.estimators_, X, self.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "noise_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        witnesses = (
            [] if isinstance(self.estimators, str) else checked_estimators(self.estimators, 0, 1, 0)
        )
        tags.input_tags.sparse = all(get_tags(w).input_tags.sparse for w in witnesses)
        tags.input_tags.allow_nan = bool(witnesses) and all(
            get_tags(w).input_tags.allow_nan for w in witnesses
        )
        return tags

    # -- the steps -------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if self.d is not None:
            check_number("d", self.d, "(0, 0.5]")
        check_number("fdr", self.fdr, "(0, 1)")
        check_splits(self.cv)
        check_repeats(self.n_repeats)
        check_prior(self.prior)
        check_common(self)

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Rows as the witnesses take them: numbers for the default ones, else as given."""
        X = collected(X)
        if self._as_table(X):
            X, y = validate_data(self, X, y, skip_check_array=True)
            check_consistent_length(X, y)
        else:
            X, y = validate_data(self, X, y, **self._row_checks())
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        return X, np.asarray(labels)

    def _as_table(self, X: Any) -> bool:
        """Whether `X` is a data frame for witnesses that know what to do with one."""
        return is_frame(X) and not isinstance(self.estimators, str)

    def _row_checks(self) -> dict[str, Any]:
        tags = self.__sklearn_tags__().input_tags
        return {
            "accept_sparse": "csr" if tags.sparse else False,
            "ensure_all_finite": "allow-nan" if tags.allow_nan else True,
            "dtype": "numeric",
        }

    def _folds(self, rows: TakenRows, fewest: int) -> Any:
        """The folds asked for; fewer when a class has fewer rows."""
        if isinstance(self.cv, (int, np.integer)) and not isinstance(self.cv, bool):
            return max(2, min(int(self.cv), fewest))
        return rows.folds(self.cv)

    def _estimated(self, scores: Array, rows: TakenRows, fewest: int) -> LabelNoise:
        if fewest < FEWEST_ROWS:
            warnings.warn(
                f"A class has only {fewest} rows: noise rates need {FEWEST_ROWS} and come from the "
                "prior mostly.",
                LabelNoiseWarning,
                stacklevel=3,
            )
        return estimate_label_noise(
            scores,
            rows.labels,
            prior=self.prior,
            sample_weight=rows.weight,
            fewest_rows=1,
            held_out=True,
        )

    def _may_refuse(self) -> bool:
        # at one half there is nothing to refuse between two classes
        return self.d is not None and (self.d < 0.5 or len(self.classes_) > 2)

    def _judge(self, X: Any) -> tuple[NDArray[Any], BoolArray]:
        p = self.predict_proba(X)
        labels = np.asarray(self.classes_[p.argmax(axis=1)])
        if self.d is None:
            return labels, np.zeros(len(labels), dtype=bool)
        top = p.max(axis=1)
        # at one half no refusal is cheaper than a guess between two
        return labels, np.asarray(top <= 1.0 - self.d if self.d < 0.5 else top < 0.5)
