"""From results to the sections of a report."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress._version import __version__
from buttress.cli._evaluate import Judged
from buttress.cli._inputs import Data
from buttress.cli._models import TITLES, make_estimator
from buttress.metrics.scorer import half_gap
from buttress.report import (
    Comparison,
    Coverage,
    Picture,
    RegularizationPath,
    Report,
    Suspects,
    data_health,
)
from buttress.tables import Table, TableClassifier

# Rows up to which the path and the suspects are computed exactly within a report.
_MOST_ROWS = 5000
_GRID = 60
# Share of false alarms allowed among the suspects that are called nearly sure.
_FDR = 0.1


def fit_report(
    data: str,
    read: Data,
    fitted: TableClassifier,
    judged: Sequence[Judged],
    chosen: str,
    reason: str,
    d: float,
    folds: int,
    seed: int,
) -> Report:
    """The report of ``buttress fit``."""
    best = next(each for each in judged if each.kind == chosen)
    encoded = fitted.encode(read.table)
    rows = np.arange(len(read.labels))
    if len(rows) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), _MOST_ROWS, replace=False))
    suspects, flagged = find_suspects(encoded, read.labels, rows, folds, seed)
    summary = [reason[0].upper() + reason[1:] + ".", f"{int(flagged.sum())} labels look wrong."]
    return Report(
        title=f"{data}: {TITLES[chosen]}",
        summary=summary,
        health=data_health(read.table, read.labels),
        comparison=comparison(
            judged,
            d,
            chosen,
            f"Each row was judged by a model that had not seen it ({folds} folds, the same for "
            "all models; Clopper-Pearson intervals).",
        ),
        path=leaky_path(encoded[rows], read.labels[rows], folds, seed),
        coverage=Coverage.from_answers(
            best.true,
            best.answers,
            best.confidence,
            d,
            f"Answers and confidences of {best.title} on rows it had not seen.",
        ),
        suspects=suspects,
        picture=picture(fitted, read.table, encoded, read.labels, flagged),
        settings={
            "data": data,
            "rows": str(len(read.labels)),
            "model": TITLES[chosen],
            "cost of no answer d": f"{d:g}",
            "missing values": str(fitted.missing),
            "folds": str(folds),
            "seed": str(seed),
            **versions(),
        },
    )


def comparison(
    judged: Sequence[Judged], d: float, chosen: str, how: str, badge: str = "chosen"
) -> Comparison:
    """The section that compares models judged on the same rows."""
    risks = [each.risk(d) for each in judged]
    rejecting = any(each.rejected.any() for each in judged)
    return Comparison(
        measure=f"0-d-1 risk at d = {d:g}" if rejecting else "error",
        names=[each.title for each in judged],
        values=[risk.value for risk in risks],
        lows=[risk.low for risk in risks],
        highs=[risk.high for risk in risks],
        extra={
            "accuracy of answers": [f"{100 * each.accuracy:.2f} %" for each in judged],
            "answered": [f"{100 * each.coverage:.1f} %" for each in judged],
            "seconds": [f"{each.seconds:.2f}" for each in judged],
        },
        chosen=TITLES[chosen],
        badge=badge,
        how=how,
    )


def leaky_path(encoded: Array, labels: NDArray[Any], folds: int, seed: int) -> RegularizationPath:
    """The leaky hockey stick's path, fitted for the picture."""
    model = make_estimator("leaky", seed=seed, folds=folds).fit(encoded, labels)
    return path_section(model)


def path_section(model: Any) -> RegularizationPath:
    """The path of a fitted `LeakyHockeyStickClassifierCV`."""
    errors = 1.0 - np.ravel(model.cv_mean_)
    return RegularizationPath(
        penalties=np.ravel(model.alphas_).tolist(),
        errors=errors.tolist(),
        deviations=np.ravel(model.cv_std_).tolist(),
        best=float(model.alpha_min_),
        one_se=float(model.alpha_1se_),
    )


def picture(
    fitted: TableClassifier,
    table: Table,
    encoded: Array,
    labels: NDArray[Any],
    flagged: BoolArray | None = None,
) -> Picture:
    """Two numeric columns as they are, with the model's regions; a projection otherwise."""
    codes = np.searchsorted(fitted.classes_, labels)
    classes = [str(label) for label in fitted.classes_]
    confidence = half_gap(np.asarray(fitted.estimator_.decision_function(encoded)))
    if table.shape[1] == 2 and not fitted.encoder_.categories_:
        first, second = table.names
        x, y = table[first], table[second]
        filled = ~(np.isnan(x) | np.isnan(y))
        extent = (*_widened(x[filled]), *_widened(y[filled]))
        return Picture(
            x[filled],
            y[filled],
            codes[filled],
            classes,
            (first, second),
            None if flagged is None else flagged[filled],
            confidence[filled],
            _regions(fitted, first, second, extent),
            extent,
            "The two columns, and the model's answer everywhere; grey is no answer.",
        )
    centred = encoded - encoded.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    if len(singular) == 1:
        directions = np.vstack([directions, np.zeros_like(directions)])
        singular = np.append(singular, 0.0)
    plane = centred @ directions[:2].T
    total = float(np.sum(singular**2)) or 1.0
    share = 100 * float(np.sum(singular[:2] ** 2)) / total
    return Picture(
        plane[:, 0],
        plane[:, 1],
        codes,
        classes,
        ("first principal component", "second principal component"),
        flagged,
        confidence,
        how=f"The plane of the two principal components, which keeps {share:.0f} % of the "
        "variance of the encoded columns.",
    )


def _widened(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    edge = 0.05 * (high - low) or 0.5
    return low - edge, high + edge


def _regions(
    fitted: TableClassifier, first: str, second: str, extent: tuple[float, ...]
) -> NDArray[np.int64]:
    def middles(low: float, high: float, count: int) -> Array:
        edges = np.linspace(low, high, count + 1)
        return np.asarray(0.5 * (edges[1:] + edges[:-1]))

    xs, ys = middles(extent[0], extent[1], _GRID), middles(extent[2], extent[3], _GRID)
    across, up = np.meshgrid(xs, ys)
    grid = Table({first: across.ravel(), second: up.ravel()})
    codes = np.searchsorted(fitted.classes_, fitted.predict(grid))
    codes[fitted.reject(grid)] = -1
    return np.asarray(codes.reshape(_GRID, _GRID))


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    import numba
    import scipy
    import sklearn

    return {
        "buttress": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


def find_suspects(
    encoded: Array,
    labels: NDArray[Any],
    rows: NDArray[np.int64],
    folds: int,
    seed: int,
    search: Any = None,
) -> tuple[Suspects, BoolArray]:
    """Rows whose label looks wrong, by cross-fitted scores of the ramp classifier.

    Parameters
    ----------
    encoded, labels
        All rows.
    rows : array of int
        The rows to look at.
    folds, seed : int
    search : fitted RampClassifierCV, optional
        Where the parameters come from; fitted here when not given.

    Returns
    -------
    Suspects
        The section of the report; rows are counted from 1.
    ndarray of bool
        Which rows are listed.
    """
    X, y = encoded[rows], labels[rows]
    if search is None:
        search = make_estimator("ramp", seed=seed, folds=folds).fit(X, y)
    found = search.suspects(X, y, cv=folds, fdr=_FDR)
    # The list for a false discovery rate is a cautious one. To look through by hand, as many
    # rows as labels are estimated to be wrong are shown, and the cautious list is marked in it.
    order = np.lexsort((-found.scores, -found.probabilities))
    listed = order[: max(len(found.selected), round(found.noise_rate * len(rows)))]
    flagged = np.zeros(len(labels), dtype=bool)
    flagged[rows[listed]] = True
    suggested = _suggested(search, X, y, listed)
    surely = set(found.selected.tolist())
    section = Suspects(
        columns=["row", "label", "suggested", "chance wrong", "score", "nearly sure"],
        rows=[
            [
                int(rows[position]) + 1,
                str(y[position]),
                other,
                round(float(found.probabilities[position]), 3),
                round(float(found.scores[position]), 4),
                "yes" if position in surely else "no",
            ]
            for position, other in zip(listed.tolist(), suggested, strict=True)
        ],
        n_rows=len(rows),
        how=f"Each row was scored by ramp classifiers that had not seen it. About "
        f"{100 * found.noise_rate:.0f} % of all labels seem wrong, and as many rows are listed, "
        f"the most suspicious first. {len(surely)} of them are nearly sure: among those at most "
        f"{100 * _FDR:.0f} % are expected to be false alarms.",
    )
    return section, flagged


def _suggested(
    search: Any, X: Array, y: NDArray[Any], selected: NDArray[np.integer[Any]]
) -> list[str]:
    """The most likely of the other labels of every suspected row."""
    if len(selected) == 0:
        return []
    scores = np.asarray(search.decision_function(X[selected]))
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    own = np.searchsorted(search.classes_, y[selected])
    scores[np.arange(len(own)), own] = -np.inf
    return [str(label) for label in search.classes_[scores.argmax(axis=1)]]
