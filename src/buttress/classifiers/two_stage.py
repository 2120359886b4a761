"""A predictor that is left as it is, and a kernel machine that learns when not to ask it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array, BoolArray, IntArray
from buttress._documented import DocumentedMixin
from buttress._frames import validate_data
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.generalized_hinge import GeneralizedHingeClassifier
from buttress.classifiers.parameters import (
    check_classifier,
    check_common,
    check_flag,
    check_number,
    check_values,
)
from buttress.classifiers.reject import RejectMixin
from buttress.classifiers.risk_control import RiskControlMixin
from buttress.metrics.scorer import confidence_scores


class TwoStageRejector(
    DocumentedMixin,
    RiskControlMixin,
    RejectMixin,
    MetaEstimatorMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Learn where any classifier errs, and refuse there.

    Stage one is any classifier. Stage two is a support vector machine trained on where the
    first was wrong on rows it had not seen; it does not touch the answers.

    Parameters
    ----------
    estimator : classifier
        The predictor. It is cloned and fitted on all rows; for the second stage copies of it
        are fitted on folds.
    d : float in (0, 0.5], default=0.2
        Cost of giving no answer, when a wrong one costs 1. At 0.5 every row is answered.
    Cs : sequence of floats, default=(0.1, 1.0, 10.0)
        Penalties of the rejector to try; the smallest 0-d-1 risk on held-out rows is chosen.
    kernel, gamma
        The rejector's kernel: a scikit-learn pairwise name or a callable, on standardised
        features; ``gamma`` "scale", "auto", "median" or a number.
    use_confidence : bool, default=True
        Whether the rejector also sees how sure the predictor is (its score or probability).
    cv : int, default=5
        Folds of the predictor's errors and of the choice of the penalty.
    target_coverage : float in (0, 1], optional
        Set the band of the rejector for this share of answers, on a quarter of the rows that is
        kept out of both stages.
    target_risk, confidence, certify_on, noise_rates
        As in `ChowRejector`: a promised error rate among the answers.
    random_state : int, RandomState or None, default=None
        For the folds and the rows kept out.

    Attributes
    ----------
    estimator_ : classifier
        The fitted predictor.
    rejector_ : GeneralizedHingeClassifier or None
        The fitted rejector, a support vector machine; None when the predictor made no error on
        held-out rows (nothing is refused) or was never right (everything is).
    C_ : float
        The chosen penalty.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    thresholds_ : ndarray of shape (2,)
        The band on the scale of `decision_function`; ``(-0.5, 0.5)`` for `d`.
    risk_certificate_ : RiskCertificate
        With `target_risk`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With the predictor h fixed, a row is better refused where ``P(h(x) wrong | x) > d``. That is a
    classification of rows into "h is wrong" and "h is right" in which a missed error costs
    ``1 - d`` and a needless refusal ``d``, so the second stage minimises::

        1/2 ||g||^2 + C sum_i c_i [1 - e_i (g(x_i) + b)]_+,   c_i = 1 - d or d

    with ``e_i = -1`` where h was wrong on row i and +1 where it was right. The weighted hinge
    loss is consistent for it: with C and n growing the sign of ``r = g + b`` becomes that of
    ``d - P(h wrong | x)``, whatever h is. Costs ``cv`` more fits of the predictor, and
    ``cv * len(Cs) + 1`` support vector machines.

    References
    ----------
    A. Mao, M. Mohri and Y. Zhong, "Predictor-rejector multi-class abstention: theoretical
    analysis and algorithms", International Conference on Algorithmic Learning Theory, 2024.
    C. Cortes, G. DeSalvo and M. Mohri, "Learning with rejection", the same conference, 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = TwoStageRejector(LogisticRegression(), d=0.1, random_state=0).fit(X, y)
    >>> answered = ~model.reject(X)
    >>> wrong = model.predict(X) != y
    >>> bool(wrong[answered].mean() < 0.3 * wrong.mean())
    True
    """

    _one_band = True

    def __init__(
        self,
        estimator: Any,
        d: float = 0.2,
        *,
        Cs: Any = (0.1, 1.0, 10.0),
        kernel: Any = "rbf",
        gamma: Any = "scale",
        use_confidence: bool = True,
        cv: int = 5,
        target_coverage: float | None = None,
        target_risk: float | None = None,
        confidence: float = 0.9,
        certify_on: str = "held_out",
        noise_rates: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.d = d
        self.Cs = Cs
        self.kernel = kernel
        self.gamma = gamma
        self.use_confidence = use_confidence
        self.cv = cv
        self.target_coverage = target_coverage
        self.target_risk = target_risk
        self.confidence = confidence
        self.certify_on = certify_on
        self.noise_rates = noise_rates
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> TwoStageRejector:
        """Fit the predictor, then the rejector on its errors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        check_classifier("estimator", self.estimator)
        check_number("d", self.d, "(0, 0.5]")
        check_number("cv", self.cv, "[2, inf)", integer=True)
        check_flag("use_confidence", self.use_confidence)
        check_values("Cs", self.Cs, "(0, inf)")
        check_common(self)
        self._check_coverage()
        if self.kernel == "precomputed":
            raise ValueError("kernel='precomputed' is not accepted: the rejector maps new rows.")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.__dict__.pop("risk_certificate_", None)
        stages = _Stages(self, X, y)
        self.thresholds_ = np.array([-0.5, 0.5]) if self.d < 0.5 else np.zeros(2)
        if self._sets_band_on_others():
            self._fit_with_band(stages, y)
        else:
            stages.train(np.arange(len(y)))
        return self

    def rejection_score(self, X: Any) -> Array:
        """The rejector's score: positive where an answer is worth its risk.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._worth(self._validated(X))

    def decision_function(self, X: Any) -> Array:
        """The logistic function of `rejection_score`, with the sign of the answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive in the column of the answer (for two classes: for ``classes_[1]``).
        """
        return self._signed(self._validated(X))

    def _noise_scores(self, scores: Array) -> Array:
        # the logistic function undone, with the sign of the answer
        return np.asarray(-np.sign(scores) * np.log1p(-np.minimum(np.abs(scores), 1.0 - 1e-9)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = get_tags(self.estimator).classifier_tags.multi_class
        tags.input_tags.sparse = False
        return tags

    # -- the second stage ------------------------------------------------------------------

    def _validated(self, X: Any) -> Array:
        """New rows as both stages take them: numbers without names."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    def _worth(self, X: Array) -> Array:
        if self.rejector_ is None:
            return np.full(len(X), self._everywhere)
        return np.asarray(self.rejector_.decision_function(self._features(self.estimator_, X)))

    def _signed(self, X: Array) -> Array:
        sure = 1.0 / (1.0 + np.exp(-np.clip(self._worth(X), -500.0, 500.0)))
        answer = np.searchsorted(self.classes_, self.estimator_.predict(X))
        if len(self.classes_) == 2:
            return np.asarray(np.where(answer == 1, sure, -sure))
        return np.asarray(
            np.where(answer[:, None] == np.arange(len(self.classes_)), 1, -1) * sure[:, None]
        )

    def _features(self, predictor: Any, X: Array) -> Array:
        """Standardised columns of the rejector."""
        Z = (X - self._mean) / self._spread
        if not self.use_confidence:
            return np.asarray(Z)
        sure = np.asarray(confidence_scores(predictor, X), dtype=np.float64)
        # one column among p others would hardly be seen: it gets their joint weight
        sure = (sure - self._confidence[0]) / self._confidence[1] * np.sqrt(X.shape[1])
        return np.column_stack([Z, sure])

    def _fit_stages(self, X: Array, y: NDArray[Any]) -> None:
        self._mean, spread = X.mean(axis=0), X.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        codes = np.unique(y, return_inverse=True)[1]
        counts = np.bincount(codes)
        if len(counts) < 2 or counts.min() < 2:
            raise ValueError(
                "TwoStageRejector needs samples of at least 2 classes, two of each, to judge the "
                f"predictor on held-out rows; got one class or class counts {counts.tolist()}."
            )
        n_folds = int(min(self.cv, counts.min()))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, codes))
        right = np.zeros(len(y), dtype=bool)
        predictors = []
        for train, test in folds:
            predictors.append(clone(self.estimator).fit(X[train], y[train]))
            right[test] = predictors[-1].predict(X[test]) == y[test]
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        if self.use_confidence:
            seen = np.concatenate(
                [
                    confidence_scores(p, X[test])
                    for p, (_, test) in zip(predictors, folds, strict=True)
                ]
            )
            self._confidence = (float(seen.mean()), float(seen.std()) or 1.0)
        Z = np.empty((len(y), X.shape[1] + int(self.use_confidence)))
        for predictor, (_, test) in zip(predictors, folds, strict=True):
            Z[test] = self._features(predictor, X[test])
        self._fit_rejector(Z, right, folds)

    def _fit_rejector(
        self, Z: Array, right: BoolArray, folds: list[tuple[IntArray, IntArray]]
    ) -> None:
        self.rejector_ = None
        self.C_ = float("nan")
        self._everywhere = 1.0 if right.any() else -1.0
        if right.all() or not right.any() or self.d == 0.5:
            return
        weight = np.where(right, self.d, 1.0 - self.d)
        risks = {}
        for C in check_values("Cs", self.Cs, "(0, inf)"):
            kept = np.ones(len(right), dtype=bool)
            for train, test in folds:
                if 0 < right[train].sum() < len(train):
                    machine = self._machine(C).fit(Z[train], right[train], weight[train])
                    kept[test] = machine.decision_function(Z[test]) > 0
            risks[C] = float(np.mean(np.where(kept, ~right, self.d)))
        self.C_ = min(risks, key=risks.__getitem__)
        self.rejector_ = self._machine(self.C_).fit(Z, right, weight)

    def _machine(self, C: float) -> GeneralizedHingeClassifier:
        # at d = 1/2 the generalised hinge is the hinge; 1e-4 of a margin moves no sign that counts
        return GeneralizedHingeClassifier(
            d=0.5, C=C, kernel=self.kernel, gamma=self.gamma, tol=1e-4
        )


class _Stages:
    """Both stages trained on some rows."""

    def __init__(self, model: TwoStageRejector, X: Array, y: NDArray[Any]) -> None:
        self.model, self.X, self.y = model, X, y

    def train(self, rows: IntArray) -> None:
        self.model._fit_stages(self.X[rows], self.y[rows])

    def scores(self, rows: IntArray) -> Array:
        return self.model._signed(self.X[rows])

    def fold_scores(self, train: IntArray, test: IntArray) -> Array:
        model = clone(self.model).set_params(target_risk=None)
        return np.asarray(model.fit(self.X[train], self.y[train]).decision_function(self.X[test]))
