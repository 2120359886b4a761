"""The Rademacher penalty against one-at-a-time L-BFGS-B, and its selector against folds.

    python benchmarks/rademacher.py [--quick] [--only tiny|speed|large|selector] [--docs]

*tiny*: misses of the exact global maximum on problems of eight rows. *speed*: 20 betas x 20
draws x 11 starts at n = 200 and 500; the rival solves every cell's concave-convex iteration by
itself, its box problems by SciPy's L-BFGS-B, and is timed on 20 random cells and multiplied up.
*large*: n = 1000, 20 draws, 10 betas, 3 starts. *selector*: `RademacherSelector` and
`RampClassifierCV` with the same grid (test error, processor seconds).
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from scipy.optimize import minimize
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from _common import report, seconds
from buttress import RademacherSelector, RampClassifierCV
from buttress.datasets import load_dataset
from buttress.solvers.boxqp.box_qp import box_qp, share_matrix
from buttress.theory import rademacher_penalty

SETS = ("sonar", "heart_ida", "ionosphere", "bupa", "vertebral_2c", "parkinsons", "thyroid_ida")
PENALTIES = (0.1, 1.0, 10.0, 100.0)


def sample(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, a Gaussian kernel of width 1 (p = 2) or 2, noisy linear labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    width = 0.5 if p == 2 else 0.125
    K = np.exp(-width * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return K, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def slopes_of(pattern, y, sigma, gamma):
    """The slopes of the convex part on one of its pieces: a bit per row says which."""
    return -np.where(sigma > 0, 2.0, 2.0 * (1 - gamma)) * pattern * y / len(y)


def box_of(t, y, sigma, gamma):
    """The box of the concave step whose convex part has the slopes `t`."""
    ends = np.stack([t, t + 2.0 / len(y) * np.where(sigma > 0, 1.0 - gamma, 1.0) * y])
    return ends.min(axis=0), ends.max(axis=0)


def objective(K, y, sigma, gamma, beta, alpha):
    """What the penalty maximises."""
    f = K @ alpha
    u = y * f
    loss = np.where(u < 0, 1 - gamma * u, np.maximum(1 - u, 0))
    return 2 / len(y) * (sigma @ loss) - beta * (alpha @ f)


def one_cell(K, y, sigma, gamma, beta, alpha):
    """The paper's iteration for one sign vector, beta and start; dual steps by L-BFGS-B."""
    linear = 2.0 * beta * y * (sigma < 0)
    last, c = None, np.zeros(len(y))
    for _ in range(50):
        t = slopes_of(y * (K @ alpha) < (sigma > 0), y, sigma, gamma)
        if last is not None and np.array_equal(t, last):
            break
        last = t
        lower, upper = box_of(t, y, sigma, gamma)

        def value(c):
            Kc = K @ c
            return 0.5 * c @ Kc - linear @ c, Kc - linear

        result = minimize(
            value,
            np.clip(c, lower, upper),
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([lower, upper]),
            options={"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-13, "gtol": 1e-10},
        )
        c = result.x
        alpha = c / (2.0 * beta)
    return objective(K, y, sigma, gamma, beta, alpha)


def speed(quick: bool) -> list[dict]:
    return [
        compare(n, p, n_cells=6 if quick else 20)
        for n, p in [(200, 2), (200, 10), (500, 2), (500, 10)][: 1 if quick else 4]
    ]


def compare(n: int, p: int, n_cells: int) -> dict:
    gamma, n_draws, n_starts, n_betas = 0.3, 20, 11, 20
    K, y = sample(n, p)
    betas = np.geomspace(10, 1e-3, n_betas) / np.sqrt(n)
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], size=(n_draws, n))
    options = {"gamma": gamma, "betas": betas, "sigmas": signs, "n_starts": n_starts}

    def ours():
        return rademacher_penalty(K, y, **options, random_state=0, n_jobs=2)

    cells = [(rng.integers(n_draws), rng.integers(n_betas)) for _ in range(n_cells)]
    starts = rng.normal(size=(n_cells, n)) * rng.choice([0.3, 1.0, 5.0], size=(n_cells, 1))

    def rival():
        return [
            one_cell(K, y, signs[d], gamma, betas[k], start)
            for (d, k), start in zip(cells, starts, strict=True)
        ]

    (wall, curve), cpu = with_cpu(ours)
    with threadpool_limits(1):
        (rival_wall, values), rival_cpu = with_cpu(rival)
    times = n_draws * n_betas * n_starts / n_cells
    kept = np.array([curve.objectives[d, k] for d, k in cells])
    return {
        "n": n,
        "features": p,
        "L-BFGS-B s": rival_wall * times,
        "ours s (2 threads)": wall,
        "ratio": rival_wall * times / wall,
        "L-BFGS-B CPU s": rival_cpu * times,
        "ours CPU s": cpu,
        "CPU ratio": rival_cpu * times / cpu,
        "largest gap": float(curve.surrogate_gaps.max()),
        "mean J kept minus the cell's": float(np.mean(kept - values)),
        "smallest": float(np.min(kept - values)),
    }


def with_cpu(work):
    """Wall time and result, and the processor time of all threads (steadier on a busy machine)."""
    before = time.process_time()
    result = seconds(work)
    return result, time.process_time() - before


def large(quick: bool) -> list[dict]:
    n = 300 if quick else 1000
    rows = []
    for p in (2, 10):
        K, y = sample(n, p)
        betas = np.geomspace(10, 1e-3, 10) / np.sqrt(n)
        wall, curve = seconds(
            lambda K=K, y=y, betas=betas: rademacher_penalty(
                K, y, gamma=0.3, betas=betas, n_draws=20, n_starts=3, random_state=0, n_jobs=2
            )
        )
        rows.append(
            {
                "n": n,
                "features": p,
                "draws": 20,
                "betas": 10,
                "starts": 3,
                "2 threads s": wall,
                "largest gap": float(curve.surrogate_gaps.max()),
            }
        )
    return rows


def tiny(quick: bool) -> list[dict]:
    """How often the defaults miss the exact global maximum at n = 8."""
    betas, slopes = (0.005, 0.02, 0.1, 1.0), (0.05, 0.3, 0.7, 1.0)
    rows = []
    for kind in ("gaussian", "duplicated rows", "one dimension", "three dimensions"):
        misses, total, shortfall = 0, 0, 0.0
        for slope, seed in itertools.product(slopes, range(2 if quick else 12)):
            rng = np.random.default_rng(seed)
            y, sigma = rng.choice([-1.0, 1.0], size=(2, 8))
            X = rng.normal(size=(8, {"one dimension": 1, "three dimensions": 3}.get(kind, 2)))
            if kind == "duplicated rows":
                X[4:] = X[:4]
            if kind.endswith("dimension") or kind.endswith("dimensions"):
                K = X @ X.T
            else:
                K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
            curve = rademacher_penalty(
                K, y, gamma=slope, betas=betas, sigmas=sigma, random_state=seed
            )
            for k, beta in enumerate(betas):
                short = global_maximum(K, y, sigma, slope, beta) - curve.objectives[0, k]
                misses, total = misses + (short > 1e-9), total + 1
                shortfall = max(shortfall, float(short))
        rows.append(
            {"kernel": kind, "problems": total, "missed": int(misses), "worst shortfall": shortfall}
        )
    return rows


def global_maximum(K, y, sigma, gamma, beta):
    """The best of the 2^n concave problems that the pieces of the convex part leave."""
    shared, linear = share_matrix(K), 2.0 * beta * y * (sigma < 0)
    values = []
    for bits in itertools.product([False, True], repeat=len(y)):
        lower, upper = box_of(slopes_of(np.array(bits), y, sigma, gamma), y, sigma, gamma)
        alpha = box_qp(shared, linear, lower, upper).x / (2.0 * beta)
        values.append(objective(K, y, sigma, gamma, beta, alpha))
    return max(values)


def selector(quick: bool) -> list[dict]:
    rows = []
    for name in SETS[: 1 if quick else None]:
        bunch = load_dataset(name)
        X, y = np.asarray(bunch.X, dtype=float), np.asarray(bunch.y)
        splits = StratifiedShuffleSplit(2 if quick else 5, test_size=1 / 3, random_state=0)
        runs: dict[str, list[tuple[float, float]]] = {key: [] for key in candidates()}
        for train, test in splits.split(X, y):
            scaler = StandardScaler().fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            for key, model in candidates().items():
                (_, fitted), cpu = with_cpu(lambda m=model, A=A, t=y[train]: m.fit(A, t))
                runs[key].append((1.0 - fitted.score(B, y[test]), cpu))
        row = {"data": name, "rows": len(y)}
        row |= {f"error % {key}": 100 * float(np.mean(v, axis=0)[0]) for key, v in runs.items()}
        row |= {f"CPU s {key}": float(np.mean(v, axis=0)[1]) for key, v in runs.items()}
        rows.append(row)
    return rows


def candidates() -> dict:
    return {
        "penalty": RademacherSelector(Cs=PENALTIES, gammas="auto", random_state=0),
        "half penalty": RademacherSelector(
            Cs=PENALTIES, gammas="auto", penalty_weight=0.5, random_state=0
        ),
        "folds": RampClassifierCV(Cs=PENALTIES, ss=(-1.0,), gammas="auto"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("tiny", "speed", "large", "selector"))
    parser.add_argument("--docs", action="store_true", help="write the documentation's tables")
    options = parser.parse_args()
    K, y = sample(30, 2)
    # Numba compiles on first use; that is not what is measured.
    rademacher_penalty(K, y, n_draws=2, random_state=0)
    for part in (tiny, speed, large, selector):
        if options.only in (None, part.__name__):
            name = f"rademacher_{part.__name__}"
            report(name, part(options.quick), docs=options.docs, quick=options.quick)


if __name__ == "__main__":
    main()
