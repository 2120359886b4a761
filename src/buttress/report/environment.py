"""Versions of what the numbers of a report depend on."""

from __future__ import annotations

import platform

import numpy as np

from buttress._version import __version__


def versions() -> dict[str, str]:
    """Names and versions, in the order of a report's settings.

    Examples
    --------
    >>> list(versions())[:2]
    ['buttress', 'numpy']
    """
    import numba
    import scipy
    import sklearn

    return {
        "buttress": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }
