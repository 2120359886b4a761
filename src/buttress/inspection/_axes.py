"""Where a picture is drawn."""

from __future__ import annotations

from typing import Any


def new_axes(ax: Any = None) -> Any:
    """Return `ax`, or the axes of a new figure.

    Raises
    ------
    ImportError
        When matplotlib is missing; the message says how to install it.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib: install it with `pip install 'buttress[plot]'`."
        ) from error
    return pyplot.subplots()[1]
