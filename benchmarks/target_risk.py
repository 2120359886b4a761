"""Coverage under a promised error rate, and how often the promise is broken.

Two Gaussians (error .178 when every row is answered), a fitted logistic regression, and n
calibration rows; target error .05 with confidence .9. Every method sees the same rows. MAPIE's
BinaryClassificationController is asked for the same promise: the risk "wrong among the answered",
its default correction (Bonferroni-Holm) and its fixed sequence, on 50 thresholds of the
probability. With flipped labels the bound is asked for on the true labels. Needs mapie.

    python benchmarks/target_risk.py [--quick] [--draws N] [--docs]
"""

from __future__ import annotations

import argparse
import logging
import warnings
from typing import Any

import numpy as np
from mapie.risk_control import BinaryClassificationController, BinaryRisk
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from _common import report
from buttress import ChowRejector
from buttress.datasets import flip_labels

TARGET, CONFIDENCE, SHIFT = 0.05, 0.9, 0.923
THRESHOLDS = np.linspace(0.5, 0.99, 50)


def rows(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2))
    X[:, 0] += SHIFT * (2 * y - 1)
    return X, y


def ideal_coverage() -> float:
    """Of the rule that answers above the threshold at which the error is the target."""
    t = np.linspace(0.0, 4.0, 100_000)
    right, wrong = stats.norm.sf(t - SHIFT), stats.norm.cdf(-t - SHIFT)
    return float((right + wrong)[np.argmax(wrong / (right + wrong) <= TARGET)])


def answered_by_mapie(model: Any, X: Any, y: Any, X_new: Any, method: str) -> Any:
    """Which new rows MAPIE's controller answers."""

    def answers(X: Any, threshold: float) -> Any:
        p = model.predict_proba(X)
        return np.where(p.max(axis=1) > threshold, p.argmax(axis=1), np.nan)

    wrong = BinaryRisk(
        risk_occurrence=lambda y_true, y_pred: y_pred != y_true,
        risk_condition=lambda y_true, y_pred: np.isfinite(y_pred),
        higher_is_better=False,
    )
    answered = BinaryRisk(
        risk_occurrence=lambda y_true, y_pred: np.isfinite(y_pred),
        risk_condition=lambda y_true, y_pred: np.repeat(True, len(y_true)),
        higher_is_better=True,
    )
    # multi-dimensional parameters make the controller take answers instead of probabilities
    order = THRESHOLDS[::-1] if method == "split_fixed_sequence" else THRESHOLDS
    controller = BinaryClassificationController(
        predict_function=answers,
        risk=wrong,
        target_level=TARGET,
        confidence_level=CONFIDENCE,
        best_predict_param_choice=answered,
        list_predict_params=order[:, None],
        fwer_method=method,
    )
    if method == "split_fixed_sequence":
        part = len(y) // 4
        controller.learn_fixed_sequence_order(X[:part], y[:part])
        X, y = X[part:], y[part:]
    controller.calibrate(X, y)
    if controller.best_predict_param is None:
        return np.zeros(len(X_new), dtype=bool)
    return np.isfinite(answers(X_new, float(np.ravel(controller.best_predict_param)[0])))


def draw(n: int, rate: float, seed: int) -> dict[str, tuple[float, float]]:
    """Coverage and whether the promise is broken, of every method."""
    X, y = rows(n + 1000, seed)
    X_new, y_new = rows(50_000, 10**6 + seed)
    given = flip_labels(y, rate, random_state=seed) if rate else y
    model = LogisticRegression().fit(X[:1000], given[:1000])
    X, given = X[1000:], given[1000:]
    pred = model.predict(X_new)
    kept = {}
    for label, method in (
        ("MAPIE, Bonferroni-Holm", "bonferroni_holm"),
        ("MAPIE, split fixed sequence", "split_fixed_sequence"),
    ):
        kept[label] = answered_by_mapie(model, X, given, X_new, method)
    intervals = {"buttress": None}
    if rate:
        intervals |= {
            "buttress, rate known": (rate, rate),
            "buttress, rate known to .01": (rate - 0.01, rate + 0.01),
        }
    for label, noise in intervals.items():
        chow = ChowRejector(FrozenEstimator(model), target_risk=TARGET, confidence=CONFIDENCE)
        chow.set_params(noise_rates=noise, random_state=seed).fit(X, given)
        kept[label] = ~chow.reject(X_new)
    return {
        label: (
            float(rows.mean()),
            float(rows.any() and (pred != y_new)[rows].mean() > TARGET),
        )
        for label, rows in kept.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="five draws")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    draws = 5 if given.quick else given.draws
    table = []
    for rate in (0.0, 0.1):
        for n in (300, 1000, 3000, 10_000):
            found = [draw(n, rate, seed) for seed in range(draws)]
            for label in found[0]:
                coverage, broken = np.mean([one[label] for one in found], axis=0)
                table.append(
                    {
                        "labels flipped": f"{rate:.0%}",
                        "n": n,
                        "method": label,
                        "coverage": f"{coverage:.3f}",
                        "promise broken": f"{broken:.3f}",
                    }
                )
    report("target_risk", table, docs=given.docs, draws=draws, ideal=ideal_coverage())


if __name__ == "__main__":
    main()
