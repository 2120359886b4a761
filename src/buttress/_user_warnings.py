"""Warnings that point at the user's line, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings

# Decorators and searches of scikit-learn stand between a user's line and ours.
_PASSED_OVER = ("buttress", "sklearn", "joblib")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest calling line that is neither this package's nor scikit-learn's."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _root(frame.f_globals) in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _root(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
