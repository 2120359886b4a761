"""What the tables of the leaky hockey stick paper share: width, penalties, the rival SVM."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._sampling import Split
from buttress.kernels import make_kernel

PAPER = (
    'O. Kwon, H. Zou, "Leaky hockey stick loss: the first negatively divergent margin-based loss '
    'function for classification", JMLR 24, 2023.'
)
KERNELS = ("linear", "Gaussian")

# The steps over the whole path that the paper allows.
STEP_LIMIT = 10_000


def penalties(quick: bool) -> NDArray[Any]:
    """The authors' path: 1 down to 1e-7 on a log scale."""
    return np.logspace(0, -7, 12 if quick else 100)


def package_width(X: NDArray[Any], random: np.random.Generator) -> float:
    """The authors' rule: mean of 1/q90 and 1/q10 of squared distances of n/2 random pairs."""
    n = len(X)
    first, second = random.integers(n, size=(2, max(10, n // 2)))
    squares = ((X[first] - X[second]) ** 2).sum(axis=1)
    low, high = np.quantile(squares[squares > 0], [0.1, 0.9])
    return float((1 / low + 1 / high) / 2)


def kernel_options(kernel: str, width: float) -> dict[str, Any]:
    """The kernel as the library's classifiers take it."""
    return {"kernel": "linear"} if kernel == "linear" else {"kernel": "rbf", "gamma": width}


def fit_lhs(
    X: NDArray[Any],
    y: NDArray[Any],
    folds: list[Split],
    kernel: str,
    width: float,
    quick: bool,
    solver: str = "auto",
) -> tuple[Any, float]:
    """The leaky hockey stick, penalty by cross-validation, and its processor seconds."""
    from buttress.model_selection import LeakyHockeyStickClassifierCV

    options: dict[str, Any] = {}
    if solver == "mm":
        options = {"solver": "mm", "tol": 1e-5, "max_iter": 50 if quick else STEP_LIMIT}
    start = time.process_time()
    with warnings.catch_warnings():
        if solver == "mm":
            # the paper's limit ends the path early; that is what is to be compared
            warnings.simplefilter("ignore")
        model = LeakyHockeyStickClassifierCV(
            alphas=penalties(quick), cv=folds, **kernel_options(kernel, width), **options
        ).fit(X, y)
    return model, time.process_time() - start


class SupportVectorPath:
    """scikit-learn's SVC with C by cross-validation on a precomputed kernel.

    Parameters
    ----------
    kernel : {"linear", "Gaussian"}
    width : float
    quick : bool
        A short path.
    timed : bool
        Fit every value, as a user of scikit-learn would. Otherwise only every fourth value of C
        is tried, and none beyond the first at which no dual variable is at its bound: from
        there on the machine is the same.
    """

    def __init__(self, kernel: str, width: float, quick: bool, timed: bool = False) -> None:
        linear = kernel == "linear"
        self.kernel = make_kernel("linear" if linear else "rbf", gamma=None if linear else width)
        self.quick = quick
        self.timed = timed

    def fit(self, X: NDArray[Any], y: NDArray[Any], folds: list[Split]) -> SupportVectorPath:
        """Choose C among 1/(2 n lambda) over the path and refit."""
        self.X_ = X
        K = np.asarray(self.kernel(X, X))
        costs = np.sort(1 / (2 * len(y) * penalties(self.quick)))
        if not (self.timed or self.quick):
            costs = costs[::4]
        wrong = np.zeros(len(costs))
        for train, test in folds:
            block = np.ascontiguousarray(K[np.ix_(train, train)])
            rows = np.ascontiguousarray(K[np.ix_(test, train)])
            for j, cost in enumerate(costs):
                model = _machine(cost).fit(block, y[train])
                wrong[j] += np.sum(model.predict(rows) != y[test])
                if not self.timed and np.abs(model.dual_coef_).max() < cost * (1 - 1e-9):
                    wrong[j + 1 :] += np.sum(model.predict(rows) != y[test])
                    break
        self.C_ = float(costs[int(np.argmin(wrong))])
        self.model_ = _machine(self.C_).fit(K, y)
        return self

    def score(self, X: NDArray[Any], y: NDArray[Any]) -> float:
        """Accuracy on new rows."""
        return float(np.mean(self.model_.predict(np.asarray(self.kernel(X, self.X_))) == y))


def _machine(cost: float) -> Any:
    from sklearn.svm import SVC

    return SVC(C=cost, kernel="precomputed", max_iter=STEP_LIMIT)


def fit_svm(
    X: NDArray[Any],
    y: NDArray[Any],
    folds: list[Split],
    kernel: str,
    width: float,
    quick: bool,
    timed: bool = False,
) -> tuple[SupportVectorPath, float]:
    """The rival, and its processor seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        # the iteration limit is the paper's; libsvm warns at each one reached
        warnings.simplefilter("ignore")
        model = SupportVectorPath(kernel, width, quick, timed).fit(X, y, folds)
    return model, time.process_time() - start
