"""What a search is told, finds and reports: metadata, scores of one width, `cv_results_`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._frames import rows_of
from buttress.classifiers.parameters import check_widths

# "auto" widths are the estimator's gamma times these.
_FACTORS = (0.25, 1.0, 4.0)


@dataclass(frozen=True, eq=False)
class Metadata:
    """What comes with the rows, for the splitter and for the scorer.

    Attributes
    ----------
    split, score : dict
        Values with one entry per row of the user's data, by name.
    weighted : bool
        Whether scores of held-out rows are weighted as the fits are.
    """

    split: dict[str, Any] = field(default_factory=dict)
    score: dict[str, Any] = field(default_factory=dict)
    weighted: bool = True

    def for_scorer(self, rows: IntArray, weight: Array | None) -> dict[str, Any]:
        """Arguments of a scorer for the rows that stand at `rows` in the user's data."""
        arguments = {name: rows_of(values, rows) for name, values in self.score.items()}
        if weight is not None and self.weighted:
            arguments["sample_weight"] = weight
        return arguments


@dataclass(frozen=True, eq=False)
class FoldScores:
    """All candidates of one kernel width on one fold.

    Attributes
    ----------
    scores : list of float
    short : sequence of bool
        Whether `max_iter` ended the fit.
    """

    scores: list[float]
    short: Sequence[bool] | BoolArray


@dataclass(frozen=True, eq=False)
class Solved:
    """All candidates of one kernel width.

    Attributes
    ----------
    gamma : float or None
        The width as a number.
    table : array of shape (candidates, folds)
        Scores of the held-out rows.
    short : bool array of shape (candidates, folds)
        Whether `max_iter` ended the fit.
    kept : object
        What the strategy needs to refit a candidate of this width without beginning again.
    """

    gamma: float | None
    table: Array
    short: BoolArray
    kept: Any


def widths_to_try(gammas: Any, estimator_width: Callable[[], float | None]) -> list[Any]:
    """The kernel widths that `gammas` stands for; None is the estimator's own.

    Parameters
    ----------
    gammas : "auto", None or sequence
    estimator_width : callable
        Gives the estimator's own width as a number, None for a kernel without one.

    Examples
    --------
    >>> widths_to_try("auto", lambda: 2.0), widths_to_try([0.1], lambda: None)
    ([0.5, 2.0, 8.0], [None])
    """
    automatic = isinstance(gammas, str)
    if automatic and gammas != "auto":
        raise ValueError(f"gammas={gammas!r} is not accepted: expected 'auto', None or a sequence.")
    given = None if automatic else check_widths(gammas)
    if not automatic and given is None:
        return [None]
    width = estimator_width()
    if width is None:
        return [None]
    return [factor * width for factor in _FACTORS] if given is None else given


def standard_error(table: Array) -> Array:
    """Standard errors of the means over the folds; zero for one fold.

    Examples
    --------
    >>> standard_error(np.array([[0.0, 2.0], [1.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    n_folds = table.shape[1]
    if n_folds == 1:
        return np.zeros(len(table))
    return np.asarray(table.std(axis=1, ddof=1) / np.sqrt(n_folds))


def cv_results(candidates: list[dict[str, Any]], table: Array) -> dict[str, Any]:
    """Candidates and their scores with the keys of scikit-learn's `GridSearchCV`.

    Parameters
    ----------
    candidates : list of dict
        The parameters, the same names in each.
    table : array of shape (candidates, folds)

    Examples
    --------
    >>> found = cv_results([{"C": 1.0}, {"C": 2.0}], np.array([[0.5, 0.7], [0.9, 0.9]]))
    >>> found["rank_test_score"].tolist(), found["param_C"].tolist()
    ([2, 1], [1.0, 2.0])
    >>> sorted(found)
    ['mean_test_score', 'param_C', 'params', 'rank_test_score', 'split0_test_score',
     'split1_test_score', 'std_test_score']
    """
    means = table.mean(axis=1)
    return {
        "params": candidates,
        **{
            f"param_{name}": np.array([candidate[name] for candidate in candidates])
            for name in candidates[0]
        },
        **{f"split{k}_test_score": scores for k, scores in enumerate(table.T)},
        "mean_test_score": means,
        "std_test_score": table.std(axis=1),
        # equal scores share the best of their ranks
        "rank_test_score": np.searchsorted(np.sort(-means), -means).astype(np.int32) + 1,
    }
