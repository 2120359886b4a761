"""Do intervals cover? Simulated label noise with known rates and a known accuracy.

Scores of two classes are normal around -2 and 2 with a spread at which the best rule errs in 9 %
of the rows. `clean_score` of that rule: 95 % intervals of its accuracy on true labels.
`fit_label_noise`: 90 % intervals of the noise rates. Every finished part is kept in
results/noise_coverage_cells.jsonl.

python benchmarks/noise_coverage.py [--draws N] [--fresh] [--report] [--docs]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin

from _common import Cells, report
from buttress.noise import clean_score, fit_label_noise

RATES = {
    "10 %": (0.1, 0.1),
    "25 %": (0.25, 0.25),
    "5 and 30 %": (0.05, 0.3),
    "0 and 30 %": (0.0, 0.3),
}
SIZES = (500, 2000)
SPREAD = 1.5  # of the scores
PART = 50  # draws per cell


class Fixed(ClassifierMixin, BaseEstimator):
    """The best rule, whatever the labels say."""

    def fit(self, X: Any, y: Any) -> Fixed:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def drawn(n: int, rates: tuple[float, float], seed: int) -> tuple[Any, Any]:
    """Scores and given labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    scores = np.where(truth == 1, 2.0, -2.0) + SPREAD * rng.standard_normal(n)
    wrong = rng.random(n) < np.where(truth == 1, rates[1], rates[0])
    return scores, np.where(wrong, 1 - truth, truth)


def part(name: str, n: int, start: int) -> dict[str, float]:
    """How many of a part's intervals cover."""
    rates, truth = RATES[name], float(norm.cdf(2.0 / SPREAD))
    found: dict[str, list[float]] = {"score": [], "width": [], "rates": [], "error": []}
    for seed in range(start, start + PART):
        scores, given = drawn(n, rates, seed)
        score = clean_score(Fixed(), scores[:, None], given, cv=2, random_state=0)
        found["score"].append(score.low <= truth <= score.high)
        found["width"].append(score.high - score.low)
        noise = fit_label_noise(scores, given).rates_
        found["rates"] += [noise[k].low - 1e-9 <= rates[k] <= noise[k].high + 1e-9 for k in (0, 1)]
        found["error"] += [abs(noise[k] - rates[k]) for k in (0, 1)]
    return {key: float(np.mean(values)) for key, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--fresh", action="store_true", help="forget earlier parts")
    parser.add_argument("--report", action="store_true", help="only print what is known")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = Cells("noise_coverage", given.fresh)
    keys = [
        (name, n, start) for start in range(0, given.draws, PART) for n in SIZES for name in RATES
    ]
    if not given.report:
        for key in keys:
            cells.get(key, part)
    rows = []
    for n in SIZES:
        for name in RATES:
            parts = [value for key, value in cells.scores.items() if key[:2] == (name, n)]
            if parts:
                mean = {key: float(np.mean([p[key] for p in parts])) for key in parts[0]}
                rows.append(
                    {
                        "rates": name,
                        "rows": n,
                        "draws": PART * len(parts),
                        "95 % of clean_score cover": mean["score"],
                        "their mean width": mean["width"],
                        "90 % of the rates cover": mean["rates"],
                        "mean error of a rate": mean["error"],
                    }
                )
    report("noise_coverage", rows, docs=given.docs)


if __name__ == "__main__":
    main()
