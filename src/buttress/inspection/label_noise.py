"""Pictures of label noise: the curve between its asymptotes, and what a review finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array
from buttress.inspection._axes import new_pair
from buttress.noise import LabelSuspects

_CURVE, _GIVEN, _FOUND = "#3b6ea8", "#c8553d", "#4c956c"
# Bins of the given labels; about as many rows in each.
_ODDS_BINS = 12


@dataclass(eq=False, repr=False)
class LabelNoiseDisplay:
    """The noise model over the labels it was fitted to, and the worth of its ranking.

    Left: shares of the given label in bins of the clean log-odds, the fitted curve, and its two
    asymptotes, the noise rates. Right: the share of wrong labels among the first rows of the
    ranking, expected and, as reviewed labels come in, found.

    Parameters
    ----------
    position : array of shape (n_bins,)
        Mean clean log-odds of the bins.
    share : array of shape (n_bins,)
        Share of given labels of the class shown.
    deviation : array of shape (n_bins,)
        Their standard errors if the model is right.
    curve : array of shape (2, m)
        Log-odds and P(given label of the class).
    asymptotes : pair of floats
        The ends of the curve: the other classes' rate, and one minus this class's.
    expected : array of shape (n,)
        Expected share of wrong labels among the first rows.
    reviewed : array of shape (k,) or None
        Whether the first `k` rows of the ranking were found wrong.
    label : object
        The class shown.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : pair of matplotlib Axes
    curve_, expected_line_, reviewed_line_ : matplotlib Line2D
        `reviewed_line_` is None without reviewed labels.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from buttress import LabelAudit
    >>> from buttress.noise import KernelWitness
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(150, noise=0.2, random_state=0)
    >>> y[:20] = 1 - y[:20]
    >>> found = LabelAudit(KernelWitness()).audit(X, y)
    >>> display = LabelNoiseDisplay.from_suspects(found)
    >>> bool(0 < display.asymptotes[0] < display.asymptotes[1] < 1)
    True
    """

    position: Array
    share: Array
    deviation: Array
    curve: Array
    asymptotes: tuple[float, float]
    expected: Array
    reviewed: Array | None
    label: Any

    @classmethod
    def from_suspects(
        cls,
        suspects: LabelSuspects,
        *,
        label: Any = None,
        reviewed: Any = None,
        ax: Any = None,
    ) -> LabelNoiseDisplay:
        """Compute and draw what an audit found.

        Parameters
        ----------
        suspects : LabelSuspects
            From `LabelAudit`, `RampClassifier.suspects` or ``NoiseAwareClassifier.suspects_``.
        label : object, optional
            The class whose labels are shown; default the last one.
        reviewed : mapping from row to bool, or array of bool, optional
            Rows that a person has looked at, and whether their label was wrong. An array counts
            in the order of the ranking.
        ax : pair of matplotlib Axes, optional

        Returns
        -------
        LabelNoiseDisplay
        """
        noise = suspects.noise
        classes = noise.classes.tolist()
        label = classes[-1] if label is None else label
        if label not in classes:
            raise ValueError(f"label={label!r} is not one of the labels {classes}.")
        k = classes.index(label)
        clean = np.clip(noise.clean_proba(suspects.held_out_scores)[:, k], 1e-6, 1 - 1e-6)
        odds = np.log(clean / (1.0 - clean))
        given = np.asarray(suspects.given) == label
        order = np.argsort(odds, kind="stable")
        bins = np.array_split(order, min(_ODDS_BINS, max(1, len(order) // 5)))
        share = np.array([given[rows].mean() for rows in bins])
        sizes = np.array([len(rows) for rows in bins])
        low = float(np.delete(noise.transition_[:, k], k).mean())
        high = float(noise.transition_[k, k])
        centre = np.array([odds[rows].mean() for rows in bins])
        expected = low + (high - low) / (1.0 + np.exp(-centre))
        grid = np.linspace(odds.min(), odds.max(), 200)
        curve = np.array([grid, low + (high - low) / (1.0 + np.exp(-grid))])
        wrong = suspects.probabilities[suspects.order]
        return cls(
            centre,
            share,
            np.sqrt(expected * (1.0 - expected) / sizes),
            curve,
            (low, high),
            np.cumsum(wrong) / np.arange(1, len(wrong) + 1),
            _in_order(reviewed, suspects.order),
            label,
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> LabelNoiseDisplay:
        """Draw.

        Parameters
        ----------
        ax : pair of matplotlib Axes, optional

        Returns
        -------
        self
        """
        left, right = np.ravel(new_pair(ax, 10.0, 4.0))
        self.axes_, self.figure_ = (left, right), left.figure
        left.errorbar(
            self.position,
            self.share,
            yerr=self.deviation,
            fmt="o",
            color=_GIVEN,
            markersize=4,
            label="labels as given",
        )
        (self.curve_,) = left.plot(*self.curve, color=_CURVE, label="noise model")
        for level in self.asymptotes:
            left.axhline(level, color=_CURVE, linestyle=":", linewidth=1)
        left.set(
            xlabel=f"log-odds of true {self.label!r}",
            ylabel=f"share of labels {self.label!r}",
            ylim=(-0.03, 1.03),
        )
        left.legend(loc="best")
        count = np.arange(1, len(self.expected) + 1)
        (self.expected_line_,) = right.plot(count, self.expected, color=_CURVE, label="expected")
        self.reviewed_line_ = None
        if self.reviewed is not None and len(self.reviewed):
            wrong_so_far = np.cumsum(self.reviewed) / np.arange(1, len(self.reviewed) + 1)
            (self.reviewed_line_,) = right.plot(
                np.arange(1, len(wrong_so_far) + 1),
                wrong_so_far,
                color=_FOUND,
                label="found by review",
            )
        right.set(
            xlabel="labels looked at, the most suspicious first",
            ylabel="share of them wrong",
            ylim=(-0.03, 1.03),
        )
        right.legend(loc="best")
        return self


def _in_order(reviewed: Any, order: NDArray[Any]) -> Array | None:
    """Outcomes of reviewed rows in the order of the ranking; None without any."""
    if reviewed is None:
        return None
    if hasattr(reviewed, "keys"):
        return np.array([float(reviewed[row]) for row in order.tolist() if row in reviewed])
    outcomes = np.asarray(reviewed)
    if outcomes.ndim != 1 or len(outcomes) > len(order) or not np.isin(outcomes, (0, 1)).all():
        raise ValueError(
            "reviewed is not accepted: expected a mapping from row to bool, or up to "
            f"{len(order)} booleans in the order of the ranking."
        )
    return outcomes.astype(float)
