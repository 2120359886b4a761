"""What corrections change in a model: its error on true labels, its refusals, the noise left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from buttress.noise import Estimate, LabelAudit
from buttress.review.judges import as_numbers
from buttress.tables.table import Table

# Rows that the comparison looks at; beyond, a sample is drawn.
_MOST_ROWS = 2000
_FOLDS = 3


@dataclass(frozen=True)
class Standing:
    """How a model does that was trained on one version of the labels.

    Attributes
    ----------
    error : float
        Share of wrong answers on held-out rows, measured on the corrected labels.
    true_error : float
        The same on true labels, estimated: the corrected labels may still be wrong.
    refused : float
        Share of held-out rows without an answer.
    noise_rate : Estimate
        Share of wrong labels in this version, with an interval.
    """

    error: float
    true_error: float
    refused: float
    noise_rate: Estimate


def effect_of_corrections(
    model: Any, table: Table, before: NDArray[Any], after: NDArray[Any], *, seed: int = 0
) -> tuple[Standing, Standing]:
    """Train on the labels before and after their correction, and judge both by the latter.

    Parameters
    ----------
    model : TableClassifier
        Cloned; fitted on three folds of either version.
    table : Table
        The features.
    before, after : ndarray
        The two versions of the labels.
    seed : int
        Of the folds, and of the sample of tables with more than 2000 rows.

    Returns
    -------
    before, after : Standing

    Notes
    -----
    With a share r of the corrected labels still wrong, whatever their class, an error e on them
    is an error of (e - r) / (1 - 2 r) on true labels.
    """
    rows = np.arange(len(after))
    if len(rows) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), _MOST_ROWS, replace=False))
    sample, old, new = table.take(rows), before[rows], after[rows]
    X = as_numbers(sample)
    rates = [LabelAudit(random_state=seed).audit(X, labels).noise_rate for labels in (old, new)]
    held_out = [_held_out(model, sample, labels, new, seed) for labels in (old, new)]
    return (
        _standing(held_out[0], rates[0], rates[1]),
        _standing(held_out[1], rates[1], rates[1]),
    )


def _held_out(
    model: Any, table: Table, labels: NDArray[Any], judged_by: NDArray[Any], seed: int
) -> tuple[float, float]:
    """Error of the answers and share of refusals on rows that were held out."""
    wrong, refused = np.zeros(len(labels), dtype=bool), np.zeros(len(labels), dtype=bool)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(np.zeros(len(labels)), judged_by):
        fitted = clone(model).fit(table.take(train), labels[train])
        wrong[test] = fitted.predict(table.take(test)) != judged_by[test]
        refused[test] = fitted.reject(table.take(test))
    answered = ~refused
    error = float(wrong[answered].mean()) if answered.any() else 0.0
    return error, float(refused.mean())


def _standing(held_out: tuple[float, float], rate: Estimate, left: Estimate) -> Standing:
    error, refused = held_out
    true_error = float(np.clip((error - left) / max(1 - 2 * left, 1e-9), 0.0, 1.0))
    return Standing(error, true_error, refused, rate)


def sentences(before: Standing, after: Standing, n_changed: int) -> list[str]:
    """The comparison for people.

    Examples
    --------
    >>> rate = Estimate(0.1, 0.05, 0.15)
    >>> sentences(Standing(0.2, 0.12, 0.0, rate), Standing(0.1, 0.0, 0.0, rate), 7)[0]
    '7 labels were corrected.'
    """

    def percent(name: str, first: float, second: float) -> str:
        return f"{name} {100 * first:.1f} % before, {100 * second:.1f} % after"

    return [
        f"{n_changed} labels were corrected.",
        "Trained on the labels before and after, and judged on held-out rows by the corrected "
        "labels: "
        + "; ".join(
            [
                percent("error", before.error, after.error),
                percent("error on true labels, estimated", before.true_error, after.true_error),
                percent("refused", before.refused, after.refused),
            ]
        )
        + ".",
        f"Wrong labels, estimated: {_rate(before.noise_rate)} before, "
        f"{_rate(after.noise_rate)} after.",
    ]


def _rate(rate: Estimate) -> str:
    return f"{100 * rate:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


def as_record(standing: Standing) -> dict[str, Any]:
    """A standing as numbers for programs."""
    rate = standing.noise_rate
    return {
        "error": standing.error,
        "true_error": standing.true_error,
        "refused": standing.refused,
        "noise_rate": float(rate),
        "noise_interval": [rate.low, rate.high],
    }
