"""What the peers of `noise.py` reach: tuned SVC, forest, boosting, and cleanlab around each.

All see the same rows, labels and folds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.svm import SVC

from _noise_sets import COSTS, chow_risk, folds_of, split, spoil

PENALTIES = [0.1, 1.0, 10.0, 100.0]
FACTORS = [0.25, 1.0, 4.0]
NAMES = ("svc", "forest", "boosting")


def widths(X: Any) -> list[float]:
    return [factor / (X.shape[1] * X.var()) for factor in FACTORS]


def peer_cell(name: str, seed: int, kind: str) -> dict[str, float]:
    """Accuracies, average precisions and 0-d-1 risks of all peers on one split of one set."""
    X, y, X_test, y_test = split(name, seed)
    noisy = spoil(X, y, kind, seed)
    wrong = noisy != y
    folds = folds_of(X, noisy, seed)
    search = GridSearchCV(SVC(), {"C": PENALTIES, "gamma": widths(X)}, cv=folds).fit(X, noisy)
    tuned = SVC(**search.best_params_)
    margins = cross_val_predict(tuned, X, noisy, cv=folds, method="decision_function")
    calibrated = CalibratedClassifierCV(tuned, cv=5, ensemble=False)
    makers = {
        "svc": calibrated,
        "forest": RandomForestClassifier(300, oob_score=True, random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }
    found = {"accuracy svc": float((search.predict(X_test) == y_test).mean())}
    for label, model in makers.items():
        fitted = model.fit(X, noisy)
        if label == "forest":  # out of bag: better than five folds, and cheaper
            held_out = fitted.oob_decision_function_
        else:
            held_out = cross_val_predict(model, X, noisy, cv=folds, method="predict_proba")
        positive = fitted.predict_proba(X_test)[:, 1]
        if label != "svc":
            found[f"accuracy {label}"] = float((fitted.predict(X_test) == y_test).mean())
        found[f"risk {label}"] = float(np.mean([chow_risk(positive, y_test, d) for d in COSTS]))
        found |= _cleaned(label, model, held_out, (X, noisy, X_test, y_test), wrong)
        if wrong.any():
            own = held_out[np.arange(len(noisy)), noisy]
            found[f"AP {label}"] = average_precision_score(wrong, -own)
    scores = search.decision_function(X_test)
    found["risk margin band"] = _band_risk(margins, noisy, scores, y_test)
    if wrong.any():
        found["AP margin"] = average_precision_score(wrong, np.where(noisy == 1, -margins, margins))
    return {key: float(value) for key, value in found.items()}


def _cleaned(label: str, model: Any, held_out: Any, data: Any, wrong: Any) -> dict[str, float]:
    """Cleanlab with the held-out probabilities of a model: its ranking, and its refit."""
    from cleanlab.classification import CleanLearning
    from cleanlab.rank import get_label_quality_scores
    from sklearn.base import clone

    X, noisy, X_test, y_test = data
    found = {}
    if wrong.any():
        # with two classes its plain scores order the rows as the probabilities do
        quality = get_label_quality_scores(noisy, held_out, adjust_pred_probs=True)
        found[f"AP cleanlab {label}"] = average_precision_score(wrong, -quality)
    try:
        learner = CleanLearning(clone(model), seed=0).fit(X, noisy, pred_probs=held_out)
        accuracy = float((learner.predict(X_test) == y_test).mean())
    except ValueError:  # cleaning left a class without rows enough for a fit
        accuracy = float((model.predict(X_test) == y_test).mean())
    found[f"accuracy cleanlab {label}"] = accuracy
    return found


def _band_risk(margins: Any, noisy: Any, scores: Any, y_test: Any) -> float:
    """Mean 0-d-1 risk of |f| <= t, t chosen for every cost on the held-out margins."""
    distance = np.abs(margins)
    errors = (margins > 0) != noisy
    order = np.argsort(distance)
    cuts = np.r_[-1.0, distance[order]]
    lost = np.r_[errors.sum(), errors.sum() - np.cumsum(errors[order])]
    risks = []
    for d in COSTS:
        best = cuts[np.argmin(lost + d * np.arange(len(cuts)))]
        wrong = (scores > 0) != y_test
        risks.append(np.where(np.abs(scores) <= best, d, wrong).mean())
    return float(np.mean(risks))
