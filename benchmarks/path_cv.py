"""Five folds x 100 penalties + refit: ours against scikit-learn, and R where it is installed.

    python benchmarks/path_cv.py [--quick] [--memory]

The jobs are two thirds of sonar, australian, banknote and kr-vs-kp (139 x 60, 460 x 14, 915 x 4,
2130 x 36), standardised, with a Gaussian and a linear kernel. scikit-learn searches 100 values
of C = 1 / (2 n alpha) on the same folds with two processes: ``SVC`` on the same precomputed
Gram matrix, ``LinearSVC`` on the rows; its processes are started beforehand. Times are the best
of as many runs as fit into five seconds, three at least. The two solve different problems; the
work (a whole path of a kernel machine, cross-validated) is the same. `cv_difference` is the
largest difference of a cross-validation score from a run of Newton's method in double precision
to 1e-12.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from _common import report, seconds
from buttress import LeakyHockeyStickClassifierCV
from buttress.datasets import load_dataset
from buttress.kernels import make_kernel, resolve_gamma
from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth.geometry import from_gram, from_rows
from buttress.solvers.smooth.problems import Problems
from buttress.solvers.smooth.spectral import solve_problems

JOBS = [("sonar", 139, 60), ("australian", 460, 14), ("banknote", 915, 4), ("kr_vs_kp", 2130, 36)]
ALPHAS = 10.0 ** np.linspace(0, -7, 100)

SECONDS = 5.0
R_SECONDS = 300
R_SCRIPT = """
args <- commandArgs(TRUE)
data <- as.matrix(read.csv(args[1], header = FALSE)); p <- ncol(data) - 2
x <- data[, 1:p]; y <- data[, p + 1]; fold <- data[, p + 2]; sigma <- as.numeric(args[2])
lambda <- 10^seq(0, -7, length.out = 100); n <- nrow(x)
time <- function(work) tryCatch(system.time(work())[["elapsed"]], error = function(e) NA)
linear <- is.na(sigma)
if (requireNamespace("lhsc", quietly = TRUE) && requireNamespace("kernlab", quietly = TRUE)) {
  kern <- if (linear) kernlab::vanilladot() else kernlab::rbfdot(sigma)
  cat("lhsc", time(function() lhsc::cv.lhsc(x, y, kern, lambda = lambda, foldid = fold)), "\n")
}
if (!linear && requireNamespace("kernlab", quietly = TRUE)) {
  # its linear machine does not end at large C
  K <- kernlab::kernelMatrix(kernlab::rbfdot(sigma), x)
  cat("kernlab", time(function() for (l in lambda) for (k in unique(fold)) {
    inside <- fold != k
    kernlab::ksvm(kernlab::as.kernelMatrix(K[inside, inside]), factor(y[inside]),
                  C = 1 / (2 * n * l), kernel = "matrix")
  }), "\n")
}
"""


def job(name: str, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows and labels of a job; generated ones of the same size where there is no data."""
    try:
        data = load_dataset(name)
        X, y = data.X, data.y
    except OSError:
        X, y = make_classification(
            n, p, n_informative=max(2, p // 2), n_redundant=0, flip_y=0.05, random_state=0
        )
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    return StandardScaler().fit_transform(X[chosen]), np.where(y[chosen] > 0, 1, -1)


def precise_scores(X, y, K, folds):
    """Cross-validation scores at every penalty by Newton's method to 1e-12."""
    geometry = from_rows(X, None, fit_intercept=True) if K is None else from_gram(K)
    omega = np.zeros((len(folds), len(y)))
    for row, (train, _) in zip(omega, folds, strict=True):
        row[train] = 1.0 / len(train)
    paths = solve_problems(
        Problems.at(
            geometry,
            np.tile(y.astype(float), (len(folds), 1)),
            omega,
            ALPHAS,
            LeakyHockeyStick(),
            tol=1e-12,
        ),
        method="newton",
        n_threads=2,
    )
    scores = np.empty((len(ALPHAS), len(folds)))
    for number, (_, test) in enumerate(folds):
        f = paths.scores_at(number, test) + paths.intercept[number][:, None]
        scores[:, number] = np.mean(np.where(f > 0, 1, -1) == y[test], axis=1)
    return scores


def r_seconds(X, y, folds, gamma):
    """Times of R's packages on the same job, for those that are installed."""
    if shutil.which("Rscript") is None:
        return {}
    fold = np.empty(len(y))
    for number, (_, test) in enumerate(folds):
        fold[test] = number + 1
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder) / "job.csv", Path(folder) / "job.R"
        np.savetxt(table, np.column_stack([X, y, fold]), delimiter=",")
        script.write_text(R_SCRIPT)
        command = ["Rscript", str(script), str(table), "NA" if gamma is None else repr(gamma)]
        try:
            lines = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=R_SECONDS
            ).stdout
        except subprocess.TimeoutExpired:
            return {}
    times = (line.split() for line in lines.splitlines())
    return {f"R {name}": float(time) for name, time in times if time != "NA"}


def start_workers() -> None:
    """Start the two processes of scikit-learn's search; they stay for the searches that follow."""
    X = np.arange(40.0)[:, None]
    GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2, n_jobs=2).fit(X, X[:, 0] > 20)


def best_seconds(work):
    """The best time of as many runs as fit into `SECONDS`, three at least, and the last result."""
    first, _ = seconds(work)
    return seconds(work, max(3, int(SECONDS / first)))


def run(name: str, n: int, p: int, kernel: str) -> dict[str, object]:
    X, y = job(name, n, p)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    gamma = None if kernel == "linear" else resolve_gamma("scale", X)
    K = None if kernel == "linear" else make_kernel("rbf", gamma=gamma)(X)
    options = {"alphas": ALPHAS, "cv": folds, "n_jobs": 2}

    def ours():
        if K is None:
            return LeakyHockeyStickClassifierCV(kernel="linear", **options).fit(X, y)
        return LeakyHockeyStickClassifierCV(kernel="precomputed", **options).fit(K, y)

    costs = 1.0 / (2 * n * ALPHAS)

    def theirs():
        peer = SVC(kernel="precomputed") if K is not None else LinearSVC()
        search = GridSearchCV(peer, {"C": costs}, cv=folds, n_jobs=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return search.fit(X if K is None else K, y)

    ours()  # compile, warm up
    start_workers()
    time_ours, model = best_seconds(ours)
    time_theirs, _ = best_seconds(theirs)
    splits = [model.cv_results_[f"split{k}_test_score"] for k in range(len(folds))]
    difference = np.abs(np.column_stack(splits) - precise_scores(X, y, K, folds))
    row = {
        "job": f"{n} x {p}",
        "kernel": "gaussian" if kernel == "rbf" else "linear",
        "solver": model.solver_,
        "ours_s": time_ours,
        "scikit_learn_s": time_theirs,
        "ratio": time_theirs / time_ours,
        "cv_difference": float(difference.max()),
        "gap": model.duality_gap_,
    }
    for peer, time in r_seconds(X, y, folds, gamma).items():
        row[f"{peer}_s"] = time
    return row


def memory_job() -> dict[str, object]:
    """n = 10 000 with a Gaussian kernel: time and the peak of memory."""
    X, y = make_classification(10_000, 20, n_informative=10, flip_y=0.1, random_state=0)
    X = StandardScaler().fit_transform(X)
    model = LeakyHockeyStickClassifierCV(n_jobs=2)
    time, _ = seconds(lambda: model.fit(X, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"job": "10000 x 20", "kernel": "gaussian", "ours_s": time, "peak_GB": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two smallest jobs")
    parser.add_argument("--memory", action="store_true", help="only n = 10 000, with its memory")
    parser.add_argument("--docs", action="store_true", help="update the documentation's table")
    arguments = parser.parse_args()
    if arguments.memory:
        report("path_cv_memory", [memory_job()], docs=arguments.docs, alphas=100, folds=5)
        return
    jobs = JOBS[:2] if arguments.quick else JOBS
    rows = [run(name, n, p, kernel) for kernel in ("rbf", "linear") for name, n, p in jobs]
    report("path_cv", rows, docs=arguments.docs, alphas=100, folds=5, jobs=2)


if __name__ == "__main__":
    main()
