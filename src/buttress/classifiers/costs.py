"""Costs of answers and refusals by true class: the best decision, and if refusing ever pays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from buttress._arrays import Array, BoolArray, IntArray
from buttress.metrics.cost_risk import checked_costs


def usable_costs(costs: Any, n_classes: int) -> Array:
    """The matrix of costs, with a word when refusing is always or never right.

    Parameters
    ----------
    costs : array-like of shape (n_classes, n_classes + 1)
        ``costs[j, k]`` of answering class k on a row of class j, the last column of no answer.
    n_classes : int

    Raises
    ------
    ValueError
        When no answer could ever be cheaper than refusing.

    Warns
    -----
    UserWarning
        When refusing can never be cheaper than every answer.
    """
    matrix = checked_costs(costs, n_classes)
    if refusing_always_pays(matrix):
        raise ValueError(
            "With these costs refusing is right for every row: the last column is nowhere above "
            "the others. Raise the costs of no answer."
        )
    if not refusing_can_pay(matrix):
        warnings.warn(
            "With these costs refusing never pays: whatever the probabilities, some answer is "
            "cheaper, and every row is answered. Lower the costs of no answer to get refusals.",
            stacklevel=4,
        )
    return matrix


def refusing_always_pays(costs: Array) -> bool:
    """Whether no answer is cheaper than refusing, at any probabilities of the classes.

    Examples
    --------
    >>> refusing_always_pays(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    True
    """
    # costs are linear in the probabilities: it suffices to look at the certain classes
    return bool((costs[:, -1:] <= costs[:, :-1]).all())


def refusing_can_pay(costs: Array) -> bool:
    """Whether refusing is cheaper than every answer at some probabilities of the classes.

    For two classes with costs a_j of errors and b_j of refusals (right answers free) this is
    ``b_0 / a_0 + b_1 / a_1 < 1``.

    Examples
    --------
    >>> [refusing_can_pay(np.array([[0, 1, d], [1, 0, d]])) for d in (0.3, 0.5)]
    [True, False]
    """
    gains = costs[:, :-1] - costs[:, -1:]  # what refusing saves, by true class
    n, k = gains.shape
    # max t with p'gains >= t for every answer, p a distribution
    solution = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-gains.T, np.ones(k)]),
        b_ub=np.zeros(k),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * n + [(None, None)],
    )
    return bool(-solution.fun > 1e-12 * np.abs(costs).max())


def cheapest_decisions(probabilities: Array, costs: Array) -> tuple[IntArray, BoolArray]:
    """The cheapest answer of every row, and whether no answer is cheaper: the Bayes rule.

    Parameters
    ----------
    probabilities : array of shape (n, n_classes)
    costs : array of shape (n_classes, n_classes + 1)

    Notes
    -----
    Of equal costs the first answer is taken, and refusing before answering (as Chow's rule
    does) unless refusing is nowhere strictly better.

    Examples
    --------
    >>> costs = np.array([[0.0, 1.0, 0.4], [5.0, 0.0, 0.4]])
    >>> p = np.array([[0.95, 0.05], [0.8, 0.2], [0.3, 0.7]])
    >>> answer, refused = cheapest_decisions(p, costs)
    >>> answer.tolist(), refused.tolist()
    ([0, 1, 1], [False, True, False])
    """
    expected = probabilities @ costs
    answer = expected[:, :-1].argmin(axis=1)
    if not refusing_can_pay(costs):
        return answer, np.zeros(len(answer), dtype=bool)
    return answer, np.asarray(expected[:, -1] <= expected[:, :-1].min(axis=1))


def decisions_under_draws(
    draws: Iterable[Array], costs: Array, confidence: float
) -> tuple[IntArray, BoolArray]:
    """The cheapest answer by the mean of draws, refused where too few of them agree.

    Parameters
    ----------
    draws : iterable of arrays of shape (n, n_classes)
        Equally likely probabilities of the classes; each is looked at once.
    costs : array of shape (n_classes, n_classes + 1)
    confidence : float
        Share of the draws that must agree that the answer is worth its risk.

    Examples
    --------
    >>> costs = np.array([[0.0, 1.0, 0.4], [5.0, 0.0, 0.4]])
    >>> draws = [np.array([[1 - p, p], [0.97, 0.03]]) for p in (0.02, 0.05, 0.09)]
    >>> answer, refused = decisions_under_draws(draws, costs, 0.9)
    >>> answer.tolist(), refused.tolist()
    ([0, 0], [True, False])
    """
    total, cheaper, count = np.zeros(()), np.zeros(()), 0
    for p in draws:
        expected = p @ costs
        total = total + p
        # which answer it will be is only known when all draws were seen
        cheaper = cheaper + (expected[:, :-1] < expected[:, -1:])
        count += 1
    answer, refused = cheapest_decisions(total / count, costs)
    agreeing = cheaper[np.arange(len(answer)), answer]
    return answer, np.asarray(refused | (agreeing < confidence * count))


def has_probability_draws(model: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, knows how sure its numbers are.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> has_probability_draws(LogisticRegression())
    False
    """
    model = _unfrozen(model)
    return hasattr(model[-1] if isinstance(model, Pipeline) else model, "predict_proba_draws")


def decided_by_cost(
    model: Any, X: Any, costs: Array, confidence: float
) -> tuple[IntArray, BoolArray]:
    """The cheapest decisions; answers only where draws of the probabilities, if any, agree.

    Parameters
    ----------
    model : fitted classifier
        Its draws are asked where it has some, and else its probabilities.
    X : array-like of shape (n, n_features)
    costs : array of shape (n_classes, n_classes + 1)
    confidence : float
        Share of the draws under which an answer must be cheaper than none.
    """
    if not (has_probability_draws(model) and refusing_can_pay(costs)):
        return cheapest_decisions(np.asarray(model.predict_proba(X)), costs)
    model = _unfrozen(model)
    if isinstance(model, Pipeline):
        X, model = model[:-1].transform(X), model[-1]
    return decisions_under_draws(model.predict_proba_draws(X), costs, confidence)


def _unfrozen(model: Any) -> Any:
    return model.estimator if isinstance(model, FrozenEstimator) else model


def probability_band(costs: Array) -> tuple[float, float]:
    """For two classes: between which probabilities of the second refusing is cheapest.

    Where refusing never pays both ends are the probability at which the answers cost the same.

    Examples
    --------
    >>> probability_band(np.array([[0.0, 1.0, 0.2], [1.0, 0.0, 0.2]]))
    (0.2, 0.8)
    """
    (right0, wrong0, refuse0), (wrong1, right1, refuse1) = costs
    if not refusing_can_pay(costs):
        cut = _crossing(wrong0 - right0, wrong1 - right1)
        return cut, cut
    return (
        _crossing(refuse0 - right0, wrong1 - refuse1),
        _crossing(wrong0 - refuse0, refuse1 - right1),
    )


def _crossing(if_first: float, if_second: float) -> float:
    """The probability of the second class at which ``(1 - p) if_first = p if_second``."""
    return float(np.clip(if_first / (if_first + if_second), 0.0, 1.0))


def class_costs(costs: Any) -> tuple[Array, Array]:
    """Costs of a wrong answer and of a refusal, beyond that of a right one, of two classes.

    Parameters
    ----------
    costs : array-like of shape (2, 3)

    Returns
    -------
    error, refusal : arrays of shape (2,)

    Raises
    ------
    ValueError
        When refusing would never, or always, be right.
    """
    matrix = usable_costs(costs, 2)
    # what a right answer costs is paid whatever is decided
    error = np.array([matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]])
    refusal = matrix[:, 2] - np.diag(matrix[:, :2])
    if not ((refusal > 0).all() and refusing_can_pay(matrix)):
        raise ValueError(
            "costs need 0 < cost of no answer < cost of a wrong one for both classes (beyond that "
            "of a right one), and their two ratios must add up to less than 1: beyond, refusing "
            f"never pays. Got ratios {(refusal / error).tolist()}; a classifier without a reject "
            "option, with class_weight, minimises these costs."
        )
    return error, refusal


def row_costs(costs: Any, y: Array) -> tuple[Array, Array]:
    """`class_costs` of every row of a machine with two classes, `y` being ±1."""
    index = (np.asarray(y) > 0).astype(int)
    error, refusal = class_costs(costs)
    return error[index], refusal[index]
