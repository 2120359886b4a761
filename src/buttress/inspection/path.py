"""The cross-validation curve along a path of penalties."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from buttress._arrays import Array
from buttress.inspection._axes import new_axes


@dataclass(eq=False, repr=False)
class PathDisplay:
    """Mean cross-validation score against the penalty, with its band and both choices.

    Use `from_estimator`.

    Parameters
    ----------
    alphas, mean, standard_error : arrays of shape (n_alphas,)
        Penalties, scores and their standard errors over the folds.
    alpha_min, alpha_1se : float
        The penalty of the best score, and the largest within one standard error of it.
    scoring : str
        Name of the score, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the curve was drawn.
    line_, band_ : matplotlib artists
        The curve and its band.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from buttress import LeakyHockeyStickClassifierCV
    >>> from buttress.inspection import PathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = PathDisplay.from_estimator(LeakyHockeyStickClassifierCV(alphas=5).fit(X, y))
    >>> display.ax_.get_xscale()
    'log'
    """

    alphas: Array
    mean: Array
    standard_error: Array
    _: KW_ONLY
    alpha_min: float
    alpha_1se: float
    scoring: str = "score"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_kwargs: Any) -> PathDisplay:
        """Draw the curve of a fitted ``LeakyHockeyStickClassifierCV``.

        Parameters
        ----------
        estimator : fitted LeakyHockeyStickClassifierCV
        ax : matplotlib Axes, optional
        **line_kwargs
            Passed to ``Axes.plot``.
        """
        check_is_fitted(estimator)
        scoring = estimator.scoring if isinstance(estimator.scoring, str) else "score"
        display = cls(
            estimator.alphas_,
            estimator.cv_mean_,
            estimator.cv_std_,
            alpha_min=estimator.alpha_min_,
            alpha_1se=estimator.alpha_1se_,
            scoring=scoring,
        )
        return display.plot(ax=ax, **line_kwargs)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> PathDisplay:
        """Draw into `ax`, or into a new figure."""
        ax = new_axes(ax)
        (self.line_,) = ax.plot(self.alphas, self.mean, **({"marker": "."} | line_kwargs))
        self.band_ = ax.fill_between(
            self.alphas,
            np.asarray(self.mean) - self.standard_error,
            np.asarray(self.mean) + self.standard_error,
            alpha=0.2,
            color=self.line_.get_color(),
            linewidth=0,
        )
        ax.axvline(self.alpha_min, linestyle="--", color="C3", label="best mean score")
        ax.axvline(self.alpha_1se, linestyle=":", color="C2", label="one standard error")
        ax.set(xscale="log", xlabel="penalty alpha", ylabel=f"cross-validated {self.scoring}")
        ax.legend()
        self.ax_ = ax
        return self
