"""Predictions on arrays of other libraries (torch, CuPy, JAX), in those libraries.

A kernel machine predicts by matrix products, so this much works wherever there are products: the
linear, Gaussian, polynomial and sigmoid kernels. Fitting does not; it says so.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from buttress._arrays import Array

_KERNELS = ("linear", "rbf", "poly", "polynomial", "sigmoid")


def namespace_of(X: Any) -> Any:
    """The array namespace of `X` when scikit-learn's dispatch is on and it is not NumPy's.

    Examples
    --------
    >>> namespace_of([[1.0]]) is None
    True
    """
    if isinstance(X, (np.ndarray, list, tuple)) or not get_config()["array_api_dispatch"]:
        return None
    find = getattr(X, "__array_namespace__", None)
    if find is not None:
        return find()
    try:
        from array_api_compat import array_namespace
    except ImportError:
        try:  # scikit-learn ships a copy
            from sklearn.externals.array_api_compat import array_namespace
        except ImportError:
            return None
    try:
        return array_namespace(X)
    except TypeError:
        return None


def foreign_scores(model: Any, X: Any, xp: Any) -> Array:
    """Scores of every row, computed and returned in the namespace `xp`.

    Parameters
    ----------
    model : fitted kernel classifier
    X : array of the namespace `xp` of shape (n_samples, n_features)
    xp : array namespace

    Returns
    -------
    array of `xp` of shape (n_samples,) or (n_samples, n_classes), on the device of `X`

    Raises
    ------
    TypeError
        For a model that does not predict by products, naming what would.
    """
    kernel = getattr(model, "kernel_", None)
    name = getattr(kernel, "name", None)
    if name not in _KERNELS or not hasattr(model, "dual_coef_"):
        raise TypeError(
            f"{type(model).__name__} with kernel={name!r} predicts with NumPy only: convert X by "
            f"numpy.asarray. Arrays of other libraries are taken by kernels {', '.join(_KERNELS)}."
        )
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(X.shape)}, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )

    def in_namespace(values: Any) -> Any:
        return xp.asarray(np.asarray(values), dtype=X.dtype, device=X.device)

    intercept = in_namespace(model.intercept_)
    if hasattr(model, "coef_"):
        scores = X @ in_namespace(model.coef_).T + intercept
    else:
        vectors = model.support_vectors_
        vectors = vectors.toarray() if hasattr(vectors, "toarray") else vectors
        similarity = _similarity(kernel, X, in_namespace(vectors), in_namespace, xp)
        scores = similarity @ in_namespace(model.dual_coef_).T + intercept
    return cast("Array", scores[:, 0] if scores.shape[1] == 1 else scores)


def foreign_labels(classes: Any, scores: Any, xp: Any) -> NDArray[Any]:
    """The label of every row; numbers only, as an array of text exists in NumPy alone."""
    if classes.dtype.kind not in "iuf":
        raise TypeError(
            "labels that are text exist in NumPy only: use decision_function, or fit on numbers."
        )
    labels = xp.asarray(classes, device=scores.device)
    codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
    return cast("NDArray[Any]", xp.take(labels, codes, axis=0))


def _similarity(kernel: Any, X: Any, Z: Any, in_namespace: Any, xp: Any) -> Any:
    params = kernel.params
    if kernel.name == "rbf":
        # near each other and far from zero, squares would cancel
        centre = in_namespace(np.zeros(X.shape[1]) if kernel.center is None else kernel.center)
        X, Z = X - centre, Z - centre
        squares = xp.sum(X * X, axis=1)[:, None] + xp.sum(Z * Z, axis=1)[None, :]
        distance = squares - 2.0 * (X @ Z.T)
        distance = xp.where(distance > 0, distance, xp.zeros_like(distance))
        return xp.exp(-float(params["gamma"]) * distance)
    product = X @ Z.T
    if kernel.name == "linear":
        return product
    product = float(params["gamma"]) * product + float(params["coef0"])
    return xp.tanh(product) if kernel.name == "sigmoid" else product ** float(params["degree"])
