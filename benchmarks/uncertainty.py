"""Uncertainty sets: the Newton solver against Clarabel on the same dual, and a path against a fit.

python benchmarks/uncertainty.py            # n = 300, 600, 1300, 3000
python benchmarks/uncertainty.py --quick    # n = 300, 600
python benchmarks/uncertainty.py --docs     # and the tables of the documentation
"""

from __future__ import annotations

import argparse

import numpy as np

from _common import report, seconds
from buttress import UncertaintySetClassifier, UncertaintySetClassifierCV
from buttress.losses import EllipsoidError
from buttress.solvers.sets.distance import solve_distance
from buttress.solvers.sets.geometry import CentredGeometry

RADIUS = 10.0
# Clarabel's memory and time grow with n^3 and beyond; at 3000 it takes minutes.
CONIC_UP_TO = 1300


def sample(n: int, p: int = 18, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A curved boundary with noise, in 18 dimensions as the image data of the paper."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    f = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, np.where(f > 0, 1.0, -1.0)


def gram(X: np.ndarray) -> np.ndarray:
    squares = np.sum(X**2, axis=1)
    return np.exp(-np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0) / X.shape[1])


def against_clarabel(sizes: list[int], conic_up_to: int) -> list[dict[str, object]]:
    rows = []
    solve_distance(gram(sample(60)[0]), sample(60)[1], EllipsoidError(), RADIUS)  # compile
    for n in sizes:
        X, y = sample(n)
        K = gram(X)
        for h in (0.0, 1.0):
            loss = EllipsoidError(h=h)
            ours, result = seconds(lambda: solve_distance(K, y, loss, RADIUS), 3)  # noqa: B023
            row: dict[str, object] = {
                "n": n,
                "h": h,
                "newton [s]": ours,
                "gap": result.gap,
                "steps": result.n_iter,
            }
            if n <= conic_up_to:
                geometry = CentredGeometry(K)
                geometry.features  # noqa: B018  the factorisation is not Clarabel's to pay
                theirs, conic = seconds(
                    lambda: solve_distance(geometry, y, loss, RADIUS, method="conic")  # noqa: B023
                )
                row |= {
                    "clarabel [s]": theirs,
                    "clarabel gap": conic.gap,
                    "ratio": theirs / ours,
                    "difference": abs(conic.objective - result.objective),
                }
            rows.append(row)
    return rows


def path_against_fit(n: int, n_jobs: int) -> list[dict[str, object]]:
    X, y = sample(n)
    rows = []
    radii = np.geomspace(1.0, 100.0, 20)
    for h in (0.0, 1.0):
        single = UncertaintySetClassifier(h=h, radius=RADIUS)
        fit, _ = seconds(lambda: single.fit(X, y), 3)  # noqa: B023
        for jobs in sorted({1, n_jobs}):
            search = UncertaintySetClassifierCV(radii, h=h, cv=5, n_jobs=jobs)
            path, _ = seconds(lambda: search.fit(X, y), 3)  # noqa: B023
            rows.append(
                {
                    "n": n,
                    "h": h,
                    "threads": jobs,
                    "one fit [s]": fit,
                    "5 folds x 20 radii + refit [s]": path,
                    "ratio": path / fit,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--docs", action="store_true", help="update the documentation's tables")
    arguments = parser.parse_args()
    sizes = [300, 600] if arguments.quick else [300, 600, 1300, 3000]
    fits = against_clarabel(sizes, CONIC_UP_TO)
    report("uncertainty", fits, docs=arguments.docs, radius=RADIUS, kernel="rbf, 1/p")
    paths = path_against_fit(600 if arguments.quick else 1300, arguments.n_jobs)
    report("uncertainty_path", paths, docs=arguments.docs, radii="1 to 100, 20 values")


if __name__ == "__main__":
    main()
