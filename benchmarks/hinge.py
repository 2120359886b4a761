"""The box solver and the ramp machines against LIBSVM, at equal tolerance.

Rows measured by an earlier run with other ``--sizes`` stay in the table, so that it can be made in
parts:

python benchmarks/hinge.py [--quick] [--sizes 1000 2000 ...] [--docs]
python benchmarks/hinge.py --large [--docs]
"""

from __future__ import annotations

import argparse
import json
import resource
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from _common import RESULTS, report, seconds
from buttress import DoubleRampClassifier, RampClassifier
from buttress.solvers.hinge.ramp import RampTerms, solve_ramp

TOL = 1e-3
GAMMA = 0.05


def problem(n: int) -> tuple[Any, Any]:
    """Twenty features, two clusters per class, 10 % wrong labels."""
    X, y = make_classification(
        n, n_features=20, n_informative=8, n_clusters_per_class=2, flip_y=0.2, random_state=0
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y


def compare(n: int, C: float, repeats: int) -> dict[str, Any]:
    X, y = problem(n)
    sign = np.where(y == 1, 1.0, -1.0)
    K = rbf_kernel(X, gamma=GAMMA)
    options = {"C": C, "tol": TOL, "cache_size": 1000}
    svc, theirs = seconds(lambda: SVC(kernel="precomputed", **options).fit(K, y), repeats)
    svm, ours = seconds(lambda: solve_ramp(K, sign, RampTerms(s=-np.inf), C=C, tol=TOL), repeats)
    tight, _ = seconds(lambda: solve_ramp(K, sign, RampTerms(s=-np.inf), C=C, tol=1e-8), repeats)
    svc_rbf, _ = seconds(lambda: SVC(gamma=GAMMA, **options).fit(X, y), repeats)
    options["gamma"] = GAMMA
    svm_rbf, _ = seconds(lambda: RampClassifier(s=-np.inf, **options).fit(X, y), repeats)
    ramp, machine = seconds(lambda: RampClassifier(s=-1.0, **options).fit(X, y), repeats)
    double, _ = seconds(lambda: DoubleRampClassifier(d=0.2, **options).fit(X, y), repeats)
    difference = np.abs(theirs.decision_function(K) - ours.g - ours.b).max()
    return {
        "n": n,
        "C": C,
        "LIBSVM K [s]": svc,
        "ours / LIBSVM, K": svm / svc,
        "tol 1e-8 / LIBSVM": tight / svc,
        "LIBSVM rbf [s]": svc_rbf,
        "ours / LIBSVM, rbf": svm_rbf / svc_rbf,
        "ramp / LIBSVM": ramp / svc_rbf,
        "double ramp / LIBSVM": double / svc_rbf,
        "ramp steps": machine.n_iter_,
        "largest difference": float(difference),
    }


def large(n: int = 20_000) -> dict[str, Any]:
    """A fit whose kernel matrix does not fit in memory: peak memory of the process."""
    X, y = problem(200)
    RampClassifier(tol=TOL, gamma=GAMMA).fit(X, y)  # compile
    X, y = problem(n)
    duration, model = seconds(
        lambda: RampClassifier(tol=TOL, gamma=GAMMA, cache_size=1000).fit(X, y)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    svc, _ = seconds(lambda: SVC(tol=TOL, gamma=GAMMA, cache_size=1000).fit(X, y))
    return {
        "n": n,
        "ramp [s]": duration,
        "LIBSVM [s]": svc,
        "ramp / LIBSVM": duration / svc,
        "peak GB": peak,
        "ramp steps": model.n_iter_,
        "support vectors": int(model.n_support_.sum()),
    }


def earlier() -> list[dict[str, Any]]:
    """The rows of the last run, by this version of the table."""
    path = RESULTS / "hinge.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--large", action="store_true", help="only the fit of 20 000 rows")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    arguments = parser.parse_args()
    if arguments.large:
        settings = {"tol": TOL, "gamma": GAMMA, "cache_size": 1000}
        report("hinge_large", [large()], docs=arguments.docs, **settings)
        return
    compare(200, 1.0, 1)  # compile
    sizes = [300, 1000] if arguments.quick else arguments.sizes
    rows = [row for row in earlier() if row["n"] not in sizes]
    rows += [compare(n, C, 3 if n <= 5000 else 2) for n in sizes for C in (1.0, 100.0)]
    rows.sort(key=lambda row: (row["n"], row["C"]))
    report("hinge", rows, docs=arguments.docs, tol=TOL, gamma=GAMMA)


if __name__ == "__main__":
    main()
