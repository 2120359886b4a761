"""Checks of estimator parameters: every error names the parameter and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from buttress._numbers import check_number as check_number
from buttress._numbers import interval_ends
from buttress.kernels import kernel_arguments, kernel_names
from buttress.kernels.width import check_gamma


def check_option(name: str, value: Any, options: Iterable[Any]) -> None:
    """Raise a ValueError unless `value` is one of `options`.

    Examples
    --------
    >>> check_option("solver", "magic", ["auto", "mm"])
    Traceback (most recent call last):
    ...
    ValueError: solver='magic' is not accepted: expected one of 'auto', 'mm'.
    """
    accepted = list(options)
    # other types compare as they like: arrays entry by entry, pandas' NA to NA
    plain = isinstance(value, (str, Real))
    if not any(value is option or (plain and value == option) for option in accepted):
        raise ValueError(
            f"{name}={value!r} is not accepted: expected one of "
            f"{', '.join(repr(option) for option in accepted)}."
        )


def check_classifier(name: str, value: Any) -> None:
    """Raise a ValueError unless `value` is an object that can be cloned and fitted.

    Examples
    --------
    >>> check_classifier("estimator", [])
    Traceback (most recent call last):
    ...
    ValueError: estimator=[] is not accepted: expected a classifier.
    """
    usable = hasattr(value, "fit") and hasattr(value, "get_params")
    if isinstance(value, type) or not usable:
        raise ValueError(f"{name}={value!r} is not accepted: expected a classifier.")


def check_splits(cv: Any) -> None:
    """Raise a ValueError unless `cv` is a number of folds, a splitter, or pairs of index arrays.

    Examples
    --------
    >>> check_splits(b"x")
    Traceback (most recent call last):
    ...
    ValueError: cv=b'x' is not accepted: expected a number of folds, a splitter or index pairs.
    """
    if isinstance(cv, Integral):
        check_number("cv", cv, "[2, inf)", integer=True)
        return
    # text can split too, and is an iterable
    usable = cv is None or hasattr(cv, "split") or hasattr(cv, "__iter__")
    if isinstance(cv, (str, bytes, bytearray, type)) or not usable:
        raise ValueError(
            f"cv={cv!r} is not accepted: expected a number of folds, a splitter or index pairs."
        )


def check_flag(name: str, value: Any) -> None:
    """Raise a ValueError unless `value` is true or false.

    Examples
    --------
    >>> check_flag("fit_intercept", "no")
    Traceback (most recent call last):
    ...
    ValueError: fit_intercept='no' is not accepted: expected True or False.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} is not accepted: expected True or False.")


def check_values(name: str, given: Any, interval: str) -> list[float]:
    """A number, or several, as a list of floats that all lie in `interval`.

    Examples
    --------
    >>> check_values("Cs", 3, "(0, inf)")
    [3.0]
    >>> check_values("Cs", [], "(0, inf)")
    Traceback (most recent call last):
    ...
    ValueError: Cs is empty: expected at least one number in (0, inf).
    """
    values = _listed(given)
    if values is None:
        values = [given]
    if not values:
        raise ValueError(f"{name} is empty: expected at least one number in {interval}.")
    if isinstance(given, np.ndarray) and given.dtype.kind == "f" and given.ndim == 1:
        low, high = interval_ends(interval)
        if np.all((given > low) & (given < high)):  # a path has hundreds; the ends one by one
            return given.astype(np.float64).tolist()  # type: ignore[no-any-return]
    return [check_number(name, value, interval) for value in values]


def check_noise_rates(given: Any) -> None:
    """Raise unless `given` is None, "estimate", a noise model, or pairs (lower, upper) of shares.

    Examples
    --------
    >>> check_noise_rates([(0.0, 0.1), (0.2, 0.3)])
    >>> check_noise_rates([(0.0, 1.7)])
    Traceback (most recent call last):
    ...
    ValueError: noise_rates=[(0.0, 1.7)] is not accepted: expected pairs (lower, upper) in [0, 1].
    """
    if given is None or hasattr(given, "rate_bounds"):
        return
    if isinstance(given, str):
        check_option("noise_rates", given, ["estimate"])
        return
    try:
        pairs = np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"noise_rates={given!r} is not accepted: expected None, 'estimate', a noise model, or "
            "pairs (lower, upper) in [0, 1]."
        ) from None
    if pairs.ndim not in (1, 2) or pairs.shape[-1] != 2:
        raise ValueError(
            f"noise_rates has shape {pairs.shape}: expected a pair (lower, upper), or one such "
            "pair for each class."
        )
    if not np.all((pairs >= 0) & (pairs <= 1)):
        raise ValueError(
            f"noise_rates={given!r} is not accepted: expected pairs (lower, upper) in [0, 1]."
        )


def check_widths(gammas: Any) -> list[Any] | None:
    """The widths of a search as a list; None stands for the estimator's own.

    Examples
    --------
    >>> check_widths(0.5)
    Traceback (most recent call last):
    ...
    ValueError: gammas=0.5 is not accepted: expected None or a sequence of widths.
    """
    if gammas is None:
        return None
    widths = _listed(gammas)
    if widths is None:
        raise ValueError(
            f"gammas={gammas!r} is not accepted: expected None or a sequence of widths."
        )
    if not widths:
        raise ValueError("gammas is empty: expected at least one width.")
    for width in widths:
        check_gamma(width, where=" in gammas")
    return widths


def _listed(given: Any) -> list[Any] | None:
    """The members of a sequence; None for anything else."""
    if isinstance(given, (str, bytes, Mapping)):
        return None
    try:
        return list(given)
    except TypeError:
        return None


def check_common(estimator: Any) -> None:
    """Check the parameters that mean the same in every estimator, those that it has."""
    given = vars(estimator)
    if "kernel" in given:
        _check_kernel(estimator.kernel)
    if "gamma" in given:
        check_gamma(estimator.gamma)
    if "degree" in given:
        check_number("degree", estimator.degree, "[0, inf)")
        check_number("coef0", estimator.coef0, "(-inf, inf)")
        if not isinstance(estimator.kernel_params, (Mapping, type(None))):
            raise ValueError(
                f"kernel_params={estimator.kernel_params!r} is not accepted: expected None or a "
                "dict of further arguments of the kernel."
            )
        _check_kernel_params(estimator.kernel, estimator.kernel_params or {})
    if "fit_intercept" in given:
        check_flag("fit_intercept", estimator.fit_intercept)
    for name in ("tol", "cache_size"):
        if name in given:
            check_number(name, given[name], "(0, inf)")
    if "max_iter" in given:
        check_number("max_iter", estimator.max_iter, "[1, inf)", integer=True)
    if given.get("n_jobs") is not None:
        check_number("n_jobs", estimator.n_jobs, "[-1000000, 1000000]", integer=True)
        if estimator.n_jobs == 0:
            raise ValueError("n_jobs=0 is not accepted: expected None or another whole number.")
    if "verbose" in given and not isinstance(estimator.verbose, (bool, np.bool_)):
        check_number("verbose", estimator.verbose, "[0, inf)", integer=True)
    if "random_state" in given:
        try:
            check_random_state(estimator.random_state)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                f"random_state={estimator.random_state!r} is not accepted: expected None, a whole "
                "number in [0, 2**32 - 1] or a RandomState."
            ) from error


def _check_kernel_params(kernel: Any, params: Mapping[str, Any]) -> None:
    """The arguments of a named kernel are known; those of a callable are its own affair."""
    if callable(kernel):
        return
    known = kernel_arguments(kernel)
    unknown = [name for name in params if name not in known]
    if unknown:
        expected = ", ".join(known) if known else "none"
        raise ValueError(
            f"kernel_params={dict(params)!r}: kernel={kernel!r} takes no {unknown[0]!r}; expected "
            f"{expected}."
        )


def _check_kernel(kernel: Any) -> None:
    known = isinstance(kernel, str) and kernel in kernel_names()
    if not known and not callable(kernel):
        raise ValueError(
            f"Unknown kernel {kernel!r}: expected one of {kernel_names()} or a callable."
        )
