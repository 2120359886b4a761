"""What a file held is checked after loading, before anything is asked of it.

A tree whose child is out of its array, or an index of neighbours that points beyond the rows,
would make scikit-learn's compiled code read foreign memory or never end. A kernel machine whose
arrays do not fit together would fail at the first rows that somebody cares about.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

# A row of more numbers is made without its zeros.
_LONGEST_DENSE_ROW = 1_000_000


def check_structures(model: Any) -> None:
    """Raise a ValueError when a tree or an index of neighbours inside a model is unsound.

    Parameters
    ----------
    model : object
        Whatever a file held.
    """
    for member, n_features in _members(model):
        kind = type(member).__name__
        home = type(member).__module__
        if kind == "Tree" and home.startswith("sklearn.tree."):
            leaf = member.children_left < 0
            _check_nodes(member.children_left, member.children_right, leaf)
            _check_range("feature", member.feature[~leaf], int(member.n_features))
        elif kind == "TreePredictor" and home.startswith("sklearn.ensemble."):
            nodes = member.nodes
            leaf = nodes["is_leaf"].astype(bool)
            _check_nodes(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), leaf)
            if n_features is not None:
                _check_range("feature", nodes["feature_idx"][~leaf], n_features)
        elif hasattr(member, "get_arrays") and home.startswith("sklearn.neighbors."):
            data, index, nodes, _ = (np.asarray(array) for array in member.get_arrays())
            _check_range("neighbour", index, len(data))
            _check_range("start", nodes["idx_start"], len(data) + 1)
            _check_range("end", nodes["idx_end"], len(data) + 1)


def fill_new_parameters(model: Any) -> None:
    """Give estimators saved by an older version the defaults of parameters added since.

    Parameters
    ----------
    model : object
        Whatever a file held.
    """
    for estimator, _ in _members(model):
        kind = type(estimator)
        if kind.__module__.startswith("buttress.") and hasattr(estimator, "get_params"):
            for name, parameter in inspect.signature(kind).parameters.items():
                if not hasattr(estimator, name) and parameter.default is not parameter.empty:
                    setattr(estimator, name, parameter.default)


def check_answers(model: Any) -> None:
    """Raise whatever the kernel machines inside a model raise when asked about a row of zeros.

    What holds other libraries' models is not asked: zeros may be none of its rows.

    Parameters
    ----------
    model : object
        Whatever a file held.
    """
    for machine, _ in _members(model):
        ours = type(machine).__module__.startswith("buttress.") and hasattr(machine, "predict")
        if not ours or "kernel_" not in vars(machine):
            continue
        n_features = machine.n_features_in_
        if isinstance(n_features, bool) or n_features < 1:
            raise ValueError(f"{type(machine).__name__} in it has {n_features} features")
        dense = n_features <= _LONGEST_DENSE_ROW
        row = np.zeros((1, n_features)) if dense else sparse.csr_array((1, n_features))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            machine.predict(row)


def _check_nodes(left: Any, right: Any, leaf: Any) -> None:
    """Children come behind their parent, and within the array: no node is met twice."""
    parents = np.flatnonzero(~leaf)
    for children in (left, right):
        below = children[parents]
        if np.any(below <= parents) or np.any(below >= len(left)):
            raise ValueError("a tree in it has a child that is none of its nodes")


def _check_range(what: str, values: Any, end: int) -> None:
    if np.any(values < 0) or np.any(values >= end):
        raise ValueError(f"a tree in it has a {what} out of range")


def _members(model: Any) -> Iterator[tuple[Any, int | None]]:
    """Every object inside a model once, with the number of features of what holds it."""
    seen: set[int] = set()
    stack: list[tuple[Any, int | None]] = [(model, None)]
    while stack:
        value, n_features = stack.pop()
        plain = value is None or isinstance(value, (str, bytes, int, float, type))
        if plain or id(value) in seen:
            continue
        seen.add(id(value))
        yield value, n_features
        if isinstance(value, dict):
            stack += [(item, n_features) for item in value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            stack += [(item, n_features) for item in value]
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                stack += [(item, n_features) for item in value.ravel().tolist()]
        else:
            inside = getattr(value, "__dict__", {})
            known = inside.get("n_features_in_", n_features)
            stack += [(item, known) for item in inside.values()]
