"""How fast the radius may grow with the sample for the error to tend to the Bayes error."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.losses import EllipsoidError, Exponential, TruncatedQuadratic

# (function of m, supremum of the exponents): Example 7 of the paper
_RADIUS_GROWTH: dict[str, tuple[Any, float]] = {
    "ellipsoid": (np.asarray, 0.25),
    "truncated_quadratic": (np.asarray, 0.25),
    "exponential": (np.log, 1.0),
}
_LOSS_NAMES = {
    EllipsoidError: "ellipsoid",
    TruncatedQuadratic: "truncated_quadratic",
    Exponential: "exponential",
}


def radius_schedule(
    m: Any, loss: Any = "ellipsoid", *, exponent: float | None = None, scale: float = 1.0
) -> Any:
    """A radius for a sample of size `m` under which the classifier is consistent.

    Parameters
    ----------
    m : int or array-like
        Sample sizes (of the part that estimates f).
    loss : str or object
        "ellipsoid", "truncated_quadratic", "exponential", or such a loss object.
    exponent : float, optional
        ``a`` of the growth; by default 0.8 times the largest.
    scale : float
        Factor of the radius, positive.

    Returns
    -------
    float or ndarray
        ``scale * m^a`` with ``0 < a < 1/4`` for losses that grow quadratically, and
        ``scale * (log m)^a`` with ``0 < a < 1`` for the exponential loss.

    Notes
    -----
    The orders are those of Example 7 of [1]_, for a Gaussian kernel on a compact set; the
    ellipsoid loss grows as the truncated quadratic does. The theorem is about the limit: it
    names no best exponent and no scale, which cross-validation chooses at a given size. Losses
    of bounded slope (the nu-SVM's hinge, the logistic) are outside its assumptions.

    References
    ----------
    .. [1] T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions and
       uncertainty sets in classification problems", JMLR 14, 2013.

    Examples
    --------
    >>> radius_schedule(10_000, "truncated_quadratic", exponent=0.2)
    6.309573444801933
    """
    name = loss if isinstance(loss, str) else _LOSS_NAMES.get(type(loss))
    if name not in _RADIUS_GROWTH:
        shown = repr(loss) if isinstance(loss, str) else type(loss).__name__
        raise ValueError(
            f"loss={shown} has no known schedule: expected one of "
            f"{', '.join(map(repr, _RADIUS_GROWTH))} or such a loss object. Losses of bounded "
            "slope do not meet the theorem's assumptions."
        )
    growth, limit = _RADIUS_GROWTH[str(name)]
    a = 0.8 * limit if exponent is None else float(exponent)
    if not 0.0 < a < limit:
        raise ValueError(
            f"exponent={exponent!r} is out of range: expected a number in (0, {limit:g})."
        )
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale={scale!r} is out of range: expected a number in (0, inf).")
    size: Array = np.asarray(m, dtype=np.float64)
    if not (size >= 2).all():
        raise ValueError(f"m={m!r} is out of range: expected sample sizes of at least 2.")
    radius = scale * growth(size) ** a
    return float(radius) if radius.ndim == 0 else radius
