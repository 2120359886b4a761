"""Streams against peers at the error they reach: rows per processor second, progressive error.

Every row is answered before it is learnt. Ours takes blocks of 500 rows, whose answers are those
of one row after another; river learns random Fourier features and a linear learner in its own
loop, Vowpal Wabbit examples that are parsed beforehand: linear, with all pairs of features, and
with a hidden layer. The width of the kernel is one over the number of features for all; neither it
nor learning rates were tuned. One thread. Needs BUTTRESS_DATA, river, and vowpalwabbit where its
rows are wanted.

    python benchmarks/stream_peers.py [--rows 3000] [--docs]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import linear_model
from river.feature_extraction import RBFSampler
from sklearn.base import clone

from _common import report
from _waiting_jobs import data_home
from buttress import KernelPegasos, PARampClassifier
from coming_from import rows_of
from stream import adult

BLOCK = 500
BUDGETS = (100, 500)
WABBITS = {
    "linear": "",
    "all pairs": "--interactions ::",
    "hidden layer of 20": "--nn 20",
}
Answers = Callable[[], Any]


def sets(most: int) -> Iterator[tuple[str, Any, Any]]:
    """Names, rows and labels; elec2 in its own order, the others, which have none, at random."""
    yield "adult", *(part[:most] for part in adult(data_home()))
    yield "elec2", *rows_of("elec2", most)
    for name in ("banana_ida", "occupancy"):
        X, y = rows_of(name)
        chosen = np.random.default_rng(0).permutation(len(y))[:most]
        yield name, X[chosen], y[chosen]


def ours(X: Any, y: Any, learner: Any) -> Answers:
    def run() -> Any:
        model = clone(learner)
        blocks = (slice(start, start + BLOCK) for start in range(0, len(y), BLOCK))
        return np.concatenate([model.answer_and_learn(X[b], y[b], [0, 1]) for b in blocks])

    return run


def river(X: Any, y: Any, gamma: float, components: int) -> Answers:
    stream = [(dict(enumerate(row)), bool(label)) for row, label in zip(X.tolist(), y, strict=True)]

    def run() -> Any:
        model = RBFSampler(gamma=gamma, n_components=components, seed=0)
        model = model | linear_model.PAClassifier()
        found = []
        for row, label in stream:
            found.append(bool(model.predict_one(row)))
            model.learn_one(row, label)
        return np.array(found)

    return run


def wabbit(X: Any, y: Any, options: str) -> Answers:
    from vowpalwabbit import Workspace

    def text(row: Any, label: Any) -> str:
        values = " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row) if value)
        return f"{1 if label else -1} | {values}"

    lines = [text(row, label) for row, label in zip(X.tolist(), y, strict=True)]

    def run() -> Any:
        model = Workspace(f"--loss_function logistic --quiet -b 18 {options}")
        parsed = [model.example(line) for line in lines]
        found = np.empty(len(lines), dtype=bool)
        start = time.process_time()
        for i, example in enumerate(parsed):
            found[i] = model.predict(example) > 0
            model.learn(example)
        spent = time.process_time() - start
        model.finish()
        return found, spent

    return run


def learners(X: Any, y: Any) -> Iterator[tuple[str, Answers]]:
    gamma = 1.0 / X.shape[1]
    for budget in (None, *BUDGETS):
        size = "no budget" if budget is None else f"{budget} vectors"
        yield f"PA-RAMP, {size}", ours(X, y, PARampClassifier(gamma=gamma, budget=budget))
    yield "kernel Pegasos, no budget", ours(X, y, KernelPegasos(gamma=gamma))
    for components in BUDGETS if X.shape[1] < 50 else BUDGETS[:1]:  # 13 rows/s otherwise
        yield f"river, {components} random features", river(X, y, gamma, components)
    try:
        import vowpalwabbit  # noqa: F401
    except ImportError:
        return
    for name, options in WABBITS.items():
        yield f"Vowpal Wabbit, {name}", wabbit(X, y, options)


def judged(name: str, X: Any, y: Any) -> Iterator[dict[str, Any]]:
    for learner, run in learners(X, y):
        if "river" not in learner:
            run()  # compiled, or loaded
        start = time.process_time()
        answers = run()
        spent = time.process_time() - start
        if isinstance(answers, tuple):
            answers, spent = answers
        yield {
            "set": name,
            "rows": len(y),
            "learner": learner,
            "progressive error": float(np.mean(answers != y)),
            "rows/s": len(y) / spent,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000, help="at most, of every set")
    parser.add_argument("--docs", action="store_true", help="write the documentation's table")
    options = parser.parse_args()
    rows = []
    for name, X, y in sets(options.rows):
        rows += list(judged(name, X, np.asarray(y).astype(int)))
        report("stream_peers", rows, docs=options.docs)


if __name__ == "__main__":
    main()
