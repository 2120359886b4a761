"""MLflow autologging: every fit leaves its parameters, paths, certificates and noise rates.

MLflow's own scikit-learn autologging knows the estimators of scikit-learn only. `autolog` does the
same for those of this library, and logs what they alone have: the scores along a path of
penalties, the certificate of optimality, the rates of wrong labels and a promised error.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import FrameType
from typing import Any

import numpy as np

from buttress._user_warnings import warn_user
from buttress.serve.mlflow_flavour import import_mlflow, log_model
from buttress.tables.grammar import csv_text

# MLflow takes no longer parameters.
_LONGEST = 500
# Of a reason; servers may answer with whole pages.
_LONGEST_REASON = 1000
_CERTIFICATES = ("duality_gap_", "kkt_residual_", "objective_", "n_iter_", "worst_case_accuracy_")
_CHOSEN = ("alpha_", "C_", "s_", "radius_", "gamma_", "r_", "rho_", "best_score_")

# The `fit` that each class had of its own; None where it was inherited.
_patched: dict[Any, Callable[..., Any] | None] = {}
# a fit inside a fit is part of the outer one
_inside = threading.local()
# Why fits were not logged, as far as it was told.
_told: set[str] = set()


def autolog(*, disable: bool = False, log_models: bool = False) -> None:
    """Log every fit of this library's estimators to MLflow from now on.

    A fit logs to the active run, or to a run of its own when there is none. When the active run
    holds a fit already, or another value of one of the parameters, the fit logs to a nested run:
    MLflow takes one value of a parameter for a run. Nothing of the data is logged.

    Fits inside a search or another estimator are part of the outer one. That goes for the fits
    that scikit-learn makes with joblib too, in folds (``GridSearchCV``, ``cross_val_score``) and
    ensembles: they log nothing, and a search logs its last fit, by the parameters it chose.

    What MLflow raises never ends a fit: it becomes a warning, once for each reason.

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
    _told.clear()
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

    What MLflow raises goes on to the caller, as for a parameter that has another value already.

    Parameters
    ----------
    model : estimator
    log_models : bool, default=False
    """
    mlflow = import_mlflow()
    mlflow.log_params(_parameters(model))
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
        if not _is_one_of_many(sys._getframe(1)):
            _log_or_warn(self, log_models)
        return result

    return wrapper


def _is_one_of_many(frame: FrameType | None) -> bool:
    """Whether joblib runs the fit for scikit-learn or for this library: in a fold, or an ensemble.

    Only the stack tells: the threads of joblib know nothing of the fit outside of them, and
    neither do the functions of scikit-learn. What users run with joblib themselves is theirs.
    """
    module = ""
    while frame is not None:
        within, module = module, str(frame.f_globals.get("__name__", ""))
        theirs = within == "sklearn.utils.parallel" or within.startswith("buttress.")
        if theirs and module.startswith("joblib."):
            return True
        frame = frame.f_back
    return False


def _log_or_warn(model: Any, log_models: bool) -> None:
    """Log a fit; the fit stays a fit when that fails."""
    try:
        _log_to_run(model, log_models)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
        # numbers of runs, addresses in memory: they differ, the reason does not
        kind = re.sub(r"\w*\d\w*", "", reason)
        if kind not in _told:
            _told.add(kind)
            warn_user(f"A fit was not logged to MLflow, or not all of it (told once). {reason}")


def _log_to_run(model: Any, log_models: bool) -> None:
    """Log to the active run where it has room for the fit, to a run below it otherwise."""
    mlflow = import_mlflow()
    active = mlflow.active_run()
    if active is None:
        with mlflow.start_run():
            log_fit(model, log_models=log_models)
    elif _has_room(mlflow.get_run(active.info.run_id).data.params, _parameters(model)):
        log_fit(model, log_models=log_models)
    else:
        # not always the experiment that MLflow has set
        with mlflow.start_run(nested=True, experiment_id=active.info.experiment_id):
            log_fit(model, log_models=log_models)


def _has_room(logged: Mapping[str, str], parameters: Mapping[str, str]) -> bool:
    """Whether a run with some parameters holds no fit, and no other values."""
    if "estimator" in logged:
        return False
    return all(logged.get(name, value) == value for name, value in parameters.items())


def _parameters(model: Any) -> dict[str, str]:
    settings = {name: str(value)[:_LONGEST] for name, value in model.get_params().items()}
    return {"estimator": type(model).__name__} | settings


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
