"""MLflow autologging: every fit leaves its parameters, paths, certificates and noise rates.

MLflow's own scikit-learn autologging knows the estimators of scikit-learn only. `autolog` does the
same for those of this library, and logs what they alone have: the scores along a path of
penalties, the certificate of optimality, the rates of wrong labels and a promised error.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from buttress.serve.mlflow_flavour import import_mlflow, log_model
from buttress.tables.grammar import csv_text

# MLflow takes no longer parameters.
_LONGEST = 500
_CERTIFICATES = ("duality_gap_", "kkt_residual_", "objective_", "n_iter_", "worst_case_accuracy_")
_CHOSEN = ("alpha_", "C_", "s_", "radius_", "gamma_", "r_", "rho_", "best_score_")

# The `fit` that each class had of its own; None where it was inherited.
_patched: dict[Any, Callable[..., Any] | None] = {}
# a fit inside a fit is part of the outer one
_inside = threading.local()


def autolog(*, disable: bool = False, log_models: bool = False) -> None:
    """Log every fit of this library's estimators to MLflow from now on.

    A fit logs to the active run, or to a run of its own when there is none. Fits inside a search
    or another estimator are part of the outer one. Nothing of the data is logged.

    Parameters
    ----------
    disable : bool, default=False
        Stop logging.
    log_models : bool, default=False
        Log the fitted model too, in the flavour of `buttress.serve.mlflow_flavour`.

    Notes
    -----
    Parameters: all of ``get_params()``, and the class. Metrics: the certificate and what a search
    chose; ``cv_mean`` and ``cv_std`` with one step per candidate of a path or grid, which
    ``cv_results.csv`` describes; ``noise_rate.<label>`` with the ends of its interval;
    ``suspects``, the labels named; ``promised_error``, the bound of a risk certificate.
    """
    import_mlflow()
    for estimator, original in _patched.items():
        if original is None:
            del estimator.fit
        else:
            estimator.fit = original
    _patched.clear()
    if disable:
        return
    wrapped = {estimator: _logging(estimator.fit, log_models) for estimator in _estimators()}
    for estimator, fit in wrapped.items():
        _patched[estimator] = vars(estimator).get("fit")
        estimator.fit = fit


def log_fit(model: Any, *, log_models: bool = False) -> None:
    """Log a fitted model to the active run of MLflow.

    Parameters
    ----------
    model : estimator
    log_models : bool, default=False
    """
    mlflow = import_mlflow()
    mlflow.log_params(
        {"estimator": type(model).__name__}
        | {name: str(value)[:_LONGEST] for name, value in model.get_params().items()}
    )
    mlflow.log_metrics(dict(_metrics(model)))
    table = _search_table(model)
    if table:
        for step, row in enumerate(table):
            scores = {name: row[name] for name in ("cv_mean", "cv_std")}
            mlflow.log_metrics({k: v for k, v in scores.items() if np.isfinite(v)}, step=step)
        text = csv_text(list(table[0]), (row.values() for row in table))
        mlflow.log_text(text, "cv_results.csv")
    if log_models:
        log_model(model, "model")


def _estimators() -> Iterator[Any]:
    """The public classes that are fitted."""
    package = import_module("buttress")
    for name in package.__all__:
        member = getattr(package, name)
        if isinstance(member, type) and hasattr(member, "fit"):
            yield member


def _logging(fit: Callable[..., Any], log_models: bool) -> Callable[..., Any]:
    @functools.wraps(fit)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "fit", False):
            return fit(self, *args, **kwargs)
        _inside.fit = True
        try:
            result = fit(self, *args, **kwargs)
        finally:
            _inside.fit = False
        mlflow = import_mlflow()
        if mlflow.active_run() is not None:
            log_fit(self, log_models=log_models)
        else:
            with mlflow.start_run():
                log_fit(self, log_models=log_models)
        return result

    return wrapper


def _metrics(model: Any) -> Iterator[tuple[str, float]]:
    for name in (*_CERTIFICATES, *_CHOSEN):
        value = getattr(model, name, None)
        if isinstance(value, (int, float, np.number)) and np.isfinite(value):
            yield name.rstrip("_"), float(value)
    noise = getattr(model, "noise_", None)
    for label, rate in ({} if noise is None else noise.rates_).items():
        yield f"noise_rate.{label}", float(rate)
        yield f"noise_rate_low.{label}", rate.low
        yield f"noise_rate_high.{label}", rate.high
    suspects = getattr(model, "suspects_", None)
    if suspects is not None:
        yield "suspects", float(len(suspects.selected))
    promise = getattr(model, "risk_certificate_", None)
    if promise is not None:
        yield "promised_error", float(promise.bound)


def _search_table(model: Any) -> list[dict[str, Any]]:
    """One row per candidate: its parameters, mean score and standard error."""
    results = getattr(model, "cv_results_", None)
    if results is None:
        return []
    names = [name for name in results if name.startswith("param_")]
    return [
        {name.removeprefix("param_"): results[name][i] for name in names}
        | {
            "cv_mean": float(results["mean_test_score"][i]),
            "cv_std": float(results["std_test_score"][i]),
        }
        for i in range(len(results["mean_test_score"]))
    ]
