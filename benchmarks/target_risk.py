"""Coverage under a promised error rate, and how often the promise is broken.

Two Gaussians (error .178 when every row is answered), a fitted logistic regression, and n
calibration rows; target error .05 with confidence .9. Every method sees the same rows. MAPIE's
BinaryClassificationController is asked for the same promise: the risk "wrong among the answered",
its default correction (Bonferroni-Holm) and its fixed sequence, on 50 thresholds of the
probability. With flipped labels the bound is asked for on the true labels. "start known" is the
ceiling of such tests: all rows, a start read off the distribution itself. Needs mapie.

--violations draws this classifier and its rows many times and counts broken promises, --estimated
compares rates that are known with rates that are estimated; both know the error of a band exactly.

Finished draws are kept in results/target_risk_cells.jsonl.

    python benchmarks/target_risk.py [--quick] [--draws N] [--fresh] [--docs]
    python benchmarks/target_risk.py --violations --draws 1000 [--docs]
    python benchmarks/target_risk.py --estimated --draws 8 [--docs]
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

from _common import Cells, report
from buttress import ChowRejector
from buttress.datasets import flip_labels
from buttress.theory import CalibrationRows, LabelErrors, ThresholdPlan, certify_risk

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


def answered_from_known_start(model: Any, X: Any, y: Any, X_new: Any, rate: float) -> Any:
    """The ceiling: one exact sequence on all rows, its start read off the distribution.

    Half of the ideal coverage (from .8 of it on it certifies less below 10 000 rows), and the
    noise rate known; nothing that has to find the start on some of the rows can expect more.
    """
    sure = np.abs(model.decision_function(X_new))
    shares = np.linspace(0.5 * ideal_coverage(), 1.0, 80)
    thresholds = np.quantile(sure, 1.0 - shares)
    confidence, pred = np.abs(model.decision_function(X)), model.predict(X)
    noise = LabelErrors.symmetric(rate, rate) if rate else None
    seen = CalibrationRows(confidence, pred != y, pred, noise)
    plan = ThresholdPlan((thresholds,), (1.0,))
    return sure > certify_risk(seen, plan, TARGET, CONFIDENCE).threshold


def known_rates(rate: float) -> dict[str, tuple[float, float]]:
    return {"rate known": (rate, rate), "rate known to .01": (rate - 0.01, rate + 0.01)}


def promised(model: Any, X: Any, y: Any, noise: Any, seed: int) -> ChowRejector:
    """Chow's rule around the fitted model, with the promise tested on rows it has not seen."""
    chow = ChowRejector(FrozenEstimator(model), target_risk=TARGET, confidence=CONFIDENCE)
    return chow.set_params(noise_rates=noise, random_state=seed).fit(X, y)


def coverage_and_error(chow: ChowRejector) -> tuple[float, float]:
    """Of the band of a linear model, exactly: its scores are normal in either class."""
    linear, end = chow.estimator_.estimator, chow.risk_certificate_.threshold
    if not chow.risk_certificate_.certified:
        return 0.0, 0.0
    # the band is one of 2 p - 1, the tangent of half the score
    ends = np.array([-1.0, 1.0]) * 2.0 * np.arctanh(end)
    shift, spread = SHIFT * linear.coef_[0, 0], float(np.linalg.norm(linear.coef_))
    low, high = (stats.norm(linear.intercept_[0] + sign * shift, spread) for sign in (-1.0, 1.0))
    wrong = 0.5 * (low.sf(ends[1]) + high.cdf(ends[0]))
    right = 0.5 * (low.cdf(ends[0]) + high.sf(ends[1]))
    return float(wrong + right), float(wrong / (wrong + right))


def exact_draws(what: str, n: int, rate: float, first: int, last: int) -> dict[str, float]:
    """Mean coverage and share of broken promises of the draws `first` to `last`."""
    rules: dict[str, Any] = known_rates(rate) if rate else {"clean labels": None}
    if what == "estimated":
        rules = {"rate known": (rate, rate), "rate estimated": "estimate"}
    found: dict[str, list[float]] = {}
    for seed in range(first, last):
        X, y = rows(n + 1000, seed)
        given = flip_labels(y, rate, random_state=seed) if rate else y
        model = LogisticRegression().fit(X[:1000], given[:1000])
        for label, noise in rules.items():
            chow = promised(model, X[1000:], given[1000:], noise, seed)
            coverage, error = coverage_and_error(chow)
            found.setdefault(f"{label}/coverage", []).append(coverage)
            found.setdefault(f"{label}/promise broken", []).append(float(error > TARGET))
    return {key: float(np.mean(values)) for key, values in found.items()}


def exact_table(what: str, cells: Cells, draws: int, docs: bool) -> None:
    """Many draws, a block of them at a time."""
    block = min(draws, 4 if what == "estimated" else 100)
    table = []
    wanted = [(0.0, 300), (0.0, 1000), (0.0, 3000), (0.1, 1000)]
    if what == "estimated":
        wanted = [(0.1, 1000), (0.1, 3000), (0.1, 10_000)]
    for rate, n in wanted:
        starts = range(0, draws, block)
        keys = [(what, n, rate, first, min(first + block, draws)) for first in starts]
        found = [cells.get(key, exact_draws) for key in keys]
        counts = [key[4] - key[3] for key in keys]
        for label in dict.fromkeys(key.split("/")[0] for key in found[0]):
            line: dict[str, Any] = {"n": n, "labels flipped": f"{rate:.0%}", "rule": label}
            for column in ("coverage", "promise broken"):
                values = [one[f"{label}/{column}"] for one in found]
                line[column] = f"{np.average(values, weights=counts):.3f}"
            table.append(line)
    report(f"target_risk_{what}", table, docs=docs, draws=draws, ideal=ideal_coverage())


def draw(n: int, rate: float, seed: int) -> dict[str, float]:
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
    kept["start known"] = answered_from_known_start(model, X, given, X_new, rate)
    intervals: dict[str, Any] = {"buttress": None}
    if rate:
        intervals |= {f"buttress, {label}": limits for label, limits in known_rates(rate).items()}
    for label, noise in intervals.items():
        kept[label] = ~promised(model, X, given, noise, seed).reject(X_new)
    found = {}
    for label, answered in kept.items():
        found[f"{label}/coverage"] = float(answered.mean())
        broken = answered.any() and (pred != y_new)[answered].mean() > TARGET
        found[f"{label}/broken"] = float(broken)
    return found


def compared(cells: Cells, draws: int, docs: bool) -> None:
    """Every method on the same rows."""
    table = []
    for rate in (0.0, 0.1):
        for n in (300, 1000, 3000, 10_000):
            found = [cells.get((n, rate, seed), draw) for seed in range(draws)]
            for label in dict.fromkeys(key.split("/")[0] for key in found[0]):
                coverage, broken = (
                    np.mean([one[f"{label}/{what}"] for one in found])
                    for what in ("coverage", "broken")
                )
                table.append(
                    {
                        "labels flipped": f"{rate:.0%}",
                        "n": n,
                        "method": label,
                        "coverage": f"{coverage:.3f}",
                        "promise broken": f"{broken:.3f}",
                    }
                )
    report("target_risk", table, docs=docs, draws=draws, ideal=ideal_coverage())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="five draws")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    parser.add_argument("--violations", action="store_true", help="many draws, one classifier")
    parser.add_argument("--estimated", action="store_true", help="rates known and estimated")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    draws = 5 if given.quick else given.draws
    cells = Cells("target_risk", given.fresh)
    exact = [what for what in ("violations", "estimated") if getattr(given, what)]
    for what in exact:
        exact_table(what, cells, draws, given.docs)
    if not exact:
        compared(cells, draws, given.docs)


if __name__ == "__main__":
    main()
