"""What may have been meant by a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: str, names: Iterable[Any]) -> str:
    """The end of a message about a name that is not there: what may have been meant.

    Examples
    --------
    >>> did_you_mean("lable", ["age", "label"])
    "; did you mean 'label'?"
    >>> did_you_mean("sex", ["age", "label"]), did_you_mean("--out", ["--quiet"])
    ('', '')
    """
    # The dashes of options say nothing: --out is not near --quiet.
    known = {str(each).casefold().lstrip("-"): str(each) for each in names}
    near = difflib.get_close_matches(name.casefold().lstrip("-"), known, n=1, cutoff=0.6)
    return f"; did you mean {known[near[0]]!r}?" if near else ""
