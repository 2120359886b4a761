"""Chow's rule around any classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from buttress._arrays import Array, BoolArray, IntArray
from buttress._documented import DocumentedMixin
from buttress._frames import collected
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.costs import decided_by_cost, probability_band, usable_costs
from buttress.classifiers.label_sets import LabelSetMixin
from buttress.classifiers.parameters import (
    check_common,
    check_number,
    check_option,
    check_splits,
)
from buttress.classifiers.refusal_reasons import Surroundings
from buttress.classifiers.reject import RejectMixin
from buttress.classifiers.risk_control import RiskControlMixin
from buttress.classifiers.wrapping import WrapperMixin
from buttress.noise.core.crossfit import PartFits

# How many of the nearest training rows `novelty` measures the distance to.
_NEIGHBORS = 5


class ChowRejector(
    DocumentedMixin,
    LabelSetMixin,
    RiskControlMixin,
    RejectMixin,
    WrapperMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Give an answer only when its probability exceeds ``1 - d``: Chow's rule.

    The generalised Bayes rule of the 0-d-1 loss, applied to the probabilities of any
    classifier. It is the baseline that a classifier trained for rejection has to beat.

    Parameters
    ----------
    estimator : classifier
        Anything with ``predict_proba`` or ``decision_function``. It is cloned and fitted; put
        an already fitted one in ``sklearn.frozen.FrozenEstimator``.
    d : float in (0, 0.5], default=0.2
        Cost of giving no answer, when a wrong one costs 1.
    costs : array-like of shape (n_classes, n_classes + 1), optional
        Instead of `d`: ``costs[j, k]`` is paid for answering ``classes_[k]`` on a row of
        ``classes_[j]``, and the last column for not answering it. The decision of smallest
        expected cost is taken, and `predict` names the cheapest answer, which need not be the
        most probable one. Around a `NoiseAwareClassifier` (or any with
        ``predict_proba_draws``) an answer must moreover be cheaper than none with probability
        `confidence` over what is not known about the noise. It is an error when refusing would
        be right for every row, and a warning says when it never is.
    calibration : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        How scores become probabilities, by cross-fitting (``CalibratedClassifierCV``). None
        takes ``predict_proba`` as it is; "auto" does so where the estimator has one and uses
        "sigmoid" on its margins where it has not.
    cv : int or splitter, default=5
        Folds of the calibration.
    target_coverage : float in (0, 1], optional
        Instead of `d`: the share of rows that must get an answer. A quarter of the rows is
        kept out of training, and the band is set on them; a new row is then answered with
        probability at least `target_coverage` (and, without ties, at most one over their
        number more), whatever the distribution. For more than two classes the band is one of
        the distance of the two largest probabilities.
    target_risk : float in (0, 1), optional
        Set the band so that at most this share of the answers is wrong, with probability
        `confidence` over the draw of the rows it is tested on, whatever the distribution: see
        `risk_certificate_`. Where that cannot be promised no row gets an answer, and a warning
        says how many more rows would be needed. With more than two classes the band is one for
        the distance of the two largest probabilities. Weights do not enter.
    confidence : float in (0, 1), default=0.9
        Probability with which the promise of `target_risk` is kept, and with which an answer
        must be worth its risk where `costs` meet probabilities that are drawn.
    certify_on : {"held_out", "folds"}, default="held_out"
        "held_out" keeps a quarter of the rows out of training for the test of `target_risk`,
        which is exact. "folds" trains on all rows and tests on what models of five folds say of
        the others; the promise is then about those models, and approximate. With an estimator
        in a ``FrozenEstimator``, which has seen other rows, "held_out" tests on three quarters of
        the rows.
    noise_rates : "estimate", pair, LabelNoise or array-like of shape (n_classes, 2), optional
        Lower and upper limit of the share of wrong labels (in all, or among the rows that truly
        belong to each class): `target_risk` is then promised for the true labels. "estimate"
        takes the rates, with what the labels leave open about them, from `buttress.noise`; the
        promise then rests on that model too.
    novelty : float in (0, 1), optional
        Also refuse rows that are farther from the training rows than all but this share of
        them is from the others: mean distance to the five nearest, features standardised. The
        training rows and labels are then kept in the model, and `explain_reject` needs no
        others. Numeric, dense features only.
    random_state : int, RandomState or None, default=None
        For the choice of the rows kept out.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier, calibrated where asked.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    thresholds_ : ndarray of shape (2,) or (n_classes, 2)
        The band on the scale of `decision_function`: ``(2d - 1, 1 - 2d)``. With `costs` it need
        not be symmetric (rows outside it are refused too where probabilities are drawn), and
        with more than two classes there is none (NaN).
    risk_certificate_ : RiskCertificate
        With `target_risk`: ``n`` answered rows of the test, ``errors`` among them, the upper
        ``bound`` of the error, and more.
    set_thresholds_ : ndarray of shape (n_classes,)
        After `calibrate_sets`: how probable each label must be to enter a set.
    n_features_in_ : int
        Number of features, when the classifier knows it.
    feature_names_in_ : ndarray
        Their names, when the classifier knows them.

    Notes
    -----
    A row is rejected when its largest probability is at most ``1 - d`` (below one half at
    ``d = 0.5``, which never happens with two classes). The rule is optimal for true
    probabilities, so it is as good as the calibration. Costs what the estimator costs, times
    ``cv + 1`` at most when it is calibrated.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on
    Information Theory 16(1), 1970.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ChowRejector(make_pipeline(StandardScaler(), LogisticRegression()), d=0.1)
    >>> float(model.fit(X, y).reject(X).mean().round(2))
    0.09
    """

    def __init__(
        self,
        estimator: Any,
        d: float = 0.2,
        *,
        costs: Any = None,
        calibration: str | None = "auto",
        cv: Any = 5,
        target_coverage: float | None = None,
        target_risk: float | None = None,
        confidence: float = 0.9,
        certify_on: str = "held_out",
        noise_rates: Any = None,
        novelty: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.d = d
        self.costs = costs
        self.calibration = calibration
        self.cv = cv
        self.target_coverage = target_coverage
        self.target_risk = target_risk
        self.confidence = confidence
        self.certify_on = certify_on
        self.noise_rates = noise_rates
        self.novelty = novelty
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> ChowRejector:
        """Fit the classifier and, where asked, its calibration and the band.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the classifier.
        **fit_params : dict
            Passed to the classifier's `fit`.

        Returns
        -------
        self
        """
        self._check_estimator()
        check_number("d", self.d, "(0, 0.5]")
        check_option("calibration", self.calibration, ["auto", "sigmoid", "isotonic", None])
        check_common(self)
        if self.novelty is not None:
            check_number("novelty", self.novelty, "(0, 1)")
            if self._sets_band_on_others():
                raise ValueError(
                    "novelty cannot be combined with target_coverage or target_risk: refusals "
                    "beyond the band would break what is promised about it."
                )
        check_splits(self.cv)  # also where no calibration needs it
        self._check_coverage()
        check_number("confidence", self.confidence, "(0, 1)")
        if self.costs is not None and self._sets_band_on_others():
            raise ValueError(
                "costs cannot be combined with target_coverage or target_risk: each of them sets "
                "the band. Leave two of the three None."
            )
        X, model = collected(X), self._model()
        params = self._fit_params(sample_weight, fit_params)
        self.__dict__.pop("risk_certificate_", None)
        if self._sets_band_on_others():
            X, y = indexable(X, column_or_1d(y, warn=True))
            check_classification_targets(y)
            refit = _ByParts(self, PartFits(self.estimator, X, y, params))
            self._fit_with_band(refit, y, isinstance(self.estimator, FrozenEstimator))
            return self
        self._fit_model(model, X, y, params)
        n_classes, band = len(self.classes_), np.array([2.0 * self.d - 1.0, 1.0 - 2.0 * self.d])
        self.thresholds_ = band if n_classes == 2 else np.tile(band, (n_classes, 1))
        if self.costs is not None:
            costs = usable_costs(self.costs, n_classes)
            self.thresholds_ = np.full((n_classes, 2), np.nan)
            if n_classes == 2:
                self.thresholds_ = 2.0 * np.array(probability_band(costs)) - 1.0
        return self

    def decision_function(self, X: Any) -> Array:
        """``2 p - 1`` with ``p`` the probability of ``classes_[1]``, or of every class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return _margins(self.predict_proba(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, as the (calibrated) classifier gives them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(collected(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _judge(self, X: Any) -> tuple[NDArray[Any], BoolArray]:
        X = collected(X)
        labels, refused = self._decided(X)
        if self.novelty is None:
            return labels, refused
        rows, n_near = self._seen[:2]
        around = Surroundings(rows, n_near)
        limit = np.quantile(around.own_distance, 1.0 - self.novelty)
        return labels, refused | (around.of(X)[0] > limit)

    def _may_refuse(self) -> bool:
        # one half is a limit of the largest probability where there are three classes
        several = len(self.classes_) > 2 and not self._sets_band_on_others()
        beside = self.costs is not None or self.novelty is not None
        return several or beside or self._has_band()

    def _kept_rows(self) -> tuple[Array, NDArray[Any]] | None:
        return (self._seen[0], self._seen[2]) if self.novelty is not None else None

    def _noise_scores(self, scores: Array) -> Array:
        # log-odds, or logarithms of the probabilities: 2 p - 1 would bend the curve
        p = np.clip(0.5 * (1.0 + scores), 1e-6, 1.0 - 1e-6)
        return np.asarray(np.log(p / (1.0 - p)) if p.ndim == 1 else np.log(p))

    def _decided(self, X: Any) -> tuple[NDArray[Any], BoolArray]:
        if self.costs is not None:
            check_is_fitted(self)
            costs = np.asarray(self.costs, dtype=np.float64)
            answer, refused = decided_by_cost(self.estimator_, X, costs, self.confidence)
            return np.asarray(self.classes_[answer]), refused
        p = self.predict_proba(X)
        labels = np.asarray(self.classes_[p.argmax(axis=1)])
        if self._sets_band_on_others():
            return labels, self._rejected(_margins(p))
        top = p.max(axis=1)
        # d is the tie's price too, except where rejecting cannot be cheaper than guessing
        return labels, np.asarray(top <= 1.0 - self.d if self.d < 0.5 else top < 0.5)

    def _model(self) -> Any:
        method = self.calibration
        probable = hasattr(self.estimator, "predict_proba")
        if not probable and not hasattr(self.estimator, "decision_function"):
            raise ValueError(
                f"estimator={self.estimator!r} is not accepted: it has neither predict_proba nor "
                "decision_function before it is fitted. A classifier made of others has them when "
                "it is told all of them (final_estimator of a stack, voting='soft')."
            )
        if method == "auto":
            method = None if probable else "sigmoid"
        if method is not None:
            return CalibratedClassifierCV(clone(self.estimator), method=method, cv=self.cv)
        if not probable:
            raise ValueError(
                f"calibration=None needs an estimator with predict_proba; "
                f"{type(self.estimator).__name__} has none. Use calibration='sigmoid'."
            )
        return clone(self.estimator)

    def _fit_params(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        if sample_weight is not None:
            fit_params = fit_params | {"sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            return self._routed(fit_params)
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but {type(self.estimator).__name__} takes no weights."
            )
        return fit_params

    def _fit_model(self, model: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        self.estimator_ = model.fit(X, y, **params)
        self.__dict__.pop("_seen", None)
        if self.novelty is not None:
            self._seen = (check_array(X, dtype=np.float64), _NEIGHBORS, np.asarray(y))
        self.classes_ = self.estimator_.classes_
        self._take_features()


class _ByParts:
    """Training on some rows by taking them out of the whole."""

    def __init__(self, rejector: ChowRejector, rows: PartFits) -> None:
        self.rejector, self.rows = rejector, rows
        self.trained = np.empty(0, dtype=int)

    def train(self, rows: IntArray) -> None:
        self.rejector._fit_model(self.rejector._model(), *self.rows.given(rows))
        self.trained = rows

    def scores(self, rows: IntArray) -> Array:
        return self._scores(self.rejector.estimator_, self.trained, rows)

    def fold_scores(self, train: IntArray, test: IntArray) -> Array:
        X, y, params = self.rows.given(train)
        return self._scores(self.rejector._model().fit(X, y, **params), train, test)

    def _scores(self, model: Any, trained: IntArray, rows: IntArray) -> Array:
        return _margins(np.asarray(model.predict_proba(self.rows.taken(rows, trained))))


def _margins(p: Array) -> Array:
    """Probabilities on the scale of margins: one column for two classes."""
    return np.asarray(p[:, 1] - p[:, 0] if p.shape[1] == 2 else 2.0 * p - 1.0)
