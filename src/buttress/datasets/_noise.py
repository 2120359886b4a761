"""Wrong labels on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state


def flip_labels(
    y: ArrayLike,
    rate: float | Sequence[float] | Mapping[Any, float],
    kind: str = "uniform",
    *,
    scores: ArrayLike | None = None,
    random_state: Any = None,
) -> NDArray[Any]:
    """A copy of `y` in which a fixed share of the labels is wrong.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        At least two different labels; a wrong label is drawn uniformly from the others.
    rate : float in [0, 1]
        Share of labels to change; exactly ``round(rate * n)`` are changed. With
        ``kind="class"`` also a mapping from label to rate, or a sequence of rates in the
        order of the sorted labels.
    kind : {"uniform", "class", "near_boundary"}
        ``"uniform"``: any row is as likely as any other. ``"class"``: each class has its own
        rate; a single number is the rate of the last class, the others stay clean.
        ``"near_boundary"``: only rows among the ``2 * rate`` share with the smallest
        absolute `scores`, so that half of the labels there are wrong.
    scores : array-like of shape (n_samples,), optional
        Signed distance to the true boundary (for example ``eta(X) - 0.5``); needed for
        ``"near_boundary"`` only.
    random_state : int, RandomState or None

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from buttress.datasets import flip_labels
    >>> y = np.repeat([-1, 1], 50)
    >>> int(np.sum(flip_labels(y, 0.1, random_state=0) != y))
    10
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {labels.shape}")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two different labels, got {len(classes)}")
    random = check_random_state(random_state)
    n = len(labels)
    if kind == "uniform":
        chosen = random.choice(n, _count(rate, n), replace=False)
    elif kind == "class":
        chosen = np.concatenate(
            [
                random.choice(rows, _count(share, len(rows)), replace=False)
                for share, rows in _rows_by_class(rate, classes, codes)
            ]
        )
    elif kind == "near_boundary":
        if scores is None:
            raise ValueError('kind="near_boundary" needs scores, one per row')
        distance = np.abs(np.asarray(scores, dtype=float))
        if distance.shape != labels.shape:
            raise ValueError(f"scores must have shape {labels.shape}, got {distance.shape}")
        count = _count(rate, n)
        band = np.argsort(distance, kind="stable")[: min(n, 2 * count)]
        chosen = random.choice(band, count, replace=False)
    else:
        raise ValueError(f'kind must be "uniform", "class" or "near_boundary", got {kind!r}')
    # Adding 1..k-1 modulo k reaches every other class with the same probability.
    codes[chosen] = (codes[chosen] + random.randint(1, len(classes), len(chosen))) % len(classes)
    return np.asarray(classes[codes])


def _count(rate: Any, n: int) -> int:
    if not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
        raise ValueError(f"rate must be in [0, 1], got {rate!r}")
    return round(float(rate) * n)


def _rows_by_class(
    rate: Any, classes: NDArray[Any], codes: NDArray[Any]
) -> list[tuple[float, NDArray[Any]]]:
    if isinstance(rate, Mapping):
        unknown = [label for label in rate if label not in classes]
        if unknown:
            raise ValueError(f"rate names the labels {unknown}, which y does not have")
        rates = [rate.get(label, 0.0) for label in classes.tolist()]
    elif isinstance(rate, Sequence | np.ndarray):
        if len(rate) != len(classes):
            raise ValueError(
                f"rate must have one entry per class ({len(classes)}), got {len(rate)}"
            )
        rates = list(rate)
    else:
        rates = [0.0] * (len(classes) - 1) + [rate]
    return [(share, np.flatnonzero(codes == code)) for code, share in enumerate(rates)]
