"""What hand-written instructions and loops gain over NumPy, LAPACK and Numba's own loops.

Every module that writes LLVM instructions, or a loop where a library has one, must gain more than
a tenth on some job here, or it goes; the table also says which job of ``waiting.py`` and
``path_cv.py`` rests on it.

python benchmarks/instructions.py [--docs]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from _common import report
from buttress._compile import FAST
from buttress.kernels.exponential import exp_in_place_32, exp_in_place_64
from buttress.losses.logarithm import log_from_one
from buttress.solvers.numerics.cholesky import factorise_small, row_length, solve_small
from buttress.solvers.numerics.lapack import cholesky_in_place, cholesky_solve
from buttress.solvers.numerics.vector_maximum import LANES, largest
from quick import product_and_exp
from stream import GAMMA, OnlineModel, PARampRule, make_kernel, stream

ORDER = 111


def best(work: Callable[[], Any], repeats: int = 30) -> float:
    """The shortest processor time."""
    work()
    shortest = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        shortest = min(shortest, time.process_time() - start)
    return shortest


@numba.njit(fastmath=FAST, error_model="numpy")
def library_exp(E: Any) -> None:
    for i in range(E.shape[0]):
        for j in range(E.shape[1]):
            E[i, j] = np.exp(E[i, j])


@numba.njit(fastmath=FAST, error_model="numpy")
def sum_library_log(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += np.log(x[i])
    return total


@numba.njit(fastmath=FAST, error_model="numpy")
def sum_own_log(x: Any) -> Any:
    total = x.dtype.type(0.0)
    for i in range(len(x)):
        total += log_from_one(x[i])
    return total


@numba.njit(error_model="numpy")
def stretches(x: Any, out: Any, times: int) -> None:
    for _ in range(times):
        for p in range(len(out)):
            out[p] = largest(x, p * LANES)


@numba.njit(fastmath=True, error_model="numpy")
def plain_stretches(x: Any, out: Any, times: int) -> None:
    for _ in range(times):
        for p in range(len(out)):
            top = x[p * LANES]
            for j in range(p * LANES, (p + 1) * LANES):
                top = max(top, x[j])
            out[p] = top


@numba.njit(error_model="numpy")
def own_factors(A: Any, right: Any, times: int) -> None:
    for _ in range(times):
        a, r = A.copy(), right.copy()
        factorise_small(a, len(r))
        solve_small(a, r)


@numba.njit(error_model="numpy")
def lapack_factors(A: Any, right: Any, times: int) -> None:
    for _ in range(times):
        a, r = A.copy(), right.copy().reshape(1, right.size)
        cholesky_in_place(a)
        cholesky_solve(a, r)


def rows() -> list[dict[str, Any]]:
    """The table."""
    rng = np.random.default_rng(0)
    found = []

    def add(module: str, what: str, ours: float, instead: str, theirs: float, job: str) -> None:
        gain = theirs / ours
        found.append(
            {
                "module": f"``{module}``",
                "job": what,
                "microseconds": 1e6 * ours,
                "instead": instead,
                "its microseconds": 1e6 * theirs,
                "times faster": gain,
                "what rests on it": job,
            }
        )

    for dtype, ours in ((np.float64, exp_in_place_64), (np.float32, exp_in_place_32)):
        E = (-5.0 * rng.random((500, 500))).astype(dtype)
        mine = best(lambda E=E, ours=ours: ours(E.copy()))
        name = f"exponentials of 500 x 500, {np.dtype(dtype).name}"
        numpy = best(lambda E=E: np.exp(E.copy()))
        loop = best(lambda E=E: library_exp(E.copy()))
        add("kernels.exponential", name, mine, "np.exp", numpy, "Gram matrices, landmarks")
        add("kernels.exponential", name, mine, "a compiled loop", loop, "Gram matrices, landmarks")
    x = 1.0 + 9.0 * rng.random(100_000)
    for dtype in (np.float64, np.float32):
        z = x.astype(dtype)
        ours = best(lambda z=z: sum_own_log(z))
        name = f"sum of 100 000 logarithms, {np.dtype(dtype).name}"
        loop = best(lambda z=z: sum_library_log(z))
        add("losses.logarithm", name, ours, "a compiled loop", loop, "paths on landmarks")
    x, out = rng.random(16 * LANES), np.empty(16)
    ours = best(lambda: stretches(x, out, 1000)) / 1000
    plain = best(lambda: plain_stretches(x, out, 1000)) / 1000
    add("numerics.vector_maximum", "maxima of 1024", ours, "a compiled loop", plain, "pair steps")
    A = rng.normal(size=(ORDER, ORDER))
    A = A @ A.T + ORDER * np.eye(ORDER)
    wide = np.zeros((ORDER, row_length(ORDER, 8)))
    wide[:, :ORDER] = A
    right = rng.normal(size=ORDER)
    ours = best(lambda: own_factors(wide, right, 100)) / 100
    lapack = best(lambda: lapack_factors(A, right, 100)) / 100
    name = f"factor and solve, order {ORDER}"
    add("numerics.cholesky", name, ours, "LAPACK", lapack, "leaky paths up to 1000 rows")
    found += panels()
    return found


def panels() -> list[dict[str, Any]]:
    """Sums over 2000 vectors of 14 features, against a product and an exponential."""
    X, y = stream(4000)
    kernel = make_kernel("rbf", gamma=GAMMA, center=np.zeros(14))
    model = OnlineModel(PARampRule(-1.0), kernel, n_problems=1, n_features=14)
    count = 2000
    prepared = model.source.prepare(X[:count])
    model.store.append(
        X[:count], model.source.augmented(prepared), y[None, :count], np.ones(count),
        np.arange(count), np.zeros(count, dtype=int),
    )  # fmt: skip
    ours = best(lambda: model.scores(X), 10)
    theirs = best(lambda: product_and_exp(X, X[:count]), 10)
    return [
        {
            "module": "``stream._panels``",
            "job": "scores of 4000 rows, 2000 vectors",
            "microseconds": 1e6 * ours,
            "instead": "BLAS and np.exp",
            "its microseconds": 1e6 * theirs,
            "times faster": theirs / ours,
            "what rests on it": "streams, prediction",
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    report("instructions", rows(), docs=parser.parse_args().docs)


if __name__ == "__main__":
    main()
