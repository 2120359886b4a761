"""The sections that compare models, and the whole report of a comparison under noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import IntArray
from buttress.metrics import Estimate
from buttress.model_selection import Judged, Measure
from buttress.report.environment import versions
from buttress.report.health import data_health
from buttress.report.sections import (
    Comparison,
    NoiseComparison,
    RegularizationPath,
    Report,
)
from buttress.tables import Table


def comparison_section(
    judged: Sequence[Judged],
    measure: Measure,
    chosen: str,
    how: str,
    badge: str = "chosen",
    losses: Sequence[Estimate] | None = None,
) -> Comparison:
    """The section that compares models judged on the same rows.

    Parameters
    ----------
    judged : sequence of Judged
    measure : Measure
        What they are compared by.
    chosen : str
        The kind of the model to mark.
    how : str
        On what rows it was measured.
    badge : str
        What the mark says.
    losses : sequence of Estimate, optional
        The losses with their intervals, where `measure` alone does not say them.
    """
    if losses is None:
        losses = [measure.estimate(each) for each in judged]
    extra: dict[str, list[str]] = {
        "accuracy of answers": [f"{100 * each.accuracy:.2f} %" for each in judged],
        "answered": [f"{100 * each.coverage:.1f} %" for each in judged],
        "seconds": [f"{each.seconds:.2f}" for each in judged],
    }
    return Comparison(
        measure=measure.title,
        names=[_shown(each) for each in judged],
        values=[loss.value for loss in losses],
        lows=[loss.low for loss in losses],
        highs=[loss.high for loss in losses],
        extra=extra,
        chosen=next(_shown(each) for each in judged if each.kind == chosen),
        badge=badge,
        how=how,
        meaning=measure.meaning,
        notes={
            "accuracy of answers": "right answers among the rows answered",
            "answered": "rows answered, of all rows judged; the others got no answer",
            "seconds": "fitting and answering, summed over all fits",
        },
    )


def _shown(judged: Judged) -> str:
    """The model's name, marked where it was not judged to the end."""
    return f"{judged.title} (dropped)" if judged.dropped else judged.title


def path_section(search: Any) -> RegularizationPath:
    """The path of a search.

    Parameters
    ----------
    search : LeakyHockeyStickClassifierCV
        Fitted.
    """
    errors = 1.0 - np.ravel(search.cv_mean_)
    return RegularizationPath(
        penalties=np.ravel(search.alphas_).tolist(),
        errors=errors.tolist(),
        deviations=np.ravel(search.cv_std_).tolist(),
        best=float(search.alpha_min_),
        one_se=float(search.alpha_1se_),
    )


@dataclass(frozen=True)
class NoiseCell:
    """One model at one share of flipped labels.

    Attributes
    ----------
    loss : Estimate
    accuracy, answered, seconds : float
    """

    loss: Estimate
    accuracy: float
    answered: float
    seconds: float


def noise_report(
    data: str,
    table: Table,
    labels: NDArray[Any],
    cells: Mapping[str, Sequence[NoiseCell]],
    rates: Sequence[float],
    measure: Measure,
    cv: str,
    seed: int,
    numbers: IntArray | None = None,
) -> Report:
    """The report of ``buttress compare``.

    Parameters
    ----------
    data : str
        Name of the file.
    table, labels
        What is in it.
    cells : mapping of str to sequence of NoiseCell
        By title of the model, one cell for every rate.
    rates : sequence of float
        Shares of flipped training labels.
    measure : Measure
    cv : str
        The cross-validation, as it was asked for.
    seed : int
    numbers : array of int, optional
        What the rows are called; 1, 2, ... when not given.
    """
    best = [min(cells, key=lambda name: cells[name][i].loss.value) for i in range(len(rates))]
    noise = NoiseComparison(
        measure=measure.title,
        rates=rates,
        names=list(cells),
        values=[[cell.loss.value for cell in each] for each in cells.values()],
        lows=[[cell.loss.low for cell in each] for each in cells.values()],
        highs=[[cell.loss.high for cell in each] for each in cells.values()],
        how=f"Cross-validation {cv}, the same parts for all models, each tuned inside them; 95 % "
        "intervals corrected for the overlap of the training parts.",
    )
    return Report(
        title=f"{data}: models under label noise",
        summary=[
            f"With {100 * rate:g} % of the training labels flipped, {name} has the smallest "
            f"{measure.title}: {100 * cells[name][i].loss.value:.2f} %."
            for i, (rate, name) in enumerate(zip(rates, best, strict=True))
        ],
        health=data_health(table, labels, numbers),
        noise=noise,
        settings={"data": data, "cv": cv, "seed": str(seed), **versions()},
    )
