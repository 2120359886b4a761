"""Risk, rejection rate and accuracy from counts of rows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length, column_or_1d

from buttress._arrays import Array, BoolArray
from buttress._numbers import check_number


class Estimate(NamedTuple):
    """A measured value and the ends of its confidence interval."""

    value: float
    low: float
    high: float


@overload
def reject_risk(
    y: Any,
    pred: Any,
    rejected: Any,
    d: float,
    *,
    sample_weight: Any = None,
    confidence: None = None,
) -> float: ...
@overload
def reject_risk(
    y: Any,
    pred: Any,
    rejected: Any,
    d: float,
    *,
    sample_weight: Any = None,
    confidence: float,
) -> Estimate: ...
def reject_risk(
    y: Any,
    pred: Any,
    rejected: Any,
    d: float,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
) -> float | Estimate:
    """The 0-d-1 risk: ``(errors among the accepted rows + d * rejected rows) / rows``.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    pred : array-like of shape (n,)
        Answers; what stands in rejected rows does not count.
    rejected : array-like of bool of shape (n,), or None
        Rows without an answer; None takes the mask of `pred` (a masked array as
        ``predict_or_reject`` returns it), or none.
    d : float in [0, 0.5]
        Cost of giving no answer.
    sample_weight : array-like of shape (n,), optional
        An integer weight counts as that many copies of the row in the value. The interval
        treats weighted rows as ``(sum w)^2 / sum w^2`` independent ones.
    confidence : float in (0, 1), optional
        Level of the confidence interval; no interval when None.

    Returns
    -------
    float or Estimate
        The risk, or ``(value, low, high)`` when `confidence` is given.

    Notes
    -----
    With ``A`` the rows that are rejected or wrong and ``E`` the wrong ones, the risk is
    ``d P(A) + (1 - d) P(E)``. The interval adds the Clopper-Pearson intervals of the two
    shares, each at half of the error allowed, so it holds with at least the stated
    probability at every sample size.

    Examples
    --------
    >>> reject_risk([1, 1, 0, 0], [1, 0, 0, 0], [False, False, False, True], d=0.2)
    0.3
    >>> estimate = reject_risk([1, 1, 0, 0], [1, 0, 0, 0], None, d=0.2, confidence=0.9)
    >>> estimate.low < estimate.value < estimate.high
    True
    """
    d = check_number("d", d, "[0, 0.5]")
    outcome = row_outcomes(y, pred, rejected, sample_weight)
    w = outcome.weight
    worse = outcome.rejected | outcome.wrong
    value = float(w @ (d * worse + (1 - d) * outcome.wrong) / w.sum())
    if confidence is None:
        return value
    level = 0.5 + 0.5 * checked_confidence(confidence)
    low_a, high_a = _interval(worse, w, level)
    low_e, high_e = _interval(outcome.wrong, w, level)
    return Estimate(value, d * low_a + (1 - d) * low_e, d * high_a + (1 - d) * high_e)


@overload
def rejection_rate(
    rejected: Any, *, sample_weight: Any = None, confidence: None = None
) -> float: ...
@overload
def rejection_rate(rejected: Any, *, sample_weight: Any = None, confidence: float) -> Estimate: ...
def rejection_rate(
    rejected: Any, *, sample_weight: Any = None, confidence: float | None = None
) -> float | Estimate:
    """The share of rows without an answer.

    Parameters
    ----------
    rejected : array-like of bool of shape (n,)
        Rows without an answer, or the masked array of ``predict_or_reject``.
    sample_weight : array-like of shape (n,), optional
        An integer weight counts as that many copies of the row.
    confidence : float in (0, 1), optional
        Level of the Clopper-Pearson interval; no interval when None.

    Returns
    -------
    float or Estimate

    Examples
    --------
    >>> rejection_rate([True, False, False, False])
    0.25
    """
    if isinstance(rejected, np.ma.MaskedArray):
        rejected = np.ma.getmaskarray(rejected)
    rejected = _booleans(rejected)
    weight = relative(row_weights(sample_weight, len(rejected)))
    return _share(rejected, weight, confidence)


@overload
def accepted_accuracy(
    y: Any,
    pred: Any,
    rejected: Any,
    *,
    sample_weight: Any = None,
    confidence: None = None,
) -> float: ...
@overload
def accepted_accuracy(
    y: Any,
    pred: Any,
    rejected: Any,
    *,
    sample_weight: Any = None,
    confidence: float,
) -> Estimate: ...
def accepted_accuracy(
    y: Any,
    pred: Any,
    rejected: Any,
    *,
    sample_weight: Any = None,
    confidence: float | None = None,
) -> float | Estimate:
    """The share of right answers among the rows that were answered.

    Parameters
    ----------
    y, pred, rejected, sample_weight
        As in `reject_risk`.
    confidence : float in (0, 1), optional
        Level of the Clopper-Pearson interval; no interval when None.

    Returns
    -------
    float or Estimate
        NaN, with an `UndefinedMetricWarning` and the interval (0, 1), when every row is
        rejected.

    Examples
    --------
    >>> accepted_accuracy([1, 1, 0, 0], [1, 0, 0, 1], [False, True, False, False])
    0.6666666666666666
    """
    outcome = row_outcomes(y, pred, rejected, sample_weight)
    kept = ~outcome.rejected
    if not (outcome.weight[kept] > 0).any():
        warnings.warn(
            "Accuracy on accepted rows is undefined: every row was rejected.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        if confidence is None:
            return float("nan")
        checked_confidence(confidence)
        return Estimate(float("nan"), 0.0, 1.0)
    return _share(~outcome.wrong[kept], outcome.weight[kept], confidence)


class _Outcome(NamedTuple):
    wrong: BoolArray  # answered, and wrongly
    rejected: BoolArray
    weight: Array


def share_estimate(hit: BoolArray, confidence: float) -> Estimate:
    """The share of hits with its Clopper-Pearson interval; NaN in (0, 1) without rows."""
    if len(hit) == 0:
        return Estimate(float("nan"), 0.0, 1.0)
    ones = np.ones(len(hit))
    return Estimate(float(hit.mean()), *_interval(hit, ones, checked_confidence(confidence)))


def row_outcomes(
    y: Any, pred: Any, rejected: Any, sample_weight: Any, *, all_answered: bool = False
) -> _Outcome:
    """Which rows are refused, and which answered wrongly.

    Parameters
    ----------
    y, pred, rejected, sample_weight
        As in `reject_risk`.
    all_answered : bool
        Whether the caller's users have no `rejected` to name rows in.
    """
    if rejected is None:
        rejected = np.ma.getmaskarray(pred) if isinstance(pred, np.ma.MaskedArray) else None
    y = column(y, "y")
    pred = column(np.ma.getdata(pred) if isinstance(pred, np.ma.MaskedArray) else pred, "pred")
    rejected = np.zeros(len(pred), dtype=bool) if rejected is None else _booleans(rejected)
    check_consistent_length(y, pred, rejected)
    answered = ~rejected
    if answered.any() and _are_text(y[answered]) != _are_text(pred[answered]):
        first, answer = y[answered].tolist()[0], pred[answered].tolist()[0]
        raise ValueError(
            f"Mix of label input types (string and number): {first!r} in y, {answer!r} in pred."
        )
    for name, labels in (("y", y), ("pred", pred)):
        if any_missing(labels[answered]):
            raise ValueError(
                f"{name} holds NaN or None: leave rows without a label or an answer out."
                if all_answered
                else f"{name} holds NaN or None in rows that are answered: leave rows without a "
                "label out, and name those without an answer in rejected."
            )
    wrong = np.zeros(len(y), dtype=bool)
    wrong[answered] = np.asarray(y[answered] != pred[answered], dtype=bool)
    return _Outcome(wrong, rejected, relative(row_weights(sample_weight, len(y))))


def column(values: Any, name: str) -> NDArray[Any]:
    """One value per row, named in the error when there is not.

    `column_or_1d`, whose questions take longer than a risk, sees only what is not one already.
    """
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind != "c":
        return values
    if len(np.shape(values)) not in (1, 2):
        raise ValueError(f"{name} has shape {np.shape(values)}: expected one value per row.")
    plain: NDArray[Any] = column_or_1d(values)
    return plain


def any_missing(labels: NDArray[Any]) -> bool:
    """Whether a label is NaN, None or pandas' NA, which would count as an error."""
    if labels.dtype.kind != "O":
        return labels.dtype.kind == "f" and bool(np.isnan(labels).any())
    # NA compares to no truth value, None equals itself, and NaN nothing
    gone = (each is None or type(each).__name__ == "NAType" or each != each for each in labels)
    return any(gone)


def _are_text(labels: Any) -> bool:
    """Whether labels are strings, whatever the type of their array."""
    return labels.dtype.kind in "US" or isinstance(labels[0], str)


def _booleans(rejected: Any) -> BoolArray:
    values = column(rejected, "rejected")
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        raise ValueError("rejected must hold booleans: True where the row has no answer.")
    if len(values) == 0:
        raise ValueError("rejected is empty: at least one row is needed.")
    return np.asarray(values, dtype=bool)


def row_weights(sample_weight: Any, n: int) -> Array:
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(column(sample_weight, "sample_weight"), dtype=np.float64)
    if len(weight) != n:
        raise ValueError(f"sample_weight has {len(weight)} entries, expected {n}: one per row.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and (weight > 0).any()):
        raise ValueError("sample_weight must be finite and non-negative with a positive sum.")
    return weight


def relative(weight: Array) -> Array:
    """Weights that are at most one, for ratios: sums of their squares are finite numbers.

    All are divided by one power of two, which no digit of a ratio sees.
    """
    return np.asarray(np.ldexp(weight, -np.frexp(weight.max(initial=0.0))[1]))


def checked_confidence(confidence: float) -> float:
    return check_number("confidence", confidence, "(0, 1)")


def _share(hit: BoolArray, weight: Array, confidence: float | None) -> float | Estimate:
    value = float(weight @ hit / weight.sum())
    if confidence is None:
        return value
    return Estimate(value, *_interval(hit, weight, checked_confidence(confidence)))


def _interval(hit: BoolArray, weight: Array, level: float) -> tuple[float, float]:
    """Clopper-Pearson; weighted rows count as Kish's effective number of them."""
    n = float(weight.sum() ** 2 / (weight @ weight))
    k = n * float(weight @ hit / weight.sum())
    tail = 0.5 * (1.0 - level)
    low = float(stats.beta.ppf(tail, k, n - k + 1)) if hit.any() else 0.0
    high = float(stats.beta.ppf(1 - tail, k + 1, n - k)) if not hit.all() else 1.0
    return low, high
