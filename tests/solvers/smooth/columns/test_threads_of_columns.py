"""Threads that divide columns among them change no result."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification

from buttress import LeakyHockeyStickClassifierCV
from buttress.solvers.smooth.columns import _threads


def test_the_refit_of_several_classes_is_refined_by_all_threads(monkeypatch):
    monkeypatch.setattr(_threads, "_INTERPRETED", 50)
    X, y = make_classification(
        400, 12, n_informative=6, n_classes=3, flip_y=0.1, class_sep=0.7, random_state=0
    )
    searches = [
        LeakyHockeyStickClassifierCV(alphas=8, solver="batched", n_jobs=jobs).fit(X, y)
        for jobs in (1, 2)
    ]
    assert searches[0].solver_ == "batched"
    np.testing.assert_array_equal(searches[0].cv_mean_, searches[1].cv_mean_)
    np.testing.assert_allclose(
        searches[0].decision_function(X), searches[1].decision_function(X), atol=1e-6
    )
