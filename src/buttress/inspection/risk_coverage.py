"""Curves of the error among the answers against their share, of one or several classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.inspection._axes import new_axes
from buttress.metrics import area_under_risk_coverage, risk_coverage_band, risk_coverage_curve
from buttress.metrics.scorer import confidence_scores


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay:
    """Error rate among the answered rows against the share of rows answered.

    Parameters
    ----------
    coverage, risk : arrays
        As from `buttress.metrics.risk_coverage_curve`.
    area : float, optional
        The area under the curve, for the legend.
    name : str, optional
        Name of the classifier, for the legend.
    band : tuple of three arrays, optional
        Coverages, and lower and upper ends of the risk, as from
        `buttress.metrics.risk_coverage_band`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib PolyCollection or None
        The band around it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = RiskCoverageDisplay.from_predictions([1, 0, 1], [1, 0, 0], [0.9, 0.8, 0.1])
    >>> display.line_.get_ydata().round(2).tolist()
    [0.0, 0.0, 0.33]
    """

    coverage: Array
    risk: Array
    area: float | None = None
    name: str | None = None
    band: tuple[Array, Array, Array] | None = None

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        pred: Any,
        score: Any,
        *,
        sample_weight: Any = None,
        confidence: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> RiskCoverageDisplay:
        """Draw the curve of given answers and confidences.

        Parameters
        ----------
        y, pred, score, sample_weight
            As in `buttress.metrics.risk_coverage_curve`.
        confidence : float in (0, 1), optional
            Level of a bootstrap band around the curve; none when None.
        name : str, optional
        ax : matplotlib Axes, optional
        **line_options
            Passed to ``ax.plot``.

        Returns
        -------
        RiskCoverageDisplay
        """
        coverage, risk, _ = risk_coverage_curve(y, pred, score, sample_weight=sample_weight)
        area = area_under_risk_coverage(y, pred, score, sample_weight=sample_weight)
        band = None
        if confidence is not None:
            band = risk_coverage_band(
                y, pred, score, confidence=confidence, sample_weight=sample_weight
            )
        display = cls(coverage, risk, float(np.asarray(area)), name, band)
        return display.plot(ax=ax, **line_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        confidence: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> RiskCoverageDisplay:
        """Draw the curve of a fitted classifier on the rows `X`.

        The confidence is half the distance of the two largest scores (the absolute score for
        two classes), or the largest probability where there are no scores.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like, optional
        confidence : float in (0, 1), optional
            Level of a bootstrap band around the curve; none when None.
        name : str, optional
            Default the class name.
        ax : matplotlib Axes, optional
        **line_options
            Passed to ``ax.plot``.

        Returns
        -------
        RiskCoverageDisplay
        """
        return cls.from_predictions(
            y,
            estimator.predict(X),
            confidence_scores(estimator, X),
            sample_weight=sample_weight,
            confidence=confidence,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **line_options,
        )

    @classmethod
    def compare(
        cls,
        estimators: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        confidence: float | None = 0.9,
        ax: Any = None,
    ) -> list[RiskCoverageDisplay]:
        """Draw the curves of several fitted classifiers on the same rows, with their bands.

        Parameters
        ----------
        estimators : dict from name to fitted classifier, or list of fitted classifiers
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like, optional
        confidence : float in (0, 1), optional
            Level of the bootstrap bands; none when None. That two bands overlap does not mean
            that the classifiers are equal: `buttress.metrics.paired_difference` tests it.
        ax : matplotlib Axes, optional

        Returns
        -------
        list of RiskCoverageDisplay
            One per classifier, all on the same axes.
        """
        named = estimators
        if not isinstance(estimators, Mapping):
            named = {
                f"{type(estimator).__name__} {k}": estimator
                for k, estimator in enumerate(estimators, 1)
            }
        if not named:
            raise ValueError("estimators is empty: at least one fitted classifier is needed.")
        ax = new_axes(ax)
        return [
            cls.from_estimator(
                estimator,
                X,
                y,
                sample_weight=sample_weight,
                confidence=confidence,
                name=name,
                ax=ax,
            )
            for name, estimator in named.items()
        ]

    def plot(self, ax: Any = None, **line_options: Any) -> RiskCoverageDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_options
            Passed to ``ax.plot``.

        Returns
        -------
        self
        """
        ax = new_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        area = "" if self.area is None else f"area {self.area:.4f}"
        label = ", ".join(words for words in (str(self.name or ""), area) if words)
        options = {"drawstyle": "steps-post", "label": label or None} | line_options
        (self.line_,) = ax.plot(self.coverage, self.risk, **options)
        self.band_ = None
        if self.band is not None:
            colour = self.line_.get_color()
            self.band_ = ax.fill_between(*self.band, color=colour, alpha=0.2, linewidth=0)
        ax.set(xlabel="share of rows answered", ylabel="error rate among them", xlim=(0, 1))
        if options["label"]:
            ax.legend(loc="best")
        return self
