"""Where a row stands between the surfaces of the double ramp machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array


def margin_kinds(t: Array, rho: float, mu: float, near: float = 1e-6) -> NDArray[Any]:
    """The kinds of `DoubleRampClassifier.support_kind_` for margins `t`.

    Parameters
    ----------
    t : array
    rho, mu : float
    near : float
        How near ``rho + mu`` or ``-rho + mu`` a margin counts as equal, relative to
        ``1 + rho``.

    Examples
    --------
    >>> margin_kinds(np.array([-9.0, 0.0, 3.0]), rho=2.0, mu=1.0).tolist()
    ['outlier', 'inside', 'outer_margin']
    """
    near *= 1.0 + rho
    at_outer = np.abs(t - (rho + mu)) <= near
    at_inner = np.abs(t - (mu - rho)) <= near
    in_outer = (t >= rho - mu * mu) & (t < rho + mu)
    in_inner = ((t >= -rho - mu * mu) & (t < mu - rho)) | at_inner
    conditions = [at_outer, in_outer & in_inner, at_inner, in_outer, in_inner, t > rho + mu]
    kinds = ["outer_margin", "both", "inner_margin", "outer", "inner", "safe"]
    ignored = np.where(t < -rho - mu * mu, "outlier", "inside")
    return np.select(conditions, kinds, default=ignored)
