"""The jobs of ``waiting.py``: ours and the named peers on the same work."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import _liquid
from buttress import (
    DoubleRampClassifierCV,
    LabelAudit,
    LeakyHockeyStickClassifierCV,
    PARampClassifier,
    RampClassifier,
    RampClassifierCV,
)
from buttress.kernels import resolve_gamma
from path_cv import ALPHAS, JOBS, job, start_workers
from stream import adult

# Seconds of a first run that is not repeated; of two runs after which there is no third.
LONG, ENOUGH = 15.0, 5.0


def data_home() -> Path:
    """Where the stored data sets are."""
    return Path(os.environ["BUTTRESS_DATA"])


@dataclass(frozen=True)
class Work:
    """One thing to be timed: a call, and how many times its time the whole job takes."""

    run: Callable[[], Any]
    times: float = 1.0


@dataclass(frozen=True)
class Job:
    """One row of the table.

    Attributes
    ----------
    aim : float
        The least ratio of the peer's time to ours.
    prepare : function
        Gives ours and the peers by name; called before the clock runs.
    """

    aim: dict[str, float]
    prepare: Callable[[], dict[str, Work]]


def timed(work: Work) -> tuple[float, float]:
    """Wall and processor seconds, with those of child processes, of the best run.

    The first run loads compiled code and starts processes, so there are two at least, where the
    first does not take so long that this does not matter.
    """
    best = (np.inf, np.inf)
    spent = 0.0
    for run in range(3):
        wall, own = time.perf_counter(), _processor()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work.run()
        took = (time.perf_counter() - wall, _processor() - own)
        best = min(best, took)
        spent += took[0]
        if spent > (LONG if run == 0 else ENOUGH):
            break
    return best[0] * work.times, best[1] * work.times


def _processor() -> float:
    process = psutil.Process()
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        spent = each.cpu_times()
        total += spent.user + spent.system
    return total


def noisy_rows(n: int, p: int = 20, *, classes: int = 2) -> tuple[Any, Any]:
    """Two clusters per class, a tenth of the labels wrong."""
    X, y = make_classification(n, p, n_informative=8, n_classes=classes, flip_y=0.2, random_state=0)
    return StandardScaler().fit_transform(X), y


def _intelex() -> Any:
    from sklearnex.svm import SVC as Faster

    return Faster


def _path(X: Any, y: Any, gammas: Any, penalties: int, part: int, **peers: Any) -> dict[str, Work]:
    """The path of all widths against grids that hold every `part`-th penalty."""
    n = len(y)
    alphas = 10.0 ** np.linspace(0, -7, penalties)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    ours = LeakyHockeyStickClassifierCV(alphas=alphas, gammas=gammas, cv=folds, n_jobs=2)
    few = alphas[part // 2 :: part]
    start_workers()
    work = {"ours": Work(lambda: ours.fit(X, y))}
    for name, machine in peers.items():
        grid = {"C": 1.0 / (2 * n * few), "gamma": list(gammas)}
        search = GridSearchCV(machine(), grid, cv=folds, n_jobs=2)
        work[name] = Work(partial(search.fit, X, y), penalties / len(few))
    return work


def widths(index: int, part: int) -> dict[str, Work]:
    X, y = job(*JOBS[index])
    gammas = resolve_gamma("scale", X) * 4.0 ** np.arange(-2.0, 3.0)
    return _path(X, y, gammas, len(ALPHAS), part, scikit_learn=SVC, intelex=_intelex())


def many_rows(n: int, part: int) -> dict[str, Work]:
    """One width; liquidSVM, where it is installed, searches all penalties in its own way."""
    X, y = noisy_rows(n)
    gamma = resolve_gamma("scale", X)
    work = _path(X, y, [gamma], 100, part, scikit_learn=SVC)
    if _liquid.available():
        work["liquidSVM"] = Work(partial(_liquid.search, X, y, gamma, 100))
    return work


def letter(part: int) -> dict[str, Work]:
    table = np.loadtxt(data_home() / "letter.csv", delimiter=",", skiprows=1, dtype=str)
    chosen = np.random.default_rng(0).permutation(len(table))[:2000]
    X, y = StandardScaler().fit_transform(table[chosen, :-1].astype(float)), table[chosen, -1]
    return _path(X, y, [resolve_gamma("scale", X)], 50, part, scikit_learn=SVC)


def ramp_search(n: int, ds: Sequence[float] = ()) -> dict[str, Work]:
    """Default grids; the peer's time is that of as many candidates as ours has.

    The double ramp machine is searched once for every cost `ds` of a refusal: a score of one cost
    says nothing about another, so this is what a user who compares costs does.
    """
    X, y = noisy_rows(n)
    gammas = resolve_gamma("scale", X) * np.array([0.25, 1.0, 4.0])
    kinds: list[Any] = [DoubleRampClassifierCV(d=d, gammas=gammas, n_jobs=2) for d in ds]
    kinds = kinds or [RampClassifierCV(gammas=gammas, n_jobs=2)]
    Cs = list(kinds[0].Cs)
    ours = len(Cs) * len(gammas) * (len(ds) or len(kinds[0].ss))
    peer = GridSearchCV(SVC(), {"C": Cs, "gamma": list(gammas)}, cv=5, n_jobs=2)
    start_workers()
    return {
        "ours": Work(lambda: [kind.fit(X, y) for kind in kinds]),
        "scikit_learn": Work(lambda: peer.fit(X, y), ours / (len(Cs) * len(gammas))),
    }


def audit(n: int) -> dict[str, Work]:
    """Repeated cross-fitting: ours by default, and cleanlab with a support vector machine and a
    forest, repeated as often as `LabelAudit` does with witnesses that are cross-fitted."""
    from cleanlab.filter import find_label_issues
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    X, y = noisy_rows(n)
    repeats = max(1, min(10, 5000 // n))

    def theirs() -> Any:
        peers = [SVC(probability=True, random_state=0), RandomForestClassifier(random_state=0)]
        fitted = [
            cross_val_predict(each, X, y, cv=folds, method="predict_proba", n_jobs=2)
            for seed in range(repeats)
            for folds in [StratifiedKFold(5, shuffle=True, random_state=seed)]
            for each in peers
        ]
        return find_label_issues(y, np.mean(fitted, axis=0), n_jobs=1)

    start_workers()
    return {
        "ours": Work(lambda: LabelAudit(random_state=0, n_jobs=2).audit(X, y)),
        "cleanlab": Work(theirs),
    }


def single_fit(n: int, dtype: Any, peer: str) -> dict[str, Work]:
    X, y = noisy_rows(n)
    X = X.astype(dtype)
    options = {"tol": 1e-3, "gamma": 0.05, "cache_size": 1000}
    machine = SVC if peer == "LIBSVM" else _intelex()
    return {
        "ours": Work(lambda: RampClassifier(s=-np.inf, **options).fit(X, y)),
        peer: Work(lambda: machine(**options).fit(X, y)),
    }


def landmarks(rows: int | None, components: int, folds: int, penalties: int) -> dict[str, Work]:
    """The path on Nyström features; the peer's penalties are every tenth, one fold of five."""
    from sklearn.linear_model import LogisticRegression

    X, y = adult(data_home())
    X, y = StandardScaler().fit_transform(X[:rows]), y[:rows]
    gamma = resolve_gamma("scale", X)
    alphas = 10.0 ** np.linspace(0, -7, penalties)
    ours = LeakyHockeyStickClassifierCV(
        alphas=alphas, cv=folds, gamma=gamma, approximation="nystroem",
        n_components=components, random_state=0, n_jobs=2,
    )  # fmt: skip
    few = alphas[5::10]

    def theirs() -> Any:
        phi = Nystroem(gamma=gamma, n_components=components, random_state=0).fit_transform(X)
        inside = np.arange(len(y)) % folds != 0
        peer = LogisticRegression(warm_start=True, max_iter=200)
        for alpha in few:
            peer.set_params(C=1.0 / (2 * len(y) * alpha)).fit(phi[inside], y[inside])

    return {
        "ours": Work(lambda: ours.fit(X, y)),
        "scikit_learn": Work(theirs, len(alphas) / len(few) * folds),
    }


def prediction(rows: int, vectors: int, whole: int, dtype: Any) -> dict[str, Work]:
    """Scores of `rows` rows, in proportion to `whole` of them."""
    import onnxruntime
    from skl2onnx import to_onnx

    X, y = noisy_rows(rows)
    X = X.astype(dtype)
    # with so small a penalty nearly all rows are support vectors
    ours = RampClassifier(gamma=0.05, C=1e-3, s=-np.inf).fit(X[:vectors], y[:vectors])
    svc = SVC(gamma=0.05, C=1e-3).fit(X[:vectors], y[:vectors])
    faster = _intelex()(gamma=0.05, C=1e-3).fit(X[:vectors], y[:vectors])
    session = onnxruntime.InferenceSession(
        to_onnx(svc, X[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    )
    single = X.astype(np.float32)
    part = whole / rows
    share = len(svc.support_) / len(ours.support_)
    return {
        "ours": Work(lambda: ours.decision_function(X), part),
        "scikit_learn": Work(lambda: svc.decision_function(X), part / share),
        "intelex": Work(lambda: faster.decision_function(X), part / share),
        "onnxruntime": Work(lambda: session.run(None, {"X": single}), part / share),
    }


def stream(rows: int, budget: int | None) -> dict[str, Work]:
    """One progressive pass; river's random features with a linear learner, as many as vectors."""
    from river import linear_model
    from river.feature_extraction import RBFSampler

    X, y = noisy_rows(rows, 14)
    ours = PARampClassifier(gamma=0.05, budget=budget)
    named = [dict(enumerate(row)) for row in X[:2000].tolist()]

    def theirs() -> None:
        model = RBFSampler(gamma=0.05, n_components=budget or 1000, seed=0)
        model = model | linear_model.PAClassifier()
        for row, label in zip(named, (y[:2000] > 0).tolist(), strict=True):
            model.predict_one(row)
            model.learn_one(row, label)

    def one_pass() -> None:
        fresh = clone(ours)
        for start in range(0, rows, 500):
            part = slice(start, start + 500)
            fresh.partial_fit(X[part], y[part], classes=[0, 1])

    return {"ours": Work(one_pass), "river": Work(theirs, rows / len(named))}


def jobs() -> Iterator[tuple[str, Job]]:
    """The rows of the table, by name."""
    for index, least in enumerate((100.0, 20.0, 25.0, 15.0)):
        yield (
            f"5 widths, n = {JOBS[index][1]}",
            Job(
                {"scikit_learn": least, "intelex": 10.0},
                partial(widths, index, (5, 5, 20, 20)[index]),
            ),
        )
    for n, part in ((5000, 25), (10_000, 50)):
        aims = {"scikit_learn": 15.0, "liquidSVM": 15.0}
        yield f"path, n = {n}", Job(aims, partial(many_rows, n, part))
    yield "letter, 26 classes, n = 2000", Job({"scikit_learn": 15.0}, partial(letter, 10))
    for n in (500, 2000):
        yield (
            f"RampClassifierCV, n = {n}",
            Job({"scikit_learn": 1.0}, partial(ramp_search, n)),
        )
        yield (
            f"DoubleRampClassifierCV, n = {n}",
            Job({"scikit_learn": 1.0}, partial(ramp_search, n, (0.2,))),
        )
        yield (
            f"DoubleRampClassifierCV, 5 d, n = {n}",
            Job({"scikit_learn": 1.0}, partial(ramp_search, n, (0.05, 0.1, 0.2, 0.3, 0.4))),
        )
    for n in (1000, 10_000):
        yield f"LabelAudit, n = {n}", Job({"cleanlab": 2.0}, partial(audit, n))
    for n in (20_000, 50_000):
        for dtype in (np.float64, np.float32):
            for peer, least in (("LIBSVM", 2.0), ("intelex", 1.0)):
                yield (
                    f"one fit, n = {n}, {np.dtype(dtype).name}, {peer}",
                    Job({peer: least}, partial(single_fit, n, dtype, peer)),
                )
    yield (
        "Nystroem path, adult, 1000 components, 5 folds x 100 penalties",
        Job({"scikit_learn": 10.0}, partial(landmarks, None, 1000, 5, 100)),
    )
    for dtype in (np.float64, np.float32):
        yield (
            f"prediction, 1 M rows x 2000 vectors, {np.dtype(dtype).name}",
            Job(
                {"scikit_learn": 5.0, "onnxruntime": 1.5, "intelex": 1.0},
                partial(prediction, 20_000, 2000, 1_000_000, dtype),
            ),
        )
    for budget in (None, 100, 500):
        yield (
            f"stream, 20 000 rows, budget {budget}",
            Job({"river": 1.0}, partial(stream, 20_000, budget)),
        )
