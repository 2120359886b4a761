"""Where a picture is drawn: the axes given, or those of a new figure."""

from __future__ import annotations

from typing import Any


def new_axes(ax: Any = None) -> Any:
    """Return `ax`, or the axes of a new figure."""
    return _pyplot().subplots()[1] if ax is None else ax


def new_pair(axes: Any, width: float, height: float) -> Any:
    """Return `axes`, or two side by side in a new figure of that size in inches."""
    if axes is not None:
        return axes
    return _pyplot().subplots(1, 2, figsize=(width, height), layout="constrained")[1]


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib: install it with `pip install 'buttress[plot]'`."
        ) from error
    return pyplot
