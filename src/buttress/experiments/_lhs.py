"""What the tables of the leaky hockey stick paper share: width, penalties, the rival SVM."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._sampling import Split
from buttress.kernels import make_kernel

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


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to learn from, and what both learners are given with them.

    Attributes
    ----------
    X, y : arrays
    folds : list
        By which the penalty is chosen.
    kernel : {"linear", "Gaussian"}
    width : float
        Of the Gaussian kernel.
    quick : bool
        A short path.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    folds: list[Split]
    kernel: str
    width: float
    quick: bool

    @property
    def kernel_options(self) -> dict[str, Any]:
        """The kernel as the library takes it."""
        linear = self.kernel == "linear"
        return {"kernel": "linear"} if linear else {"kernel": "rbf", "gamma": self.width}

    def fit_lhs(self, solver: str = "auto") -> tuple[Any, float]:
        """The leaky hockey stick, penalty by cross-validation, and its processor seconds."""
        from buttress.model_selection import LeakyHockeyStickClassifierCV

        options: dict[str, Any] = {}
        if solver == "mm":
            options = {"solver": "mm", "tol": 1e-5, "max_iter": 50 if self.quick else STEP_LIMIT}
        start = time.process_time()
        with warnings.catch_warnings():
            if solver == "mm":
                # the paper's limit ends the path early; that is what is to be compared
                warnings.simplefilter("ignore")
            model = LeakyHockeyStickClassifierCV(
                alphas=penalties(self.quick), cv=self.folds, **self.kernel_options, **options
            ).fit(self.X, self.y)
        return model, time.process_time() - start

    def fit_svm(self, timed: bool = False) -> tuple[Any, float]:
        """scikit-learn's SVC, C by cross-validation, and its processor seconds.

        C is among 1/(2 n lambda) over the path. Timed, every value is fitted, as a user of
        scikit-learn would. Otherwise only every fourth value is tried, and none beyond the first
        at which no dual variable is at its bound: from there on the machine is the same.
        """
        from sklearn.svm import SVC

        kernel, y = make_kernel(**self.kernel_options), self.y
        start = time.process_time()
        with warnings.catch_warnings():
            # the iteration limit is the paper's; libsvm warns at each one reached
            warnings.simplefilter("ignore")
            K = np.asarray(kernel(self.X, self.X))
            costs = np.sort(1 / (2 * len(y) * penalties(self.quick)))
            if not (timed or self.quick):
                costs = costs[::4]
            wrong = np.zeros(len(costs))
            for train, test in self.folds:
                block = np.ascontiguousarray(K[np.ix_(train, train)])
                rows = np.ascontiguousarray(K[np.ix_(test, train)])
                for j, cost in enumerate(costs):
                    model = SVC(C=cost, kernel="precomputed", max_iter=STEP_LIMIT)
                    missed = np.sum(model.fit(block, y[train]).predict(rows) != y[test])
                    wrong[j] += missed
                    if not timed and np.abs(model.dual_coef_).max() < cost * (1 - 1e-9):
                        wrong[j + 1 :] += missed
                        break
            best = float(costs[int(np.argmin(wrong))])
            model = SVC(C=best, kernel=kernel, max_iter=STEP_LIMIT).fit(self.X, y)
        return model, time.process_time() - start
