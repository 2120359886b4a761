"""Find wrong labels with any classifiers: cross-fit, one noise model, a list to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from buttress._documented import DocumentedMixin
from buttress._frames import collected
from buttress.classifiers.callbacks import CallbackSupportMixin, watched
from buttress.classifiers.parameters import (
    check_common,
    check_number,
    check_splits,
)
from buttress.noise.core.crossfit import (
    check_class_sizes,
    check_repeats,
)
from buttress.noise.core.fitting import estimate_label_noise
from buttress.noise.core.suspects import LabelSuspects
from buttress.noise.witnesses import TakenRows, cross_fit


class LabelAudit(DocumentedMixin, CallbackSupportMixin, BaseEstimator):
    """Judge every label by models that have not seen it.

    Parameters
    ----------
    estimators : "auto", classifier or list of classifiers, default="auto"
        The witnesses: anything of scikit-learn's kind with ``decision_function`` or
        ``predict_proba``, pipelines included. "auto" is an average of kernel machines and one of
        extra-trees and random forests, for numeric features.
    cv : int, splitter or iterable of index pairs, default=5
        Folds of the cross-fit. With a number and no groups the default witnesses hold out every
        row alone (kernel machines) or by bag (forests), which is exact and cheaper.
    n_repeats : int or "auto", default="auto"
        Repeats of an integer `cv`, whose scores are averaged; "auto" is ten for up to 500 rows,
        one beyond 5000.
    fdr : float in (0, 1), default=0.1
        Wanted share of correct labels among the rows named.
    groups : array-like of shape (n_samples,), optional
        Rows of one group are never judged by a model that has seen another of them.
    n_jobs : int or None, default=None
        Threads for the fits.
    random_state : int, RandomState or None, default=None
        For folds, forests and landmarks.
    verbose : int, default=0
        A progress bar on a terminal when positive.

    Notes
    -----
    See `fit_label_noise` for the model. It assumes noise that depends on the true class only:
    labels that are wrong near the boundary alone cannot be told from overlap; then the rates
    are near zero and the list is empty, while the order of the rows is still that of suspicion.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.15, random_state=0)
    >>> y[:30] = 1 - y[:30]
    >>> found = LabelAudit(random_state=0).audit(X, y)
    >>> bool(np.mean(found.selected < 30) > 0.85), len(found.selected) > 15
    (True, True)
    """

    def __init__(
        self,
        estimators: Any = "auto",
        *,
        cv: Any = 5,
        n_repeats: Any = "auto",
        fdr: float = 0.1,
        groups: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.cv = cv
        self.n_repeats = n_repeats
        self.fdr = fdr
        self.groups = groups
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @watched
    def audit(self, X: Any, y: Any, sample_weight: Any = None) -> LabelSuspects:
        """Judge the labels `y` of the rows `X`.

        scikit-learn's callbacks are told of every witness, of its folds where it has some, and of
        the noise model; one that asks for an end leaves the witnesses that are done.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels as given.
        sample_weight : array-like of shape (n_samples,), optional
            Used in the fits and in the noise model. Rows of weight zero take no part; they are
            judged with probability 0 and never named.

        Returns
        -------
        LabelSuspects
        """
        check_number("fdr", self.fdr, "(0, 1)")
        check_splits(self.cv)
        check_repeats(self.n_repeats)
        check_common(self)
        X, labels = collected(X), column_or_1d(y, warn=True)
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        rows = TakenRows.of(X, labels, sample_weight, self.groups)
        if isinstance(self.cv, (int, np.integer)):
            check_class_sizes(rows.labels, int(self.cv))
        fits = cross_fit(self, rows, rows.folds(self.cv))
        with fits.tasks.task("noise model"):
            noise = estimate_label_noise(
                fits.scores, rows.labels, sample_weight=rows.weight, held_out=True
            )
        suspects = rows.suspects(fits.scores, noise, self.fdr)
        fits.tasks.end()
        return suspects
