"""Models behind MLflow's ``pyfunc``: saved without pickle, answering with data frames."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from buttress._version import __version__
from buttress.persistence import save
from buttress.serve.model import ServedModel
from buttress.serve.rows import RequestRows

_LOADER = "buttress.serve.mlflow_flavour"


def save_model(model: Any, path: str | os.PathLike[str], **settings: Any) -> None:
    """Save a fitted model as an MLflow model.

    The model file inside is the one of `buttress.save`: loading it runs no code of the file.

    Parameters
    ----------
    model : estimator
    path : path-like
        A folder that does not exist yet.
    **settings
        Handed on to ``mlflow.pyfunc.save_model``: ``signature``, ``input_example``,
        ``pip_requirements``, ...
    """
    _with_file(model, import_mlflow().pyfunc.save_model, settings | {"path": os.fspath(path)})


def log_model(model: Any, name: str, **settings: Any) -> Any:
    """Log a fitted model to the active MLflow run.

    Parameters
    ----------
    model : estimator
    name : str
    **settings
        Handed on to ``mlflow.pyfunc.log_model``.
    """
    return _with_file(model, import_mlflow().pyfunc.log_model, settings | {"name": name})


def _with_file(model: Any, write: Any, settings: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.skops"
        save(model, file)
        defaults = {"pip_requirements": [f"buttress[export,data]=={__version__}"]}
        return write(loader_module=_LOADER, data_path=str(file), **defaults | settings)


def import_mlflow() -> Any:
    """MLflow, or an error that says how to get it."""
    try:
        import mlflow.pyfunc
    except ImportError:
        raise ImportError("this needs MLflow: pip install mlflow") from None
    return mlflow


class Answering:
    """What MLflow calls: data frames in, data frames out.

    Parameters
    ----------
    served : ServedModel
    """

    def __init__(self, served: ServedModel) -> None:
        self.served = served

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """Label, margin, refused and probabilities of every row.

        Parameters
        ----------
        model_input : DataFrame
            With the model's columns.
        params : ignored
        """
        import pandas as pd

        frame = pd.DataFrame(model_input)
        names = tuple(str(name) for name in frame.columns)
        values = [
            [None if pd.isna(value) else value for value in row]
            for row in frame.astype(object).to_numpy().tolist()
        ]
        X = self.served.columns.encode(RequestRows(names, values, "json"))
        answers = self.served.answer(X)
        columns: dict[str, Any] = {"label": answers.labels, "refused": answers.refused}
        if answers.margins is not None:
            margins = answers.margins
            columns["margin"] = margins if margins.ndim == 1 else margins.max(axis=1)
        if answers.probabilities is not None:
            for label, column in zip(
                self.served.classes.tolist(), answers.probabilities.T, strict=True
            ):
                columns[f"probability_{label}"] = column
        return pd.DataFrame(columns, index=frame.index)


def _load_pyfunc(data_path: str) -> Answering:
    """Called by MLflow with the path of the model file."""
    return Answering(ServedModel.load(data_path))
